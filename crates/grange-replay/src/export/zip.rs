//! A WACZ written in one go: a zip file of stored members, whose lengths and checksums follow their bytes.

use std::io::{self, Write};

use cdx::{SortOptions, Sorter};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;

use super::Selection;
use super::records::{Sink, warc};
use crate::memento;
use crate::piece_channel::BodyWriter;
use crate::wayback::View;

/// Pages named in the package; they are where people begin, not an index.
const PAGES_MAX: usize = 10_000;
/// The name of the WARC inside.
const DATA: &str = "data.warc.gz";

/// One member that was written.
struct Member {
    name: &'static str,
    crc: u32,
    len: u64,
    header: u64,
    sha256: String,
}

/// Writes one member.
struct MemberWriter<'o> {
    out: &'o mut BodyWriter,
    name: &'static str,
    header: u64,
    start: u64,
    crc: crc32fast::Hasher,
    sha256: Sha256,
}

/// Bit 3: checksum and lengths follow; bit 11: names are UTF-8.
const FLAGS: u16 = 1 << 3 | 1 << 11;
/// Lengths may need 64 bits.
const VERSION: u16 = 45;
/// 1 January 1980, midnight: the date is in the package's own description.
const DOS_TIME: [u8; 4] = [0, 0, 0x21, 0];

impl<'o> MemberWriter<'o> {
    fn start(out: &'o mut BodyWriter, name: &'static str) -> io::Result<Self> {
        let header = out.written();
        let mut head = Vec::with_capacity(64);
        head.extend_from_slice(b"PK\x03\x04");
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&FLAGS.to_le_bytes());
        head.extend_from_slice(&[0; 2]);
        head.extend_from_slice(&DOS_TIME);
        head.extend_from_slice(&[0; 4]);
        head.extend_from_slice(&[0xff; 8]);
        head.extend_from_slice(&(name.len() as u16).to_le_bytes());
        head.extend_from_slice(&20u16.to_le_bytes());
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(&[1, 0, 16, 0]);
        head.extend_from_slice(&[0; 16]);
        out.write_all(&head)?;
        let start = out.written();
        Ok(Self { out, name, header, start, crc: crc32fast::Hasher::new(), sha256: Sha256::new() })
    }

    fn finish(self) -> io::Result<Member> {
        let (crc, len) = (self.crc.finalize(), self.out.written() - self.start);
        self.out.write_all(b"PK\x07\x08")?;
        self.out.write_all(&crc.to_le_bytes())?;
        self.out.write_all(&len.to_le_bytes())?;
        self.out.write_all(&len.to_le_bytes())?;
        let sha256 = data_encoding::HEXLOWER.encode(&self.sha256.finalize());
        Ok(Member { name: self.name, crc, len, header: self.header, sha256 })
    }
}

impl Write for MemberWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(bytes)?;
        self.crc.update(bytes);
        self.sha256.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Sink for MemberWriter<'_> {
    fn written(&self) -> u64 {
        self.out.written() - self.start
    }
}

/// Writes the package: records, index, pages, and what describes them.
pub(super) fn wacz(
    view: &View,
    selection: &Selection,
    runtime: &Handle,
    out: &mut BodyWriter,
) -> io::Result<()> {
    let mut members = Vec::new();
    let mut index = Sorter::new(SortOptions::default());
    let mut pages = vec![json!({"format": "json-pages-1.0", "id": "pages", "title": "Pages"}).to_string()];
    let mut data = MemberWriter::start(out, "archive/data.warc.gz")?;
    let mut line = Vec::new();
    warc(view, selection, runtime, &mut data, &mut |copied| {
        let capture = copied.capture;
        let mut entry = capture.to_entry();
        entry.offset = Some(copied.offset);
        entry.length = Some(copied.length);
        entry.filename = Some(DATA.into());
        entry.original = None;
        line.clear();
        entry.write_cdxj(&mut line);
        index.push(line.trim_ascii_end())?;
        let is_page = capture.mime.as_deref() == Some("text/html") && capture.status == Some(200);
        if is_page && pages.len() <= PAGES_MAX {
            let ts = memento::moment(capture.time).map(|moment| format!("{moment}Z")).unwrap_or_default();
            let url = capture.url.as_deref().unwrap_or(&capture.surt);
            pages.push(json!({"id": page_id(url, &ts), "url": url, "title": url, "ts": ts}).to_string());
        }
        Ok(())
    })?;
    members.push(data.finish()?);

    let mut lines = MemberWriter::start(out, "indexes/index.cdx")?;
    index.finish(&mut lines)?;
    members.push(lines.finish()?);

    let mut list = MemberWriter::start(out, "pages/pages.jsonl")?;
    for page in &pages {
        writeln!(list, "{page}")?;
    }
    members.push(list.finish()?);

    let resources: Vec<_> = members
        .iter()
        .map(|member| {
            let name = member.name.rsplit('/').next();
            json!({"name": name, "path": member.name, "hash": format!("sha256:{}", member.sha256), "bytes": member.len})
        })
        .collect();
    let description = json!({
        "profile": "data-package",
        "wacz_version": "1.1.1",
        "title": format!("{}: {}", view.collection.name, selection.text),
        "created": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "software": concat!("Grange ", env!("CARGO_PKG_VERSION")),
        "resources": resources,
    });
    let text = serde_json::to_string_pretty(&description)?;
    let mut package = MemberWriter::start(out, "datapackage.json")?;
    package.write_all(text.as_bytes())?;
    members.push(package.finish()?);
    let hash = format!("sha256:{}", data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes())));
    let mut digest = MemberWriter::start(out, "datapackage-digest.json")?;
    digest.write_all(json!({"path": "datapackage.json", "hash": hash}).to_string().as_bytes())?;
    members.push(digest.finish()?);

    directory(&members, out)
}

/// The name of a page within a package: the same for the same capture in every package. Validators ask for one, and for a title;
/// titles are not known here, so that is the URL.
fn page_id(url: &str, ts: &str) -> String {
    let digest = Sha256::digest(format!("{ts} {url}"));
    data_encoding::HEXLOWER.encode(&digest[..16])
}

/// The central directory, in its 64-bit form throughout: nobody can know beforehand how long an export becomes.
fn directory(members: &[Member], out: &mut BodyWriter) -> io::Result<()> {
    let start = out.written();
    for member in members {
        let mut entry = Vec::with_capacity(96);
        entry.extend_from_slice(b"PK\x01\x02");
        entry.extend_from_slice(&VERSION.to_le_bytes());
        entry.extend_from_slice(&VERSION.to_le_bytes());
        entry.extend_from_slice(&FLAGS.to_le_bytes());
        entry.extend_from_slice(&[0; 2]);
        entry.extend_from_slice(&DOS_TIME);
        entry.extend_from_slice(&member.crc.to_le_bytes());
        entry.extend_from_slice(&[0xff; 8]);
        entry.extend_from_slice(&(member.name.len() as u16).to_le_bytes());
        entry.extend_from_slice(&28u16.to_le_bytes());
        entry.extend_from_slice(&[0; 10]);
        entry.extend_from_slice(&[0xff; 4]);
        entry.extend_from_slice(member.name.as_bytes());
        entry.extend_from_slice(&[1, 0, 24, 0]);
        for number in [member.len, member.len, member.header] {
            entry.extend_from_slice(&number.to_le_bytes());
        }
        out.write_all(&entry)?;
    }
    let (end, count) = (out.written(), members.len() as u64);
    let mut tail = Vec::with_capacity(128);
    tail.extend_from_slice(b"PK\x06\x06");
    tail.extend_from_slice(&44u64.to_le_bytes());
    tail.extend_from_slice(&VERSION.to_le_bytes());
    tail.extend_from_slice(&VERSION.to_le_bytes());
    tail.extend_from_slice(&[0; 8]);
    for number in [count, count, end - start, start] {
        tail.extend_from_slice(&number.to_le_bytes());
    }
    tail.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    tail.extend_from_slice(&end.to_le_bytes());
    tail.extend_from_slice(&1u32.to_le_bytes());
    tail.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    tail.extend_from_slice(&[0xff; 12]);
    tail.extend_from_slice(&[0; 2]);
    out.write_all(&tail)
}
