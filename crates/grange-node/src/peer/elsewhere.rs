//! The archive of a node that plays no archiver: stores by asking one that does, reads by itself.

use std::io;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use grange_archive::{ArchiveClient, Error, Got, Second, Store, StoreOutcome};
use grange_base::named_file;
use grange_blob::{Error as BlobError, Offers, PeerAuth as _};
use grange_db::{Db, FileFilter, FileStatus};
use grange_model::node::NodeRole;
use grange_model::{Actor, Algorithm, Checksums, FileName, Liveness};
use http::{Method, StatusCode};
use tokio_util::io::ReaderStream;

use super::auth::NodeAuth;
use super::deposit::Offered;
use super::routes::PROOF;
use crate::late_archive::LateArchive;

/// Stores at an archiver elsewhere; reads by itself.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    archive: LateArchive,
    /// The checksums that the archive keeps of a file.
    algorithms: Vec<Algorithm>,
    db: Db,
    auth: NodeAuth,
    offers: Offers,
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
        archive: LateArchive,
        algorithms: Vec<Algorithm>,
        db: Db,
        auth: NodeAuth,
        offers: Offers,
        lost_after: Duration,
    ) -> Result<Self, reqwest::Error> {
        // A signed request goes to the node it was signed for and nowhere else.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            .build()?;
        Ok(Self { archive, algorithms, db, auth, offers, lost_after, http })
    }

    async fn archivers(&self) -> Result<Vec<String>, Error> {
        let nodes = self.db.nodes().list(self.lost_after).await?;
        let lives = nodes
            .into_iter()
            .filter(|(node, state)| *state == Liveness::Alive && node.roles.contains(&NodeRole::Archiver));
        Ok(lives.filter_map(|(node, _)| node.addresses.get("node").cloned()).collect())
    }

    /// Lays the file out here and has the archiver store it. `None` when it cannot get at it: then it must be sent.
    async fn offer(
        &self,
        address: &str,
        path: &Path,
        size: u64,
        store: &Store,
        checksums: Checksums,
    ) -> Result<Option<StoreOutcome>, Error> {
        let path = tokio::fs::canonicalize(path).await.map_err(unreadable(path))?;
        let offer = self.offers.offer(&store.name, &path);
        let offered = Offered { by: store.by.clone(), origin: offer.origin(), size, checksums };
        let target = format!("/peer/v1/archive/{}", grange_api::client::segment(store.name.as_str()));
        let add = |request: reqwest::RequestBuilder| request.json(&offered);
        match self.call(address, Method::POST, &target, size, add).await? {
            Ok(outcome) => Ok(Some(outcome)),
            // Older archivers know no offers.
            Err((StatusCode::FAILED_DEPENDENCY | StatusCode::METHOD_NOT_ALLOWED, reason)) => {
                tracing::info!(address, name = %store.name, reason, "a file is sent, not fetched");
                Ok(None)
            }
            Err((status, reason)) => Err(refused(address, store, status, reason)),
        }
    }

    async fn send(
        &self,
        address: &str,
        path: &Path,
        size: u64,
        store: &Store,
        checksums: Checksums,
    ) -> Result<StoreOutcome, Error> {
        let query = url_query(&[("by", &store.by), ("checksums", &checksums.to_string())]);
        let target = format!("/peer/v1/archive/{}?{query}", grange_api::client::segment(store.name.as_str()));
        let file = named_file::open_async(path).await.map_err(unreadable(path))?;
        let add = |request: reqwest::RequestBuilder| {
            request
                .header(http::header::CONTENT_LENGTH, size)
                .body(reqwest::Body::wrap_stream(ReaderStream::new(file)))
        };
        let answer = self.call(address, Method::PUT, &target, size, add).await?;
        answer.map_err(|(status, reason)| refused(address, store, status, reason))
    }

    /// One request; believed only with its proof. The inner error is what was refused, and why.
    async fn call(
        &self,
        address: &str,
        method: Method,
        target: &str,
        size: u64,
        add: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Result<Result<StoreOutcome, (StatusCode, String)>, Error> {
        let signed = self.auth.sign(method.as_str(), target);
        let within = ANSWER_WITHIN + Duration::from_secs(size / BYTES_PER_SECOND_MIN);
        let request = self.http.request(method, format!("http://{address}{target}"));
        let request = request.header(http::header::AUTHORIZATION, signed.authorization).timeout(within);
        let unreachable = |source: reqwest::Error| BlobError::Unreachable {
            place: archiver_at(address),
            source: source.into(),
        };
        let answer = add(request).send().await.map_err(unreachable)?;
        let status = answer.status();
        let proof = answer.headers().get(PROOF).and_then(|proof| proof.to_str().ok()).unwrap_or_default();
        if !self.auth.proven(&signed.nonce, status.as_u16(), proof) {
            return Err(BlobError::Unproven { place: archiver_at(address) }.into());
        }
        let body = answer.bytes().await.map_err(unreachable)?;
        if !status.is_success() {
            return Ok(Err((status, String::from_utf8_lossy(&body).trim().to_owned())));
        }
        let foreign = |error: serde_json::Error| BlobError::Foreign {
            place: archiver_at(address),
            reason: error.to_string(),
        };
        Ok(Ok(serde_json::from_slice(&body).map_err(foreign)?))
    }
}

fn archiver_at(address: &str) -> String {
    format!("the archiver at {address}")
}

fn refused(address: &str, store: &Store, status: StatusCode, reason: String) -> Error {
    let (place, doing) = (archiver_at(address), format!("store {}", store.name));
    BlobError::Refused { place, doing, status: status.as_u16(), reason }.into()
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { doing: "read", path, source }
}

/// The part of a URL after `?`.
fn url_query(pairs: &[(&str, &str)]) -> String {
    let pair = |(key, value): &(&str, &str)| format!("{key}={}", grange_api::client::segment(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

#[async_trait]
impl ArchiveClient for Elsewhere {
    async fn store(&self, path: &Path, store: &Store) -> Result<StoreOutcome, Error> {
        let announced = store.expected.filter(|sums| !sums.is_empty());
        let mut algorithms = self.algorithms.clone();
        algorithms.extend(announced.iter().flat_map(Checksums::algorithms));
        if named_file::check(path).is_err() {
            return Err(Error::NamedDatabase { path: path.to_owned() });
        }
        let (size, found) = grange_blob::sum_path(path, &algorithms).await.map_err(unreadable(path))?;
        if let Some(announced) = announced.filter(|sums| !sums.same_as(&found)) {
            return Err(Error::WrongChecksum { name: store.name.clone(), announced, found });
        }
        // Rows acknowledge nothing: the archiver asks every replica. Copies that are there do not cross the network again.
        if let Some(status) = self.archive.status(&store.name).await? {
            let (name, known) = (store.name.clone(), status.file.checksums);
            // What the archiver would refuse whenever it is asked.
            if known.sha512.is_some() && !known.same_as(&found) {
                let given = found;
                return Err(if status.failed_everywhere() {
                    Error::OtherDeposit { name, known, given }
                } else {
                    Error::OtherBytes { name, known, given }
                });
            }
        }
        let none = "no living node has the role archiver; start one";
        let mut last = BlobError::Unreachable { place: "an archiver".to_owned(), source: none.into() }.into();
        for address in self.archivers().await? {
            let stored = match self.offer(&address, path, size, store, found).await {
                Ok(Some(outcome)) => Ok(outcome),
                Ok(None) => self.send(&address, path, size, store, found).await,
                Err(error) => Err(error),
            };
            match stored {
                Ok(outcome) => return Ok(outcome),
                Err(error) => last = error,
            }
        }
        Err(last)
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
