//! Files on their way to the archiver, from nodes that have none: `PUT /peer/v1/archive/NAME`.
//!
//! A checksum replica lies on one machine, so only that machine's archiver can prove all replicas. Whoever harvests
//! elsewhere sends files there; everything else a harvester asks of the archive it can answer itself.

use std::io;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path as InPath, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::put;
use bytes::Bytes;
use futures_util::TryStreamExt;
use grange_app::OpenArchive;
use grange_archive::{Archive, ArchiveClient, Error, Got, Second, Store, StoreOutcome};
use grange_base::Chain;
use grange_db::{Db, FileFilter, FileStatus};
use grange_model::node::NodeRole;
use grange_model::{Actor, Algorithm, Checksums, FileName, Liveness};
use http::Method;
use serde::{Deserialize, Serialize};
use tokio_util::io::{ReaderStream, StreamReader};

use super::auth::NodeAuth;
use super::routes::PROOF;
use grange_blob::PeerAuth as _;

/// What is said of a file that is sent.
#[derive(Debug, Serialize, Deserialize)]
struct Sent {
    by: String,
    /// As `sha512=…`; compared before anything is stored.
    checksums: String,
}

/// Routes below the peer gate, for nodes with an archiver.
pub fn routes(archive: OpenArchive) -> Router {
    Router::new().route("/peer/v1/archive/{name}", put(take)).with_state(archive)
}

async fn take(
    State(archive): State<OpenArchive>,
    InPath(name): InPath<String>,
    Query(sent): Query<Sent>,
    body: Body,
) -> Response {
    let refused = |error: &dyn std::fmt::Display| {
        (StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")).into_response()
    };
    let (name, checksums) = match (name.parse::<FileName>(), sent.checksums.parse::<Checksums>()) {
        (Ok(name), Ok(checksums)) => (name, checksums),
        (Err(error), _) => return refused(&error),
        (_, Err(error)) => return refused(&error),
    };
    let archive = match archive.get().await {
        Ok(archive) => archive.clone(),
        Err(error) => return refused(&Chain(&error)),
    };
    let store = Store::new(name, sent.by).expecting(checksums);
    // A task of its own: a sender that goes away takes the answer with it, not the store. Half done, it would hold its
    // lease for nobody and leave its bytes in the spool.
    let stored = tokio::spawn(async move {
        let reader = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
        archive.store_reader(reader, &store).await
    });
    match stored.await {
        Ok(Ok(outcome)) => axum::Json(outcome).into_response(),
        Ok(Err(error)) => refused(&Chain(&error)),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// Stores at an archiver elsewhere; reads by itself.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    archive: Archive,
    db: Db,
    auth: NodeAuth,
    lost_after: Duration,
    http: reqwest::Client,
}

/// Long enough for a loaded node, short enough to notice a dead one.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// An archiver that takes longer over a file is given up: a small file has a quarter of an hour, a large one more.
const ANSWER_WITHIN: Duration = Duration::from_secs(900);
/// The slowest wire that is waited for.
const BYTES_PER_SECOND_MIN: u64 = 100_000;

impl Elsewhere {
    pub fn new(
        archive: Archive,
        db: Db,
        auth: NodeAuth,
        lost_after: Duration,
    ) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT_WITHIN).build()?;
        Ok(Self { archive, db, auth, lost_after, http })
    }

    async fn archivers(&self) -> Result<Vec<String>, Error> {
        let nodes = self.db.nodes().list(self.lost_after).await?;
        let lives = nodes
            .into_iter()
            .filter(|(node, state)| *state == Liveness::Alive && node.roles.contains(&NodeRole::Archiver));
        Ok(lives.filter_map(|(node, _)| node.addresses.get("node").cloned()).collect())
    }

    async fn send(
        &self,
        address: &str,
        path: &Path,
        size: u64,
        store: &Store,
        checksums: Checksums,
    ) -> io::Result<StoreOutcome> {
        let query = url_query(&[("by", &store.by), ("checksums", &checksums.to_string())]);
        let target = format!("/peer/v1/archive/{}?{query}", grange_api::client::segment(store.name.as_str()));
        let signed = self.auth.sign(Method::PUT.as_str(), &target);
        let file = tokio::fs::File::open(path).await?;
        let within = ANSWER_WITHIN + Duration::from_secs(size / BYTES_PER_SECOND_MIN);
        let answer = self
            .http
            .put(format!("http://{address}{target}"))
            .header(http::header::AUTHORIZATION, signed.authorization)
            .header(http::header::CONTENT_LENGTH, size)
            .timeout(within)
            .body(reqwest::Body::wrap_stream(ReaderStream::new(file)))
            .send()
            .await
            .map_err(io::Error::other)?;
        let status = answer.status();
        let proof = answer.headers().get(PROOF).and_then(|proof| proof.to_str().ok()).unwrap_or_default();
        if !self.auth.proven(&signed.nonce, status.as_u16(), proof) {
            return Err(io::Error::other(format!("{address} does not prove that it knows the node token")));
        }
        let body = answer.bytes().await.map_err(io::Error::other)?;
        if !status.is_success() {
            return Err(io::Error::other(String::from_utf8_lossy(&body).trim().to_owned()));
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

/// The part of a URL after `?`.
fn url_query(pairs: &[(&str, &str)]) -> String {
    let pair = |(key, value): &(&str, &str)| format!("{key}={}", grange_api::client::segment(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

#[async_trait]
impl ArchiveClient for Elsewhere {
    async fn store(&self, path: &Path, store: &Store) -> Result<StoreOutcome, Error> {
        let failed = |doing: &'static str| {
            let path = path.to_owned();
            move |source| Error::Io { doing, path, source }
        };
        let (size, found) =
            grange_blob::sum_path(path, &[Algorithm::Sha512]).await.map_err(failed("read"))?;
        if let Some(announced) = store.expected.filter(|sums| !sums.is_empty() && !sums.same_as(&found)) {
            return Err(Error::WrongChecksum { name: store.name.clone(), announced, found });
        }
        // What every replica is proven to hold need not cross the network again.
        if let Some(status) = self.archive.status(&store.name).await? {
            let (name, known) = (store.name.clone(), status.file.checksums);
            if status.proven() && known.same_as(&found) {
                let unproven = Vec::new();
                return Ok(StoreOutcome {
                    name,
                    size,
                    checksums: known,
                    stored: true,
                    already: true,
                    unproven,
                });
            }
            // What the archiver would refuse whenever it is asked.
            if known.sha512.is_some() && !known.same_as(&found) {
                return Err(Error::OtherBytes { name, known, given: found });
            }
        }
        let mut last = io::Error::other("no node with an archiver lives; start one");
        for address in self.archivers().await? {
            match self.send(&address, path, size, store, found).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => last = error,
            }
        }
        Err(failed("send to an archiver")(last))
    }

    async fn get(&self, name: &FileName, dest: &Path) -> Result<Got, Error> {
        self.archive.get(name, dest).await
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, Error> {
        self.archive.read_at(name, offset, len).await
    }

    async fn status(&self, name: &FileName) -> Result<Option<FileStatus>, Error> {
        self.archive.status(name).await
    }

    async fn list(&self, filter: &FileFilter) -> Result<Vec<FileStatus>, Error> {
        self.archive.list(filter).await
    }

    async fn correct(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        actor: &Actor,
    ) -> Result<FileStatus, Error> {
        self.archive.correct(replica, name, bad, second, actor).await
    }

    async fn remove_and_get(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        dest: &Path,
        actor: &Actor,
    ) -> Result<FileStatus, Error> {
        self.archive.remove_and_get(replica, name, bad, second, dest, actor).await
    }
}
