//! Continuing a crawl whose folder is lost, from the WARC files that were stored before.
//!
//! ```text
//! files ──captures──▶ crawl.log, frontier (seen, charged), robots.txt, cookies, seeds gained by redirects
//!              └─────▶ candidates on disk ──after the last file──▶ scope ──▶ frontier (queued)
//! ```
//!
//! # Invariants
//!
//! * From the first change to the end of [`TakeOver::finish`] the folder says that it is being imported into. An import that
//!   was interrupted is made again from an empty frontier, whatever became of the one that was being made.
//! * A crawl that has begun is never touched.
//! * A capture counts as fetched only if its file says how the crawl came to it and where it leads; others are fetched again.
//! * Memory does not grow with the number of captures.

mod candidates;
mod captures;
mod enter;
mod newest_cookies;
mod notes;
mod worked;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use grange_base::Clock;
use jiff::Timestamp;

use self::candidates::Candidates;
use self::captures::{StoredCapture, read_captures};
use self::newest_cookies::NewestCookies;
use self::worked::Worked;
use super::changes::{self, AddedSeed, CrawlChanges, Mark, SeedOrigin};
use super::folder::{Folder, FolderError};
use super::handle::whole;
use super::hosts::Hosts;
use super::lasting_orders::LastingOrders;
use super::login::Logins;
use super::start::{self, StartError, failed};
use crate::candidate::Candidate;
use crate::fetch::CookieJar;
use crate::frontier::{EarlierVisit, Frontier, FrontierError};
use crate::job::Job;
use crate::record::files::Files;
use crate::record::recorder::{Desk, Places, Recorder};
use crate::scope::{Scope, ScopeError, ScopeLog, Scratch};

/// Captures entered in one batch of the frontier, and candidates queued in one.
const BATCH: usize = 256;

/// An import under way.
pub struct TakeOver {
    folder: Folder,
    job: Job,
    clock: Clock,
    frontier: Frontier,
    recorder: Recorder,
    hosts: Hosts,
    cookies: CookieJar,
    scope: Scope,
    /// The orders that people gave to the crawl before.
    orders: (Vec<Mark>, CrawlChanges),
    gained_seeds: HashSet<String>,
    candidates: Candidates,
    /// URLs that were fetched a second time because the first answer gave a cookie and sent us back; as hashes.
    returned: HashSet<u64>,
    visits: Vec<EarlierVisit>,
    marks: Vec<Mark>,
    worked: Worked,
    logins: Logins,
    /// What servers asked for last, by scheme, host and port. Only of those that we have a password for.
    challenges: HashMap<String, (Timestamp, Vec<String>)>,
    newest_cookies: NewestCookies,
    /// The way to a URL that was refused for want of a password: the next capture is the answer with it.
    refused: Option<u64>,
    counts: TakenOver,
}

/// What was imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenOver {
    pub files: u64,
    /// Captures that count as fetched, robots.txt files and names of hosts among them.
    pub captures: u64,
    /// Captures whose file does not say how the crawl came to them: they are fetched again.
    pub unexplained: u64,
    /// URLs that they lead to and that are queued now.
    pub queued: u64,
}

/// Why stored captures cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error("cannot read stored captures or write what is known of them; check the disk")]
    Io(#[from] io::Error),
}

impl TakeOverError {
    /// Whether it can be tried again. It cannot where the job or what lies on the disk is at fault.
    pub fn passes(&self) -> bool {
        match self {
            Self::Start(
                StartError::Folder(FolderError::Io(_, error)) | StartError::Io { source: error, .. },
            )
            | Self::Io(error) => error.kind() != io::ErrorKind::InvalidData,
            Self::Start(StartError::Folder(FolderError::Busy(_))) => true,
            Self::Start(StartError::Frontier(error)) | Self::Frontier(error) => {
                matches!(error, FrontierError::Store { .. } | FrontierError::Folder { .. })
            }
            Self::Start(_) | Self::Scope(_) => false,
        }
    }
}

impl std::fmt::Debug for TakeOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TakeOver")
            .field("folder", &self.folder.root())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl TakeOver {
    /// Begins with the folder of a job that has not been crawled here. None if it has: then there is nothing to import. WARC
    /// files are numbered after `files_before`, those that the job has already.
    pub fn begin(root: &Path, files_before: u64, clock: Clock) -> Result<Option<TakeOver>, TakeOverError> {
        let job = super::Crawl::job_in(root)?;
        start::check(&job)?;
        let folder = Folder::open(root).map_err(StartError::from)?;
        let now = clock.now();
        let template = &job.template;
        let open = || Frontier::open(&folder.frontier(), template.frontier.clone(), job.budgets.clone(), now);
        let looking = failed("look into", root);
        if !folder.is_importing().map_err(&looking)? {
            if folder.frontier().try_exists().map_err(&looking)? {
                let (_, earlier) = open()?;
                let changes = CrawlChanges::from_marks(&earlier.marks).map_err(StartError::Template)?;
                if changes.started.is_some() {
                    return Ok(None);
                }
            }
            // Whatever the frontier says: an import writes no WARC files, so this was a crawl.
            if fs::read_dir(folder.warcs()).map_err(&looking)?.next().is_some() {
                return Err(StartError::Folder(FolderError::Used(root.to_owned())).into());
            }
            folder.set_importing(true).map_err(failed("write to", root))?;
        }
        for place in [folder.frontier(), folder.logs(), folder.manifests(), folder.warcs()] {
            empty(&place).map_err(failed("empty", &place))?;
        }
        let (frontier, _) = open()?;
        let names = start::names(&job);
        let names: Vec<_> = names.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let serial = files_before.saturating_add(1);
        let files = Files::new(&folder.warcs(), &template.write, start::info(&job), &names, serial)
            .map_err(|error| StartError::Template(format!("write.name: {error}")))?;
        let desk = Desk::new(files, template.write.writers);
        let places = Places { logs: folder.logs(), manifests: folder.manifests(), job: job.name.clone() };
        let (recorder, _) = Recorder::open(places, desk, None, now)?;
        let scope = Scope::new(&template.scope, &job.seeds, &job.traps, now)?;
        let logins = Logins::new(&job.credentials, &job.seeds, &CrawlChanges::default());
        let candidates = Candidates::create(&folder.root().join("state/candidates"))?;
        Ok(Some(TakeOver {
            folder,
            job,
            clock,
            frontier,
            recorder,
            hosts: Hosts::default(),
            cookies: CookieJar::default(),
            scope,
            orders: Default::default(),
            gained_seeds: HashSet::new(),
            candidates,
            returned: HashSet::new(),
            visits: Vec::with_capacity(BATCH),
            marks: Vec::new(),
            worked: Worked::default(),
            logins,
            challenges: HashMap::new(),
            newest_cookies: NewestCookies::default(),
            refused: None,
            counts: TakenOver::default(),
        }))
    }

    /// Follows orders that were given to the crawl before. For before the first file.
    pub fn follow_orders(&mut self, orders: &LastingOrders) -> Result<(), TakeOverError> {
        self.orders = orders.read();
        let (_, kept) = &self.orders;
        self.scope = start::scope_of(&self.job, kept, self.clock.now())?;
        self.logins.add_seeds(kept.ordered_seeds());
        Ok(())
    }

    /// Imports the captures of one file, which has the name that it is stored under. It is not needed any more afterwards.
    pub fn add_file(&mut self, path: &Path) -> Result<(), TakeOverError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // What is delivered together lies one behind the other, so the next capture explains the one before.
        let mut held: Option<StoredCapture> = None;
        let counts = read_captures(path, &mut |capture| {
            if let Some(before) = held.replace(capture) {
                self.enter(&name, before, held.as_ref())?;
            }
            Ok::<_, TakeOverError>(())
        })?;
        if let Some(last) = held {
            self.enter(&name, last, None)?;
        }
        self.flush()?;
        let viral = name.starts_with(&format!("{}-VIRAL", self.job.template.write.prefix));
        self.recorder.enter_stored(path, viral, &counts)?;
        self.counts.files += 1;
        Ok(())
    }

    /// Hands what was gathered to the frontier.
    fn flush(&mut self) -> Result<(), TakeOverError> {
        self.recorder.flush()?;
        self.frontier.import(&self.visits)?;
        self.visits.clear();
        Ok(())
    }

    /// Queues where the captures lead, and lets the crawl begin. All of it counts from here on.
    pub fn finish(mut self) -> Result<TakenOver, TakeOverError> {
        self.flush()?;
        let TakeOver { job, clock, frontier, mut recorder, mut marks, mut counts, .. } = self;
        let now = clock.now();
        let started = self.worked.first().unwrap_or(now);
        frontier.set_ran(self.worked.ran(), now);
        let (ordered_marks, mut kept) = self.orders;
        let mut seeds = start::seeds(&job.seeds)?;
        for url in kept.ordered_seeds() {
            seeds.append(&mut start::seeds(&[url.to_owned()])?);
        }
        frontier.add(&seeds, now)?;
        let seed = |url: &String| AddedSeed { url: url.clone(), origin: SeedOrigin::Redirect };
        kept.seeds.extend(self.gained_seeds.iter().map(seed));
        let scope = start::scope_of(&job, &kept, started)?;
        let (mut scratch, mut log, mut batch) = (Scratch::default(), ScopeLog::new(), Vec::new());
        let returned = self.returned;
        self.candidates.drain(|candidate| {
            if candidate.force && returned.contains(&enter::way(&candidate)) {
                return Ok::<_, TakeOverError>(());
            }
            let decision = scope.decide(&candidate, &mut scratch);
            if !decision.accept {
                let mut lines = Vec::new();
                log.note(now, &scope, decision, &candidate, &mut lines);
                recorder.log("scope.log", &lines);
                return Ok(());
            }
            batch.push(candidate);
            if batch.len() >= BATCH {
                counts.queued += queue(&frontier, &mut batch, now)?;
                recorder.flush()?;
            }
            Ok(())
        })?;
        counts.queued += queue(&frontier, &mut batch, now)?;
        // Seeds of the job too.
        for pattern in kept.rejects.iter().filter_map(|pattern| whole(pattern).ok()) {
            frontier.reject(None, &|url| pattern.is_match(url), now)?;
        }
        if counts.files > 0 {
            recorder.begin_rotation(now)?;
            recorder.finish_rotation(now)?;
        }
        marks.push(recorder.flush()?);
        marks.extend(self.cookies.by_domain().iter().map(|(domain, text)| changes::cookies(domain, text)));
        marks.extend(self.challenges.iter().map(|(server, (_, asks))| changes::challenge(server, asks)));
        marks.extend(ordered_marks);
        marks.push(changes::started(started));
        recorder.sync()?;
        frontier.put_marks(&marks, &[])?;
        frontier.sync()?;
        self.folder.set_importing(false).map_err(failed("write to", self.folder.root()))?;
        Ok(counts)
    }
}

/// Queues candidates that were not fetched; how many.
fn queue(frontier: &Frontier, batch: &mut Vec<Candidate>, now: Timestamp) -> Result<u64, FrontierError> {
    let added = frontier.add(batch, now)?;
    batch.clear();
    Ok(added.queued)
}

/// Makes a folder empty.
fn empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(folder),
    }
}
