//! URLs that were fetched by another harvester of the same job: seen, counted and charged without having been queued here.

use std::collections::HashMap;
use std::time::Duration;

use fjall::Slice;
use jiff::Timestamp;
use url::Url;

use super::Frontier;
use super::budget::Spent;
use super::canonical::fingerprint;
use super::error::Result;
use super::place;
use super::running::RunningTime;
use super::seen;
use super::store::{self, TOTALS};
use crate::politeness::Visit;

/// A URL that was fetched elsewhere.
#[derive(Clone, Debug)]
pub struct EarlierVisit {
    pub url: Url,
    pub visit: Visit,
    /// No budget is charged.
    pub is_prerequisite: bool,
    /// When the fetch began, in running time of the crawl.
    pub began: Duration,
}

impl Frontier {
    /// Takes in what was fetched elsewhere, in one batch. For a frontier that nothing is handed out of yet.
    pub fn import(&self, visits: &[EarlierVisit]) -> Result<()> {
        let mut writer = self.lock_writer();
        let mut state = self.lock_state();
        let mut totals = state.totals;
        let mut charged: HashMap<u32, Spent> = HashMap::new();
        let mut fingerprints = Vec::with_capacity(visits.len());
        let mut batch = self.store.batch();
        for EarlierVisit { url, visit, is_prerequisite, began } in visits {
            let fingerprint = fingerprint(url, self.settings.canonical);
            batch.insert(&self.store.seen, seen::bytes(fingerprint), Slice::empty());
            fingerprints.push(fingerprint);
            let domain = state.domain(place::domain(place::host(url)));
            let spent = charged.entry(domain).or_insert(state.domains[domain as usize].spent);
            totals.discovered += 1;
            totals.charge(spent, visit, *is_prerequisite);
            spent.began.get_or_insert(began.as_millis() as u64);
        }
        let facts = &self.store.facts;
        for (domain, spent) in &charged {
            let name = &state.domains[*domain as usize].name;
            batch.insert(facts, store::named(b'd', name), store::encode_spent(spent));
        }
        batch.insert(facts, TOTALS, totals.encode());
        self.store.commit(batch)?;
        for fingerprint in fingerprints {
            writer.seen.committed(fingerprint);
        }
        state.totals = totals;
        for (domain, spent) in charged {
            state.domains[domain as usize].spent = spent;
        }
        Ok(())
    }

    /// Counts `ran` as the running time until now. It is kept with the next batch.
    pub fn set_ran(&self, ran: Duration, now: Timestamp) {
        let mut state = self.lock_state();
        let ran = ran.as_millis() as u64;
        state.totals.ran = ran;
        state.time = RunningTime::resumed(ran, now.as_millisecond());
    }
}
