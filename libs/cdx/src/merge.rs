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
    /// Of lines that follow each other with the same key and timestamp and name the same file and offset, the
    /// first is written: the same record, indexed twice by different tools.
    Captures,
}

impl Dedupe {
    /// Whether `line` says what `last`, written just before it, already said. A legend never appears twice.
    pub(crate) fn is_double(self, last: &[u8], line: &[u8]) -> bool {
        match self {
            Self::Nothing => last == line && Legend::parse(line).is_some(),
            Self::Lines => last == line,
            Self::Captures => last == line || same_record(last, line),
        }
    }
}

fn same_record(a: &[u8], b: &[u8]) -> bool {
    let head = |line: &[u8]| memchr::memchr_iter(b' ', line).nth(1);
    let (Some(a_head), Some(b_head)) = (head(a), head(b)) else {
        return false;
    };
    if a[..a_head] != b[..b_head] {
        return false;
    }
    let place = |line| {
        let entry = crate::parse_line(line, None).entry()?;
        Some((entry.filename?.into_owned(), entry.offset?))
    };
    place(a).is_some_and(|a| place(b) == Some(a))
}

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
        let mut source = Source {
            input,
            line: Vec::new(),
            order,
        };
        if source.advance()? {
            heap.push(source);
        }
    }
    for root in (0..heap.len() / 2).rev() {
        sift_down(&mut heap, root);
    }
    let mut last = Vec::new();
    let mut written = 0;
    while let Some(top) = heap.first_mut() {
        if written == 0 || !dedupe.is_double(&last, &top.line) {
            out.write_all(&top.line)?;
            out.write_all(b"\n")?;
            written += 1;
            // The line is not needed any more: trade buffers instead of copying.
            std::mem::swap(&mut last, &mut top.line);
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
