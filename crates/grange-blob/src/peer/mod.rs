//! Bytes on another node's disks, over HTTP.
//!
//! The asking side is [`Peer`]; the side that holds the bytes is [`serve::Served`]. Each proves to the other that
//! it knows the node token, through [`PeerAuth`]; the bytes are proven by their checksums.
//!
//! Bytes go straight from where they lie to where they are kept ([`Blob::pull`]), unless the keeper cannot get at
//! them; then they are sent. Both ways go on where they were when a wire broke.

mod download;
mod giving;
mod offer;
mod origin;
pub(crate) mod pull;
mod range;
pub mod serve;
mod taking;
mod upload;
mod wire;

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use grange_base::Clock;
use grange_model::{Algorithm, Checksums, FileName, Sha512};
use http::{Method, StatusCode, header};
use serde::de::DeserializeOwned;

use crate::blob::{
    Blob, Listed, Opened, Source, Space, Stat, Stored, Taking, put_stream_of, sum_path, taken,
};
use crate::error::Error;
pub use offer::{Offer, Offers};
pub use origin::{At, Nodes, Origin, Reach};
use wire::{EXPECTED, Fault, LIST_MAX, PROOF, escaped};

/// A signed request's header and the nonce that the answer must prove.
#[derive(Clone, Debug)]
pub struct SignedRequest {
    /// The value of `Authorization`.
    pub authorization: String,
    pub nonce: String,
}

/// How nodes know each other.
pub trait PeerAuth: Debug + Send + Sync {
    /// Signs a request for `target`, the path with its query.
    fn sign(&self, method: &str, target: &str) -> SignedRequest;

    /// Whether the answer with this status came from somebody who knows the token.
    fn proven(&self, nonce: &str, status: u16, proof: &str) -> bool;
}

/// How long a node on the same network may take to accept a connection or to send the next bytes. A disk that has
/// gone to sleep wakes within ten seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A transfer takes what the wire gives; whoever waits for its end gives up when the other machine is silent (TCP
/// keep-alive). A day is for the answer that never comes.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The slowest disk worth waiting for when a node reads a whole file before it answers.
const SLOWEST_BYTES_PER_S: u64 = 5_000_000;

/// Bytes per request of `read_at`; what the other side gives at most.
const RANGE_BYTES_MAX: usize = 1 << 20;

/// The files of one store of another node. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Peer {
    http: reqwest::Client,
    /// `HOST:PORT`
    address: String,
    /// The path below which the store answers.
    mount: String,
    place: String,
    auth: Arc<dyn PeerAuth>,
    clock: Clock,
    /// Where local files are laid out for the other node to fetch.
    offers: Option<Offers>,
    /// What this is to other nodes, where that is known without asking.
    origin: Option<Origin>,
}

/// Who answers, as far as it matters here.
#[derive(serde::Deserialize)]
struct Hello {
    node: String,
}

/// An answer that was proven and says yes.
type Answer = http::Response<reqwest::Body>;

impl Peer {
    /// The store mounted at `mount` (such as `/peer/v1/blob/one`) on the node at `address`. Connects when used.
    pub fn new(address: &str, mount: &str, auth: Arc<dyn PeerAuth>, clock: Clock) -> Result<Self, Error> {
        let place = format!("peer://{address}{mount}");
        let http = http_client()
            .map_err(|source| Error::Unreachable { place: place.clone(), source: source.into() })?;
        let (address, mount) = (address.to_owned(), mount.to_owned());
        Ok(Self { http, address, mount, place, auth, clock, offers: None, origin: None })
    }

    /// The same, with local files laid out for the other node to fetch.
    #[must_use]
    pub fn offering(self, offers: Offers) -> Self {
        Self { offers: Some(offers), ..self }
    }

    fn unreachable(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Unreachable { place: self.place.clone(), source: source.into() }
    }

    fn foreign(&self, reason: impl ToString) -> Error {
        Error::Foreign { place: self.place.clone(), reason: reason.to_string() }
    }

    /// Sends one request and believes only a proven answer; what it refuses comes back as the error it was there.
    async fn send(
        &self,
        method: Method,
        path: &str,
        name: Option<&FileName>,
        within: Duration,
        add: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder + Send,
    ) -> Result<Answer, Error> {
        self.send_to(method, format!("{}{path}", self.mount), name, within, add).await
    }

    /// The same to a path that is not the store's.
    async fn send_to(
        &self,
        method: Method,
        target: String,
        name: Option<&FileName>,
        within: Duration,
        add: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder + Send,
    ) -> Result<Answer, Error> {
        let signed = self.auth.sign(method.as_str(), &target);
        let doing = format!("{method} {target}");
        let request = self.http.request(method, format!("http://{}{target}", self.address));
        let request = add(request.header(header::AUTHORIZATION, signed.authorization));
        let response = tokio::time::timeout(within, request.send()).await;
        let response = response.map_err(|late| self.unreachable(late))?;
        let response = response.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        let proof = response.headers().get(PROOF).and_then(|proof| proof.to_str().ok()).unwrap_or_default();
        if !self.auth.proven(&signed.nonce, status.as_u16(), proof) {
            return Err(Error::Unproven { place: self.place.clone() });
        }
        if status.is_success() {
            return Ok(response.into());
        }
        let body = tokio::time::timeout(ANSWER_WITHIN, response.bytes()).await;
        let body = body.map_err(|late| self.unreachable(late))?.map_err(|error| self.unreachable(error))?;
        let fault = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Fault::plain("", String::from_utf8_lossy(&body).trim()));
        Err(fault.into_error(status.as_u16(), doing, name, &self.place))
    }

    async fn body(&self, answer: Answer) -> Result<Bytes, Error> {
        let response = reqwest::Response::from(answer);
        let bytes = tokio::time::timeout(ANSWER_WITHIN, response.bytes()).await;
        bytes.map_err(|late| self.unreachable(late))?.map_err(|error| self.unreachable(error))
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        name: Option<&FileName>,
        within: Duration,
    ) -> Result<T, Error> {
        let answer = self.send(Method::GET, path, name, within, |request| request).await?;
        let bytes = self.body(answer).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.foreign(error))
    }

    /// The id of the node that answers. Asked each time: another node may have taken over the address.
    async fn node_id(&self) -> Result<String, Error> {
        let target = "/peer/v1/hello".to_owned();
        let answer = self.send_to(Method::GET, target, None, ANSWER_WITHIN, |request| request).await?;
        let bytes = self.body(answer).await?;
        let hello: Hello = serde_json::from_slice(&bytes).map_err(|error| self.foreign(error))?;
        Ok(hello.node)
    }

    /// Asks the node one question that is not about the bytes of a file: `POST` to where this answers.
    pub async fn ask_of_node<T: DeserializeOwned>(
        &self,
        question: &impl serde::Serialize,
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(question).map_err(|error| self.foreign(error))?;
        let add = |request: reqwest::RequestBuilder| {
            request.header(header::CONTENT_TYPE, "application/json").body(body)
        };
        let answer = self.send(Method::POST, "", None, ANSWER_WITHIN, add).await?;
        let bytes = self.body(answer).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.foreign(error))
    }

    /// Lays the file out for the other node and has it fetch it. `None` when it must be sent.
    async fn offer_file(
        &self,
        offers: &Offers,
        name: &FileName,
        path: &Path,
        expected: Option<&Checksums>,
    ) -> Result<Option<Stored>, Error> {
        let failed = |source| Error::Source { name: name.clone(), source };
        let path = tokio::fs::canonicalize(path).await.map_err(failed)?;
        let data = tokio::fs::metadata(&path).await.map_err(failed)?;
        if !data.is_file() {
            return Ok(None);
        }
        let expected = match expected.filter(|sums| !sums.is_empty()) {
            Some(expected) => *expected,
            None => sum_path(&path, &[Algorithm::Sha512]).await.map_err(failed)?.1,
        };
        let offer = offers.offer(name, &path);
        pull::ask(self, name, &offer.origin(), data.len(), &expected).await
    }

    /// The same where the other side must read the whole file first; `None` when there is none.
    async fn ask_of_bytes<T: DeserializeOwned>(
        &self,
        path: &str,
        name: &FileName,
    ) -> Result<Option<T>, Error> {
        let Some(stat) = self.stat(name).await? else { return Ok(None) };
        optional(self.ask(path, Some(name), patience(stat.size)).await)
    }
}

fn http_client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .connect_timeout(ANSWER_WITHIN)
        // Finds out in a minute that the other machine is gone while it reads a large file for us.
        .tcp_keepalive(Duration::from_secs(20))
        .tcp_keepalive_interval(Duration::from_secs(10))
        .tcp_keepalive_retries(4)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
}

/// How long to wait for somebody who reads this many bytes.
fn patience(bytes: u64) -> Duration {
    ANSWER_WITHIN + Duration::from_secs(bytes / SLOWEST_BYTES_PER_S)
}

fn optional<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl Blob for Peer {
    async fn put(
        &self,
        name: &FileName,
        source: Source<'_>,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        upload::put(self, name, source, expected).await
    }

    async fn put_file(
        &self,
        name: &FileName,
        path: &Path,
        taking: Taking,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        let pulled = match &self.offers {
            Some(offers) => self.offer_file(offers, name, path, expected).await?,
            None => None,
        };
        let stored = match pulled {
            Some(stored) => stored,
            None => put_stream_of(self, name, path, expected).await?,
        };
        taken(self, name, path, taking, stored).await
    }

    async fn pull(
        &self,
        name: &FileName,
        holder: &dyn Blob,
        size: u64,
        expected: &Checksums,
    ) -> Result<Option<Stored>, Error> {
        let Some(origin) = holder.origin().await? else { return Ok(None) };
        pull::ask(self, name, &origin, size, expected).await
    }

    async fn origin(&self) -> Result<Option<Origin>, Error> {
        if self.origin.is_some() {
            return Ok(self.origin.clone());
        }
        let Some(at) = At::mounted(&self.mount) else { return Ok(None) };
        Ok(Some(Origin { node: self.node_id().await?, at }))
    }

    async fn get(&self, name: &FileName) -> Result<Opened, Error> {
        download::get(self, name).await
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error> {
        let path = format!("/files/{}", escaped(name.as_str()));
        let mut read: Vec<Bytes> = Vec::new();
        let mut done = 0;
        loop {
            // Even nothing is asked for once: a missing file must be told.
            let wanted = (len - done).min(RANGE_BYTES_MAX);
            let start = offset.saturating_add(done as u64).min(u64::MAX - RANGE_BYTES_MAX as u64 - 1);
            let range = format!("bytes={start}-{}", start + (wanted as u64).max(1) - 1);
            let add = |request: reqwest::RequestBuilder| request.header(header::RANGE, range);
            let answer = self.send(Method::GET, &path, Some(name), ANSWER_WITHIN, add).await?;
            if answer.status() != StatusCode::PARTIAL_CONTENT {
                return Err(self.foreign("a part was asked for, the whole file came"));
            }
            let bytes = self.body(answer).await?;
            let bytes = bytes.slice(..bytes.len().min(wanted));
            done += bytes.len();
            let last = bytes.len() < wanted || done == len;
            if last && read.is_empty() {
                return Ok(bytes);
            }
            read.push(bytes);
            if last {
                return Ok(read.concat().into());
            }
        }
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<Listed>, Error> {
        let mut listed: Vec<Listed> = Vec::new();
        while listed.len() < limit {
            let wanted = (limit - listed.len()).min(LIST_MAX);
            let after = listed.last().map(|last| &last.name).or(after);
            let after = after.map_or_else(String::new, |name| format!("&after={}", escaped(name.as_str())));
            let page: Vec<Listed> =
                self.ask(&format!("/files?limit={wanted}{after}"), None, ANSWER_WITHIN).await?;
            if page.is_empty() {
                break;
            }
            listed.extend(page);
        }
        Ok(listed)
    }

    async fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error> {
        let path = format!("/stat/{}", escaped(name.as_str()));
        optional(self.ask(&path, Some(name), ANSWER_WITHIN).await)
    }

    async fn checksum(&self, name: &FileName, algorithms: &[Algorithm]) -> Result<Option<Checksums>, Error> {
        let algorithms: Vec<_> = algorithms.iter().map(|algorithm| algorithm.as_str()).collect();
        let (name_text, algorithms) = (escaped(name.as_str()), algorithms.join(","));
        self.ask_of_bytes(&format!("/checksum/{name_text}?algorithms={algorithms}"), name).await
    }

    async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error> {
        let (name_text, salt) = (escaped(name.as_str()), HEXLOWER.encode(salt));
        self.ask_of_bytes(&format!("/challenge/{name_text}?salt={salt}"), name).await
    }

    async fn remove_to_attic(&self, name: &FileName, expected: &Checksums) -> Result<(), Error> {
        let size = self.stat(name).await?.map_or(0, |stat| stat.size);
        let path = format!("/remove/{}", escaped(name.as_str()));
        let add = |request: reqwest::RequestBuilder| request.header(EXPECTED, expected.to_string());
        self.send(Method::POST, &path, Some(name), patience(size), add).await?;
        Ok(())
    }

    async fn free(&self) -> Result<Space, Error> {
        self.ask("/free", None, ANSWER_WITHIN).await
    }

    fn place(&self) -> &str {
        &self.place
    }
}
