//! WACZ read in place: a zip file whose WARCs are stored, not packed, so that a record lies at a known byte.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use grange_base::named_file;

use super::local::Section;

/// One file inside a WACZ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<P = Section> {
    /// Its path in the package, such as `archive/data.warc.gz`.
    pub name: String,
    /// Where its bytes are; `None` if the zip file has them packed, so that they cannot be read in place.
    pub section: Option<P>,
    /// Its length once unpacked.
    pub len: u64,
}

impl<P> Member<P> {
    fn map<Q>(self, place: impl FnOnce(P) -> Q) -> Member<Q> {
        Member { name: self.name, section: self.section.map(place), len: self.len }
    }

    /// What indexes and holdings call it: the package is like a folder.
    pub fn name_in(&self, package: &str) -> String {
        format!("{package}/{}", self.name)
    }

    /// Whether it is one of the WARC or ARC files of the package.
    pub fn is_archive(&self) -> bool {
        const ENDS: [&str; 6] = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".warc.open"];
        let name = self.name.to_ascii_lowercase();
        name.starts_with("archive/") && ENDS.iter().any(|end| name.ends_with(end))
    }
}

/// Why a file could not be read as a WACZ.
#[derive(Debug, thiserror::Error)]
pub enum WaczError {
    #[error("the file could not be read; check the disk and the rights of the file")]
    Io(#[from] io::Error),
    #[error("it is no whole zip file: {0}; fetch it again from where it came")]
    NotZip(&'static str),
}

/// The end record without its comment, and the longest comment there can be.
const END_LEN: u64 = 22;
const COMMENT_MAX: u64 = 0xffff;
/// A directory of half a million files; a WACZ has dozens.
const DIRECTORY_BYTES_MAX: u64 = 64 << 20;

/// Whether the bytes at the start of a file are those of a zip file.
pub fn is_zip(first: &[u8]) -> bool {
    first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06")
}

/// The files inside a WACZ, in the order of its directory. Nothing is unpacked.
pub fn members(path: &Path) -> Result<Vec<Member>, WaczError> {
    let file = named_file::open(path)?;
    let len = file.metadata()?.len();
    let read = |at: u64, buffer: &mut [u8]| file.read_exact_at(buffer, at);
    let section = |place: Range<u64>| Section {
        path: path.to_owned(),
        offset: place.start,
        len: place.end - place.start,
    };
    let found = members_of(read, len)?;
    Ok(found.into_iter().map(|member| member.map(section)).collect())
}

/// The same of a WACZ anywhere: `read` fills a buffer from a place in it, `len` is its length.
pub fn members_of(
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
    len: u64,
) -> Result<Vec<Member<Range<u64>>>, WaczError> {
    let (start, size) = directory(&read, len)?;
    if size > DIRECTORY_BYTES_MAX || start.checked_add(size).is_none_or(|end| end > len) {
        return Err(WaczError::NotZip("its directory lies outside the file"));
    }
    let mut bytes = vec![0; size as usize];
    read(start, &mut bytes)?;
    let mut members = Vec::new();
    let mut rest = &bytes[..];
    while let Some(entry) = Entry::take(&mut rest) {
        members.push(entry.member(&read, len)?);
    }
    Ok(members)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Where the central directory begins, and its length.
fn directory(read: impl Fn(u64, &mut [u8]) -> io::Result<()>, len: u64) -> Result<(u64, u64), WaczError> {
    let missing = WaczError::NotZip("its end is missing");
    let tail_len = len.min(END_LEN + COMMENT_MAX);
    let tail_start = len - tail_len;
    let mut tail = vec![0; tail_len as usize];
    read(tail_start, &mut tail)?;
    let Some(end) = memchr::memmem::rfind(&tail, b"PK\x05\x06") else { return Err(missing) };
    let (Some(size), Some(start)) = (u32_at(&tail, end + 12), u32_at(&tail, end + 16)) else {
        return Err(missing);
    };
    if size < 0xffff_ffff && start < 0xffff_ffff && u16_at(&tail, end + 10) != Some(0xffff) {
        return Ok((start, size));
    }
    // Zip64: a locator of 20 bytes stands right before the end record and says where the larger one is.
    let locator =
        end.checked_sub(20).map(|at| &tail[at..end]).filter(|bytes| bytes.starts_with(b"PK\x06\x07"));
    let Some(at) = locator.and_then(|bytes| u64_at(bytes, 8)) else { return Ok((start, size)) };
    let mut large = [0; 56];
    if at.checked_add(56).is_none_or(|end| end > len) {
        return Err(missing);
    }
    read(at, &mut large)?;
    match (large.starts_with(b"PK\x06\x06"), u64_at(&large, 48), u64_at(&large, 40)) {
        (true, Some(start), Some(size)) => Ok((start, size)),
        _ => Err(missing),
    }
}

/// An entry of the central directory.
struct Entry {
    name: String,
    stored: bool,
    packed: u64,
    len: u64,
    header: u64,
}

impl Entry {
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let bytes = *rest;
        if !bytes.starts_with(b"PK\x01\x02") {
            return None;
        }
        let [name_len, extra_len, comment_len] =
            [28, 30, 32].map(|at| u16_at(bytes, at).unwrap_or(0) as usize);
        let name = bytes.get(46..46 + name_len)?;
        let extra = bytes.get(46 + name_len..46 + name_len + extra_len)?;
        *rest = bytes.get(46 + name_len + extra_len + comment_len..).unwrap_or_default();
        let mut entry = Self {
            name: String::from_utf8_lossy(name).into_owned(),
            // Method 0, and not encrypted.
            stored: u16_at(bytes, 10)? == 0 && u16_at(bytes, 8)? & 1 == 0,
            packed: u32_at(bytes, 20)?,
            len: u32_at(bytes, 24)?,
            header: u32_at(bytes, 42)?,
        };
        entry.widen(extra);
        Some(entry)
    }

    /// Numbers too large for 32 bits stand in the extra field, in this order, each only if it is needed.
    fn widen(&mut self, mut extra: &[u8]) {
        while let (Some(id), Some(len)) = (u16_at(extra, 0), u16_at(extra, 2)) {
            let Some(field) = extra.get(4..4 + len as usize) else { return };
            if id == 1 {
                let mut at = 0;
                for number in [&mut self.len, &mut self.packed, &mut self.header] {
                    if *number == 0xffff_ffff
                        && let Some(wide) = u64_at(field, at)
                    {
                        *number = wide;
                        at += 8;
                    }
                }
            }
            extra = &extra[4 + len as usize..];
        }
    }

    /// Finds the bytes behind the local header, whose name and extra field may be longer than those here.
    fn member(
        self,
        read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
        file_len: u64,
    ) -> Result<Member<Range<u64>>, WaczError> {
        let mut section = None;
        if self.stored && self.header.checked_add(30).is_some_and(|end| end <= file_len) {
            let mut header = [0; 30];
            read(self.header, &mut header)?;
            let lens = u16_at(&header, 26).zip(u16_at(&header, 28));
            if let Some((name, extra)) = lens.filter(|_| header.starts_with(b"PK\x03\x04")) {
                let offset = self.header + 30 + name + extra;
                let len = self.len.min(file_len.saturating_sub(offset));
                section = Some(offset..offset + len);
            }
        }
        Ok(Member { name: self.name, section, len: self.len })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// A zip file by hand: entries of name, method and bytes.
    fn zip(entries: &[(&str, u16, &[u8])], comment: &[u8]) -> Vec<u8> {
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        for (name, method, bytes) in entries {
            let header = out.len() as u32;
            let sizes = [(bytes.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
            out.extend_from_slice(b"PK\x03\x04\x14\0\0\0");
            out.extend_from_slice(&method.to_le_bytes());
            out.extend_from_slice(&[0; 8]);
            out.extend_from_slice(&sizes);
            out.extend_from_slice(&(name.len() as u16).to_le_bytes());
            out.extend_from_slice(&4u16.to_le_bytes());
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&[9, 9, 0, 0]);
            out.extend_from_slice(bytes);
            directory.extend_from_slice(b"PK\x01\x02\x14\0\x14\0\0\0");
            directory.extend_from_slice(&method.to_le_bytes());
            directory.extend_from_slice(&[0; 8]);
            directory.extend_from_slice(&sizes);
            directory.extend_from_slice(&(name.len() as u16).to_le_bytes());
            directory.extend_from_slice(&[0; 12]);
            directory.extend_from_slice(&header.to_le_bytes());
            directory.extend_from_slice(name.as_bytes());
        }
        let start = out.len() as u32;
        out.extend_from_slice(&directory);
        out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
        out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
        out.extend_from_slice(&(directory.len() as u32).to_le_bytes());
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&(comment.len() as u16).to_le_bytes());
        out.extend_from_slice(comment);
        out
    }

    #[test]
    fn stored_members_are_found_and_packed_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wacz");
        let entries: &[(&str, u16, &[u8])] = &[
            ("archive/data.warc.gz", 0, b"records"),
            ("pages/pages.jsonl", 8, b"packed"),
            ("archive/x.txt", 0, b""),
        ];
        std::fs::write(&path, zip(entries, b"a comment")).unwrap();
        let found = members(&path).unwrap();
        let shape: Vec<_> =
            found.iter().map(|m| (m.name.as_str(), m.section.is_some(), m.is_archive())).collect();
        assert_eq!(
            shape,
            [
                ("archive/data.warc.gz", true, true),
                ("pages/pages.jsonl", false, false),
                ("archive/x.txt", true, false)
            ]
        );
        let mut text = String::new();
        found[0].section.as_ref().unwrap().open().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "records");
    }

    #[test]
    fn what_is_no_zip_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wacz");
        let mut outside = zip(&[("a", 0, b"b")], b"");
        let at = outside.len() - 6;
        outside[at..at + 4].copy_from_slice(&u32::MAX.wrapping_sub(7).to_le_bytes());
        for bytes in [&b""[..], b"PK\x03\x04", b"PK\x05\x06", &outside] {
            std::fs::write(&path, bytes).unwrap();
            assert!(members(&path).is_err(), "{bytes:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes: Vec<u8>, cut in 0usize..400, flip in 0usize..400, with: u8) {
            bytes.splice(0..0, zip(&[("archive/a.warc", 0, b"x"), ("b", 8, b"yy")], b""));
            if let Some(byte) = bytes.get_mut(flip) {
                *byte = with;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.wacz");
            std::fs::write(&path, bytes).unwrap();
            let _ = members(&path);
        }
    }
}
