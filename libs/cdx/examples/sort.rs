//! Sorts standard input to standard output by bytes, dropping doubles: `sort [MEGABYTES]`.
//!
//! The same as `LC_ALL=C sort -u`, in bounded memory.

use cdx::{Dedupe, SortOptions, Sorter};
use std::io::BufWriter;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let megabytes: usize = std::env::args().nth(1).as_deref().unwrap_or("32").parse()?;
    let options =
        SortOptions { memory_bytes: megabytes << 20, dedupe: Dedupe::Lines, ..SortOptions::default() };
    let mut sorter = Sorter::new(options);
    sorter.push_all(std::io::stdin().lock())?;
    let runs = sorter.runs();
    let lines = sorter.finish(&mut BufWriter::with_capacity(1 << 16, std::io::stdout().lock()))?;
    eprintln!("{lines} lines, {runs} runs on disk");
    Ok(())
}
