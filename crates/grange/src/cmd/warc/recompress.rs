//! `grange warc recompress`

use std::path::Path;

use warc::write::{FileOptions, WarcFile};

use super::line::Told;
use super::{Target, failed, open};
use crate::cli::Common;
use crate::exit::Exit;
use crate::output;
use crate::progress::Progress;

/// Copies every record as it is into a file of sound members. Records keep their bytes; only what is wrong with
/// their lengths and line ends is put right, and what belongs to no record is left behind and said.
pub(super) fn run(common: &Common, file: &Path, to: &Target) -> anyhow::Result<Exit> {
    let mut reader = open(file)?;
    let options = FileOptions { compression: to.compression(), ..FileOptions::default() };
    let mut made = WarcFile::create_bare(&to.output, &options)
        .map_err(|error| anyhow::Error::new(error).context(format!("cannot make {}", to.output.display())))?;
    let progress = Progress::over(&[file.to_owned()]);
    let at = progress.file(file);
    let mut told = Told { file, progress: &progress, count: 0 };
    while let Some(mut record) = reader.next().map_err(|error| failed(file, error))? {
        made.copy(&mut record)?;
        at.at(record.place().offset);
        told.all(record.problems());
    }
    told.all(reader.problems());
    let problems = told.count;
    progress.finish();
    let (records, bytes) = (made.records(), made.size());
    let path = made.close()?;
    if common.json {
        output::json(
            &serde_json::json!({ "file": path, "records": records, "bytes": bytes, "problems": problems }),
        )?;
    } else {
        outln!("{}: {records} records, {}", path.display(), grange_base::Size(bytes));
    }
    Ok(if problems > 0 { Exit::Partial } else { Exit::Ok })
}
