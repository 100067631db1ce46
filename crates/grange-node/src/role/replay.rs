//! Replay: Wayback mode, Memento and the CDX APIs on one port, proxy mode on another.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use grange_archive::ArchiveClient;
use grange_base::worker::Hint;
use grange_base::{Clock, Worker};
use grange_blob::Buckets;
use grange_db::Db;
use grange_i18n::Texts;
use grange_replay::RewritePool;
use grange_replay::cdx::Options;
use grange_replay::collect::{Shelf, open_all};
use grange_replay::holdings::{ArchiveFiles, Holdings};
use grange_replay::proxy::{self, Proxy};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::node::StartError;
use crate::serve::{ListenError, listen};
use crate::settings::Settings;
use crate::supervise::Parts;

/// The two ports, taken before anything else starts.
#[derive(Debug)]
pub struct Ports {
    wayback: TcpListener,
    proxy: TcpListener,
}

impl Ports {
    pub async fn take(settings: &Settings) -> Result<Self, ListenError> {
        Ok(Self {
            wayback: listen(settings.replay.listen, "replay.listen").await?,
            proxy: listen(settings.replay.proxy_listen, "replay.proxy_listen").await?,
        })
    }

    /// Where Wayback mode and proxy mode answer.
    pub fn addresses(&self, settings: &Settings) -> (SocketAddr, SocketAddr) {
        (
            self.wayback.local_addr().unwrap_or(settings.replay.listen),
            self.proxy.local_addr().unwrap_or(settings.replay.proxy_listen),
        )
    }
}

/// Starts the role.
#[allow(clippy::too_many_arguments)] // Each is a handle that is opened elsewhere.
pub async fn start(
    parts: &mut Parts,
    settings: &Settings,
    data: &Path,
    db: &Db,
    shelf: &Shelf,
    archive: Arc<dyn ArchiveClient>,
    copies: Option<Arc<dyn grange_blob::Blob>>,
    clock: &Clock,
    ports: Ports,
) -> Result<(), StartError> {
    let holdings: Arc<dyn Holdings> = Arc::new(ArchiveFiles::new(archive));
    let buckets = Buckets::open(&settings.index.buckets, data)?;
    let follower = copies.map(|blob| super::indexer::follower(settings, data, blob, clock));
    let (collections, watcher) = open_all(db, shelf, holdings, buckets, follower).await?;
    let user_header = match settings.replay.user_header.as_str() {
        "" => None,
        name => Some(http::HeaderName::try_from(name).map_err(|_| StartError::UserHeader(name.to_owned()))?),
    };
    let texts = match &settings.replay.texts {
        Some(folder) => Texts::with_folder(&data.join(folder))?,
        None => Texts::built_in(),
    };
    let options = Options {
        writing: settings.index.accept_posts,
        user_header,
        clock: clock.clone(),
        texts,
        ..Options::default()
    };
    let proxy = Proxy::open(collections.clone(), options.clone(), &data.join("secrets"))?;

    let (interval, clock) = (settings.index.look_every.0, clock.clone());
    let watcher = Arc::new(Mutex::new(watcher));
    parts.start("collections", move |shutdown| async move {
        let worker = Worker { name: "collections".to_owned(), interval, clock, shutdown, hint: Hint::new() };
        let step = || {
            let watcher = Arc::clone(&watcher);
            async move { watcher.lock().await.step().await }
        };
        worker.run(step).await
    });
    let Ports { wayback, proxy: proxy_port } = ports;
    let budget = settings.replay.rewrite_budget;
    parts.start("replay", |shutdown| {
        let rewriting = RewritePool::new(budget, shutdown.clone());
        let routes = grange_replay::routes(collections, Options { rewriting, ..options });
        grange_replay::serve(wayback, routes, shutdown)
    });
    parts.start("proxy", |shutdown| proxy::serve(proxy_port, proxy, shutdown));
    Ok(())
}
