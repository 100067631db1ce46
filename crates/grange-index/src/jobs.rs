//! The captures of a set of jobs, as NetarchiveSuite's index server hands them out.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use cdx::Legend;
use serde_json::json;

use crate::error::{Error, Result};
use crate::original::OriginalFinder;
use crate::query::{Keys, Next, Query};
use crate::snapshot::Snapshot;
use crate::view::CaptureView;

/// What is asked for of the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobIndexKind {
    /// CDX lines of eleven fields, legend first, in the order of their keys.
    Cdx,
    /// What a crawl compares with to write no duplicates: everything but text, which changes with every visit.
    Dedup,
    /// The same of everything.
    Full,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobIndexReport {
    pub captures: u64,
    /// Captures per job; those asked for and not found are there with none. An answer for some of the jobs is an answer:
    /// who asked decides whether it is enough.
    pub jobs: HashMap<String, u64>,
    /// Blocks of the index that could not be read.
    pub damaged: u64,
}

/// Writes what is known of some jobs.
///
/// Lines for duplicates are JSON: `url`, `mime`, `digest`, `date` and `origin` (`file,offset,timestamp`). The origin of a
/// revisit is that of its original, so that chains stay flat.
pub fn write_job_index(
    snapshot: &Snapshot,
    jobs: &BTreeSet<String>,
    kind: JobIndexKind,
    out: &mut dyn Write,
) -> Result<JobIndexReport> {
    let mut report = JobIndexReport::default();
    report.jobs.extend(jobs.iter().map(|job| (job.clone(), 0)));
    let failed = |error: io::Error| Error::io("write", "the index of the jobs")(error);
    let legend = Legend::cdx11();
    if kind == JobIndexKind::Cdx {
        writeln!(out, "{}", legend.line()).map_err(failed)?;
    }
    let mut line = Vec::new();
    let mut originals = OriginalFinder::new(snapshot, None);
    let answered = Query::new(Keys::Range(String::new(), None)).run(snapshot, |view| {
        let Some(count) = view.job().and_then(|job| report.jobs.get_mut(job)) else { return Ok(Next::More) };
        line.clear();
        match kind {
            JobIndexKind::Cdx => view.to_capture().to_entry().write_cdx(&legend, &mut line),
            JobIndexKind::Dedup if view.mime().is_some_and(|mime| mime.starts_with("text/")) => {}
            JobIndexKind::Dedup | JobIndexKind::Full => duplicate_line(&mut originals, view, &mut line)?,
        }
        if !line.is_empty() {
            *count += 1;
            report.captures += 1;
            out.write_all(&line).map_err(failed)?;
        }
        Ok(Next::More)
    })?;
    report.damaged = answered.damaged_count;
    Ok(report)
}

fn duplicate_line(
    originals: &mut OriginalFinder<'_>,
    view: &CaptureView<'_>,
    line: &mut Vec<u8>,
) -> Result<()> {
    let capture = view.to_capture();
    // Papers of the job and captures without a digest are nothing that a crawl could meet again.
    let (Some(url), Some(digest)) = (&capture.url, &capture.digest) else { return Ok(()) };
    if !url.starts_with("http") {
        return Ok(());
    }
    let origin = if view.is_revisit() { originals.find(view)? } else { None };
    let origin = origin.as_ref().unwrap_or(&capture);
    let told = json!({
        "url": url,
        "mime": origin.mime,
        "digest": digest,
        "date": capture.time.to_string(),
        "origin": format!("{},{},{}", origin.file, origin.offset.unwrap_or_default(), origin.time),
    });
    // Text always has a JSON form, and a Vec never fails to be written to.
    let _ = serde_json::to_writer(&mut *line, &told);
    line.push(b'\n');
    Ok(())
}
