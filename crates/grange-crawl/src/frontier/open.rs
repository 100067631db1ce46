//! Opening: memory is made anew from what is on disk.

use std::collections::{BTreeMap, HashSet};

use super::canonical::fingerprint;
use super::error::{FrontierError, Result};
use super::finish::Writer;
use super::item;
use super::key::Key;
use super::seen::Seen;
use super::settings::Settings;
use super::state::State;
use super::store::{self, BEGUN_WITH, Store, TOTALS, Totals};
use crate::job::Budgets;

pub(super) struct Opened {
    pub(super) state: State,
    pub(super) writer: Writer,
    pub(super) marks: BTreeMap<String, Vec<u8>>,
    pub(super) is_new: bool,
}

pub(super) fn load(store: &Store, settings: &Settings, budgets: Budgets, now: i64) -> Result<Opened> {
    let is_new = begin(store, settings)?;
    let read = store.failed("read");
    let totals = match store.facts.get(TOTALS).map_err(&read)? {
        Some(bytes) => Totals::decode(&bytes).ok_or_else(|| store.damaged("the totals"))?,
        None => Totals::default(),
    };
    let mut state = State::new(settings, budgets, totals, now);
    for entry in store.facts.prefix(b"q") {
        let (key, value) = entry.into_inner().map_err(&read)?;
        let id = store::read_queue_key(&key);
        let (id, (temper, name, domain)) =
            id.zip(store::decode_queue(&value)).ok_or_else(|| store.damaged("a queue"))?;
        // Numbers are given in turn and written with the first URL, so none is missing.
        if state.new_queue(name, domain) != id {
            return Err(store.damaged(format!("the number of the queue {name}")));
        }
        state.queues[id as usize].temper = temper;
    }
    for entry in store.facts.prefix(b"d") {
        let (key, value) = entry.into_inner().map_err(&read)?;
        let name = std::str::from_utf8(&key[1..]).map_err(|_| store.damaged("the name of a domain"))?;
        let spent = store::decode_spent(&value).ok_or_else(|| store.damaged(format!("the domain {name}")))?;
        let id = state.domain(name);
        state.domains[id as usize].spent = spent;
    }
    let asked = count(store, settings, &mut state)?;
    let seen = Seen::open(store.seen.clone(), settings.seen_filter.0).map_err(&read)?;
    state.settle_all(now);
    Ok(Opened { state, writer: Writer { seen, asked }, marks: marks(store)?, is_new })
}

/// Refuses settings under which what is on disk would mean something else.
fn begin(store: &Store, settings: &Settings) -> Result<bool> {
    let given = format!(
        "format 1, queue_by {}, canonical {}",
        serde_json::json!(settings.queue_by),
        serde_json::json!(settings.canonical)
    );
    match store.facts.get(BEGUN_WITH).map_err(store.failed("read"))? {
        Some(begun) if *begun == *given.as_bytes() => Ok(false),
        Some(begun) => Err(FrontierError::OtherSettings {
            folder: store.folder().to_owned(),
            begun: String::from_utf8_lossy(&begun).into_owned(),
            given,
        }),
        None => {
            let mut batch = store.batch();
            batch.insert(&store.facts, BEGUN_WITH, given.as_bytes());
            store.commit(batch)?;
            Ok(true)
        }
    }
}

/// Counts what each queue holds; returns the prerequisites among it.
fn count(store: &Store, settings: &Settings, state: &mut State) -> Result<HashSet<(u32, u64)>> {
    let mut asked = HashSet::new();
    for entry in store.queued.iter() {
        let (bytes, value) = entry.into_inner().map_err(store.failed("read"))?;
        let (id, key) = Key::read(&bytes).ok_or_else(|| store.damaged("the place of a URL"))?;
        let queue = state
            .queues
            .get_mut(id as usize)
            .ok_or_else(|| store.damaged(format!("the queue number {id}")))?;
        queue.found(key);
        state.totals.sequence = state.totals.sequence.max(key.sequence().saturating_add(1));
        if key.is_prerequisite() {
            let (candidate, _) = item::decode(&value).ok_or_else(|| store.damaged("a prerequisite"))?;
            asked.insert((id, fingerprint(&candidate.url, settings.canonical)));
        }
    }
    Ok(asked)
}

fn marks(store: &Store) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut marks = BTreeMap::new();
    for entry in store.facts.prefix(b"m") {
        let (key, value) = entry.into_inner().map_err(store.failed("read"))?;
        let name = String::from_utf8(key[1..].to_vec()).map_err(|_| store.damaged("the name of a mark"))?;
        marks.insert(name, value.to_vec());
    }
    Ok(marks)
}
