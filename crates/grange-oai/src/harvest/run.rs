//! The loop: ask, take the records in as they arrive, write their files, sync, keep the rows with the position.

use std::path::PathBuf;
use std::time::Duration;

use grange_base::{Clock, Shutdown};
use grange_model::oai::{
    DeletedSupport, HarvestSpec, KnownRecord, Method, OaiJobId, OaiPage, RecordRow, Repository, Slices,
};
use jiff::Timestamp;
use oaipmh::{ErrorCode, Item, Kind, Page, Record, Request, TokenStyle};

use super::batch::{Batch, Rules, WARNINGS_MAX, Work};
use super::judge::Judge;
use super::ledger::{Ledger, LedgerError};
use super::limits;
use super::position::{Asked, Next, Position, Seen, Tokens};
use crate::fetch::{Answer, FetchError, Fetcher};
use crate::responses::Responses;
use crate::settings::Settings;
use crate::store::files::{Change, Folder};
use crate::store::place::Places;

/// Everything a harvest begins with.
#[derive(Clone, Debug)]
pub struct Order {
    pub job: OaiJobId,
    pub repository: Repository,
    pub spec: HarvestSpec,
    /// Where an earlier attempt left off, as it was kept.
    pub position: Option<String>,
    /// Where the last whole harvest says to begin.
    pub next_from: Option<Timestamp>,
    /// The repository's folder.
    pub folder: PathBuf,
}

/// How a harvest ended. What it took is kept in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Whole {
        next_from: Option<Timestamp>,
    },
    /// By whoever pulled the trigger.
    Stopped,
    Failed(String),
}

/// A harvest under way.
pub struct Harvest<'l> {
    order: Order,
    settings: Settings,
    ledger: &'l dyn Ledger,
    clock: Clock,
    fetcher: Fetcher,
    judge: Judge,
    folder: Option<Folder>,
    places: Places,
    position: Position,
    tokens: Tokens,
    warnings: Vec<String>,
    warned: u64,
    began: Timestamp,
    stop: Shutdown,
    /// Goes on where an earlier attempt ended; until its first page.
    resumed: bool,
}

/// Why the loop ends early.
enum Break {
    Stopped,
    Failed(String),
}

impl From<FetchError> for Break {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Stopped => Self::Stopped,
            FetchError::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl From<LedgerError> for Break {
    fn from(error: LedgerError) -> Self {
        Self::Failed(error.0)
    }
}

/// A batch is stored when it has so many records or bytes, also in the middle of a page: memory stays small however
/// large pages are.
const BATCH_RECORDS: usize = 2_000;
const BATCH_BYTES: usize = 8 << 20;
impl<'l> Harvest<'l> {
    /// Runs a harvest to its end. `stop` ends it after the current page or wait.
    pub async fn run(
        order: Order,
        settings: Settings,
        ledger: &'l dyn Ledger,
        clock: Clock,
        stop: Shutdown,
    ) -> Ended {
        let mut harvest = match Self::start(order, settings, ledger, clock, stop).await {
            Ok(harvest) => harvest,
            Err(Break::Stopped) => return Ended::Stopped,
            Err(Break::Failed(reason)) => return Ended::Failed(reason),
        };
        let ended = match harvest.lists().await {
            Ok(()) => Ended::Whole { next_from: harvest.next_from() },
            Err(Break::Stopped) => Ended::Stopped,
            Err(Break::Failed(reason)) => Ended::Failed(reason),
        };
        harvest.close();
        ended
    }

    async fn start(
        order: Order,
        settings: Settings,
        ledger: &'l dyn Ledger,
        clock: Clock,
        stop: Shutdown,
    ) -> Result<Self, Break> {
        let formats = &order.repository.said.formats;
        let format = formats.iter().find(|format| format.prefix == order.spec.prefix);
        let namespace = format.map(|format| format.namespace.as_str());
        let judge = Judge::new(&order.spec, namespace, Some(&settings.schemas));
        let judge = judge.map_err(|error| Break::Failed(error.to_string()))?;
        let rules = &order.repository.rules;
        let style = if rules.verbatim_tokens { TokenStyle::Verbatim } else { TokenStyle::Encoded };
        let delay = Duration::from_millis(rules.delay_ms);
        let base_url = &order.repository.base_url;
        let mut fetcher = Fetcher::new(base_url, &settings, style, delay, clock.clone(), stop.clone())?;
        let (path, deleted) = (order.folder.clone(), rules.deleted);
        let folder = tokio::task::spawn_blocking(move || Folder::open(&path, deleted)).await;
        let folder = folder.map_err(|error| Break::Failed(error.to_string()))?;
        let folder = folder.map_err(|error| Break::Failed(grange_base::Chain(&error).to_string()))?;
        let began = clock.now();
        if rules.keep_responses {
            fetcher.keep(Responses::new(&order.folder, order.job.0, began));
        }
        let asked = asked(&order);
        let kept = order.position.as_deref().and_then(|text| serde_json::from_str::<Position>(text).ok());
        let kept = kept.filter(|kept| kept.asked == asked);
        let resumed = kept.is_some();
        let position = if let Some(kept) = kept {
            kept
        } else {
            let list = ledger.begin_list().await?;
            Position::start(asked, order.repository.said.earliest, list, began)
        };
        let places = Places::new(rules.files_per_folder);
        Ok(Self {
            order,
            settings,
            ledger,
            clock,
            fetcher,
            judge,
            folder: Some(folder),
            places,
            position,
            tokens: Tokens::default(),
            warnings: Vec::new(),
            warned: 0,
            began,
            stop,
            resumed,
        })
    }

    fn close(&mut self) {
        if let Err(error) = self.fetcher.close_responses() {
            tracing::warn!(%error, "the file of answers could not be closed");
        }
    }

    /// List after list, page after page.
    async fn lists(&mut self) -> Result<(), Break> {
        loop {
            self.within_limits()?;
            let request = self.position.request(self.order.repository.said.granularity);
            let (seen, work) = self.page(&request).await?;
            // The page belongs to the list it came in, also when it is the one that ends it.
            let list = self.position.list;
            let next = self.position.step(&seen, &mut self.tokens, self.clock.now());
            if self.position.windows_broken && !self.order.repository.rules.no_windows {
                self.ledger.no_windows().await?;
                self.order.repository.rules.no_windows = true;
            }
            match next {
                Next::Page => self.keep(work, list).await?,
                Next::List(told) => {
                    self.warn(told);
                    self.position.list = self.ledger.begin_list().await?;
                    self.keep(work, list).await?;
                }
                Next::Done(told) => {
                    self.warn(told);
                    self.keep(work, list).await?;
                    self.vanished().await?;
                    return Ok(());
                }
                Next::Fail(reason) => {
                    self.keep(work, list).await?;
                    return Err(Break::Failed(reason));
                }
            }
            if self.stop.requested() {
                return Err(Break::Stopped);
            }
        }
    }

    /// Reads one page to its end. All but the last batch of it are kept by then, at the position before the page.
    async fn page(&mut self, request: &Request) -> Result<(Seen, Work), Break> {
        let mut failures = 0;
        // A page that broke off after some of it was kept comes again, and is no loop; so does the first page of a
        // harvest that goes on after a crash.
        let mut kept_some = std::mem::take(&mut self.resumed);
        loop {
            let mut answer = self.fetcher.ask(request).await?;
            let mut seen = Seen { only_seen: true, ..Seen::default() };
            let (broken, batch) = self.body(&mut answer, &mut seen, &mut kept_some).await?;
            self.position.bytes += answer.bytes();
            let page = self.fetcher.finish(answer);
            let broken = broken.or_else(|| {
                // A cut that no length and no packing betrays.
                (!page.complete).then(|| "the answer is not complete".to_owned())
            });
            let last_try = failures + 1 >= self.fetcher.attempts_max();
            if let Some(broken) = broken {
                failures += 1;
                let goes_on = page.next_token().is_some();
                if !last_try {
                    // What was taken in and not kept comes again with the page.
                    tracing::info!(broken, failures, "asking for the page again");
                    self.fetcher.wait_after(failures - 1).await?;
                    continue;
                }
                if !goes_on {
                    let work = self.compare(batch, None).await?;
                    self.position.counts += work.counts;
                    self.keep(work, self.position.list).await?;
                    return Err(Break::Failed(format!("{broken}, {failures} times")));
                }
                self.position.doubtful = true;
                self.warn(Some(format!("a page could not be read to its end: {broken}")));
            }
            let work = self.end_of_page(page, batch, &mut seen).await?;
            seen.only_seen &= work.only_seen && !kept_some;
            self.position.counts += work.counts;
            return Ok((seen, work));
        }
    }

    async fn end_of_page(
        &mut self,
        mut page: Page<Item>,
        mut batch: Batch,
        seen: &mut Seen,
    ) -> Result<Work, Break> {
        for item in std::mem::take(&mut page.items) {
            self.take_item(item, &mut batch).await?;
        }
        seen.records += batch.delivered;
        seen.outside += batch.outside;
        seen.response_date = page.response_date.map(oaipmh::Datestamp::timestamp);
        seen.token = page.next_token().map(str::to_owned);
        seen.size = page.token.as_ref().and_then(|token| token.complete_list_size);
        seen.errors = page.errors;
        self.compare(batch, seen.response_date).await
    }

    /// Takes in a body. What broke it, if anything, and the batch that is not kept yet.
    async fn body(
        &mut self,
        answer: &mut Answer,
        seen: &mut Seen,
        kept_some: &mut bool,
    ) -> Result<(Option<String>, Batch), Break> {
        let mut batch = Batch::default();
        loop {
            let items = match self.fetcher.next(answer).await? {
                Ok(Some(items)) => items,
                Ok(None) => return Ok((None, batch)),
                Err(error @ crate::fetch::BodyError::TooLarge(_)) => {
                    return Err(Break::Failed(error.to_string()));
                }
                Err(error) => return Ok((Some(error.to_string()), batch)),
            };
            for item in items {
                self.take_item(item, &mut batch).await?;
            }
            if batch.records.len() >= BATCH_RECORDS || batch.bytes >= BATCH_BYTES {
                let full = std::mem::take(&mut batch);
                seen.records += full.delivered;
                seen.outside += full.outside;
                let work = self.compare(full, answer.response_date()).await?;
                seen.only_seen &= work.only_seen;
                self.position.counts += work.counts;
                self.keep(work, self.position.list).await?;
                *kept_some |= !seen.only_seen;
                self.within_limits()?;
                if self.stop.requested() {
                    return Err(Break::Stopped);
                }
            }
        }
    }

    async fn take_item(&mut self, item: Item, batch: &mut Batch) -> Result<(), Break> {
        let record = match item {
            Item::Record(record) => record,
            Item::Header(header) if header.deleted || self.position.asked.method == Method::ListRecords => {
                Record { header, ..Record::default() }
            }
            Item::Header(header) => {
                if let Some(record) = self.get_record(&header.identifier).await? {
                    record
                } else {
                    batch.delivered += 1;
                    batch.counts.bad += 1;
                    batch
                        .warnings
                        .push(format!("record {}: it is listed and cannot be had", header.identifier));
                    return Ok(());
                }
            }
            _ => return Ok(()),
        };
        // The page was cut here: it comes again, or its end is told as a whole.
        if record.problems.iter().any(|problem| problem.kind == Kind::Truncated) {
            return Ok(());
        }
        batch.add(record, &self.judge, &self.position.window).map_err(Break::Failed)
    }

    async fn get_record(&mut self, identifier: &str) -> Result<Option<Record>, Break> {
        let request = Request::GetRecord {
            identifier: identifier.to_owned(),
            metadata_prefix: self.position.asked.prefix.clone(),
        };
        let page = self.fetcher.whole(&request).await?;
        let gone =
            |code: &ErrorCode| matches!(code, ErrorCode::IdDoesNotExist | ErrorCode::CannotDisseminateFormat);
        if let Some(error) = page.errors.iter().find(|error| !gone(&error.code)) {
            return Err(Break::Failed(format!("the repository answered {error} for {identifier}")));
        }
        Ok(page.into_records().items.into_iter().next())
    }

    /// Asks what is known of a batch and decides what to do.
    async fn compare(&mut self, mut batch: Batch, response: Option<Timestamp>) -> Result<Work, Break> {
        for warning in batch.warnings.drain(..) {
            self.warned += 1;
            if self.warned <= WARNINGS_MAX {
                self.warnings.push(warning);
            }
        }
        let known = if batch.records.is_empty() {
            Vec::new()
        } else {
            self.ledger.known(&batch.identifiers()).await?
        };
        let rules = Rules { prefix: &self.order.spec.prefix, parse_id: self.order.repository.rules.parse_id };
        let paths = batch.new_paths(&known, rules);
        let unknown = self.places.unknown(paths.iter());
        if !unknown.is_empty() {
            let counts = self.ledger.folders(&unknown).await?;
            self.places.tell(&unknown, counts);
        }
        let lists = (self.position.first_list, self.position.list);
        let response = response.unwrap_or_else(|| self.clock.now());
        Ok(batch.compare(known, rules, &mut self.places, lists, response))
    }

    /// Files first, synced; then the rows that say so, with the position.
    async fn keep(&mut self, work: Work, list: i64) -> Result<(), Break> {
        let Work { rows, same, changes, .. } = work;
        self.write(changes).await?;
        let page = OaiPage {
            list,
            records: rows,
            same,
            folders: self.places.take_changed(),
            position: serde_json::to_string(&self.position).unwrap_or_default(),
            pages: self.position.pages,
            expected: self.position.size,
            counts: self.position.counts,
            warnings: std::mem::take(&mut self.warnings),
        };
        Ok(self.ledger.commit(page).await?)
    }

    async fn write(&mut self, changes: Vec<Change>) -> Result<(), Break> {
        if changes.is_empty() {
            return Ok(());
        }
        let Some(mut folder) = self.folder.take() else {
            return Err(Break::Failed("the folder was lost".to_owned()));
        };
        let written = tokio::task::spawn_blocking(move || {
            let outcome = folder.apply(&changes);
            (folder, outcome)
        });
        let (folder, outcome) = written.await.map_err(|error| Break::Failed(error.to_string()))?;
        self.folder = Some(folder);
        outcome.map_err(|error| Break::Failed(grange_base::Chain(&error).to_string()))
    }

    /// Repositories that do not tell of deletions: what a whole list did not bring is gone.
    async fn vanished(&mut self) -> Result<(), Break> {
        let tells = self.order.repository.said.deleted_support == DeletedSupport::Persistent;
        if tells || !self.position.is_full() || self.position.doubtful {
            return Ok(());
        }
        let active = self.ledger.active().await?;
        let seen = self.position.counts;
        let seen = seen.new + seen.changed + seen.unchanged + seen.stale;
        if let Some(told) = limits::unbelievable(active, seen) {
            self.warn(Some(told));
            return self.keep(Work::default(), self.position.list).await;
        }
        loop {
            let gone = self.ledger.unseen(self.position.first_list, BATCH_RECORDS as u32).await?;
            if gone.is_empty() {
                return Ok(());
            }
            self.position.counts.deleted += gone.len() as u64;
            let work = removal(gone, self.position.first_response.unwrap_or(self.began));
            self.keep(work, self.position.list).await?;
        }
    }

    fn next_from(&self) -> Option<Timestamp> {
        // A span that began somewhere says nothing about what came before, unless it goes on from a mark.
        let says = self.order.spec.incremental || self.position.is_full();
        says.then(|| self.position.next_from(self.order.repository.said.granularity)).flatten()
    }

    fn warn(&mut self, told: Option<String>) {
        self.warnings.extend(told);
    }

    fn within_limits(&self) -> Result<(), Break> {
        let lasted = self.clock.now().duration_since(self.began);
        let lasted = Duration::try_from(lasted).unwrap_or_default();
        limits::reached(&self.settings, &self.position, lasted)
            .map_or(Ok(()), |told| Err(Break::Failed(told)))
    }
}

/// What "since last time" means for this job.
fn asked(order: &Order) -> Asked {
    let (spec, rules) = (&order.spec, &order.repository.rules);
    let from = if spec.incremental { order.next_from.or(spec.from) } else { spec.from };
    let windows = !rules.no_windows;
    Asked {
        prefix: spec.prefix.clone(),
        set: spec.set.clone(),
        from: from.filter(|_| windows),
        until: spec.until.filter(|_| windows),
        method: spec.method,
        slices: if windows { rules.slices } else { Slices::Whole },
    }
}

fn removal(gone: Vec<KnownRecord>, at: Timestamp) -> Work {
    let mut work = Work::default();
    for known in gone {
        if !known.filename.is_empty() {
            work.changes.push(Change::Delete { name: known.filename.clone() });
        }
        work.rows.push(RecordRow {
            identifier: known.identifier,
            filename: known.filename,
            datestamp: at,
            deleted: true,
            digest: String::new(),
            sets: Vec::new(),
        });
    }
    work
}

impl std::fmt::Debug for Harvest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Harvest").field("job", &self.order.job).finish_non_exhaustive()
    }
}
