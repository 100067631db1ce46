//! Originals of the revisits of one answer.

use std::collections::HashMap;

use crate::capture::Capture;
use crate::error::{Error, Result};
use crate::snapshot::Snapshot;
use crate::stamp::Stamp;
use crate::view::CaptureView;

/// Finds where the payload of a revisit stands: an original of the same URL with its digest, the nearest earlier one if there
/// is one, else the first capture anywhere with the digest.
///
/// The captures of a URL are read once for all of its revisits: some have thousands of one original, and looking through all
/// captures for each would cost the square of their number.
#[derive(Debug)]
pub(crate) struct OriginalFinder<'s> {
    snapshot: &'s Snapshot,
    /// Of which key the times are.
    surt: Option<Vec<u8>>,
    /// When there are originals, by what their digests stand for; in order.
    times: HashMap<Box<[u8]>, Vec<Stamp>>,
    /// Captures of other URLs.
    elsewhere: HashMap<Box<[u8]>, Option<Capture>>,
    /// Rows that may still be read.
    rows_left: Option<u64>,
    #[cfg(test)]
    pub(crate) urls_read: usize,
}

impl<'s> OriginalFinder<'s> {
    /// Beyond `rows_most` rows the answer is [`Error::Unfinished`].
    pub(crate) fn new(snapshot: &'s Snapshot, rows_most: Option<u64>) -> Self {
        Self {
            snapshot,
            surt: None,
            times: HashMap::new(),
            elsewhere: HashMap::new(),
            rows_left: rows_most,
            #[cfg(test)]
            urls_read: 0,
        }
    }

    pub(crate) fn find(&mut self, revisit: &CaptureView<'_>) -> Result<Option<Capture>> {
        let essence = revisit.digest_essence();
        if essence.is_empty() {
            return Ok(None);
        }
        if self.surt.as_deref() != Some(revisit.surt_bytes()) {
            self.read(revisit)?;
        }
        if let Some(times) = self.times.get(essence) {
            let earlier = times.partition_point(|time| *time <= revisit.time());
            let time = earlier.checked_sub(1).and_then(|at| times.get(at)).or_else(|| times.first());
            if let Some(time) = time {
                return self.at(revisit, *time, earlier > 0);
            }
        }
        if let Some(found) = self.elsewhere.get(essence) {
            return Ok(found.clone());
        }
        let mut digest = String::new();
        revisit.digest_into(&mut digest);
        let found = self.snapshot.digest(&digest)?.map(|found| found.first);
        let found = found.filter(|first| !first.is_revisit());
        self.elsewhere.insert(essence.into(), found.clone());
        Ok(found)
    }

    fn read(&mut self, revisit: &CaptureView<'_>) -> Result<()> {
        (self.surt, self.times, self.elsewhere) = (None, HashMap::new(), HashMap::new());
        #[cfg(test)]
        {
            self.urls_read += 1;
        }
        let mut captures = self.snapshot.captures(&revisit.surt(), Stamp::MIN)?;
        while let Some(view) = captures.next()? {
            if let Some(left) = &mut self.rows_left {
                *left = left.checked_sub(1).ok_or(Error::Unfinished { most: 0 })?;
            }
            let essence = view.digest_essence();
            if view.is_revisit() || view.is_description() || essence.is_empty() {
                continue;
            }
            match self.times.get_mut(essence) {
                Some(times) => times.push(view.time()),
                None => {
                    self.times.insert(essence.into(), vec![view.time()]);
                }
            }
        }
        self.surt = Some(revisit.surt_bytes().to_vec());
        Ok(())
    }

    /// Of several of one moment the one nearest to the revisit.
    fn at(&self, revisit: &CaptureView<'_>, time: Stamp, last: bool) -> Result<Option<Capture>> {
        let mut captures = self.snapshot.captures(&revisit.surt(), time)?;
        let mut found = None;
        while let Some(view) = captures.next()?.filter(|view| view.time() == time) {
            let fits = !view.is_revisit()
                && !view.is_description()
                && view.digest_essence() == revisit.digest_essence();
            if fits {
                found = Some(view.to_capture());
                if !last {
                    break;
                }
            }
        }
        Ok(found)
    }
}
