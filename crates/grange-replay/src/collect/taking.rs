//! From a file to captures in an index, and out of it again. For threads that may wait.

use std::io::{self, BufReader, Read};
use std::path::Path;

use cdx::IndexReport;
use flate2::read::MultiGzDecoder;
use grange_base::{Chain, named_file};
use grange_db::Indexed;
use grange_index::{Batch, Index, LoadReport};
use grange_model::collection::FileKind as Kind;
use warc::Level;

use super::reconcile::Unwanted;
use crate::holdings::wacz::{self, WaczError};

/// Why a file was not indexed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// It will not get better by itself.
    #[error("{0}")]
    File(String),
    /// It is not where it was, or may not be read: it was removed, or its disk is away.
    #[error("{0}")]
    Gone(String),
    /// It may work later.
    #[error("{0}")]
    Now(String),
}

/// Kinds of problems told of one file.
const TOLD_MAX: usize = 10;

/// Reads all records and commits their captures as one change.
pub(super) fn commit(
    index: &Index,
    reader: &mut warc::Reader,
    name: &str,
    job: Option<&str>,
) -> io::Result<Indexed> {
    let mut batch = Batch::new();
    let report = batch.add_records(reader, name, job)?;
    index.commit(batch).map_err(io::Error::other)?;
    Ok(told_of(&report, ""))
}

/// What is lost of a file. What is merely odd about it, as much of what is old is, `grange warc check` tells.
fn told_of(report: &IndexReport, inside: &str) -> Indexed {
    let told = report
        .summary(Level::Damage)
        .into_iter()
        .take(TOLD_MAX)
        .map(|line| format!("{inside}{line}"))
        .collect();
    Indexed { job: None, captures: report.lines, problems: report.count_of(Level::Damage), told }
}

pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    let path = path.display().to_string();
    move |error| {
        let text = format!("cannot read {path}: {}", Chain(&error));
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Trouble::Gone(text),
            io::ErrorKind::IsADirectory => Trouble::File(text),
            // However often it is tried.
            _ if named_file::refused(&error) => Trouble::File(text),
            _ => Trouble::Now(text),
        }
    }
}

/// Why a WACZ could not be opened.
pub(super) fn no_package(path: &Path) -> impl FnOnce(WaczError) -> Trouble {
    let path = path.to_owned();
    move |error| match error {
        WaczError::Io(error) => unreadable(&path)(error),
        WaczError::NotZip(_) => Trouble::File(format!("cannot read {}: {error}", path.display())),
    }
}

pub(super) fn records(index: &Index, name: &str, path: &Path) -> Result<Indexed, Trouble> {
    let file = named_file::open(path).map_err(unreadable(path))?;
    let mut reader = warc::Reader::seekable(file).map_err(unreadable(path))?;
    commit(index, &mut reader, name, None).map_err(unreadable(path))
}

/// Every WARC of a WACZ, under the names that its holdings give them. All become part of the index together.
pub(super) fn packed<P>(
    index: &Index,
    name: &str,
    path: &Path,
    members: &[wacz::Member<P>],
    open: impl Fn(&str, &P) -> io::Result<warc::Reader>,
) -> Result<Indexed, Trouble> {
    let mut sum = Indexed::default();
    let mut batch = Batch::new();
    for member in members.iter().filter(|member| member.is_archive()) {
        let Some(section) = &member.section else {
            sum.problems += 1;
            sum.told.push(format!(
                "{}: it is compressed inside the WACZ, which no reader can seek in",
                member.name
            ));
            continue;
        };
        let inner = member.name_in(name);
        let mut reader = open(&inner, section).map_err(unreadable(path))?;
        let report = batch.add_records(&mut reader, &inner, None).map_err(unreadable(path))?;
        let one = told_of(&report, &format!("{}: ", member.name));
        sum.captures += one.captures;
        sum.problems += one.problems;
        sum.told.extend(one.told);
        sum.told.truncate(TOLD_MAX);
    }
    index.commit(batch).map_err(|error| Trouble::Now(Chain(&error).to_string()))?;
    Ok(sum)
}

/// The job under which lines of an index file are kept, so that they can be taken out together.
pub(super) fn lines_job(name: &str) -> String {
    format!("lines of {name}")
}

pub(super) fn lines(index: &Index, name: &str, path: &Path, unwanted: &Unwanted) -> Result<Indexed, Trouble> {
    let file = named_file::open(path).map_err(unreadable(path))?;
    load_lines(index, name, &path.to_string_lossy(), file, unwanted)
}

/// Loads the lines of an index file, without those about `unwanted` files.
pub(super) fn load_lines(
    index: &Index,
    name: &str,
    path: &str,
    file: impl Read,
    unwanted: &Unwanted,
) -> Result<Indexed, Trouble> {
    let job = lines_job(name);
    let zipped = path.to_ascii_lowercase().ends_with(".gz");
    let wanted = |file: &str| !unwanted.has(file);
    let report: LoadReport = if zipped {
        let file = MultiGzDecoder::new(file);
        index.load_wanted(BufReader::with_capacity(1 << 16, file), Some(&job), wanted)
    } else {
        index.load_wanted(BufReader::with_capacity(1 << 16, file), Some(&job), wanted)
    }
    .map_err(|error| Trouble::Now(Chain(&error).to_string()))?;
    let told = report.problems.iter().take(TOLD_MAX).map(|problem| {
        problem.problem.map_or_else(
            || format!("byte {}: no index line", problem.offset),
            |what| format!("byte {}: {what}", problem.offset),
        )
    });
    let mut told: Vec<String> = told.collect();
    if report.left_out > 0 {
        told.truncate(TOLD_MAX - 1);
        told.push(format!("{} lines left out: their files are out of the index, or failed", report.left_out));
    }
    Ok(Indexed { job: None, captures: report.captures, problems: report.problem_count, told })
}

/// Whether the index has a file as a whole. Lines that name the file do not count.
pub(super) fn holds(index: &Index, name: &str) -> bool {
    match Kind::of(name) {
        Kind::Lines => index.snapshot().holds_job(&lines_job(name)),
        Kind::Wacz => {
            let below = format!("{name}/");
            index.snapshot().whole_files().any(|inner| inner.starts_with(&below))
        }
        Kind::Records | Kind::Other => index.holds_file(name),
    }
}

pub(super) fn take_out(index: &Index, name: &str) -> Result<(), Trouble> {
    let failed = |error: grange_index::Error| Trouble::Now(Chain(&error).to_string());
    match Kind::of(name) {
        Kind::Lines => index.remove_lines(&lines_job(name)).map(drop).map_err(failed),
        Kind::Wacz => {
            let below = format!("{name}/");
            let snapshot = index.snapshot();
            for inner in snapshot.file_names().filter(|inner| inner.starts_with(&below)) {
                index.remove_file(inner).map_err(failed)?;
            }
            Ok(())
        }
        Kind::Records | Kind::Other => index.remove_file(name).map(drop).map_err(failed),
    }
}
