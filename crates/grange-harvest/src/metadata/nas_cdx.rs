//! Index lines of one WARC file in the columns of NetarchiveSuite, `A e b m n g v c`: URL, address of the server,
//! date, type, length, file, offset, MD5 of the payload. Made as soon as a file is closed, so that the file itself can
//! go to the archive, and from this machine, before the crawl ends.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufWriter, Write};
use std::path::Path;

use md5::{Digest as _, Md5};
use warc::{Reader, Record, RecordType};

use crate::folder::JobFolder;

/// Makes the index lines of a closed WARC file of the job, unless they are there. They are there whole or not at all.
pub fn note_file(folder: &JobFolder, warc: &Path) -> io::Result<()> {
    let name = warc.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let place = folder.cdx();
    let done = place.join(format!("{name}.cdx"));
    if done.exists() {
        return Ok(());
    }
    fs::create_dir_all(&place)?;
    let aside = place.join(format!("{name}.cdx.tmp"));
    let mut out = BufWriter::new(File::create(&aside)?);
    lines(warc, &name, &mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(aside, &done)?;
    File::open(place)?.sync_all()
}

/// Writes a line for every response of the file, in the file's order.
fn lines(path: &Path, name: &str, out: &mut impl Write) -> io::Result<()> {
    let mut reader = Reader::open(path)?;
    while let Some(mut record) = reader.next()? {
        if record.kind() == RecordType::Response {
            line(&mut record, name, out)?;
        }
    }
    Ok(())
}

fn line(record: &mut Record<'_>, file: &str, out: &mut impl Write) -> io::Result<()> {
    let (offset, length) = (record.place().offset, record.content_length());
    let url = column(record.target_uri());
    let ip = column(record.header().get("WARC-IP-Address"));
    let date =
        record.date().map_or_else(|| "-".to_owned(), |date| date.digits14().map(char::from).iter().collect());
    let own = record.content_type().map(<[u8]>::to_vec);
    let mime = match record.http()? {
        Some(http) => http.get("Content-Type").map(<[u8]>::to_vec),
        None => own,
    };
    let mime = mime.as_deref().map(bare);
    let mime = column(mime);
    let mut hasher = Md5::new();
    let mut body = record.body()?;
    loop {
        let bytes = body.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        hasher.update(bytes);
        let n = bytes.len();
        body.consume(n);
    }
    let md5 = data_encoding::HEXLOWER.encode(&hasher.finalize());
    let length = length.map_or_else(|| "-".to_owned(), |length| length.to_string());
    writeln!(out, "{url} {ip} {date} {mime} {length} {file} {offset} {md5}")
}

/// A type without its parameters.
fn bare(mime: &[u8]) -> &[u8] {
    let end = mime.iter().position(|b| matches!(b, b';' | b',') || b.is_ascii_whitespace());
    &mime[..end.unwrap_or(mime.len())]
}

/// A value as one column: `-` for nothing, blanks encoded.
fn column(value: Option<&[u8]>) -> String {
    let value = String::from_utf8_lossy(value.unwrap_or_default());
    if value.is_empty() {
        return "-".to_owned();
    }
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if c.is_whitespace() || c.is_control() {
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    out
}
