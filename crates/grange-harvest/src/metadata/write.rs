//! Writes the metadata WARC of a job folder.

use std::fs;
use std::io::{self, Cursor};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use warc::write::{Compression, FileOptions, NewRecord, OPEN_SUFFIX, RecordId, Reread, SyncPolicy, WarcFile};
use warc::{Algorithm, Date, Digest};

use super::address::Addresses;
use super::joined::Joined;
use super::paper::{self, Body, Paper};
use super::{file_name, note_file};
use crate::folder::JobFolder;
use crate::papers::JobPapers;

/// Writes the metadata file of a job whose crawl has ended and answers its path. One that is there stays as it is: it
/// may be stored already, and a stored file never changes.
pub fn write(folder: &JobFolder, papers: &JobPapers) -> io::Result<PathBuf> {
    let info = &papers.info;
    let path = folder.metadata().join(file_name(info.job.id, info.metadata_number));
    if path.exists() {
        return Ok(path);
    }
    for warc in paper::listed(&folder.warcs())? {
        // What is still open was not closed by the crawl: it is not part of the harvest.
        if !paper::name_of(&warc).ends_with(OPEN_SUFFIX) {
            note_file(folder, &warc).map_err(|error| about(error, "make the index lines of", &warc))?;
        }
    }
    let addresses = Addresses {
        organization: &papers.organization,
        harvest: info.job.harvest,
        run: info.job.run,
        job: info.job.id,
        software: &papers.software,
    };
    let all = paper::of(folder, papers, addresses)
        .map_err(|error| about(error, "gather the papers of", folder.root()))?;
    save(&path, papers, all).map_err(|error| about(error, "write the metadata file", &path))?;
    Ok(path)
}

/// The error with what was tried on what.
fn about(error: io::Error, doing: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {doing} {}: {error}", path.display()))
}

fn save(path: &Path, papers: &JobPapers, all: Vec<Paper>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut half = path.as_os_str().to_owned();
    half.push(OPEN_SUFFIX);
    match fs::remove_file(half) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let info = &papers.info;
    let mut lines = vec![("software".to_owned(), one_line(&papers.software))];
    if let Some(ip) = papers.ip {
        lines.push(("ip".to_owned(), ip.to_string()));
    }
    lines.push(("hostname".to_owned(), one_line(&papers.host)));
    if !info.operator.is_empty() {
        lines.push(("operator".to_owned(), one_line(&info.operator)));
    }
    lines.push(("isPartOf".to_owned(), info.job.id.to_string()));
    let name = file_name(info.job.id, info.metadata_number);
    let newest = all.iter().map(|paper| paper.date).max().unwrap_or(papers.at);
    let options = FileOptions {
        compression: Compression::Gzip(6),
        sync: SyncPolicy::OnClose,
        info: lines,
        id: Some(id(&format!("{name} warcinfo"), None)),
    };
    let mut file = WarcFile::create(path, &options, Date::from(newest))?;
    for paper in all {
        if let Err(error) = add(&mut file, papers.ip, paper) {
            file.abandon();
            return Err(error);
        }
    }
    file.close().map(|_| ())
}

fn add(file: &mut WarcFile, ip: Option<IpAddr>, paper: Paper) -> io::Result<()> {
    match paper.body {
        Body::Text(text) => {
            let length = text.len() as u64;
            record(file, ip, &paper.address, paper.content_type, paper.date, &mut Cursor::new(text), length)
        }
        Body::Files(paths) => {
            let mut joined = Joined::new(paths)?;
            let length = joined.length();
            record(file, ip, &paper.address, paper.content_type, paper.date, &mut joined, length)
        }
    }
}

fn record(
    file: &mut WarcFile,
    ip: Option<IpAddr>,
    address: &str,
    content_type: &str,
    date: jiff::Timestamp,
    body: &mut dyn Reread,
    length: u64,
) -> io::Result<()> {
    let digest = digest(body, length)?;
    body.rewind()?;
    let mut record = NewRecord::resource(address, Date::from(date), content_type, &[])
        .id(id(address, Some(&digest)))
        .stream(&[], body, length)
        .block_digest(digest)
        .payload_digest(digest);
    if let Some(ip) = ip {
        record = record.ip(ip);
    }
    file.write(&mut record).map(|_| ())
}

fn digest(body: &mut dyn Reread, length: u64) -> io::Result<Digest> {
    let mut hasher = warc::Hasher::new(Algorithm::Sha1);
    let mut buf = vec![0; 64 << 10];
    let mut left = length;
    while left > 0 {
        let want = left.min(buf.len() as u64) as usize;
        let n = body.read(&mut buf[..want])?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hasher.update(&buf[..n]);
        left -= n as u64;
    }
    Ok(hasher.finish())
}

/// The same record always has the same id; another content has another.
fn id(address: &str, digest: Option<&Digest>) -> RecordId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(address.as_bytes());
    if let Some(digest) = digest {
        hasher.update(digest.to_string().as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    // Version 8 of RFC 9562: made by a rule of our own.
    RecordId::from(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
