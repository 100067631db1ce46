//! The end of a harvest whose lists were read: what is held and was in none of them is asked for, and deleted where the
//! repository says that it does not exist.

use std::sync::Arc;

use grange_base::Clock;
use grange_model::oai::{DeletedSupport, KnownRecord, Repository};
use jiff::Timestamp;
use oaipmh::Request;

use super::batch::{Batch, Content, Judged};
use super::existence::{Existence, existence, is_listed};
use super::judge::Judge;
use super::keep::Keeper;
use super::ledger::Ledger;
use super::limits;
use super::order::{Break, Ended, Order, Outcome};
use super::position::Position;
use super::receive::judge_into;
use super::window::Window;
use crate::fetch::{FetchError, Fetcher};
use crate::settings::Settings;
use crate::store::journal::Journal;

/// A harvest that has received everything.
pub(super) struct Conclusion {
    pub order: Order,
    pub settings: Settings,
    pub ledger: Arc<dyn Ledger>,
    pub clock: Clock,
    pub began: Timestamp,
    pub journal: Option<Journal>,
    pub fetcher: Fetcher,
    pub judge: Arc<Judge>,
    pub position: Position,
}

/// Records read at once that a person says are gone.
const ACCEPTED_RECORDS: u32 = 2_000;
/// Responses that are kept together: what a crash asks for again.
const KEPT_TOGETHER: usize = 100;
/// Requests in a row that get no response before the others are not made: each has waited as long as a page may.
const FAILED_MAX: u32 = 3;
/// Responses in a row that say nothing of their record before the others are not asked for: GetRecord does not work there.
const UNKNOWN_MAX: u32 = 100;

/// Records that were asked for in vain.
#[derive(Debug, Default)]
struct Unanswered {
    count: u64,
    /// The first reason.
    why: Option<String>,
    failed_in_a_row: u32,
    unknown_in_a_row: u32,
}

impl Unanswered {
    fn add(&mut self, why: String) {
        self.count += 1;
        self.why.get_or_insert(why);
    }

    /// Another question is as vain as those before.
    fn is_hopeless(&self) -> bool {
        self.failed_in_a_row >= FAILED_MAX || self.unknown_in_a_row >= UNKNOWN_MAX
    }
}

impl Conclusion {
    pub(super) async fn end(
        mut self,
        listed: Result<(), Break>,
        mut keeper: Keeper,
        kept: Result<(), String>,
        replayed: u64,
    ) -> Outcome {
        self.position.repeats = keeper.repeats();
        let concluded = match (kept, listed) {
            // What is not kept stays in the journal.
            (Err(reason), _) => {
                self.close_responses();
                return Outcome { ended: Ended::Failed(reason), segments: Vec::new(), replayed };
            }
            (Ok(()), Ok(())) => self.conclude(&mut keeper).await,
            (Ok(()), Err(broken)) => Err(broken),
        };
        self.close_responses();
        let ended = match concluded {
            Ok(None) => self.whole(),
            Ok(Some(reason)) => Ended::Incomplete(reason),
            Err(Break::Failed(reason)) => Ended::Failed(reason),
            Err(Break::Stopped | Break::Keeper) => Ended::Stopped,
        };
        let mut segments = keeper.leave();
        segments.extend(self.journal.as_ref().and_then(Journal::segment).map(ToOwned::to_owned));
        Outcome { ended, segments, replayed }
    }

    fn close_responses(&mut self) {
        if let Err(error) = self.fetcher.close_responses() {
            tracing::warn!(%error, "the file of answers could not be closed");
        }
    }

    /// Why the harvest is incomplete, if it is.
    async fn conclude(&mut self, keeper: &mut Keeper) -> Result<Option<String>, Break> {
        let Repository { said, rules, .. } = &self.order.repository;
        let estimated = rules.estimated_size;
        if let Some(reason) = self.position.shortcoming(estimated) {
            return Ok(Some(reason));
        }
        if said.deleted_support != DeletedSupport::Persistent
            && self.position.is_full()
            && let Some(reason) = self.settle_unseen(keeper, estimated).await?
        {
            return Ok(Some(reason));
        }
        if let Some(why) = self.position.lacking(estimated)
            && self.next_from().is_some()
            && !self.order.lacking
        {
            self.tell(keeper, limits::start_stays(&why)).await?;
        }
        Ok(None)
    }

    /// Repositories that do not announce deletions: records that a complete list lacks are deleted where the repository says
    /// that they do not exist, or a person does. Too many of them make the harvest incomplete; a doubtful list deletes none
    /// unless a person accepts it, an incomplete one none at all.
    async fn settle_unseen(&mut self, keeper: &mut Keeper, estimated: bool) -> Result<Option<String>, Break> {
        let unseen = self.ledger.unseen_count(self.position.first_list).await?;
        if unseen == 0 {
            return Ok(None);
        }
        let active = self.ledger.active().await?;
        let accepted = self.order.spec.accept_deletions;
        let refused = limits::implausible_deletions(active, unseen);
        if refused.is_some() && !accepted {
            return Ok(refused);
        }
        let doubt = self.position.doubt(estimated);
        if let Some(doubt) = &doubt {
            self.tell(keeper, limits::doubtful_deletions(unseen, doubt, accepted)).await?;
        }
        if accepted {
            self.delete_unseen(keeper).await?;
        } else if doubt.is_some() {
            // Warned about.
        } else if let Some(why) = limits::too_many_questions(unseen) {
            self.tell(keeper, limits::unknown_existence(unseen, &why)).await?;
        } else {
            self.ask_for_unseen(unseen, keeper).await?;
        }
        Ok(None)
    }

    async fn tell(&self, keeper: &mut Keeper, warning: String) -> Result<(), Break> {
        keeper.tell(warning, &self.position).await.map_err(Break::Failed)
    }

    /// Deletes what no list brought, as a person says.
    async fn delete_unseen(&mut self, keeper: &mut Keeper) -> Result<(), Break> {
        loop {
            let gone = self.ledger.unseen(self.position.first_list, ACCEPTED_RECORDS).await?;
            if gone.is_empty() {
                return Ok(());
            }
            let mut batch = Batch::default();
            batch.records.extend(gone.iter().map(|known| absent(&known.identifier)));
            self.keep(gone, batch, keeper).await?;
        }
    }

    /// Asks the repository for what no list brought, one record at a time. Responses are kept in groups: a harvest that is
    /// stopped here asks later for those that are left.
    async fn ask_for_unseen(&mut self, unseen: u64, keeper: &mut Keeper) -> Result<(), Break> {
        let limit = u32::try_from(unseen).unwrap_or(u32::MAX);
        let unseen = self.ledger.unseen(self.position.first_list, limit).await?;
        let mut unanswered = Unanswered::default();
        let mut asked = 0;
        for group in unseen.chunks(KEPT_TOGETHER) {
            let mut batch = Batch::default();
            let stopped = self.ask_for(group, &mut batch, &mut asked, &mut unanswered).await;
            // Of a group with a record that must not be, none is taken.
            if let Err(Break::Failed(_)) = &stopped {
                return stopped;
            }
            self.keep(group.to_vec(), batch, keeper).await?;
            stopped?;
            if unanswered.is_hopeless() || self.is_over() {
                break;
            }
        }
        // Those that were not asked for count, too.
        unanswered.count += unseen.len() as u64 - asked;
        if unanswered.count > 0 {
            let why = unanswered.why.unwrap_or_else(|| "the harvest lasted too long".to_owned());
            self.tell(keeper, limits::unknown_existence(unanswered.count, &why)).await?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        limits::lasted(&self.clock, self.began) > self.settings.harvest_time_max.0
    }

    /// Asks for a group, and judges what came. Also where it is stopped, the batch holds the answers until then.
    async fn ask_for(
        &mut self,
        group: &[KnownRecord],
        batch: &mut Batch,
        asked: &mut u64,
        unanswered: &mut Unanswered,
    ) -> Result<(), Break> {
        let mut came = Vec::new();
        let mut stopped = Ok(());
        for KnownRecord { identifier, .. } in group {
            if unanswered.is_hopeless() || self.is_over() {
                break;
            }
            let request = Request::GetRecord {
                identifier: identifier.clone(),
                metadata_prefix: self.position.asked.prefix.clone(),
            };
            let page = match self.fetcher.whole(&request).await {
                Ok(page) => page,
                Err(FetchError::Stopped) => {
                    stopped = Err(Break::Stopped);
                    break;
                }
                Err(FetchError::Failed(reason)) => {
                    *asked += 1;
                    unanswered.failed_in_a_row += 1;
                    unanswered.add(reason);
                    continue;
                }
            };
            *asked += 1;
            unanswered.failed_in_a_row = 0;
            let errors = page.errors.clone();
            let found = existence(identifier, page.into_records().items, &errors);
            if let Existence::Unknown(reason) = found {
                unanswered.unknown_in_a_row += 1;
                unanswered.add(reason);
                continue;
            }
            unanswered.unknown_in_a_row = 0;
            match found {
                Existence::Present(record) => came.push(*record),
                _ => batch.records.push(absent(identifier)),
            }
        }
        let set = self.position.asked.set.as_deref();
        let skipped =
            came.iter().filter(|record| !record.header.deleted && is_listed(&record.header.sets, set));
        self.position.skipped += skipped.count() as u64;
        judge_into(&self.judge, came, &Window::default(), batch).await?;
        if let Some((_, first)) = &batch.fatal {
            return Err(Break::Failed(first.clone()));
        }
        stopped
    }

    async fn keep(
        &mut self,
        unlisted: Vec<KnownRecord>,
        batch: Batch,
        keeper: &mut Keeper,
    ) -> Result<(), Break> {
        let at = self.position.first_response.unwrap_or(self.began);
        let Batch { records, counts, warnings, .. } = batch;
        let kept = keeper.keep_unlisted(unlisted, records, (counts, warnings), at, &self.position);
        kept.await.map_err(Break::Failed)
    }

    /// Where the next harvest may begin. A span that began somewhere says nothing about what came before, unless it goes on
    /// from a mark.
    fn next_from(&self) -> Option<Timestamp> {
        let says = self.order.spec.incremental || self.position.is_full();
        says.then(|| self.position.next_from(self.order.repository.said.granularity)).flatten()
    }

    fn whole(&self) -> Ended {
        let Some(next_from) = self.next_from() else {
            return Ended::Whole { next_from: None, lacking: self.order.lacking };
        };
        let lacking = self.position.lacking(self.order.repository.rules.estimated_size).is_some();
        // Once: repositories whose lists always do so would be asked for the same for ever.
        let stays = lacking && !self.order.lacking;
        Ended::Whole { next_from: (!stays).then_some(next_from), lacking }
    }
}

/// A record that does not exist.
fn absent(identifier: &str) -> Judged {
    Judged { identifier: identifier.to_owned(), datestamp: None, sets: Vec::new(), content: Content::Deleted }
}
