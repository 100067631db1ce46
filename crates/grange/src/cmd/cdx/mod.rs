//! `grange cdx …`: thin commands on `libs/cdx`.

mod index;
mod lookup;
mod merge;
mod serve;
mod sort;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use urlkey::{Dialect, MatchType};

use crate::cli::Common;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum CdxCommand {
    /// Write one index line per capture of WARC and ARC files
    Index(IndexArgs),
    /// Serve indexes over HTTP in the dialects of the Internet Archive, pywb and OutbackCDX
    Serve(serve::ServeArgs),
    /// Sort index lines by bytes (LC_ALL=C); inputs may be larger than memory
    Sort {
        /// [default: standard input]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Memory to sort in
        #[arg(long, value_name = "SIZE", default_value = "256MiB")]
        memory: grange_base::Size,
        /// Where runs that do not fit in memory go
        #[arg(long, value_name = "DIR")]
        temp: Option<PathBuf>,
        /// Which lines count as the same
        #[arg(long, value_enum, default_value_t = DedupeName::None)]
        dedupe: DedupeName,
        #[command(flatten)]
        out: Output,
    },
    /// Merge sorted indexes into one
    Merge {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Which lines count as the same
        #[arg(long, value_enum, default_value_t = DedupeName::None)]
        dedupe: DedupeName,
        #[command(flatten)]
        out: Output,
    },
    /// Find the lines of a URL in a sorted index (plain, or ZipNum by its .idx file)
    Lookup {
        file: PathBuf,
        url: String,
        /// exact, prefix, host or domain
        #[arg(long = "match", value_name = "KIND", default_value = "exact")]
        kind: MatchType,
        /// The dialect the index was made in
        #[arg(long, value_name = "NAME", default_value = "ia")]
        dialect: Dialect,
        /// At most this many lines
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct IndexArgs {
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The form of the lines
    #[arg(long, value_enum, default_value_t = FormatName::Cdxj)]
    format: FormatName,
    /// Sort the lines
    #[arg(long, short)]
    sort: bool,
    /// Threads per file; the lines stay in the order of the file
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Whose keys: standard (Grange), ia (pywb, cdxj-indexer) or outback (OutbackCDX)
    #[arg(long, value_name = "NAME", default_value = "ia")]
    dialect: Dialect,
    /// Put POST and PUT bodies into the key
    #[arg(long, short)]
    post_append: bool,
    /// Every record, not only captures
    #[arg(long, short)]
    all: bool,
    /// Further fields, such as http:etag or req.http:cookie
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    fields: Vec<String>,
    #[command(flatten)]
    out: Output,
}

/// Where lines go.
#[derive(Args, Debug)]
pub(crate) struct Output {
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write ZipNum: FILE.cdx.gz and FILE.idx, with this many lines to a block (needs -o and sorted lines)
    #[arg(long, value_name = "LINES", requires = "output")]
    zipnum: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    Cdxj,
    Cdx9,
    Cdx11,
}

/// Which lines count as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DedupeName {
    /// Every line is kept
    None,
    /// Equal lines are written once
    Lines,
    /// Lines of the same key, time, file and offset are written once
    Captures,
}

impl DedupeName {
    fn dedupe(self) -> cdx::Dedupe {
        match self {
            Self::None => cdx::Dedupe::Nothing,
            Self::Lines => cdx::Dedupe::Lines,
            Self::Captures => cdx::Dedupe::Captures,
        }
    }
}

pub(super) async fn run(common: &Common, command: CdxCommand) -> anyhow::Result<Exit> {
    match command {
        CdxCommand::Serve(args) => serve::run(args).await,
        CdxCommand::Index(args) => index::run(common, &args),
        CdxCommand::Sort { files, memory, temp, dedupe, out } => {
            sort::run(&files, memory, temp, dedupe.dedupe(), &out)
        }
        CdxCommand::Merge { files, dedupe, out } => merge::run(&files, dedupe.dedupe(), &out),
        CdxCommand::Lookup { file, url, kind, dialect, limit } => {
            lookup::run(common, &file, &url, kind, dialect, limit)
        }
    }
}

/// A file to read lines from; `.gz` is unpacked.
fn input(path: &Path) -> anyhow::Result<Box<dyn BufRead + Send>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    Ok(if packed {
        Box::new(BufReader::with_capacity(1 << 16, flate2::read::MultiGzDecoder::new(file)))
    } else {
        Box::new(BufReader::with_capacity(1 << 16, file))
    })
}

impl Output {
    /// Hands the chosen output to `write`. A file appears under its name only when it is whole.
    fn write<T>(&self, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let Some(path) = &self.output else {
            let mut out = BufWriter::with_capacity(1 << 16, crate::output::listing());
            let answer = write(&mut out)?;
            out.flush()?;
            return Ok(answer);
        };
        let Some(lines) = self.zipnum else {
            return aside(path, |file| {
                let mut out = BufWriter::with_capacity(1 << 16, file);
                let answer = write(&mut out)?;
                out.flush()?;
                Ok(answer)
            });
        };
        let data = with_end(path, ".cdx.gz");
        let shard = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
        aside(&data, |data| {
            aside(&with_end(path, ".idx"), |summary| {
                let options = cdx::zipnum::ZipNumOptions { lines, name: shard, ..Default::default() };
                let writer =
                    cdx::zipnum::ZipNumWriter::new(BufWriter::new(data), BufWriter::new(summary), options);
                let mut lines = Lines { writer, rest: Vec::new() };
                let answer = write(&mut lines)?;
                let (mut data, mut summary) = lines.writer.finish()?;
                data.flush()?;
                summary.flush()?;
                Ok(answer)
            })
        })
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Writes a file aside and renames it when it is whole.
pub(in crate::cmd) fn aside<T>(
    path: &Path,
    write: impl FnOnce(&File) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    let answer = write(made.as_file())?;
    made.as_file().sync_all()?;
    made.persist(path)
        .map_err(|error| error.error)
        .with_context(|| format!("cannot make {}", path.display()))?;
    Ok(answer)
}

/// Cuts what is written into lines for a ZipNum writer.
struct Lines<D: Write, S: Write> {
    writer: cdx::zipnum::ZipNumWriter<D, S>,
    rest: Vec<u8>,
}

impl<D: Write, S: Write> Write for Lines<D, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(end) = self.rest[start..].iter().position(|byte| *byte == b'\n') {
            self.writer.push(&self.rest[start..start + end])?;
            start += end + 1;
        }
        self.rest.drain(..start);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
