//! `grange cdx sort`

use std::path::PathBuf;

use cdx::{Dedupe, SortOptions, Sorter};
use grange_base::Size;

use super::{Output, input};
use crate::exit::Exit;
use crate::progress::Progress;

pub(super) fn run(
    files: &[PathBuf],
    memory: Size,
    temp: Option<PathBuf>,
    dedupe: Dedupe,
    out: &Output,
) -> anyhow::Result<Exit> {
    let options = SortOptions { memory_bytes: memory.0 as usize, temp_dir: temp, dedupe };
    let mut sorter = Sorter::new(options);
    if files.is_empty() {
        sorter.push_all(std::io::stdin().lock())?;
    }
    let progress = Progress::over(files);
    for file in files {
        let at = progress.file(file);
        sorter.push_all(input(file)?)?;
        at.done(std::fs::metadata(file).map(|meta| meta.len()).unwrap_or_default());
    }
    progress.finish();
    out.write(|out| Ok(sorter.finish(out)?))?;
    Ok(Exit::Ok)
}
