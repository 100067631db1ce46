//! Reading: from a proven copy, compared on the way, from the next one when it is not what it should be.

use std::path::Path;

use bytes::Bytes;
use grange_base::Chain;
use grange_blob::Opened;
use grange_db::{FileStatus, Holding};
use grange_model::{Checksums, FileName, LogEvent, UploadState, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::archive::Archive;
use crate::digest::{Sums, copy_summed};
use crate::error::Error;
use crate::replica::{Answer, Replica};

/// The most bytes given at once from the middle of a file: a record of this size is an oddity, and several readers
/// hold theirs in memory.
const READ_BYTES_MAX: u64 = 64 << 20;

/// Where a file was got from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Got {
    pub name: FileName,
    pub size: u64,
    pub checksums: Checksums,
    pub replica: String,
    /// Copies that were passed over because they were not what they should be, or did not answer.
    pub passed_over: Vec<String>,
}

impl Archive {
    /// Copies the file to `dest`, which appears whole or not at all.
    pub async fn get(&self, name: &FileName, dest: &Path) -> Result<Got, Error> {
        let status = self.file(name).await?;
        let mut aside = dest.as_os_str().to_owned();
        aside.push(format!(".{}.part", uuid::Uuid::now_v7().simple()));
        let aside = std::path::PathBuf::from(aside);
        let mut passed_over = Vec::new();
        for (replica, _) in self.readable(&status) {
            match self.fetch(&status, replica, &aside).await {
                Ok(()) => {
                    tokio::fs::rename(&aside, dest).await.map_err(Error::io("rename to", dest))?;
                    let (size, checksums) = (status.file.size, status.file.checksums);
                    let replica = replica.name().to_owned();
                    return Ok(Got { name: name.clone(), size, checksums, replica, passed_over });
                }
                Err(Fetch::Local(error)) => {
                    let _ = tokio::fs::remove_file(&aside).await;
                    return Err(*error);
                }
                Err(Fetch::Copy(reason)) => passed_over.push(self.pass_over(&status, replica, &reason).await),
            }
        }
        let _ = tokio::fs::remove_file(&aside).await;
        Err(no_copy(name, &passed_over))
    }

    /// The bytes as a stream, from a copy that was read through and compared first.
    pub async fn open_file(&self, name: &FileName) -> Result<(Opened, Got), Error> {
        let status = self.file(name).await?;
        let mut passed_over = Vec::new();
        for (replica, _) in self.readable(&status) {
            let reason = match self.proves(&status, replica).await {
                Ok(()) => match replica.get(name).await {
                    Ok(opened) if opened.size == status.file.size => {
                        let (size, checksums) = (status.file.size, status.file.checksums);
                        let replica = replica.name().to_owned();
                        return Ok((
                            opened,
                            Got { name: name.clone(), size, checksums, replica, passed_over },
                        ));
                    }
                    Ok(opened) => format!("it has {} bytes", opened.size),
                    Err(error) => Chain(&error).to_string(),
                },
                Err(reason) => reason,
            };
            passed_over.push(self.pass_over(&status, replica, &reason).await);
        }
        Err(no_copy(name, &passed_over))
    }

    /// Up to `len` bytes from `offset` on: a record. They come from a copy that the last check found good and whose
    /// size is right; only reading all of it could say more.
    pub async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, Error> {
        if len > READ_BYTES_MAX {
            return Err(Error::TooMuch { len, most: READ_BYTES_MAX });
        }
        let status = self.file(name).await?;
        let wanted = len.min(status.file.size.saturating_sub(offset));
        let mut passed_over = Vec::new();
        for (replica, holding) in self.readable(&status) {
            if holding.verdict != Verdict::Ok {
                // Never proven, or doubted: its bytes are only good after a look at all of them.
                if let Err(reason) = self.proves(&status, replica).await {
                    passed_over.push(self.pass_over(&status, replica, &reason).await);
                    continue;
                }
            }
            let reason = match replica.read_at(name, offset, len as usize).await {
                Ok(bytes) if bytes.len() as u64 == wanted => return Ok(bytes),
                Ok(bytes) => format!("it gave {} bytes instead of {wanted}", bytes.len()),
                Err(error) => Chain(&error).to_string(),
            };
            passed_over.push(self.pass_over(&status, replica, &reason).await);
        }
        Err(no_copy(name, &passed_over))
    }

    /// Replicas with bytes, best first: proven, then undecided. Never one that is known to be wrong.
    fn readable<'a>(&'a self, status: &'a FileStatus) -> Vec<(&'a Replica, &'a Holding)> {
        let mut copies: Vec<_> = status
            .holdings
            .iter()
            .filter(|holding| holding.verdict != Verdict::Corrupt)
            .filter_map(|holding| Some((self.replica_by_id(holding.replica_id)?, holding)))
            .filter(|(replica, _)| replica.keeps_bytes())
            .collect();
        copies.sort_by_key(|(_, holding)| {
            (holding.verdict != Verdict::Ok, holding.state != UploadState::UploadCompleted)
        });
        copies
    }

    /// Whether the copy is the file, now.
    async fn proves(&self, status: &FileStatus, replica: &Replica) -> Result<(), String> {
        let file = &status.file;
        let Some((algorithm, _)) = file.checksums.strongest() else { return Err("no checksum".to_owned()) };
        match replica.checksum(&file.name, algorithm).await {
            Ok(Answer::Sums(sums)) if sums.same_as(&file.checksums) => Ok(()),
            Ok(Answer::Sums(sums)) => Err(format!("its checksum is {sums}")),
            Ok(Answer::Unreadable) => Err("it cannot be read".to_owned()),
            Ok(Answer::Missing) => Err("it is not there".to_owned()),
            Err(error) => Err(Chain(&error).to_string()),
        }
    }

    async fn fetch(&self, status: &FileStatus, replica: &Replica, aside: &Path) -> Result<(), Fetch> {
        let file = &status.file;
        let copy = |error: String| Fetch::Copy(error);
        let opened = replica.get(&file.name).await.map_err(|error| copy(Chain(&error).to_string()))?;
        let algorithm = file.checksums.strongest().map(|(algorithm, _)| algorithm);
        let sums = Sums::new(algorithm.as_slice());
        let mut dest = tokio::fs::File::create(aside)
            .await
            .map_err(|error| Fetch::Local(Box::new(Error::io("write", aside)(error))))?;
        let (size, found) =
            copy_summed(opened, &mut dest, sums).await.map_err(|error| copy(error.to_string()))?;
        if size != file.size || !found.same_as(&file.checksums) {
            return Err(copy(format!("its checksum is {found} ({size} bytes)")));
        }
        dest.sync_all().await.map_err(|error| Fetch::Local(Box::new(Error::io("sync", aside)(error))))
    }

    /// Writes down that a copy was not served, and gives the text.
    async fn pass_over(&self, status: &FileStatus, replica: &Replica, reason: &str) -> String {
        let text = format!("{}: {reason}", replica.name());
        tracing::warn!(name = %status.file.name, replica = replica.name(), reason, "a copy was passed over");
        let detail = json!({ "reason": reason });
        let record = self.record(LogEvent::Unservable, status, Some(replica.name()), "grange", detail);
        if let Err(error) = self.0.db.logbook().append(vec![record]).await {
            tracing::error!(error = %Chain(&error), "the event could not be written down");
        }
        text
    }
}

/// Why a fetch ended early.
enum Fetch {
    /// Ours to mend: the destination.
    Local(Box<Error>),
    /// The copy's fault.
    Copy(String),
}

fn no_copy(name: &FileName, passed_over: &[String]) -> Error {
    let reason = if passed_over.is_empty() { "no replica has it".to_owned() } else { passed_over.join("; ") };
    Error::NoCopy { name: name.clone(), reason }
}
