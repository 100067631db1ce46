//! Indexes files to standard output: `index [-9|-11] [-p] [-s] [-t THREADS] [--ia] [-d] FILE…`.
//!
//! This is what the benchmark runs against cdxj-indexer.

use cdx::{Format, IndexOptions, Legend, SortOptions, Sorter, Spelling, index_file};
use std::io::{BufWriter, Write};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = IndexOptions::default();
    let (mut threads, mut sort) = (1, false);
    let mut files = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-9" => options.format = Format::Cdx(Legend::cdx9()),
            "-11" => options.format = Format::Cdx(Legend::cdx11()),
            "-p" => options.post_append = true,
            "-d" => options.record_digests = true,
            "-s" => sort = true,
            "-t" => threads = args.next().ok_or("-t needs a number")?.parse()?,
            "-f" => {
                let names = args.next().ok_or("-f needs fields")?;
                options.extra = names.split(',').map(cdx::ExtraField::parse).collect();
            }
            "--ia" => {
                options.dialect = urlkey::Dialect::Ia;
                options.spelling = Spelling::Python;
            }
            _ => files.push(arg),
        }
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let mut sorter = sort.then(|| Sorter::new(SortOptions::default()));
    for file in &files {
        options.filename = Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Format::Cdx(legend) = &options.format {
            let line = legend.line() + "\n";
            sorter
                .as_mut()
                .map_or_else(|| out.write_all(line.as_bytes()), |sorter| sorter.push(line.as_bytes()))?;
        }
        let report = index_file(file, &options, threads, |line| match &mut sorter {
            Some(sorter) => sorter.push(line),
            None => out.write_all(line),
        })?;
        eprintln!(
            "{file}: {} records, {} lines, {} problems",
            report.records,
            report.lines,
            report.count_of(warc::Level::Comment)
        );
    }
    if let Some(sorter) = sorter {
        sorter.finish(&mut out)?;
    }
    out.flush()?;
    Ok(())
}
