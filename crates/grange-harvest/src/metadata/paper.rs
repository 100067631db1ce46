//! Which papers a job folder holds, in the order in which they are written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use grange_crawl::record::chunk::Manifest;
use jiff::Timestamp;

use super::address::{Addresses, Class};
use super::info;
use crate::folder::{HarvestInfo, JobFolder};
use crate::papers::JobPapers;

/// One record to come.
#[derive(Debug)]
pub(super) struct Paper {
    pub(super) address: String,
    pub(super) content_type: &'static str,
    pub(super) body: Body,
    pub(super) date: Timestamp,
}

#[derive(Debug)]
pub(super) enum Body {
    Text(String),
    Files(Vec<PathBuf>),
}

/// All papers of the folder: what was settled, the files sorted by class (setup, reports, logs) and name, then the
/// index lines by file.
pub(super) fn of(folder: &JobFolder, papers: &JobPapers, addresses: Addresses<'_>) -> io::Result<Vec<Paper>> {
    let settled = settled(papers);
    let text = |address: String, name: &str, text: String| Paper {
        address,
        content_type: content_type(name),
        body: Body::Text(text),
        date: settled,
    };
    let jobs: Vec<_> = papers.info.duplicate_reduction_jobs.iter().map(ToString::to_string).collect();
    let mut all = vec![
        text(addresses.settled("aliases"), "aliases", aliases(&papers.info)),
        text(addresses.settled("duplicatereductionjobs"), "duplicatereductionjobs", jobs.join(",")),
    ];
    let mut sorted: BTreeMap<(Class, String), Paper> = BTreeMap::new();
    let mut made = |name: &str, content: String| {
        let class = Class::of(name);
        sorted.insert((class, name.to_owned()), text(addresses.file(class, name), name, content));
    };
    made("harvest-info.json", serde_json::to_string_pretty(&papers.info).map_err(io::Error::from)?);
    made("harvestInfo.xml", info::xml(papers));
    made(ARCHIVE_FILES, archive_files(&folder.manifests())?);
    if let Some(traps) = info::traps(&folder.crawl().join("job.json"))? {
        made("traps.txt", traps);
    }
    let mut files: BTreeMap<(Class, String), Vec<PathBuf>> = BTreeMap::new();
    for path in [folder.seeds(), folder.template()] {
        if path.exists() {
            files.insert((Class::Setup, name_of(&path)), vec![path]);
        }
    }
    for path in listed(&folder.reports())? {
        let name = name_of(&path);
        if Class::of(&name) == Class::Reports {
            files.insert((Class::Reports, name), vec![path]);
        }
    }
    // Logs of closed chunks (crawl.log.cp00001-…) sort by their numbers, and the open one comes last.
    let mut logs = listed(&folder.logs())?;
    logs.sort_by_key(|path| (has_suffix(path, "log"), name_of(path)));
    for path in logs {
        if let Some(log) = log_name(&name_of(&path)) {
            files.entry((Class::Logs, log.to_owned())).or_default().push(path);
        }
    }
    for ((class, name), paths) in files {
        let mut date = settled;
        for path in &paths {
            date = date.max(modified(path)?);
        }
        let (address, content_type) = (addresses.file(class, &name), content_type(&name));
        sorted.insert((class, name), Paper { address, content_type, body: Body::Files(paths), date });
    }
    all.extend(sorted.into_values());
    for path in listed(&folder.cdx())? {
        let name = name_of(&path);
        let Some(warc) = name.strip_suffix(".cdx") else { continue };
        let (address, date) = (addresses.cdx(warc), modified(&path)?);
        all.push(Paper { address, content_type: "application/x-cdx", body: Body::Files(vec![path]), date });
    }
    Ok(all)
}

/// When the job was made ready.
fn settled(papers: &JobPapers) -> Timestamp {
    let job = &papers.info.job;
    job.submitted_at.unwrap_or(job.created_at)
}

fn aliases(info: &HarvestInfo) -> String {
    info.aliases.iter().fold(String::new(), |mut text, (alias, of)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{alias} is an alias for {of}");
        text
    })
}

/// `crawl.log` of `crawl.log` and of `crawl.log.cp00001-20260101000000`.
fn log_name(name: &str) -> Option<&str> {
    let end = name.find(".log")? + ".log".len();
    let rest = &name[end..];
    (rest.is_empty() || rest.starts_with(".cp")).then_some(&name[..end])
}

const ARCHIVE_FILES: &str = "archivefiles-report.txt";

/// Which WARC files the crawl made: from the manifests of its chunks, for the files may have gone by now.
fn archive_files(manifests: &Path) -> io::Result<String> {
    let mut text = String::from("[ARCHIVEFILE] [Closed] [Size]\n");
    for path in listed(manifests)?.iter().filter(|path| has_suffix(path, "json")) {
        for file in Manifest::load(path)?.files {
            let closed = file.last.map_or_else(|| "-".to_owned(), |last| last.to_string());
            let _ = writeln!(text, "{} {closed} {}", file.name, file.size);
        }
    }
    Ok(text)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("xml") => "text/xml",
        Some("json") => "application/json",
        _ => "text/plain",
    }
}

/// The files of a folder by name; none if it is not there. What is half-written is passed over.
pub(super) fn listed(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() && !has_suffix(&entry.path(), "tmp") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension().is_some_and(|found| found == suffix)
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// When the file was changed last, to the second: some file systems know no better.
pub(super) fn modified(path: &Path) -> io::Result<Timestamp> {
    let time = Timestamp::try_from(path.metadata()?.modified()?).map_err(io::Error::other)?;
    Timestamp::from_second(time.as_second()).map_err(io::Error::other)
}
