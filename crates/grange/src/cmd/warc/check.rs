//! `grange warc check`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::line::ProblemLine;
use super::{failed, open};
use crate::cli::Common;
use crate::exit::Exit;
use crate::progress::Progress;

/// What was found in all files.
#[derive(Default)]
struct Found {
    records: AtomicUsize,
    problems: AtomicUsize,
    /// Files that could not be read at all, with the reason.
    failures: Mutex<Vec<anyhow::Error>>,
}

/// Reads every file to its end and prints each problem as it is found. Every line names its file, so the lines of
/// files that are read at the same time may stand between each other.
pub(super) fn run(
    common: &Common,
    files: &[PathBuf],
    level: warc::Level,
    digests: bool,
    threads: Option<usize>,
) -> anyhow::Result<Exit> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores).clamp(1, files.len());
    let progress = Progress::over(files);
    let found = Found::default();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = check(common.json, file, level, digests, &progress, &found) {
                        found.failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(error);
                    }
                }
            });
        }
    });
    progress.finish();
    let (records, problems) = (found.records.into_inner(), found.problems.into_inner());
    let mut failures = found.failures.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !common.json {
        let plural =
            |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let files = plural(files.len() - failures.len(), "file");
        errln!("{files}, {}, {}", plural(records, "record"), plural(problems, "problem"));
    }
    // The last failure becomes the command's own; the others are told before it.
    if let Some(last) = failures.pop() {
        for failure in failures {
            errln!("grange: {failure:#}");
        }
        return Err(last);
    }
    Ok(if problems > 0 { Exit::Partial } else { Exit::Ok })
}

fn check(
    json: bool,
    file: &Path,
    level: warc::Level,
    digests: bool,
    progress: &Progress,
    found: &Found,
) -> anyhow::Result<()> {
    let mut reader = open(file)?;
    let at = progress.file(file);
    let print = |problems: &[warc::Problem]| -> anyhow::Result<()> {
        let problems: Vec<_> = problems.iter().filter(|problem| problem.kind.level() >= level).collect();
        if problems.is_empty() {
            return Ok(());
        }
        found.problems.fetch_add(problems.len(), Ordering::Relaxed);
        progress.suspend(|| {
            let mut out = crate::output::stdout();
            for problem in problems {
                let line = ProblemLine::new(file, problem);
                if json {
                    serde_json::to_writer(&mut out, &line)?;
                    writeln!(out)?;
                } else {
                    writeln!(out, "{}", line.text())?;
                }
            }
            Ok(())
        })
    };
    while let Some(mut record) = reader.next().map_err(|error| failed(file, error))? {
        let read = if digests { record.digest_check().map(|_| ()) } else { record.http().map(|_| ()) };
        read.and_then(|()| record.finish()).map_err(|error| failed(file, error))?;
        print(record.problems())?;
        found.records.fetch_add(1, Ordering::Relaxed);
        at.at(record.place().offset);
    }
    print(reader.problems())?;
    at.done(std::fs::metadata(file).map(|meta| meta.len()).unwrap_or_default());
    Ok(())
}
