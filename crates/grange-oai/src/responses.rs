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

impl Responses {
    /// Answers of one job, below the repository's folder.
    pub(crate) fn new(folder: &Path, job: i64, now: Timestamp) -> Self {
        let stamp = now.strftime("%Y%m%d%H%M%S");
        let folder = folder.join("+responses");
        let spool = folder.join(format!("{job}.spool"));
        Self { folder, name: format!("oai-{job}-{stamp}"), serial: 0, file: None, answer: None, spool }
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
            let software = format!("grange/{}", env!("CARGO_PKG_VERSION"));
            let options = FileOptions {
                compression: Compression::default(),
                sync: SyncPolicy::OnClose,
                info: vec![("software".to_owned(), software)],
                id: None,
            };
            self.file.insert(WarcFile::create(path, &options, date)?)
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
