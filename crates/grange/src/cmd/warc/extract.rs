//! `grange warc extract`

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use anyhow::Context as _;

use super::{Part, failed};
use crate::exit::{Exit, UsageError};

pub(super) fn run(file: &Path, offset: u64, part: &Part, output: Option<&Path>) -> anyhow::Result<Exit> {
    let mut reader = warc::Reader::open_at(file, offset).map_err(|error| failed(file, error))?;
    let Some(mut record) = reader.next().map_err(|error| failed(file, error))? else {
        let text = format!("there is no record at offset {offset} of {}", file.display());
        return Err(UsageError(text).into());
    };
    if record.place().offset != offset {
        let (file, found) = (file.display(), record.place().offset);
        let text = format!("no record of {file} starts at offset {offset}; the next one starts at {found}");
        return Err(UsageError(text).into());
    }
    let mut out: Box<dyn Write> = match output {
        Some(path) => {
            let made = File::create_new(path).with_context(|| format!("cannot make {}", path.display()))?;
            Box::new(BufWriter::new(made))
        }
        None => Box::new(BufWriter::with_capacity(1 << 16, crate::output::listing())),
    };
    if part.payload {
        copy(&mut record.payload()?, &mut out)?;
    } else if part.content {
        copy(&mut record.content()?, &mut out)?;
    } else {
        if !part.block {
            out.write_all(record.header().raw())?;
        }
        copy(&mut record.block(), &mut out)?;
    }
    out.flush()?;
    drop(out);
    for problem in record.problems() {
        errln!("{}: {}", problem.kind.code(), problem);
    }
    let damaged = record.problems().iter().any(|problem| problem.kind.level() == warc::Level::Damage);
    Ok(if damaged { Exit::Partial } else { Exit::Ok })
}

fn copy(from: &mut impl Read, to: &mut dyn Write) -> io::Result<u64> {
    io::copy(from, to)
}
