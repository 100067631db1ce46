//! The files that entries of an index may name: those that are verified on every replica and hold the records that the
//! crawl logs describe.
//!
//! A crawl log is written before its WARC files are uploaded, and a revisit passes on a location that an earlier job
//! claimed. So the archive is asked about every file when an index is built, and again when a kept index is opened.

use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use grange_archive::ArchiveClient;
use grange_db::{FileStatus, deciding};
use grange_model::{FileName, Presence, UploadState, Verdict};
use tokio::task::JoinSet;
use warc::{Digest, Reader, RecordType};

use super::anywhere::HEADER_READ_BYTES;

/// Files asked about side by side: enough to hide the delay of another node, few enough not to fill its queue.
const QUERIES_MAX: usize = 16;
/// Captures remembered of each file, to compare the file with. One would do, unless that very line is wrong.
pub(super) const SAMPLES_MAX: usize = 3;
/// How long a replica may take to return the beginning of a record.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long files that could not be read are tried again when a kept index is opened: a crawl waits for it, and files that
/// are not reached are tried by a later crawl.
const RETRIES_TIMEOUT: Duration = Duration::from_secs(30);

/// A capture that a file must hold if it is the file that the logs describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SampleCapture {
    pub(super) offset: u64,
    pub(super) url: String,
    /// Unknown of lines of a CDX.
    pub(super) payload: Option<Digest>,
}

/// What was known of a file when the index was built. Kept in the index behind the name of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEvidence {
    /// Verified on every replica, with this checksum. Only entries of such files are kept.
    Verified(String),
    /// Verified on every replica, with this checksum, but without the records that the logs describe.
    OtherRecords(String),
    /// Unknown to the archive, or not verified on some replica.
    Unverified,
    /// Verified with this checksum, but no replica returned the record at this offset.
    Unread { checksum: String, offset: u64 },
}

impl FileEvidence {
    pub(super) fn is_verified(&self) -> bool {
        matches!(self, FileEvidence::Verified(_))
    }

    pub(super) fn to_text(&self) -> String {
        match self {
            FileEvidence::Verified(checksum) => format!("={checksum}"),
            FileEvidence::OtherRecords(checksum) => format!("!{checksum}"),
            FileEvidence::Unverified => "-".to_owned(),
            FileEvidence::Unread { checksum, offset } => format!("?{offset} {checksum}"),
        }
    }

    pub(super) fn from_text(text: &str) -> FileEvidence {
        match text.split_at_checked(1) {
            Some(("=", checksum)) => FileEvidence::Verified(checksum.to_owned()),
            Some(("!", checksum)) => FileEvidence::OtherRecords(checksum.to_owned()),
            Some(("-", "")) => FileEvidence::Unverified,
            other => {
                let unread = other.and_then(|(_, rest)| rest.split_once(' '));
                let parsed = unread.and_then(|(offset, sum)| Some((offset.parse().ok()?, sum.to_owned())));
                // No file has no checksum: what cannot be parsed never holds, and the index is built again.
                let (offset, checksum) = parsed.unwrap_or_default();
                FileEvidence::Unread { checksum, offset }
            }
        }
    }

    /// Whether this may still hold for a file that is now verified with this checksum, or not verified. Of a file that was not
    /// read it holds as long as it cannot be read.
    fn holds(&self, checksum: Option<&str>) -> bool {
        match self {
            FileEvidence::Verified(before)
            | FileEvidence::OtherRecords(before)
            | FileEvidence::Unread { checksum: before, .. } => checksum == Some(before.as_str()),
            FileEvidence::Unverified => checksum.is_none(),
        }
    }
}

/// The checksum of a file that every replica is verified to hold.
fn verified_checksum(status: &FileStatus) -> Option<String> {
    let verified = !status.holdings.is_empty()
        && status.holdings.iter().all(|holding| {
            holding.state == UploadState::UploadCompleted
                && holding.presence != Presence::Missing
                && holding.verdict != Verdict::Corrupt
        });
    Some(deciding(&status.file.checksums)).filter(|checksum| verified && !checksum.is_empty())
}

/// Asks the archive about files, by name with samples of what they should hold.
pub(super) async fn evidence(
    archive: &Arc<dyn ArchiveClient>,
    files: HashMap<String, Vec<SampleCapture>>,
) -> Result<HashMap<String, FileEvidence>, grange_archive::Error> {
    each(files, |name, samples| {
        let archive = archive.clone();
        async move {
            let Some(checksum) = checksum_now(&*archive, &name).await? else {
                return Ok((name, FileEvidence::Unverified));
            };
            let evidence = match holds_records(&*archive, &name, &samples).await {
                Ok(true) => FileEvidence::Verified(checksum),
                Ok(false) => FileEvidence::OtherRecords(checksum),
                Err(Unreadable { offset }) => FileEvidence::Unread { checksum, offset },
            };
            Ok((name, evidence))
        }
    })
    .await
}

/// Whether everything that an index knows of its files still holds. A file that could not be read is tried again where it
/// failed: while that fails too, an index built again would say the same.
pub(super) async fn still_holds(
    archive: &Arc<dyn ArchiveClient>,
    files: HashMap<String, FileEvidence>,
) -> Result<bool, grange_archive::Error> {
    let mut unread = HashMap::new();
    for (name, evidence) in &files {
        if let FileEvidence::Unread { offset, .. } = evidence {
            unread.insert(name.clone(), *offset);
        }
    }
    let compared = each(files, |name, before| {
        let archive = archive.clone();
        async move {
            let now = checksum_now(&*archive, &name).await?;
            Ok((name, before.holds(now.as_deref())))
        }
    });
    let same = compared.await?.values().all(|holds| *holds);
    Ok(same && !any_readable(archive, unread).await)
}

/// Whether one of these files can be read at its offset now. They come in no order: each crawl reaches others first.
async fn any_readable(archive: &Arc<dyn ArchiveClient>, files: HashMap<String, u64>) -> bool {
    let reads = stream::iter(files).map(|(name, offset)| async move {
        let Ok(name) = name.parse::<FileName>() else { return false };
        read_header(&**archive, &name, offset).await.is_ok()
    });
    let any = reads.buffer_unordered(QUERIES_MAX).any(|readable| async move { readable });
    tokio::time::timeout(RETRIES_TIMEOUT, any).await.unwrap_or(false)
}

async fn checksum_now(
    archive: &dyn ArchiveClient,
    name: &str,
) -> Result<Option<String>, grange_archive::Error> {
    // A name that no file can have is known to no archive.
    let Ok(name) = name.parse::<FileName>() else { return Ok(None) };
    Ok(archive.status(&name).await?.as_ref().and_then(verified_checksum))
}

/// Runs one query per file, a few at a time.
async fn each<T, A, F>(
    files: HashMap<String, T>,
    query: impl Fn(String, T) -> F,
) -> Result<HashMap<String, A>, grange_archive::Error>
where
    A: Send + 'static,
    F: Future<Output = Result<(String, A), grange_archive::Error>> + Send + 'static,
{
    let mut answers = HashMap::with_capacity(files.len());
    let (mut files, mut queries) = (files.into_iter(), JoinSet::new());
    loop {
        while queries.len() < QUERIES_MAX
            && let Some((name, about)) = files.next()
        {
            queries.spawn(query(name, about));
        }
        let Some(answered) = queries.join_next().await else { return Ok(answers) };
        match answered {
            Ok(answer) => answers.extend([answer?]),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// No replica returned the record at this offset.
struct Unreadable {
    offset: u64,
}

/// Whether the file holds one of the captures it should hold.
async fn holds_records(
    archive: &dyn ArchiveClient,
    name: &str,
    samples: &[SampleCapture],
) -> Result<bool, Unreadable> {
    // Records of ARC files carry no digest; only NetarchiveSuite wrote such files, and their names are its own.
    let arc = Path::new(name.strip_suffix(".gz").unwrap_or(name)).extension();
    if samples.is_empty() || arc.is_some_and(|extension| extension.eq_ignore_ascii_case("arc")) {
        return Ok(true);
    }
    let Ok(name) = name.parse::<FileName>() else { return Err(Unreadable { offset: 0 }) };
    for sample in samples {
        if sample.is_in(read_header(archive, &name, sample.offset).await?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The beginning of the record at this offset.
async fn read_header(archive: &dyn ArchiveClient, name: &FileName, offset: u64) -> Result<Bytes, Unreadable> {
    let reading = archive.read_at(name, offset, HEADER_READ_BYTES);
    match tokio::time::timeout(READ_TIMEOUT, reading).await {
        Ok(Ok(bytes)) => return Ok(bytes),
        Ok(Err(error)) => {
            let error = grange_base::Chain(&error);
            tracing::warn!(file = %name, offset, %error, "duplicate index: cannot read a record of a stored file");
        }
        Err(_) => {
            tracing::warn!(file = %name, offset, "duplicate index: no replica returned a record of a stored file in time");
        }
    }
    Err(Unreadable { offset })
}

impl SampleCapture {
    /// Whether these bytes begin with the response record of this capture.
    fn is_in(&self, bytes: Bytes) -> bool {
        let Ok(mut reader) = Reader::new(Cursor::new(bytes)) else { return false };
        let Ok(Some(record)) = reader.next() else { return false };
        // The reader passes over what is not a record; the one it finds then is another.
        if record.place().offset != 0 || record.kind() != RecordType::Response {
            return false;
        }
        let digest = record.header().get("WARC-Payload-Digest").and_then(|field| Digest::parse(field).ok());
        match (digest, self.payload) {
            (Some(digest), Some(payload)) if digest.algorithm() == payload.algorithm() => digest == payload,
            _ => record.target_uri() == Some(self.url.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_comes_back_from_its_text_and_holds_while_nothing_changes() {
        let sum = || "sha512=ab".to_owned();
        for (evidence, same, verified) in [
            (FileEvidence::Verified(sum()), true, true),
            (FileEvidence::OtherRecords(sum()), true, false),
            (FileEvidence::Unverified, false, false),
            (FileEvidence::Unread { checksum: sum(), offset: 77 }, true, false),
        ] {
            assert_eq!(FileEvidence::from_text(&evidence.to_text()), evidence);
            assert_eq!(evidence.holds(Some(&sum())), same, "{evidence:?}");
            assert!(!evidence.holds(Some("sha512=cd")), "{evidence:?}");
            assert_eq!(evidence.holds(None), evidence == FileEvidence::Unverified, "{evidence:?}");
            assert_eq!(evidence.is_verified(), verified, "{evidence:?}");
        }
        // Of an index that was built before the offset was kept, or of a text that is damaged: never holds.
        for text in ["", "?", "?x sha512=ab", "?77", "-x"] {
            let evidence = FileEvidence::from_text(text);
            assert!(!evidence.is_verified(), "{text:?}");
            assert!(!evidence.holds(Some(&sum())) && !evidence.holds(None), "{text:?}");
        }
    }
}
