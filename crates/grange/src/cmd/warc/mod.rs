//! `grange warc …`: thin commands on `libs/warc`.

mod check;
mod convert;
mod extract;
mod line;
mod ls;
mod recompress;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use warc::write::Compression;

use crate::cli::Common;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum WarcCommand {
    /// One line per record; with --json one object per record and per problem
    Ls {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Say what is wrong with files: one line per problem (file, offset, kind, meaning); exit code 5 if any
    Check {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Which problems to show and count
        #[arg(long, value_enum, default_value_t = LevelName::Advice)]
        level: LevelName,
        /// Leave the digests in the headers unchecked
        #[arg(long)]
        no_digests: bool,
        /// Files read at the same time [default: number of cores]
        #[arg(long, value_name = "N")]
        threads: Option<usize>,
    },
    /// Write the record at an offset to standard output
    Extract {
        file: PathBuf,
        /// As listed by `grange warc ls`
        offset: u64,
        #[command(flatten)]
        part: Part,
        /// Write to this file instead
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Write a file anew with every record in a gzip member (or zstd frame) of its own; damage is left behind
    Recompress {
        file: PathBuf,
        #[command(flatten)]
        to: Target,
    },
    /// Write an ARC file as WARC 1.1
    Convert {
        file: PathBuf,
        #[command(flatten)]
        to: Target,
    },
}

/// Which part of a record to extract.
#[derive(Args, Debug)]
#[group(multiple = false)]
pub(crate) struct Part {
    /// Only the block: the HTTP message as it was recorded
    #[arg(long)]
    block: bool,
    /// Only the HTTP body, chunks joined
    #[arg(long)]
    payload: bool,
    /// Only the HTTP body, chunks joined and content encodings undone
    #[arg(long)]
    content: bool,
}

/// A file to write.
#[derive(Args, Debug)]
pub(crate) struct Target {
    /// The new file; its end (.warc, .warc.gz, .warc.zst) chooses the packing
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How hard to pack: gzip 1-12, zstd 1-19
    #[arg(long, value_name = "N")]
    level: Option<u8>,
}

impl Target {
    /// How to pack, by the name of the file.
    fn compression(&self) -> Compression {
        let name = self.output.to_string_lossy();
        match self.level {
            _ if name.ends_with(".warc") || name.ends_with(".arc") => Compression::None,
            level if name.ends_with(".zst") => Compression::Zstd(i32::from(level.unwrap_or(3))),
            level => Compression::Gzip(level.unwrap_or(6)),
        }
    }
}

/// How much a problem matters, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelName {
    /// Also what is legal or harmless but may trip a weaker reader
    Comment,
    /// What is against the standard, though nothing was lost
    Advice,
    /// Only where bytes were lost, doubted or guessed
    Damage,
}

impl LevelName {
    fn level(self) -> warc::Level {
        match self {
            Self::Comment => warc::Level::Comment,
            Self::Advice => warc::Level::Advice,
            Self::Damage => warc::Level::Damage,
        }
    }
}

pub(super) fn run(common: &Common, command: WarcCommand) -> anyhow::Result<Exit> {
    match command {
        WarcCommand::Ls { files } => ls::run(common, &files),
        WarcCommand::Check { files, level, no_digests, threads } => {
            check::run(common, &files, level.level(), !no_digests, threads)
        }
        WarcCommand::Extract { file, offset, part, output } => {
            extract::run(&file, offset, &part, output.as_deref())
        }
        WarcCommand::Recompress { file, to } => recompress::run(common, &file, &to),
        WarcCommand::Convert { file, to } => convert::run(common, &file, &to),
    }
}

/// Opens a file, or says which could not be opened.
fn open(file: &Path) -> anyhow::Result<warc::Reader> {
    warc::Reader::open(file).map_err(|error| failed(file, error))
}

/// The disk failed on this file.
fn failed(file: &Path, error: std::io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("cannot read {}", file.display()))
}
