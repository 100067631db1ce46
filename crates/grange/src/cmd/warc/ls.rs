//! `grange warc ls`

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::line::{ProblemLine, RecordLine};
use super::{failed, open};
use crate::cli::Common;
use crate::exit::{Exit, report};
use crate::output;

/// Lists every record. Problems are objects of their own with `--json`, and go to standard error otherwise.
pub(super) fn run(common: &Common, files: &[PathBuf]) -> anyhow::Result<Exit> {
    let mut out = BufWriter::with_capacity(1 << 16, output::listing());
    let (mut problems, mut failed) = (0, None);
    for file in files {
        match list(common.json, file, &mut out) {
            Ok(count) => problems += count,
            Err(error) if output::ended_listing(&error) => return Err(error),
            // The others are listed all the same.
            Err(error) => {
                out.flush()?;
                failed = failed.or(Some(report(&error)));
            }
        }
    }
    out.flush()?;
    let listed = if problems > 0 { Exit::Partial } else { Exit::Ok };
    Ok(failed.unwrap_or(listed))
}

/// Lists one file; gives the number of problems that matter.
fn list(json: bool, file: &Path, out: &mut impl Write) -> anyhow::Result<usize> {
    let mut reader = open(file)?;
    let mut count = 0;
    while let Some(mut record) = reader.next().map_err(|error| failed(file, error))? {
        let line = RecordLine::read(file, &mut record).map_err(|error| failed(file, error))?;
        if json {
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        } else {
            let length = line.length.map_or_else(|| "-".to_owned(), |length| length.to_string());
            let status = line.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
            let (date, url) = (line.date.as_deref().unwrap_or("-"), line.url.as_deref().unwrap_or("-"));
            let mime = line.mime.as_deref().unwrap_or("-");
            writeln!(out, "{}\t{length}\t{}\t{date}\t{status}\t{mime}\t{url}", line.offset, line.kind)?;
        }
        count += show(json, file, record.problems(), out)?;
    }
    Ok(count + show(json, file, reader.problems(), out)?)
}

fn show(json: bool, file: &Path, problems: &[warc::Problem], out: &mut impl Write) -> anyhow::Result<usize> {
    for problem in problems {
        let line = ProblemLine::new(file, problem);
        if json {
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        } else {
            errln!("{}", line.text());
        }
    }
    Ok(problems.iter().filter(|problem| problem.kind.level() > warc::Level::Comment).count())
}
