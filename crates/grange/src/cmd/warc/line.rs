//! Records and problems as JSON objects and as lines.

use std::path::Path;

use serde::Serialize;
use warc::{Level, Problem, Record};

use crate::progress::Progress;

/// A record as `grange warc ls --json` shows it.
#[derive(Debug, Serialize)]
pub(super) struct RecordLine {
    file: String,
    pub offset: u64,
    /// Bytes the record takes in the file, packed; absent where it cannot be told.
    pub length: Option<u64>,
    #[serde(rename = "type")]
    pub kind: String,
    pub url: Option<String>,
    pub date: Option<String>,
    pub mime: Option<String>,
    pub status: Option<u16>,
    /// The payload digest that the header states.
    digest: Option<String>,
    /// Only where true: other records stand before this one in the same gzip member, so the offset alone does not
    /// lead to it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inside_member: bool,
}

impl RecordLine {
    /// Reads what it needs of the record, then passes over the rest to learn its length.
    pub(super) fn read(file: &Path, record: &mut Record<'_>) -> std::io::Result<Self> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let http = record.http()?.map(|head| (head.status(), head.mime().map(text)));
        let (status, mime) = http.unwrap_or((None, None));
        let mut line = Self {
            file: file.display().to_string(),
            offset: record.place().offset,
            length: None,
            kind: record.kind().as_str().to_owned(),
            url: record.target_uri().map(text),
            date: record.date().map(|date| date.to_string()),
            mime: mime.or_else(|| record.content_type().map(text)),
            status,
            digest: record.header().get("WARC-Payload-Digest").map(text),
            inside_member: !record.place().is_seekable(),
        };
        record.finish()?;
        line.length = record.stored_len();
        Ok(line)
    }
}

/// A problem as an object.
#[derive(Debug, Serialize)]
pub(super) struct ProblemLine<'a> {
    file: String,
    offset: u64,
    /// The kind, stable and kebab-case.
    problem: &'static str,
    level: &'static str,
    meaning: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

impl<'a> ProblemLine<'a> {
    pub(super) fn new(file: &Path, problem: &'a Problem) -> Self {
        Self {
            file: file.display().to_string(),
            offset: problem.offset,
            problem: problem.kind.code(),
            level: match problem.kind.level() {
                Level::Comment => "comment",
                Level::Advice => "advice",
                Level::Damage => "damage",
            },
            meaning: problem.kind.meaning(),
            detail: problem.detail.as_deref(),
        }
    }

    /// File, offset, kind and meaning, separated by tabs.
    pub(super) fn text(&self) -> String {
        let detail = self.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
        format!("{}\t{}\t{}\t{}{detail}", self.file, self.offset, self.problem, self.meaning)
    }
}

/// Prints the problems of one file on standard error as they are met, and counts them. Comments are left out: what
/// is written anew does not have them.
pub(super) struct Told<'a> {
    pub(super) file: &'a Path,
    pub(super) progress: &'a Progress,
    pub(super) count: usize,
}

impl Told<'_> {
    pub(super) fn all(&mut self, problems: &[Problem]) {
        for problem in problems.iter().filter(|problem| problem.kind.level() > Level::Comment) {
            self.count += 1;
            self.progress.suspend(|| errln!("{}", ProblemLine::new(self.file, problem).text()));
        }
    }
}
