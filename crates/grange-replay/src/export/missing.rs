//! The captures that an export lacks, named in a record at its end: a file that looks whole must not hide that it is not.

use std::fmt::Write as _;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use grange_index::Capture;

/// Captures that are named; the others are counted.
const NAMED_MAX: u64 = 10_000;

#[derive(Debug, Default)]
pub(super) struct Missing {
    count: u64,
    lines: String,
}

impl Missing {
    pub(super) fn add(&mut self, capture: &Capture, reason: &str) {
        self.count += 1;
        if self.count > NAMED_MAX {
            return;
        }
        let clean = |text: &str| text.replace(|letter: char| letter.is_control(), " ");
        let url = capture.url.as_deref().unwrap_or(&capture.surt);
        // A String never fails to be written to.
        let _ = write!(
            self.lines,
            "missing: {} {} ({} at byte {}): {}\r\n",
            capture.time,
            clean(&url.replace(' ', "%20")),
            clean(&capture.file),
            capture.offset.map_or_else(|| "?".to_owned(), |offset| offset.to_string()),
            clean(reason)
        );
    }

    /// Writes the record if anything is missing.
    pub(super) fn write(self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let fields = format!("missing-count: {}\r\n{}", self.count, self.lines);
        let record = format!(
            "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {}\r\nWARC-Date: {}\r\n\
             Content-Type: application/warc-fields\r\nContent-Length: {}\r\n\r\n{fields}\r\n\r\n",
            warc::write::RecordId::random(),
            jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            fields.len()
        );
        let mut encoder = GzEncoder::new(out, Compression::default());
        encoder.write_all(record.as_bytes())?;
        encoder.finish().map(drop)
    }
}
