//! Many sorted files into one.

use crate::legend::Legend;
use std::cmp::Ordering;
use std::io::{self, BufRead, Write};

/// What happens to lines that say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dedupe {
    /// Every line is kept.
    Nothing,
    /// Equal lines are written once.
    #[default]
    Lines,
    /// Of lines with the same key and timestamp that name the same file and offset the first is written: the
    /// same record, indexed twice by different tools.
    Captures,
}

/// Decides line by line what was said before. Lines come sorted.
#[derive(Debug, Default)]
pub(crate) struct Deduper {
    mode: Dedupe,
    last: Vec<u8>,
    any: bool,
    /// Key and timestamp of the last line, and the places that lines with them have named.
    group: Vec<u8>,
    places: Vec<(String, u64)>,
}

impl Deduper {
    pub(crate) fn new(mode: Dedupe) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Whether `line` says something new. A legend never appears twice.
    pub(crate) fn admits(&mut self, line: &[u8]) -> bool {
        let repeated = self.any && self.last == line;
        let double = match self.mode {
            Dedupe::Nothing => repeated && Legend::parse(line).is_some(),
            Dedupe::Lines => repeated,
            Dedupe::Captures => repeated || self.names_known_place(line),
        };
        if !double {
            self.last.clear();
            self.last.extend_from_slice(line);
            self.any = true;
        }
        !double
    }

    fn names_known_place(&mut self, line: &[u8]) -> bool {
        let Some(head) = memchr::memchr_iter(b' ', line).nth(1) else {
            return false;
        };
        if self.group != line[..head] {
            self.group.clear();
            self.group.extend_from_slice(&line[..head]);
            self.places.clear();
        }
        let place = crate::parse_line(line, None)
            .entry()
            .and_then(|entry| Some((entry.filename?.into_owned(), entry.offset?)));
        let Some(place) = place else { return false };
        if self.places.contains(&place) {
            return true;
        }
        // More captures of one second than this are no honest index; what is beyond stays as it is.
        if self.places.len() < PLACES_MAX {
            self.places.push(place);
        }
        false
    }
}

const PLACES_MAX: usize = 1000;

/// Merges sorted inputs into `out`, each line with a line end. Returns how many lines were written.
///
/// Inputs that are not sorted give an output that is not; nothing is lost.
pub fn merge(inputs: Vec<Box<dyn BufRead + '_>>, dedupe: Dedupe, out: &mut dyn Write) -> io::Result<u64> {
    merge_readers(inputs, dedupe, out)
}

pub(crate) fn merge_readers<R: BufRead>(
    inputs: Vec<R>,
    dedupe: Dedupe,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut heap = Vec::with_capacity(inputs.len());
    for (order, input) in inputs.into_iter().enumerate() {
        let mut source = Source { input, line: Vec::new(), order };
        if source.advance()? {
            heap.push(source);
        }
    }
    for root in (0..heap.len() / 2).rev() {
        sift_down(&mut heap, root);
    }
    let mut seen = Deduper::new(dedupe);
    let mut written = 0;
    while let Some(top) = heap.first_mut() {
        if seen.admits(&top.line) {
            out.write_all(&top.line)?;
            out.write_all(b"\n")?;
            written += 1;
        }
        if !top.advance()? {
            heap.swap_remove(0);
        }
        sift_down(&mut heap, 0);
    }
    out.flush()?;
    Ok(written)
}

struct Source<R> {
    input: R,
    line: Vec<u8>,
    order: usize,
}

impl<R: BufRead> Source<R> {
    /// Reads the next line without its end; false at the end of the input.
    fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        if self.input.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        Ok(true)
    }
}

impl<R> Source<R> {
    /// Among equal lines the first input comes first.
    fn compare(&self, other: &Self) -> Ordering {
        self.line.cmp(&other.line).then(self.order.cmp(&other.order))
    }
}

/// `BinaryHeap` would need the root taken out and put back for each line; changing it in place is half the work.
fn sift_down<R>(heap: &mut [Source<R>], mut root: usize) {
    loop {
        let mut least = 2 * root + 1;
        if least >= heap.len() {
            return;
        }
        if least + 1 < heap.len() && heap[least + 1].compare(&heap[least]).is_lt() {
            least += 1;
        }
        if heap[root].compare(&heap[least]).is_le() {
            return;
        }
        heap.swap(root, least);
        root = least;
    }
}
