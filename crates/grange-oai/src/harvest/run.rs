//! The loop: ask, take the records in as they arrive, make them safe in the journal, ask on. Another task keeps them.
//!
//! ```text
//! request ── records ── journal, synced ──┬── request …            one at a time, the token is on disk before it is used
//!                                         └── queue ── keeper      files and rows, at its own pace
//! ```

use std::sync::Arc;

use grange_base::{Clock, Shutdown};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::batch::Batch;
use super::conclude::Conclusion;
use super::entry::{Entry, PagePart};
use super::judge::Judge;
use super::ledger::Ledger;
use super::limits;
use super::looped::Looped;
use super::order::{Break, Ended, Order, Outcome};
use super::position::{Next, Position, Tokens};
use super::queue::{Queue, queue};
use super::start::{self, Started};
use crate::fetch::Fetcher;
use crate::settings::Settings;
use crate::store::journal::Journal;

/// A harvest under way: the side that receives.
pub struct Harvest {
    order: Order,
    settings: Settings,
    ledger: Arc<dyn Ledger>,
    clock: Clock,
    began: Timestamp,
    journal: Option<Journal>,
    /// Room for segments of the journal.
    space: Arc<Semaphore>,
    queue: Queue,
    looped: Looped,
    tokens: Tokens,
    pub(super) fetcher: Fetcher,
    pub(super) judge: Arc<Judge>,
    pub(super) position: Position,
    /// What the next entry tells the history.
    pub(super) warnings: Vec<String>,
    pub(super) stop: Shutdown,
    /// Goes on where an earlier attempt ended; until its first page.
    pub(super) resumed: bool,
}

impl Harvest {
    /// Runs a harvest to its end. `stop` ends it after the current page or wait.
    pub async fn run(
        order: Order,
        settings: Settings,
        ledger: Arc<dyn Ledger>,
        clock: Clock,
        stop: Shutdown,
    ) -> Outcome {
        let failed = |ended| Outcome { ended, segments: Vec::new(), replayed: 0 };
        let started = start::start(&order, &settings, &ledger, &clock, &stop).await;
        let started = match started {
            Ok(started) => started,
            Err(Break::Failed(reason)) => return failed(Ended::Failed(reason)),
            Err(Break::Stopped | Break::Keeper) => return failed(Ended::Stopped),
        };
        let Started { keeper, journal, fetcher, judge, position, resumed, replayed } = started;
        let (queue, waiting) = queue();
        let harvest = Self {
            began: clock.now(),
            order,
            settings,
            ledger,
            clock,
            journal: Some(journal),
            space: keeper.space(),
            queue,
            looped: keeper.looped(),
            tokens: Tokens::default(),
            fetcher,
            judge,
            position,
            warnings: Vec::new(),
            stop,
            resumed,
        };
        // Ends by itself when the queue does, also where this harvest is dropped.
        let keeping = tokio::spawn(keeper.run(waiting));
        let (harvest, listed) = harvest.lists().await;
        match keeping.await {
            Ok((keeper, kept)) => Box::pin(harvest.end(listed, keeper, kept, replayed)).await,
            Err(error) => failed(Ended::Failed(error.to_string())),
        }
    }

    /// Everything there is, handed on; the queue ends with it.
    async fn lists(mut self) -> (Conclusion, Result<(), Break>) {
        let listed = self.list_on().await;
        let Self { order, settings, ledger, clock, began, journal, fetcher, judge, position, .. } = self;
        (Conclusion { order, settings, ledger, clock, began, journal, fetcher, judge, position }, listed)
    }

    /// List after list, page after page.
    async fn list_on(&mut self) -> Result<(), Break> {
        // False at once only where an attempt died after its last page.
        while !self.position.done {
            self.within_limits()?;
            // The page belongs to the list it came in, also when it is the one that ends it.
            let list = self.position.list;
            let (next, batch, response, part) = if self.looped.is(list) {
                let next = self.position.began_again(&mut self.tokens, self.clock.now());
                (next, Batch::default(), None, PagePart::default())
            } else {
                let request = self.position.request(self.order.repository.said.granularity);
                let page = self.page(&request).await?;
                self.refuse_fatal(&page.batch).await?;
                let next = self.position.step(&page.seen, &mut self.tokens, self.clock.now());
                (next, page.batch, page.seen.response_date, page.part)
            };
            if self.position.windows_broken && !self.order.repository.rules.no_windows {
                self.ledger.no_windows().await?;
                self.order.repository.rules.no_windows = true;
            }
            match next {
                Next::Page => self.hand_on(batch, list, response, part).await?,
                Next::List(told) => {
                    self.warnings.extend(told);
                    self.position.list = self.ledger.begin_list().await?;
                    self.hand_on(batch, list, response, part).await?;
                }
                Next::Done(told) => {
                    self.warnings.extend(told);
                    self.hand_on(batch, list, response, part).await?;
                }
                Next::Fail(reason) => {
                    self.hand_on(batch, list, response, part).await?;
                    return Err(Break::Failed(reason));
                }
            }
            if self.stop.requested() && !self.position.done {
                return Err(Break::Stopped);
            }
        }
        Ok(())
    }

    /// Makes records and the position behind them safe, and hands them to whoever keeps them.
    pub(super) async fn hand_on(
        &mut self,
        mut batch: Batch,
        list: i64,
        response: Option<Timestamp>,
        part: PagePart,
    ) -> Result<(), Break> {
        self.refuse_fatal(&batch).await?;
        self.position.records += batch.delivered;
        self.position.doubtful |= batch.unidentified > 0;
        self.position.entry += 1;
        batch.warnings.append(&mut self.warnings);
        let response = response.unwrap_or_else(|| self.clock.now());
        self.send(Entry::new(list, self.position.clone(), response, batch, part)).await
    }

    /// One record that must not be ends the harvest. All such ones of the page are told, and none of it is taken.
    async fn refuse_fatal(&mut self, batch: &Batch) -> Result<(), Break> {
        let Some((count, first)) = &batch.fatal else { return Ok(()) };
        let mut told = Batch::default();
        told.warnings.clone_from(&batch.warnings);
        self.position.entry += 1;
        let list = self.position.list;
        let part = PagePart::default();
        self.send(Entry::new(list, self.position.clone(), self.clock.now(), told, part)).await?;
        Err(Break::Failed(match count {
            1 => first.clone(),
            _ => format!(
                "{count} records of a page must not be, each a line of the history; the first: {first}"
            ),
        }))
    }

    async fn send(&mut self, entry: Entry) -> Result<(), Break> {
        let Some(mut journal) = self.journal.take() else {
            return Err(Break::Failed("the journal was lost".to_owned()));
        };
        let mut full = None;
        if journal.wants_segment() {
            let Ok(room) = self.space.acquire().await else { return Err(Break::Keeper) };
            room.forget();
            full = journal.segment().map(ToOwned::to_owned);
        }
        let written = tokio::task::spawn_blocking(move || {
            let outcome = journal.append(&entry.encode());
            (journal, entry, outcome)
        });
        let (journal, entry, outcome) = written.await.map_err(|error| Break::Failed(error.to_string()))?;
        self.journal = Some(journal);
        outcome.map_err(|error| Break::Failed(grange_base::Chain(&error).to_string()))?;
        if self.queue.send(entry, full).await { Ok(()) } else { Err(Break::Keeper) }
    }

    pub(super) fn within_limits(&self) -> Result<(), Break> {
        let lasted = limits::lasted(&self.clock, self.began);
        limits::reached(&self.settings, &self.position, lasted)
            .map_or(Ok(()), |told| Err(Break::Failed(told)))
    }
}

impl std::fmt::Debug for Harvest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Harvest").field("job", &self.order.job).finish_non_exhaustive()
    }
}
