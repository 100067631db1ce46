//! The wire form of management: what `/admin/v1` takes and gives, and a client for it.

use std::num::NonZeroU32;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::access::Key;
use crate::collection::{Collection, Layout};
use crate::error::Error;
use crate::moves::Estimate;
use crate::name::encode;
use crate::verify::Report;
use crate::view::{Inventory, PartitionSeen};

/// Every server of the network, as the one that was asked sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub servers: Vec<ServerStatus>,
    /// Peers that never answered since the start.
    pub unseen: Vec<String>,
    pub collections: Vec<CollectionStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerStatus {
    pub base: String,
    pub alive: bool,
    /// Milliseconds by which its clock is ahead of the asked server's.
    #[serde(default)]
    pub clock_ahead_ms: Option<i64>,
    pub partitions: Vec<PartitionSeen>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CollectionStatus {
    pub record: Collection,
    pub slices: Vec<SliceStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SliceStatus {
    pub index: usize,
    /// `None` when no server known has it.
    pub server: Option<String>,
    pub alive: bool,
    pub files: u64,
    pub bytes: u64,
    pub moved_files: u64,
    pub moved_bytes: u64,
    pub settled: bool,
    pub trouble: Option<String>,
}

impl CollectionStatus {
    pub fn files(&self) -> u64 {
        self.slices.iter().map(|slice| slice.files).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.slices.iter().map(|slice| slice.bytes).sum()
    }

    pub fn moving(&self) -> Option<(NonZeroU32, NonZeroU32)> {
        match self.record.layout {
            Layout::Moving { from, to } => Some((from, to)),
            _ => None,
        }
    }

    /// From what the servers tell.
    pub(crate) fn new(record: &Collection, inventories: &[(Inventory, bool)]) -> Self {
        let slices = record.slices.iter().enumerate().map(|(index, slice)| {
            let host = inventories
                .iter()
                .filter(|(inventory, _)| inventory.partitions.iter().any(|seen| seen.uuid == slice.partition))
                .max_by_key(|(_, alive)| *alive);
            let seen = host.and_then(|(inventory, _)| {
                let mut slices = inventory.slices.iter();
                slices.find(|seen| seen.collection == record.uuid && seen.index as usize == index)
            });
            SliceStatus {
                index,
                server: host.map(|(inventory, _)| inventory.base.clone()),
                alive: host.is_some_and(|(_, alive)| *alive),
                files: seen.map_or(0, |seen| seen.files),
                bytes: seen.map_or(0, |seen| seen.bytes),
                moved_files: seen.map_or(0, |seen| seen.moved_files),
                moved_bytes: seen.map_or(0, |seen| seen.moved_bytes),
                settled: seen.is_some_and(|seen| seen.settled == Some(record.epoch)),
                trouble: seen.and_then(|seen| seen.trouble.clone()),
            }
        });
        Self { record: record.clone(), slices: slices.collect() }
    }
}

/// A new collection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewCollection {
    pub namespace: String,
    pub slices: u32,
    #[serde(default)]
    pub public: bool,
    /// Whether its slices may lie on different kinds of file system.
    #[serde(default)]
    pub mixed_disks: bool,
}

/// Another number of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slices {
    Double,
    Halve,
    /// Any other number; moves most of the files.
    To(u32),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reslice {
    pub slices: Slices,
    /// Only tell what would be moved.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub mixed_disks: bool,
}

/// Talks to a server.
#[derive(Clone, Debug)]
pub struct Client {
    base: String,
    key: Option<Key>,
    http: reqwest::Client,
}

impl Client {
    /// `server` is HOST:PORT or a URL. Without a key only a server of this user on this machine will listen.
    pub fn new(server: &str, key_file: Option<&Path>) -> Result<Self, Error> {
        let base = match server.trim_end_matches('/') {
            url if url.starts_with("http://") || url.starts_with("https://") => url.to_owned(),
            address => format!("http://{address}"),
        };
        let key = key_file.map(Key::read).transpose()?;
        let client =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
        let http =
            client.map_err(|source| Error::Unreachable { place: base.clone(), source: source.into() })?;
        Ok(Self { base, key, http })
    }

    pub async fn status(&self) -> Result<Status, Error> {
        self.ask(self.http.get(self.url("status", ""))).await
    }

    pub async fn collections(&self) -> Result<Vec<CollectionStatus>, Error> {
        self.status().await.map(|status| status.collections)
    }

    pub async fn collection(&self, namespace: &str) -> Result<CollectionStatus, Error> {
        self.ask(self.http.get(self.url("collections", namespace))).await
    }

    pub async fn create(&self, new: &NewCollection) -> Result<Collection, Error> {
        self.ask(self.http.post(self.url("collections", "")).json(new)).await
    }

    pub async fn reslice(&self, namespace: &str, reslice: Reslice) -> Result<Estimate, Error> {
        self.ask(self.http.post(self.url("reslice", namespace)).json(&reslice)).await
    }

    pub async fn start_verify(&self, namespace: &str) -> Result<Report, Error> {
        self.ask(self.http.post(self.url("verify", namespace))).await
    }

    pub async fn verify(&self, namespace: &str) -> Result<Report, Error> {
        self.ask(self.http.get(self.url("verify", namespace))).await
    }

    pub async fn remove_collection(&self, namespace: &str, with_files: bool) -> Result<Collection, Error> {
        let url = format!("{}?with_files={with_files}", self.url("collections", namespace));
        self.ask(self.http.delete(url)).await
    }

    /// Removes one file to the attic; without a checksum, whatever it holds. Follows a redirect to its server.
    pub async fn remove_file(&self, namespace: &str, path: &str, sum: Option<&str>) -> Result<(), Error> {
        let mut url = format!("{}/put/{}/{}", self.base, encode(namespace), encode(path));
        let tag = sum.map_or_else(|| "*".to_owned(), |sum| format!("\"sha512-{sum}\""));
        // As many as a chain of redirects may have.
        for _ in 0..6 {
            let response = self.send(self.http.delete(&url).header("If-Match", &tag)).await?;
            if response.status().is_redirection()
                && let Some(location) =
                    response.headers().get("location").and_then(|value| value.to_str().ok())
            {
                location.clone_into(&mut url);
                continue;
            }
            return self.checked(response).await.map(drop);
        }
        Err(Error::Foreign { place: self.base.clone(), reason: "it redirects in circles".to_owned() })
    }

    fn url(&self, act: &str, namespace: &str) -> String {
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{}/admin/v1/{act}{slash}{}", self.base, encode(namespace))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Error> {
        let request = match self.key.as_ref().map(Key::bearer) {
            Some(bearer) => request.header("Authorization", bearer),
            None => request,
        };
        request
            .send()
            .await
            .map_err(|source| Error::Unreachable { place: self.base.clone(), source: source.into() })
    }

    async fn checked(&self, response: reqwest::Response) -> Result<reqwest::Response, Error> {
        let status = response.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let reason = response.text().await.unwrap_or_default().trim().to_owned();
        Err(Error::Answered { place: self.base.clone(), status, reason })
    }

    async fn ask<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> Result<T, Error> {
        let response = self.send(request).await?;
        let response = self.checked(response).await?;
        let foreign =
            |error: reqwest::Error| Error::Foreign { place: self.base.clone(), reason: error.to_string() };
        response.json().await.map_err(foreign)
    }
}
