//! Captures of one key in the order of their distance from a moment.

use crate::error::Result;
use crate::merge::Layer;
use crate::snapshot::{Ascending, Descending};
use crate::stamp::Stamp;
use crate::view::CaptureView;

/// Captures by their distance in time, the closest first; of two equally close the earlier, as pywb does. After an error the
/// next call goes on behind the damage.
#[derive(Debug)]
pub struct Closest {
    time: Stamp,
    later: Ascending,
    earlier: Descending,
    /// Whether the side stands at a capture that was not given out; `None`: it has to be moved on first.
    has_later: Option<bool>,
    has_earlier: Option<bool>,
    gives: Option<Side>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Later,
    Earlier,
}

impl Closest {
    pub(crate) fn new(layers: &[&Layer], surt: &[u8], time: Stamp) -> Self {
        Self {
            time,
            later: Ascending::of_key(layers.iter().copied(), surt, time),
            earlier: Descending::of_key(layers.iter().copied(), surt, time),
            has_later: None,
            has_earlier: None,
            gives: None,
        }
    }

    /// Moves to the next capture; false after the last.
    pub fn advance(&mut self) -> Result<bool> {
        match self.gives.take() {
            Some(Side::Later) => self.has_later = None,
            Some(Side::Earlier) => self.has_earlier = None,
            None => {}
        }
        let later = match self.has_later {
            Some(there) => there,
            None => *self.has_later.insert(self.later.advance()?),
        };
        // Nothing is closer than the moment itself, so the other side need not be looked at.
        if later && self.later.current().is_some_and(|view| view.time() == self.time) {
            self.gives = Some(Side::Later);
            return Ok(true);
        }
        let earlier = match self.has_earlier {
            Some(there) => there,
            None => *self.has_earlier.insert(self.earlier.advance()?),
        };
        let distance = |view: Option<CaptureView<'_>>| {
            view.map_or(i64::MAX, |view| (view.time().seconds() - self.time.seconds()).abs())
        };
        self.gives = match (earlier, later) {
            (false, false) => None,
            (true, true) if distance(self.later.current()) < distance(self.earlier.current()) => {
                Some(Side::Later)
            }
            (true, _) => Some(Side::Earlier),
            (false, true) => Some(Side::Later),
        };
        Ok(self.gives.is_some())
    }

    /// The capture that [`advance`](Self::advance) moved to.
    pub fn current(&self) -> Option<CaptureView<'_>> {
        match self.gives? {
            Side::Later => self.later.current(),
            Side::Earlier => self.earlier.current(),
        }
    }
}
