//! The port, on another node.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use grange_model::{Algorithm, Checksums, FileName, Sha512};
use http::{Method, StatusCode, header};

use super::client::{ANSWER_WITHIN, Peer, optional, patience};
use super::origin::{At, Origin};
use super::wire::{EXPECTED, LIST_MAX, Mark, escaped};
use super::{download, pull, upload};
use crate::blob::{
    Blob, Listed, MarkedPart, Opened, Source, Space, Stat, Stored, Taking, UnlistedFiles, put_stream_of,
    taken,
};
use crate::error::Error;

/// Bytes per request of `read_at`; what the other side gives at most.
const RANGE_BYTES_MAX: usize = 1 << 20;

/// What a file whose size nobody can tell may have, when it is waited for.
const UNKNOWN_BYTES: u64 = 8 << 30;

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

    async fn unlisted(&self, limit: usize) -> Result<UnlistedFiles, Error> {
        match self.ask(&format!("/unlisted?limit={limit}"), None, ANSWER_WITHIN).await {
            // A node of an older version.
            Err(Error::Refused { status: 404, .. }) => Ok(UnlistedFiles::default()),
            answer => answer,
        }
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
        let size = match self.stat(name).await {
            Ok(stat) => stat.map_or(0, |stat| stat.size),
            // A file that cannot even be looked at can be removed.
            Err(Error::Refused { .. } | Error::Unreadable { .. }) => UNKNOWN_BYTES,
            Err(error) => return Err(error),
        };
        let path = format!("/remove/{}", escaped(name.as_str()));
        let add = |request: reqwest::RequestBuilder| request.header(EXPECTED, expected.to_string());
        self.send(Method::POST, &path, Some(name), patience(size), add).await?;
        Ok(())
    }

    async fn free(&self) -> Result<Space, Error> {
        self.ask("/free", None, ANSWER_WITHIN).await
    }

    async fn markers(&self) -> Result<Vec<MarkedPart>, Error> {
        self.ask("/markers", None, ANSWER_WITHIN).await
    }

    async fn mark(&self, part: &str, text: &str) -> Result<(), Error> {
        let mark = Mark { part: part.to_owned(), text: text.to_owned() };
        let body = serde_json::to_vec(&mark).map_err(|error| self.foreign(error))?;
        let add = |request: reqwest::RequestBuilder| {
            request.header(header::CONTENT_TYPE, "application/json").body(body)
        };
        self.send(Method::POST, "/mark", None, ANSWER_WITHIN, add).await?;
        Ok(())
    }

    fn place(&self) -> &str {
        &self.place
    }
}
