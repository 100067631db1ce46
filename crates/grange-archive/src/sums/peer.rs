//! A checksum replica on another node: `POST /peer/v1/sums/REPLICA` with one question, one answer. Both sides are here;
//! nodes prove themselves to each other as for files.

use async_trait::async_trait;
use bytes::Bytes;
use grange_base::Chain;
use grange_blob::{MarkedPart, Peer};
use grange_model::{Checksums, FileName};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Sums;
use crate::error::Error;
use crate::journal::{Entry, Line};
use crate::witness;

/// Names per answer at most: a megabyte of JSON.
const LIST_MAX: usize = 2_000;

/// A question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
enum Ask {
    Get { name: FileName },
    Add { line: Line },
    Remove { name: FileName, expected: Checksums, at: Timestamp },
    List { after: Option<FileName>, limit: usize },
    PutWitness { name: FileName, text: String },
    WitnessNames,
    ReadWitness { name: FileName },
    Marker,
    Mark { text: String },
}

/// The replica on the node behind `peer`.
#[derive(Clone, Debug)]
pub struct PeerSums(Peer);

impl PeerSums {
    pub fn new(peer: Peer) -> Self {
        Self(peer)
    }

    async fn ask<T: DeserializeOwned>(&self, ask: &Ask) -> Result<T, Error> {
        Ok(self.0.ask_of_node(ask).await?)
    }
}

#[async_trait]
impl Sums for PeerSums {
    async fn get(&self, name: &FileName) -> Result<Option<Entry>, Error> {
        self.ask(&Ask::Get { name: name.clone() }).await
    }

    async fn add(&self, line: Line) -> Result<bool, Error> {
        self.ask(&Ask::Add { line }).await
    }

    async fn remove(&self, name: &FileName, expected: &Checksums, at: Timestamp) -> Result<bool, Error> {
        self.ask(&Ask::Remove { name: name.clone(), expected: *expected, at }).await
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<(String, Entry)>, Error> {
        let mut listed: Vec<(String, Entry)> = Vec::new();
        let mut after = after.cloned();
        while listed.len() < limit {
            let wanted = (limit - listed.len()).min(LIST_MAX);
            let page: Vec<(String, Entry)> = self.ask(&Ask::List { after, limit: wanted }).await?;
            // The other side may give fewer than were asked for; only an empty page is the end.
            if page.is_empty() {
                break;
            }
            listed.extend(page);
            after = listed.last().and_then(|(name, _)| name.parse().ok());
            if after.is_none() {
                break;
            }
        }
        Ok(listed)
    }

    async fn put_witness(&self, name: &FileName, text: &[u8]) -> Result<(), Error> {
        let text = String::from_utf8_lossy(text).into_owned();
        self.ask(&Ask::PutWitness { name: name.clone(), text }).await
    }

    async fn witness_names(&self) -> Result<Vec<FileName>, Error> {
        self.ask(&Ask::WitnessNames).await
    }

    async fn read_witness(&self, name: &FileName) -> Result<Bytes, Error> {
        let text: String = self.ask(&Ask::ReadWitness { name: name.clone() }).await?;
        Ok(text.into())
    }

    async fn marker(&self) -> Result<MarkedPart, Error> {
        self.ask(&Ask::Marker).await
    }

    async fn mark(&self, text: &str) -> Result<(), Error> {
        self.ask(&Ask::Mark { text: text.to_owned() }).await
    }
}

/// The side that has the folder: answers one question. The inner error is what the question lacks, the outer one what
/// failed here; both are for people.
pub async fn answer(sums: &dyn Sums, question: &[u8]) -> Result<Result<Value, String>, String> {
    let ask: Ask = match serde_json::from_slice(question) {
        Ok(ask) => ask,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let answered = async {
        let value = match ask {
            Ask::Get { name } => json!(sums.get(&name).await?),
            Ask::Add { line } => json!(sums.add(line).await?),
            Ask::Remove { name, expected, at } => json!(sums.remove(&name, &expected, at).await?),
            Ask::List { after, limit } => json!(sums.list(after.as_ref(), limit.min(LIST_MAX)).await?),
            Ask::PutWitness { name, text } => {
                // Nothing else is written beside the journal.
                if !witness::is_witness(&name) || text.len() as u64 > witness::BYTES_MAX {
                    return Ok(Err("this is no witness".to_owned()));
                }
                json!(sums.put_witness(&name, text.as_bytes()).await?)
            }
            Ask::Marker => json!(sums.marker().await?),
            Ask::Mark { text } => {
                if text.len() as u64 > witness::BYTES_MAX {
                    return Ok(Err("this is no marker".to_owned()));
                }
                json!(sums.mark(&text).await?)
            }
            Ask::WitnessNames => json!(sums.witness_names().await?),
            Ask::ReadWitness { name } => {
                // Nothing else beside the journal is given.
                if !witness::is_witness(&name) {
                    return Ok(Err("this is no witness".to_owned()));
                }
                json!(String::from_utf8_lossy(&sums.read_witness(&name).await?))
            }
        };
        Ok::<_, Error>(Ok(value))
    };
    answered.await.map_err(|error| Chain(&error).to_string())
}
