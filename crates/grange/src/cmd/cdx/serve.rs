//! `grange cdx serve`: an index server out of index folders or files.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use grange_base::Trigger;
use grange_replay::cdx::{self, Options};
use tokio::net::TcpListener;

use crate::exit::Exit;

/// It knows no access rules: whoever reaches the port sees every line, also of captures that `grange access` hides.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Index folders, served under their names; or CDX, CDXJ, WARC and ARC files, indexed aside and served as "local"
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081")]
    listen: SocketAddr,
    /// Take lines that are posted, as OutbackCDX does. Whoever reaches the port can then change the index
    #[arg(long)]
    writable: bool,
}

pub(super) async fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let aside = tempfile::tempdir().context("cannot make a temporary folder for the index")?;
    let (paths, folder, writable) = (args.paths, aside.path().join(cdx::LOCAL), args.writable);
    let opened = tokio::task::spawn_blocking(move || cdx::open(&paths, &folder, writable)).await?;
    let collections = opened?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}: choose another port with --listen", args.listen))?;
    let address = listener.local_addr()?;
    for collection in collections.all() {
        outln!("http://{address}/{}/cdx?url=", collection.name);
    }
    outln!("Ctrl-C ends it.");
    let end = Trigger::new();
    let shutdown = end.listener();
    let stop = async move {
        let _ = tokio::signal::ctrl_c().await;
        end.pull();
    };
    let options = Options { writing: writable, ..Options::default() };
    let (served, ()) = tokio::join!(cdx::serve(listener, collections, options, shutdown), stop);
    served?;
    Ok(Exit::Ok)
}
