//! Answers kept as they came, in WARC files: archived like any harvest.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use warc::write::{Compression, FileOptions, NewRecord, SyncPolicy, WarcFile};

/// A file of answers being written.
#[derive(Debug)]
pub(crate) struct Responses {
    folder: PathBuf,
    name: String,
    serial: u32,
    file: Option<WarcFile>,
    answer: Option<Kept>,
    /// A spool that outgrows memory: one answer at a time, on disk.
    spool: PathBuf,
}

#[derive(Debug)]
struct Kept {
    url: String,
    head: Vec<u8>,
    body: File,
    bytes: u64,
    failed: Option<io::Error>,
}

/// A file is closed at this size, as crawls do: small enough to move, large enough to be few.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Where the answers of a repository lie that has its files in `folder`, until they are in the archive.
pub fn answers_below(folder: &Path) -> PathBuf {
    folder.join("+responses")
}

/// Closes files that an earlier attempt at this job left open, cut at their last whole record.
fn finish_left_open(folder: &Path, job: i64, now: Timestamp) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&format!("oai-{job}-"))
            && let Some(whole) = name.strip_suffix(".open")
        {
            WarcFile::reopen(folder.join(whole), &Responses::options(), warc::Date::from(now))?.close()?;
        }
    }
    Ok(())
}

impl Responses {
    /// Answers of one job, below the repository's folder. Blocks: what an attempt that died left may be long.
    pub(crate) fn new(folder: &Path, job: i64, now: Timestamp) -> Self {
        let stamp = now.strftime("%Y%m%d%H%M%S");
        let folder = answers_below(folder);
        let spool = folder.join(format!("{job}.spool"));
        if let Err(error) = finish_left_open(&folder, job, now) {
            tracing::warn!(%error, folder = %folder.display(), "answers of an attempt that died stay unfinished");
        }
        Self { folder, name: format!("oai-{job}-{stamp}"), serial: 0, file: None, answer: None, spool }
    }

    /// What answers are written with.
    fn options() -> FileOptions {
        FileOptions {
            compression: Compression::default(),
            sync: SyncPolicy::OnClose,
            info: vec![("software".to_owned(), format!("grange/{}", env!("CARGO_PKG_VERSION")))],
            id: None,
        }
    }

    pub(crate) fn begin(&mut self, response: &reqwest::Response) {
        let mut head = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
        for (name, value) in response.headers() {
            // The body is kept as one piece.
            if name != reqwest::header::TRANSFER_ENCODING {
                head.extend_from_slice(name.as_str().as_bytes());
                head.extend_from_slice(b": ");
                head.extend_from_slice(value.as_bytes());
                head.extend_from_slice(b"\r\n");
            }
        }
        head.extend_from_slice(b"\r\n");
        let made = std::fs::create_dir_all(&self.folder).and_then(|()| {
            File::options().read(true).write(true).create(true).truncate(true).open(&self.spool)
        });
        match made {
            Ok(body) => {
                let url = response.url().to_string();
                self.answer = Some(Kept { url, head, body, bytes: 0, failed: None });
            }
            Err(error) => {
                tracing::warn!(%error, folder = %self.folder.display(), "an answer cannot be kept");
                self.answer = None;
            }
        }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.answer
            && kept.failed.is_none()
        {
            kept.failed = kept.body.write_all(bytes).err();
            kept.bytes += bytes.len() as u64;
        }
    }

    pub(crate) fn end(&mut self, now: Timestamp) -> io::Result<()> {
        let Some(mut kept) = self.answer.take() else { return Ok(()) };
        if let Some(error) = kept.failed {
            return Err(error);
        }
        kept.body.seek(SeekFrom::Start(0))?;
        let date = warc::Date::from(now);
        if self.file.as_ref().is_some_and(|file| file.size() > FILE_BYTES_MAX)
            && let Some(full) = self.file.take()
        {
            full.close()?;
        }
        let file = if let Some(file) = &mut self.file {
            file
        } else {
            let path = self.folder.join(format!("{}-{:05}.warc.gz", self.name, self.serial));
            self.serial += 1;
            self.file.insert(WarcFile::create(path, &Self::options(), date)?)
        };
        let mut record = NewRecord::response(&kept.url, date, &kept.head, &[]).stream(
            &kept.head,
            &mut kept.body,
            kept.bytes,
        );
        file.write(&mut record).map(|_| ())
    }

    /// Closes the file under its final name.
    pub(crate) fn close(mut self) -> io::Result<()> {
        let _ = std::fs::remove_file(&self.spool);
        self.file.take().map_or(Ok(()), |file| file.close().map(|_| ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_attempt_left_open_is_closed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let answers = answers_below(folder.path());
        std::fs::create_dir_all(&answers).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let (date, mine, other) =
            (warc::Date::from(now), "oai-7-19700101000000-00000.warc.gz", "oai-70-1.warc.gz");
        for name in [mine, other] {
            let mut file = WarcFile::create(answers.join(name), &Responses::options(), date).unwrap();
            let head = b"HTTP/1.1 200 OK\r\n\r\n";
            file.write(&mut NewRecord::response("http://a.example/oai", date, head, b"<OAI-PMH/>")).unwrap();
            drop(file);
        }
        let open = answers.join(format!("{mine}.open"));
        let whole = std::fs::metadata(&open).unwrap().len();
        // Half a record at the end, as a kill leaves it.
        let mut bytes = std::fs::read(&open).unwrap();
        bytes.extend_from_slice(&bytes.clone()[..40]);
        std::fs::write(&open, bytes).unwrap();
        Responses::new(folder.path(), 7, now).close().unwrap();
        assert!(!open.exists());
        assert_eq!(
            std::fs::metadata(answers.join(mine)).unwrap().len(),
            whole,
            "cut at its last whole record"
        );
        assert!(answers.join(format!("{other}.open")).exists(), "another job may be writing it");
    }
}
