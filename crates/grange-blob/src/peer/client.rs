//! Asking another node: signed requests, proven answers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use grange_base::Clock;
use grange_model::{Algorithm, Checksums, FileName};
use http::{Method, header};
use serde::de::DeserializeOwned;

use super::offer::Offers;
use super::origin::Origin;
use super::wire::{Fault, PROOF};
use super::{PeerAuth, pull};
use crate::blob::{Blob as _, Stored, sum_path};
use crate::error::Error;

/// How long a node on the same network may take to accept a connection or to send the next bytes. A disk that has
/// gone to sleep wakes within ten seconds.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A transfer takes what the wire gives; whoever waits for its end gives up when the other machine is silent (TCP
/// keep-alive). A day is for the answer that never comes.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How often a node that works for us is asked whether it lives, and how many times it may fail to say so.
pub(super) const WATCH_EVERY: Duration = Duration::from_secs(30);
const SILENT_MAX: u32 = 3;

/// The slowest disk worth waiting for when a node reads a whole file before it answers.
const SLOWEST_BYTES_PER_S: u64 = 5_000_000;

/// The files of one store of another node. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(super) http: reqwest::Client,
    /// `HOST:PORT`
    pub(super) address: String,
    /// The path below which the store answers.
    pub(super) mount: String,
    pub(super) place: String,
    pub(super) auth: Arc<dyn PeerAuth>,
    pub(super) clock: Clock,
    /// Where local files are laid out for the other node to fetch.
    pub(super) offers: Option<Offers>,
    /// What this is to other nodes, where that is known without asking.
    pub(super) origin: Option<Origin>,
}

/// Who answers, as far as it matters here.
#[derive(serde::Deserialize)]
struct Hello {
    node: String,
}

/// An answer that was proven and says yes.
pub(super) type Answer = http::Response<reqwest::Body>;

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

    pub(super) fn unreachable(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Unreachable { place: self.place.clone(), source: source.into() }
    }

    pub(super) fn foreign(&self, reason: impl ToString) -> Error {
        Error::Foreign { place: self.place.clone(), reason: reason.to_string() }
    }

    /// Sends one request and believes only a proven answer; what it refuses comes back as the error it was there.
    pub(super) async fn send(
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
    pub(super) async fn send_to(
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

    /// Waits for an answer for as long as the node answers other questions.
    pub(crate) async fn while_alive<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
        every: Duration,
        within: Duration,
    ) -> Result<T, Error> {
        let silent = async {
            let mut failed = 0;
            loop {
                tokio::time::sleep(every).await;
                let error = match tokio::time::timeout(within, self.free()).await {
                    Err(late) => self.unreachable(late),
                    Ok(Err(error @ Error::Unreachable { .. })) => error,
                    Ok(_) => {
                        failed = 0;
                        continue;
                    }
                };
                failed += 1;
                if failed == SILENT_MAX {
                    return error;
                }
            }
        };
        tokio::select! {
            answer = answer => answer,
            error = silent => Err(error),
        }
    }

    pub(super) async fn body(&self, answer: Answer) -> Result<Bytes, Error> {
        let response = reqwest::Response::from(answer);
        let bytes = tokio::time::timeout(ANSWER_WITHIN, response.bytes()).await;
        bytes.map_err(|late| self.unreachable(late))?.map_err(|error| self.unreachable(error))
    }

    pub(super) async fn ask<T: DeserializeOwned>(
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
    pub(super) async fn node_id(&self) -> Result<String, Error> {
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
    pub(super) async fn offer_file(
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
    pub(super) async fn ask_of_bytes<T: DeserializeOwned>(
        &self,
        path: &str,
        name: &FileName,
    ) -> Result<Option<T>, Error> {
        let Some(stat) = self.stat(name).await? else { return Ok(None) };
        optional(self.ask(path, Some(name), patience(stat.size)).await)
    }
}

pub(super) fn http_client() -> reqwest::Result<reqwest::Client> {
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
pub(super) fn patience(bytes: u64) -> Duration {
    ANSWER_WITHIN + Duration::from_secs(bytes / SLOWEST_BYTES_PER_S)
}

pub(super) fn optional<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
