//! Reading: from a proven copy, compared on the way, from the next one when it is not what it should be.

use std::path::Path;

use bytes::Bytes;
use grange_base::Chain;
use grange_blob::Opened;
use grange_db::{FileStatus, Holding, UnservableCopy};
use grange_model::{Checksums, FileName, LogEvent, Presence, UploadState, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::archive::Archive;
use crate::digest::{CopyError, Sums, copy_summed};
use crate::error::Error;
use crate::repair::is_undecided;
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
        let mut passed_over = PassedOver::default();
        for (replica, _) in self.readable(&status) {
            match self.fetch(&status, replica, &aside).await {
                Ok(()) => {
                    tokio::fs::rename(&aside, dest).await.map_err(Error::io("rename to", dest))?;
                    let (size, checksums) = (status.file.size, status.file.checksums);
                    let replica = replica.name().to_owned();
                    return Ok(Got {
                        name: name.clone(),
                        size,
                        checksums,
                        replica,
                        passed_over: passed_over.texts,
                    });
                }
                Err(Fetch::Local(error)) => {
                    let _ = tokio::fs::remove_file(&aside).await;
                    return Err(*error);
                }
                Err(Fetch::Copy(fault)) => {
                    let fault = self.pass_over(&status, replica, fault).await;
                    passed_over.add(replica.name(), fault);
                }
            }
        }
        let _ = tokio::fs::remove_file(&aside).await;
        Err(passed_over.no_copy(name))
    }

    /// The bytes as a stream, from a copy that was read through and compared first.
    pub async fn open_file(&self, name: &FileName) -> Result<(Opened, Got), Error> {
        let status = self.file(name).await?;
        let mut passed_over = PassedOver::default();
        for (replica, _) in self.readable(&status) {
            let fault = match self.proves(&status, replica).await {
                Ok(()) => match replica.get(name).await {
                    Ok(opened) if opened.size == status.file.size => {
                        let (size, checksums) = (status.file.size, status.file.checksums);
                        let replica = replica.name().to_owned();
                        return Ok((
                            opened,
                            Got {
                                name: name.clone(),
                                size,
                                checksums,
                                replica,
                                passed_over: passed_over.texts,
                            },
                        ));
                    }
                    Ok(opened) => Fault::Copy(format!("it has {} bytes", opened.size)),
                    Err(error) => Fault::of(&error),
                },
                Err(fault) => fault,
            };
            let fault = self.pass_over(&status, replica, fault).await;
            passed_over.add(replica.name(), fault);
        }
        Err(passed_over.no_copy(name))
    }

    /// Up to `len` bytes from `offset` on: a record. They come from a copy that the last check found good and whose
    /// size is right; only reading all of it could say more.
    pub async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, Error> {
        if len > READ_BYTES_MAX {
            return Err(Error::TooMuch { len, most: READ_BYTES_MAX });
        }
        let status = self.file(name).await?;
        let wanted = len.min(status.file.size.saturating_sub(offset));
        let mut passed_over = PassedOver::default();
        for (replica, holding) in self.readable(&status) {
            if holding.verdict != Verdict::Ok {
                // Never proven, or doubted: its bytes are only good after a look at all of them.
                if let Err(fault) = self.proves(&status, replica).await {
                    let fault = self.pass_over(&status, replica, fault).await;
                    passed_over.add(replica.name(), fault);
                    continue;
                }
            }
            let fault = match replica.read_at(name, offset, len as usize).await {
                Ok(bytes) if bytes.len() as u64 == wanted => return Ok(bytes),
                Ok(bytes) => Fault::Copy(format!("it gave {} bytes instead of {wanted}", bytes.len())),
                Err(error) => Fault::of(&error),
            };
            let fault = self.pass_over(&status, replica, fault).await;
            passed_over.add(replica.name(), fault);
        }
        Err(passed_over.no_copy(name))
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
    pub(crate) async fn proves(&self, status: &FileStatus, replica: &Replica) -> Result<(), Fault> {
        let file = &status.file;
        let wrong = |reason: &str| Err(Fault::Copy(reason.to_owned()));
        let Some((algorithm, _)) = file.checksums.strongest() else { return wrong("no checksum") };
        match replica.checksum(&file.name, algorithm).await {
            Ok(Answer::Sums(sums)) if sums.same_as(&file.checksums) => Ok(()),
            Ok(Answer::Sums(sums)) => wrong(&format!("its checksum is {sums}")),
            Ok(Answer::Unreadable) => wrong("it cannot be read"),
            Ok(Answer::Missing) => wrong("it is not there"),
            Err(error) => Err(Fault::of(&error)),
        }
    }

    async fn fetch(&self, status: &FileStatus, replica: &Replica, aside: &Path) -> Result<(), Fetch> {
        let file = &status.file;
        let opened = replica.get(&file.name).await.map_err(|error| Fetch::Copy(Fault::of(&error)))?;
        let algorithm = file.checksums.strongest().map(|(algorithm, _)| algorithm);
        let sums = Sums::new(algorithm.as_slice());
        let mut dest = tokio::fs::File::create(aside)
            .await
            .map_err(|error| Fetch::Local(Box::new(Error::io("write", aside)(error))))?;
        let (size, found) =
            copy_summed(opened, &mut dest, sums).await.map_err(|error| Fetch::of_copying(error, aside))?;
        if size != file.size || !found.same_as(&file.checksums) {
            return Err(Fetch::Copy(Fault::Copy(format!("its checksum is {found} ({size} bytes)"))));
        }
        dest.sync_all().await.map_err(|error| Fetch::Local(Box::new(Error::io("sync", aside)(error))))
    }

    /// Keeps that a copy could not be served, once until that is over: the log does not grow with the readers. A copy is
    /// blamed only while its replica is where it should be: below a mount point without its disk every copy is missing.
    /// Gives what is at fault.
    pub(crate) async fn pass_over(&self, status: &FileStatus, replica: &Replica, fault: Fault) -> Fault {
        let name = &status.file.name;
        let fault = match fault {
            Fault::Copy(reason) => match replica.verify().await {
                Ok(()) => Fault::Copy(reason),
                Err(error) => Fault::Away(Chain(&error).to_string()),
            },
            away @ Fault::Away(_) => away,
        };
        let reason = match &fault {
            // The archivers' probes find that out, for all copies at once.
            Fault::Away(reason) => {
                tracing::debug!(%name, replica = replica.name(), reason, "a replica did not answer a reader");
                return fault;
            }
            Fault::Copy(reason) => reason,
        };
        let holding = status.holdings.iter().find(|holding| holding.replica_id == replica.row.id);
        if holding.is_some_and(|one| one.presence == Presence::Missing || is_undecided(status, one)) {
            // An audit has said so, and the copy has the finding of that.
            return fault;
        }
        let detail = json!({ "reason": reason });
        let record = self.record(LogEvent::Unservable, status, Some(replica.name()), "grange", detail);
        let copy = UnservableCopy {
            file_id: status.file.id,
            replica_id: replica.row.id,
            replica: replica.name().to_owned(),
            reason: reason.clone(),
            record,
        };
        if let Err(error) = self.0.db.findings().unservable(copy).await {
            tracing::error!(%name, replica = replica.name(), reason, error = %Chain(&error), "cannot record that a copy cannot be served");
        }
        fault
    }
}

/// Why a copy was passed over.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is not what it should be.
    Copy(String),
    /// Its replica did not answer: nothing is known of the copy.
    Away(String),
}

impl Fault {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Copy(reason) | Self::Away(reason) => reason,
        }
    }

    fn of(error: &Error) -> Self {
        use grange_blob::Error as Blob;
        let text = Chain(error).to_string();
        match error {
            Error::Blob(
                Blob::NotFound { .. }
                | Blob::Unreadable { .. }
                | Blob::Io { .. }
                | Blob::WrongSize { .. }
                | Blob::WrongChecksum { .. },
            ) => Self::Copy(text),
            _ => Self::Away(text),
        }
    }

    /// An error in the midst of the bytes: of the disk, of their checksum, or of the line.
    fn of_read(error: &std::io::Error) -> Self {
        let broken = error.raw_os_error().is_some()
            || matches!(error.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof);
        if broken { Self::Copy(error.to_string()) } else { Self::Away(error.to_string()) }
    }
}

/// Why a fetch ended early.
#[derive(Debug)]
enum Fetch {
    /// Ours to mend: the destination.
    Local(Box<Error>),
    /// The copy's, or its replica's.
    Copy(Fault),
}

impl Fetch {
    fn of_copying(error: CopyError, dest: &Path) -> Self {
        match error {
            CopyError::Read(error) => Self::Copy(Fault::of_read(&error)),
            CopyError::Write(error) => Self::Local(Box::new(Error::io("write", dest)(error))),
        }
    }
}

/// The copies that were passed over on the way to a good one.
#[derive(Debug, Default)]
struct PassedOver {
    texts: Vec<String>,
    /// A replica did not answer.
    away: bool,
}

impl PassedOver {
    fn add(&mut self, replica: &str, fault: Fault) {
        self.away |= matches!(fault, Fault::Away(_));
        self.texts.push(format!("{replica}: {}", fault.reason()));
    }

    fn no_copy(&self, name: &FileName) -> Error {
        let reason =
            if self.texts.is_empty() { "no replica has it".to_owned() } else { self.texts.join("; ") };
        Error::NoCopy { name: name.clone(), reason, away: self.away }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_disk_of_the_reader_is_no_fault_of_the_copy() {
        let Ok(mut full) = tokio::fs::File::options().write(true).open("/dev/full").await else { return };
        // More than a file buffers, so that the error comes while bytes are left to read.
        let bytes = vec![7; 4 << 20];
        let copied = copy_summed(&bytes[..], &mut full, Sums::default()).await;
        let Err(error) = copied else { panic!("nothing fits on a full disk") };
        let path = Path::new("/dev/full");
        assert!(
            matches!(Fetch::of_copying(error, path), Fetch::Local(error) if matches!(*error, Error::Io { .. }))
        );
        let broken = std::io::Error::from(std::io::ErrorKind::InvalidData);
        assert!(matches!(Fetch::of_copying(CopyError::Read(broken), path), Fetch::Copy(Fault::Copy(_))));
        let cut = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(matches!(Fetch::of_copying(CopyError::Read(cut), path), Fetch::Copy(Fault::Away(_))));
    }

    #[test]
    fn a_file_has_no_copy_for_good_only_if_every_replica_answered() {
        let name: FileName = "a.warc.gz".parse().unwrap();
        let wrong = || Fault::Copy("x".to_owned());
        let silent = || Fault::Away("y".to_owned());
        for (faults, expected) in [
            (vec![], (false, "no replica has it")),
            (vec![wrong()], (false, "one: x")),
            (vec![wrong(), silent()], (true, "one: x; one: y")),
            (vec![silent(), wrong()], (true, "one: y; one: x")),
        ] {
            let mut passed_over = PassedOver::default();
            for fault in faults {
                passed_over.add("one", fault);
            }
            let Error::NoCopy { away, reason, .. } = passed_over.no_copy(&name) else {
                panic!("another error")
            };
            assert_eq!((away, reason.as_str()), expected);
        }
    }
}
