//! `grange replay`: files on disk, browsed at once.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use grange_base::Chain;
use grange_replay::cdx::Options;
use grange_replay::holdings::{Holdings, LocalFiles};
use grange_replay::{
    Collection, Collections, Index, IndexSettings, RewritePool, Settings as ReplaySettings, local,
};
use serde_json::json;
use tokio::net::TcpListener;

use super::up::stop_signal;
use crate::cli::Common;
use crate::exit::{Exit, UsageError};
use crate::output::{self, counted};
use crate::progress::Progress;

/// The name of the only collection.
const COLLECTION: &str = "local";

#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// WARC, ARC, WACZ, CDX or CDXJ files; they are read where they lie
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to answer; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Also answer as an HTTP proxy here: the browser sees pages under their own addresses
    #[arg(long, value_name = "ADDRESS:PORT")]
    proxy: Option<SocketAddr>,
    /// Keep the index in this folder and use it again [default: a folder that goes away]
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
}

pub(super) async fn run(common: &Common, args: ReplayArgs) -> anyhow::Result<Exit> {
    let stop = stop_signal()?;
    // The port first: nobody wants to hear after an hour of indexing that it is taken.
    let listener = listen(args.listen).await?;
    let proxy = match args.proxy {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let aside = tempfile::Builder::new()
        .prefix("grange-replay-")
        .tempdir()
        .context("cannot make a folder for the index")?;
    let folder = args.index.clone().unwrap_or_else(|| aside.path().join("index"));
    let index = Arc::new(Index::open(&folder, IndexSettings::default())?);
    let files = Arc::new(LocalFiles::default());
    let paths = args.files.clone();
    let (into, beside) = (Arc::clone(&index), Arc::clone(&files));
    let Taken { captures, problems } =
        tokio::task::spawn_blocking(move || add(&paths, &into, &beside)).await??;

    let holdings: Arc<dyn Holdings> = files;
    let collections = Collections::default();
    collections.add(Collection::new(COLLECTION, index, holdings));
    let rewriting = RewritePool::new(ReplaySettings::default().rewrite_budget, stop.listener());
    let options = Options { rewriting, ..Options::default() };
    let routes = grange_replay::routes(collections.clone(), options.clone());
    let url = format!("http://{}/{COLLECTION}/", listener.local_addr()?);
    let proxy_address = proxy.as_ref().map(TcpListener::local_addr).transpose()?;
    if common.json {
        output::json(
            &json!({"url": url, "proxy": proxy_address, "captures": captures, "problems": problems}),
        )?;
    } else {
        let files = counted(args.files.len() as u64, "file");
        outln!("{} of {files}: {url}", counted(captures, "capture"));
        if let Some(address) = proxy_address {
            outln!("As a proxy: http://{address}  (its page: http://viewerproxy.invalid/)");
        }
        outln!("Stop with Ctrl-C.");
    }
    let shutdown = stop.listener();
    if let Some(proxy) = proxy {
        let shutdown = stop.listener();
        let served = grange_replay::proxy::Proxy::open(collections, options, aside.path())?;
        tokio::spawn(async move { grange_replay::proxy::serve(proxy, served, shutdown).await });
    }
    grange_replay::serve(listener, routes, shutdown).await?;
    Ok(if problems == 0 { Exit::Ok } else { Exit::Partial })
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        UsageError(format!("cannot listen on {address}: {error}; choose another ADDRESS:PORT")).into()
    })
}

/// What came of the files.
#[derive(Default)]
struct Taken {
    captures: u64,
    /// Files that cannot be read, and kinds of damage in the others.
    problems: u64,
}

/// Indexes the files. One that cannot be read is told and left out; without any there is nothing to replay.
fn add(paths: &[PathBuf], index: &Index, files: &LocalFiles) -> anyhow::Result<Taken> {
    let progress = Progress::over(paths);
    let (mut taken, mut good) = (Taken::default(), 0);
    for path in paths {
        let file = progress.file(path);
        let tell = |text: String| progress.suspend(|| errln!("{}: {text}", path.display()));
        match local::add(path, index, files) {
            Ok(added) => {
                good += 1;
                taken.captures += added.captures;
                taken.problems += added.problems.len() as u64;
                added.problems.into_iter().for_each(tell);
            }
            Err(error) => {
                taken.problems += 1;
                tell(Chain(&error).to_string());
            }
        }
        file.done(std::fs::metadata(path).map_or(0, |meta| meta.len()));
    }
    progress.finish();
    anyhow::ensure!(good > 0, "none of the files can be replayed");
    Ok(taken)
}
