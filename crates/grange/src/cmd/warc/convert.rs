//! `grange warc convert`

use std::path::Path;

use warc::convert::Converter;

use super::line::ProblemLine;
use super::{Target, failed, open};
use crate::cli::Common;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::progress::Progress;

/// Writes an ARC file as WARC 1.1.
pub(super) fn run(common: &Common, file: &Path, to: &Target) -> anyhow::Result<Exit> {
    let mut reader = open(file)?;
    let software = format!("grange {}", grange_node::VERSION);
    let mut made = Converter::create(&to.output, to.compression(), file, &software)
        .map_err(|error| anyhow::Error::new(error).context(format!("cannot make {}", to.output.display())))?;
    let progress = Progress::over(&[file.to_owned()]);
    let at = progress.file(file);
    let mut problems = 0;
    let mut show = |list: &[warc::Problem]| {
        for problem in list.iter().filter(|problem| problem.kind.level() > warc::Level::Comment) {
            problems += 1;
            progress.suspend(|| eprintln!("{}", ProblemLine::new(file, problem).text()));
        }
    };
    while let Some(mut record) = reader.next().map_err(|error| failed(file, error))? {
        if !record.is_arc() {
            made.abandon();
            let text =
                format!("{} holds WARC records; `grange warc recompress` writes those anew", file.display());
            return Err(UsageError(text).into());
        }
        made.push(&mut record)?;
        at.at(record.place().offset);
        show(record.problems());
    }
    show(reader.problems());
    progress.finish();
    let (path, records) = made.finish()?;
    if common.json {
        output::json(&serde_json::json!({ "file": path, "records": records, "problems": problems }))?;
    } else {
        println!("{}: {records} records", path.display());
    }
    Ok(if problems > 0 { Exit::Partial } else { Exit::Ok })
}
