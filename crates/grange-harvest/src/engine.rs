//! What a harvester asks of whoever crawls. The template decides who that is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grange_crawl::engine::LoginTrouble;
use grange_crawl::record::DuplicateOracle;
use grange_model::harvest::{DomainReport, JobSpec, LoginForm, Progress};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

use crate::dedup::By;
use crate::folder::JobFolder;

/// A way to crawl. `native` today; Heritrix and a browser can follow.
#[async_trait]
pub trait Engine: std::fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// Whether this engine is the one that a template asks for.
    fn understands(&self, template: &str) -> bool;

    /// What a crawl by this template asks of earlier captures.
    fn asks(&self, template: &str) -> By {
        let _ = template;
        By::Url
    }

    /// Writes into the folder what the crawl needs, or says why the job cannot be crawled. After `Ok` the folder alone
    /// is enough to run or resume it.
    fn prepare(&self, folder: &JobFolder, order: &Order) -> Result<(), EngineError>;

    /// Imports the captures that earlier attempts at the job stored, so that the first `run` goes on where their files end.
    /// It can be repeated until it has succeeded, unless the error is [`EngineError::Job`].
    async fn take_over(&self, folder: &JobFolder, stored: &mut dyn StoredFiles) -> Result<(), EngineError> {
        let _ = (folder, stored);
        Ok(())
    }

    /// Crawls, or goes on with a crawl that was begun, until its end or an order. Dropping the call is as good as a
    /// crash: the folder can be run again.
    async fn run(&self, run: Run) -> Result<Outcome, EngineError>;

    /// The files that are closed and not yet deposited, from the folder alone.
    fn closed_files(&self, folder: &JobFolder) -> std::io::Result<Vec<ClosedFile>>;
}

/// WARC files of a job that were stored before.
#[async_trait]
pub trait StoredFiles: Send {
    /// How many files of the job are known; new ones are numbered after them.
    fn known(&self) -> u64;

    /// The last [`Sign::orders`] of the crawls that made the files.
    fn orders(&self) -> Option<&str>;

    /// The next file, under its name; it is here until the one after it is asked for.
    async fn next(&mut self) -> std::io::Result<Option<PathBuf>>;
}

/// What is to be crawled.
#[derive(Clone, Debug)]
pub struct Order {
    pub spec: JobSpec,
    /// The logins of the spec, opened.
    pub logins: Vec<Login>,
    pub who: Operator,
}

/// A login with its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub domain: String,
    pub realm: String,
    pub user: String,
    pub password: String,
    /// Where its form is sent, or a page of the site that it is for.
    pub url: String,
    /// How its form is filled in; without one the server asks by HTTP.
    pub form: Option<LoginForm>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// Who crawls, for templates, web masters and papers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    pub operator: String,
    pub organization: String,
    pub contact_url: String,
    pub from: String,
    /// This machine.
    pub host: String,
}

impl Operator {
    /// How web masters reach whoever crawls when there is no page about it.
    pub fn address(&self) -> String {
        match (self.from.as_str(), self.operator.as_str()) {
            ("", operator) if operator.contains('@') => operator.to_owned(),
            ("", "") => format!("grange@{}", self.host),
            ("", operator) => format!("{operator}, grange@{}", self.host),
            (from, _) => from.to_owned(),
        }
    }
}

/// One run of an engine.
#[derive(Debug)]
pub struct Run {
    pub folder: JobFolder,
    pub oracle: OracleHandle,
    /// Where the engine tells how it goes, every second or so.
    pub progress: watch::Sender<Option<Sign>>,
    /// Chunks as they are closed, the last one included.
    pub chunks: mpsc::UnboundedSender<Chunk>,
    /// What the harvester wants.
    pub wish: watch::Receiver<Wish>,
    /// For how long the crawl may take to stop; it is dropped afterwards.
    pub stop_within: Duration,
}

/// An oracle that can be shown.
#[derive(Clone)]
pub struct OracleHandle(pub Arc<dyn DuplicateOracle>);

impl std::fmt::Debug for OracleHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OracleHandle")
    }
}

/// What a harvester wants of a running crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    #[default]
    Run,
    /// End in order: what is queued stays unfinished.
    Stop,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq)]
pub struct Sign {
    pub progress: Progress,
    /// Documents finished, well or not. A crawl in which it stands still is inactive.
    pub finished: u64,
    /// Standing still is somebody's wish, or will pass: paused, waiting for space, or for nothing but hosts that fail.
    pub excused: bool,
    /// The lasting orders that people have given to the crawl, in the engine's own words. None if there are none.
    pub orders: Option<Arc<str>>,
}

/// What one rotation produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub name: String,
    pub files: Vec<ClosedFile>,
}

/// A WARC file that will not change any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedFile {
    pub path: PathBuf,
    pub size: u64,
    /// Hexadecimal, as it was computed while the file was written.
    pub sha512: Option<String>,
}

/// How a crawl ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub end: End,
    pub ended_at: Timestamp,
    /// Every domain met, by the domain of the seed that led to it.
    pub domains: Vec<DomainReport>,
    pub objects: u64,
    pub bytes: u64,
    /// Log-ins that did not work.
    #[serde(default)]
    pub login_troubles: Vec<LoginTrouble>,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Nothing was left to do.
    Finished,
    /// URLs are left, whose hosts could not be reached. Their domains are unfinished, which a later harvest takes up.
    Unreachable,
    /// The job's running time is over.
    TimeLimit,
    /// Another limit of the whole crawl.
    Limit,
    /// It was told to.
    Stopped,
}

/// Why an engine could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The job itself is at fault: it would fail anywhere, any time.
    #[error("{0}")]
    Job(String),
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// What was stored of the job before could not be imported; it can be tried again.
    #[error("cannot import the captures that were stored before")]
    TakeOver(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A crawl still writes into the folder: it is neither to be crawled nor closed before that has ended.
    #[error("the folder of the crawl is in use")]
    InUse(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There is no space to begin with; the folder is as it was.
    #[error("the crawl cannot be resumed before there is space")]
    NoSpace(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The crawl broke off. What it has can be stored, and it may be resumed.
    #[error("the crawl broke off")]
    Crawl(#[source] Box<dyn std::error::Error + Send + Sync>),
}
