//! `grange warc convert`

use std::path::Path;

use warc::convert::Converter;

use super::line::Told;
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
    let mut told = Told { file, progress: &progress, count: 0 };
    while let Some(mut record) = reader.next().map_err(|error| failed(file, error))? {
        if !record.is_arc() {
            made.abandon();
            let text =
                format!("{} holds WARC records; `grange warc recompress` writes those anew", file.display());
            return Err(UsageError(text).into());
        }
        made.push(&mut record)?;
        at.at(record.place().offset);
        told.all(record.problems());
    }
    told.all(reader.problems());
    let problems = told.count;
    progress.finish();
    let (path, records) = made.finish()?;
    if common.json {
        output::json(&serde_json::json!({ "file": path, "records": records, "problems": problems }))?;
    } else {
        outln!("{}: {records} records", path.display());
    }
    Ok(if problems > 0 { Exit::Partial } else { Exit::Ok })
}
