//! Indexes to serve alone: folders of them, or index lines and archive files that are indexed aside.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use grange_base::Shutdown;
use grange_index::{Batch, Index, Settings};
use grange_model::collection::{FileKind, check_name};
use tokio::net::TcpListener;

use super::{Options, routes};
use crate::collection::{Collection, Collections};
use crate::holdings::{Holdings, HoldingsError};

/// The collection of files that are served without a folder of their own.
pub const LOCAL: &str = "local";

/// Why something cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot open the index in {}", path.display())]
    Index { path: PathBuf, source: grange_index::Error },
    #[error("{} is neither an index folder nor a CDX, CDXJ, WARC or ARC file", path.display())]
    Unknown { path: PathBuf },
    #[error("{} cannot be served: {reason}", path.display())]
    Name { path: PathBuf, reason: String },
}

/// Opens index folders under their own names, and indexes files into `aside`. Folders are opened for writing only with
/// `writable`; others may go on writing to them otherwise.
pub fn open(paths: &[PathBuf], aside: &Path, writable: bool) -> Result<Collections, OpenError> {
    let collections = Collections::default();
    let mut local: Option<Index> = None;
    for path in paths {
        let failed = |source| OpenError::Index { path: path.clone(), source };
        if path.join("MANIFEST").is_file() {
            let full =
                path.canonicalize().map_err(|source| OpenError::Read { path: path.clone(), source })?;
            let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let taken = || Err(format!("another one is called {name}"));
            let fits = check_name(&name).and_then(|()| collections.get(&name).map_or(Ok(()), |_| taken()));
            fits.map_err(|reason| OpenError::Name { path: path.clone(), reason })?;
            let settings = Settings::default();
            let index =
                if writable { Index::open(path, settings) } else { Index::open_read_only(path, settings) };
            add(&collections, &name, index.map_err(failed)?);
            continue;
        }
        let index = match &local {
            Some(index) => index,
            None => local.insert(Index::open(aside, Settings::default()).map_err(failed)?),
        };
        take(index, path)?;
    }
    if let Some(index) = local {
        add(&collections, LOCAL, index);
    }
    Ok(collections)
}

fn add(collections: &Collections, name: &str, index: Index) {
    collections.add(Collection::new(name, Arc::new(index), Arc::new(NoBytes)));
}

fn take(index: &Index, path: &Path) -> Result<(), OpenError> {
    let read = |source| OpenError::Read { path: path.to_owned(), source };
    let failed = |source| OpenError::Index { path: path.to_owned(), source };
    match FileKind::of(&path.to_string_lossy()) {
        FileKind::Lines => {
            let file = File::open(path).map_err(read)?;
            let zipped = path.extension().is_some_and(|end| end == "gz");
            let loaded = if zipped {
                index.load(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)), None)
            } else {
                index.load(BufReader::with_capacity(1 << 16, file), None)
            };
            let report = loaded.map_err(failed)?;
            if report.problem_count > 0 {
                let (path, lines) = (path.display(), report.problem_count);
                tracing::warn!(%path, lines, "some lines were not as they should be");
            }
        }
        FileKind::Records => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let mut batch = Batch::new();
            let mut reader = warc::Reader::open(path).map_err(read)?;
            batch.add_records(&mut reader, &name, None).map_err(read)?;
            index.commit(batch).map_err(failed)?;
        }
        FileKind::Wacz | FileKind::Other => return Err(OpenError::Unknown { path: path.to_owned() }),
    }
    Ok(())
}

/// An index alone has no bytes behind it.
#[derive(Debug)]
struct NoBytes;

#[async_trait]
impl Holdings for NoBytes {
    async fn read_at(&self, _: &str, _: u64, _: u64) -> Result<Option<Bytes>, HoldingsError> {
        Ok(None)
    }
}

/// Answers on a port until shutdown.
pub async fn serve(
    listener: TcpListener,
    collections: Collections,
    options: Options,
    shutdown: Shutdown,
) -> io::Result<()> {
    crate::serve(listener, routes(collections, options), shutdown).await
}
