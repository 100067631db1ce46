//! `grange cdx merge`

use std::io::BufRead;
use std::path::PathBuf;

use cdx::Dedupe;

use super::{Output, input};
use crate::exit::Exit;

pub(super) fn run(files: &[PathBuf], dedupe: Dedupe, out: &Output) -> anyhow::Result<Exit> {
    let inputs = files.iter().map(|file| input(file).map(|input| input as Box<dyn BufRead>));
    let inputs: Vec<_> = inputs.collect::<anyhow::Result<_>>()?;
    out.write(|out| Ok(cdx::merge(inputs, dedupe, out)?))?;
    Ok(Exit::Ok)
}
