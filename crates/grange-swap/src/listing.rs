//! The lines of a directory, put together from all slices.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use crate::collection::Layout;
use crate::error::Error;
use crate::gate::changing;
use crate::name::LocalPath;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::serve::blocking;
use crate::tree::Entry;
use crate::view::{Home, Known};

/// Most lines in one answer; go on with `after`.
pub const MAX_ENTRIES: usize = 10_000;

/// A directory as its collection has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// Go on after this name.
    pub next: Option<String>,
    /// Slices whose servers are away: their files are missing here.
    pub missing_slices: Vec<usize>,
}

/// The lines on our slices after a name, sorted, and whether there are more.
pub(crate) async fn list_here(
    known: &Known,
    path: Option<&LocalPath>,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Entry>, bool), Error> {
    let trees: Vec<_> = known.here().map(|(_, tree)| Arc::clone(tree)).collect();
    let (path, after) = (path.cloned(), after.map(str::to_owned));
    let limit = limit.min(MAX_ENTRIES);
    let (gate, epoch) = (Arc::clone(&known.gate), known.record.epoch);
    if trees.is_empty() {
        // Nothing moves away from here, and the gate stays at the last record that concerned our partitions.
        return Ok((Vec::new(), false));
    }
    blocking(move || {
        let mut merged = BTreeMap::new();
        for tree in trees {
            let shown = tree.partition.root.join(tree.namespace.as_str());
            let entries = tree.list(path.as_ref()).map_err(Error::io("list", shown))?;
            merge(&mut merged, entries.unwrap_or_default(), after.as_deref());
        }
        // By a newer record files may have been moved away while we looked.
        drop(gate.unchanged(epoch)?);
        let more = merged.len() > limit;
        Ok((merged.into_values().take(limit).collect(), more))
    })
    .await
}

/// Of a directory that is on many slices, and of a file while it is on two, one line stays: the newest.
fn merge(into: &mut BTreeMap<String, Entry>, entries: Vec<Entry>, after: Option<&str>) {
    for entry in entries {
        if after.is_some_and(|after| entry.name.as_str() <= after) {
            continue;
        }
        match into.get_mut(&entry.name) {
            Some(known) if known.modified >= entry.modified => {}
            Some(known) => *known = entry,
            None => {
                into.insert(entry.name.clone(), entry);
            }
        }
    }
}

/// The lines on all slices. A file that moves is seen at its old place, or later at its new one: so while a collection
/// moves every slice is listed twice, and what either look met is there. All lists are by one record; when that changes
/// meanwhile, they are made again.
pub(crate) async fn list(
    node: &Arc<Node>,
    known: &Arc<Known>,
    path: Option<&LocalPath>,
    after: Option<&str>,
) -> Result<Listing, Error> {
    let mut known = Arc::clone(known);
    for _ in 0..TRIES {
        let mut looked = look(node, &known, path, after).await?;
        if looked.changed.is_none() && matches!(known.record.layout, Layout::Moving { .. }) {
            let again = look(node, &known, path, after).await?;
            looked.changed = again.changed;
            looked.more |= again.more;
            looked.away.extend(again.away);
            merge(&mut looked.merged, again.merged.into_values().collect(), None);
        }
        if let Some(epoch) = looked.changed {
            if epoch < known.record.epoch {
                // A server that is behind hears of the change any moment.
                tokio::time::sleep(MOMENT).await;
            }
            known = node.catch_up(known.record.uuid, epoch).await?;
            continue;
        }
        return Ok(looked.listing(&known));
    }
    Err(changing())
}

/// So many changes during one listing are no coincidence.
const TRIES: usize = 5;
const MOMENT: Duration = Duration::from_millis(20);

/// One look at all slices.
#[derive(Default)]
struct Look {
    merged: BTreeMap<String, Entry>,
    more: bool,
    /// Servers that could not be asked.
    away: Vec<Arc<str>>,
    /// Somebody works by another record: wait for a change from this epoch, or to it.
    changed: Option<u64>,
}

async fn look(
    node: &Arc<Node>,
    known: &Arc<Known>,
    path: Option<&LocalPath>,
    after: Option<&str>,
) -> Result<Look, Error> {
    let epoch = known.record.epoch;
    let ask = |base: Arc<str>| async move {
        let collection = known.record.uuid;
        let after = after.map(str::to_owned);
        let call = Call::List { collection, epoch, path: path.cloned(), after, limit: MAX_ENTRIES };
        (Arc::clone(&base), async { node.link(&base)?.ask_any(call).await }.await)
    };
    let others = known.others();
    let away = others.iter().filter(|(_, alive)| !alive).map(|(base, _)| Arc::clone(base)).collect();
    let mut look = Look { away, ..Look::default() };
    let asked = join_all(others.into_iter().filter(|(_, alive)| *alive).map(|(base, _)| ask(base)));
    let (own, asked) = tokio::join!(list_here(known, path, after, MAX_ENTRIES), asked);
    match own {
        Ok((own, more)) => {
            merge(&mut look.merged, own, None);
            look.more = more;
        }
        Err(Error::Away { .. }) => look.changed = Some(epoch),
        Err(error) => return Err(error),
    }
    for (base, answer) in asked {
        match answer {
            Ok(Answer::Entries(entries, further)) => {
                merge(&mut look.merged, entries, None);
                look.more |= further;
            }
            Ok(Answer::OtherEpoch(other)) => look.changed = Some(other),
            _ => look.away.push(base),
        }
    }
    Ok(look)
}

impl Look {
    fn listing(self, known: &Known) -> Listing {
        let missing = |home: &Home| match home {
            Home::Here(_) => false,
            Home::There { base, .. } => self.away.contains(base),
            Home::Nowhere => true,
        };
        let missing_slices =
            known.homes.iter().enumerate().filter(|(_, home)| missing(home)).map(|(at, _)| at).collect();
        let more = self.more || self.merged.len() > MAX_ENTRIES;
        let entries: Vec<_> = self.merged.into_values().take(MAX_ENTRIES).collect();
        let next = entries.last().filter(|_| more).map(|entry| entry.name.clone());
        Listing { entries, next, missing_slices }
    }
}
