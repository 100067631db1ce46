//! One page, from the request to judged records. Large pages are handed on in parts, so that memory stays small.

use std::sync::Arc;

use jiff::Timestamp;
use oaipmh::{ErrorCode, Item, Kind, Level, Page, Record, Request};

use grange_model::oai::Method;

use super::batch::Batch;
use super::entry::PagePart;
use super::judge::Judge;
use super::order::Break;
use super::position::Seen;
use super::run::Harvest;
use super::window::Window;
use crate::fetch::{Answer, BodyError};

/// A part of a page is handed on when it has so many records or bytes.
const PART_RECORDS: usize = 2_000;
const PART_BYTES: usize = 8 << 20;

/// A page that was read to its end, or the last part of a large one.
pub(super) struct Received {
    pub seen: Seen,
    pub batch: Batch,
    pub part: PagePart,
}

/// How far a page is.
struct Progress {
    seen: Seen,
    part: PagePart,
}

impl Harvest {
    /// Reads one page to its end, asking again where it breaks off. All but the last part of it are handed on by then,
    /// at the position before the page.
    pub(super) async fn page(&mut self, request: &Request) -> Result<Received, Break> {
        let mut failures = 0;
        // So does the first page of a harvest that goes on after a crash.
        let mut again = std::mem::take(&mut self.resumed);
        loop {
            let mut answer = self.fetcher.ask(request).await?;
            let part = PagePart { first: true, last: false, again };
            let mut progress = Progress { seen: Seen::default(), part };
            let (broken, batch) = self.body(&mut answer, &mut progress).await?;
            self.position.bytes += answer.bytes();
            let page = self.fetcher.finish(answer);
            let broken = broken.or_else(|| {
                // A cut that no length and no packing betrays.
                (!page.complete).then(|| "the answer is not complete".to_owned())
            });
            if let Some(broken) = broken {
                failures += 1;
                again |= !progress.part.first;
                if failures < self.fetcher.attempts_max() {
                    // What was taken in and not handed on comes again with the page.
                    tracing::info!(broken, failures, "asking for the page again");
                    self.fetcher.wait_after(failures - 1).await?;
                    continue;
                }
                if page.next_token().is_none() {
                    self.hand_on(batch, self.position.list, None, progress.part).await?;
                    return Err(Break::Failed(format!("{broken}, {failures} times")));
                }
                let told = format!("a page could not be read to its end: {broken}");
                self.position.lacks(told.clone());
                self.warnings.push(told);
            }
            return self.end_of_page(page, batch, progress).await;
        }
    }

    async fn end_of_page(
        &mut self,
        mut page: Page<Item>,
        mut batch: Batch,
        progress: Progress,
    ) -> Result<Received, Break> {
        self.take_in(std::mem::take(&mut page.items), &mut batch).await?;
        let Progress { mut seen, part } = progress;
        seen.records += batch.delivered;
        seen.outside += batch.outside;
        seen.response_date = page.response_date.map(oaipmh::Datestamp::timestamp);
        seen.token = page.next_token().map(str::to_owned);
        seen.size = page.token.as_ref().and_then(|token| token.complete_list_size);
        // Outside of records something was lost, perhaps records.
        self.position.doubtful |= page.problems.iter().any(|problem| problem.kind.level() == Level::Damage);
        seen.errors = page.errors;
        Ok(Received { seen, batch, part: PagePart { last: true, ..part } })
    }

    /// Takes in a body. What broke it, if anything, and what is not handed on yet.
    async fn body(
        &mut self,
        answer: &mut Answer,
        progress: &mut Progress,
    ) -> Result<(Option<String>, Batch), Break> {
        let mut batch = Batch::default();
        loop {
            let items = match self.fetcher.next(answer).await? {
                Ok(Some(items)) => items,
                Ok(None) => return Ok((None, batch)),
                Err(error @ BodyError::TooLarge(_)) => return Err(Break::Failed(error.to_string())),
                Err(error) => return Ok((Some(error.to_string()), batch)),
            };
            self.take_in(items, &mut batch).await?;
            if batch.records.len() >= PART_RECORDS || batch.bytes >= PART_BYTES {
                let full = std::mem::take(&mut batch);
                progress.seen.records += full.delivered;
                progress.seen.outside += full.outside;
                let response: Option<Timestamp> = answer.response_date();
                self.hand_on(full, self.position.list, response, progress.part).await?;
                progress.part.first = false;
                self.within_limits()?;
                if self.stop.requested() {
                    return Err(Break::Stopped);
                }
            }
        }
    }

    /// Judges what arrived.
    async fn take_in(&mut self, items: Vec<Item>, batch: &mut Batch) -> Result<(), Break> {
        let mut records = Vec::with_capacity(items.len());
        let mut listed = Vec::new();
        for item in items {
            match item {
                Item::Record(record) => records.push(record),
                Item::Header(header)
                    if header.deleted || self.position.asked.method == Method::ListRecords =>
                {
                    records.push(Record { header, ..Record::default() });
                }
                Item::Header(header) => {
                    if let Some(mut record) = self.get_record(&header.identifier).await? {
                        if record.header.identifier.is_empty() {
                            record.header.identifier.clone_from(&header.identifier);
                        }
                        records.push(record);
                        // Also where the repository sends another record than the one asked for.
                        listed.push(header.identifier);
                    } else {
                        batch.delivered += 1;
                        let warning = format!("record {}: it is listed and cannot be had", header.identifier);
                        batch.refuse(header.identifier, warning);
                    }
                }
                _ => {}
            }
        }
        // The page was cut there: it comes again, or its end is told as a whole.
        records.retain(|record| !record.problems.iter().any(|problem| problem.kind == Kind::Truncated));
        judge_into(&self.judge, records, &self.position.window, batch).await?;
        for identifier in listed {
            batch.see(identifier);
        }
        Ok(())
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
}

/// Judges records, where nobody waits for the thread if that takes long.
pub(super) async fn judge_into(
    judge: &Arc<Judge>,
    records: Vec<Record>,
    window: &Window,
    batch: &mut Batch,
) -> Result<(), Break> {
    let (records, verdicts) = if judge.is_costly() && !records.is_empty() {
        let judge = Arc::clone(judge);
        let judged = tokio::task::spawn_blocking(move || {
            let verdicts = judge.judge_all(&records);
            (records, verdicts)
        });
        judged.await.map_err(|error| Break::Failed(error.to_string()))?
    } else {
        let verdicts = judge.judge_all(&records);
        (records, verdicts)
    };
    for (record, verdict) in records.into_iter().zip(verdicts) {
        batch.add(record, verdict, window);
    }
    Ok(())
}
