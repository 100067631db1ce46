//! Sorts more numbers than fit in memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Sixty-four megabytes of numbers before they are written aside.
const NUMBERS_MAX: usize = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct Spill {
    numbers: Vec<u128>,
    runs: Vec<File>,
    max: Option<usize>,
}

impl Spill {
    #[cfg(test)]
    pub(super) fn with_max(max: usize) -> Self {
        Self { max: Some(max), ..Self::default() }
    }

    /// Takes a number. Runs go into unnamed files in `folder`, which the system removes whatever happens.
    pub(super) fn push(&mut self, number: u128, folder: Option<&Path>) -> io::Result<()> {
        self.numbers.push(number);
        if self.numbers.len() < self.max.unwrap_or(NUMBERS_MAX) {
            return Ok(());
        }
        // Segments in memory are small and have no folder; they never come here.
        let Some(folder) = folder else { return Ok(()) };
        self.numbers.sort_unstable();
        let mut out = BufWriter::with_capacity(1 << 16, tempfile::tempfile_in(folder)?);
        for number in self.numbers.drain(..) {
            out.write_all(&number.to_le_bytes())?;
        }
        let mut run = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        run.seek(SeekFrom::Start(0))?;
        self.runs.push(run);
        Ok(())
    }

    /// Hands all numbers to `sink`, in order.
    pub(super) fn finish(mut self, mut sink: impl FnMut(u128) -> io::Result<()>) -> io::Result<()> {
        self.numbers.sort_unstable();
        let mut numbers = self.numbers.into_iter();
        let mut runs: Vec<_> =
            self.runs.into_iter().map(|run| BufReader::with_capacity(1 << 16, run)).collect();
        let mut heads = Vec::with_capacity(runs.len() + 1);
        for run in &mut runs {
            heads.push(next(run)?);
        }
        heads.push(numbers.next());
        loop {
            let least = heads.iter().enumerate().filter_map(|(at, head)| head.map(|head| (head, at))).min();
            let Some((number, at)) = least else { return Ok(()) };
            sink(number)?;
            heads[at] = match runs.get_mut(at) {
                Some(run) => next(run)?,
                None => numbers.next(),
            };
        }
    }
}

fn next(run: &mut impl Read) -> io::Result<Option<u128>> {
    let mut bytes = [0; 16];
    match run.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(u128::from_le_bytes(bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back_sorted(mut numbers: Vec<u128>) {
            let folder = tempfile::tempdir().unwrap();
            let mut spill = Spill::with_max(7);
            for number in &numbers {
                spill.push(*number, Some(folder.path())).unwrap();
            }
            let mut sorted = Vec::new();
            spill.finish(|number| { sorted.push(number); Ok(()) }).unwrap();
            numbers.sort_unstable();
            prop_assert_eq!(sorted, numbers);
        }
    }
}
