//! Rows in any order, kept in memory until they are sorted and written as a segment.

use crate::capture::Capture;
use crate::digest::Form;
use crate::error::Result;
use crate::row::{FileEntry, Parts, Row, RowMaker, Tables};
use crate::segment::SegmentWriter;
use crate::stamp::Stamp;

#[derive(Debug, Default)]
pub(crate) struct Run {
    tables: Tables,
    maker: RowMaker,
    /// Key, digest and literals of each row, one after another.
    text: Vec<u8>,
    slots: Vec<Slot>,
    /// Its rows are those of a file that is committed as a file.
    whole: bool,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    start: usize,
    surt: u32,
    digest: u32,
    literals: u32,
    time: Stamp,
    file: u32,
    kind: u32,
    offset: u64,
    length: u64,
    form: Form,
    address: u8,
}

impl Run {
    /// The rows of a file, which has its place even if there are none.
    pub(crate) fn of_file(name: &str, job: Option<&str>) -> Self {
        let mut run = Self { whole: true, ..Self::default() };
        run.tables.file(&FileEntry { name: name.into(), job: job.map(Into::into), whole: true });
        run
    }

    pub(crate) fn push(&mut self, parts: &Parts<'_>) {
        let row = self.maker.make(&Parts { whole: self.whole, ..*parts }, &mut self.tables);
        self.slots.push(Slot {
            start: self.text.len(),
            surt: row.surt.len() as u32,
            digest: row.digest.len() as u32,
            literals: row.literals.len() as u32,
            time: row.time,
            file: row.file,
            kind: row.kind,
            offset: row.offset,
            length: row.length,
            form: row.form,
            address: row.address,
        });
        self.text.extend_from_slice(row.surt);
        self.text.extend_from_slice(row.digest);
        self.text.extend_from_slice(row.literals);
    }

    /// Takes a capture; `deleted` makes it one that takes an older one away.
    pub(crate) fn push_capture(&mut self, capture: &Capture, deleted: bool) {
        let extra = if capture.extra.is_empty() {
            String::new()
        } else {
            serde_json::Value::Object(capture.extra.clone()).to_string()
        };
        let parts = Parts { deleted, ..Parts::of(capture, &extra) };
        if capture.surt.contains('\0') || capture.file.contains('\0') {
            // NUL separates the parts of a key.
            let (surt, file) = (capture.surt.replace('\0', "%00"), capture.file.replace('\0', "%00"));
            self.push(&Parts { surt: &surt, file: &file, ..parts });
        } else {
            self.push(&parts);
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.slots.len()
    }

    fn row(&self, slot: &Slot) -> Row<'_> {
        let digest = slot.start + slot.surt as usize;
        let literals = digest + slot.digest as usize;
        Row {
            surt: &self.text[slot.start..digest],
            time: slot.time,
            file: slot.file,
            offset: slot.offset,
            kind: slot.kind,
            length: slot.length,
            form: slot.form,
            digest: &self.text[digest..literals],
            address: slot.address,
            literals: &self.text[literals..literals + slot.literals as usize],
        }
    }

    /// Sorts the rows and writes them. Of rows with the same key the one that came last counts.
    pub(crate) fn write(mut self, writer: &mut SegmentWriter) -> Result<()> {
        let mut order: Vec<(u128, u32)> =
            self.slots.iter().zip(0..).map(|(slot, at)| (head(self.row(slot).surt), at)).collect();
        let files = std::mem::take(&mut self.tables.files);
        let compare = |a: u32, b: u32| {
            let (a, b) = (self.row(&self.slots[a as usize]), self.row(&self.slots[b as usize]));
            let file = |row: &Row<'_>| &*files[row.file as usize].name;
            a.surt
                .cmp(b.surt)
                .then_with(|| a.time.cmp(&b.time))
                .then_with(
                    || if a.file == b.file { std::cmp::Ordering::Equal } else { file(&a).cmp(file(&b)) },
                )
                .then_with(|| a.offset.cmp(&b.offset))
        };
        // The first sixteen bytes decide most comparisons without a look at the text.
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| compare(a.1, b.1)).then_with(|| b.1.cmp(&a.1))
        });
        order.dedup_by(|b, a| a.0 == b.0 && compare(a.1, b.1).is_eq());
        self.tables.files = files;
        writer.tables = std::mem::take(&mut self.tables);
        for (_, at) in order {
            writer.push(&self.row(&self.slots[at as usize]))?;
        }
        Ok(())
    }
}

fn head(surt: &[u8]) -> u128 {
    let mut head = [0; 16];
    let len = surt.len().min(16);
    head[..len].copy_from_slice(&surt[..len]);
    u128::from_be_bytes(head)
}
