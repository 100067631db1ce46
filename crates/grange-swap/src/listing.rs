//! The lines of a directory, put together from all slices.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use crate::error::Error;
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
    blocking(move || {
        let mut merged = BTreeMap::new();
        for tree in trees {
            let shown = tree.partition.root.join(tree.namespace.as_str());
            let entries = tree.list(path.as_ref()).map_err(Error::io("list", shown))?;
            merge(&mut merged, entries.unwrap_or_default(), after.as_deref());
        }
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

/// The lines on all slices; `None` when no slice has such a directory or anything in it.
pub(crate) async fn list(
    node: &Arc<Node>,
    known: &Arc<Known>,
    path: Option<&LocalPath>,
    after: Option<&str>,
) -> Result<Listing, Error> {
    let (own, mut more) = list_here(known, path, after, MAX_ENTRIES).await?;
    let mut merged = BTreeMap::new();
    merge(&mut merged, own, None);
    let ask = |base: Arc<str>| async move {
        let collection = known.record.uuid;
        let after = after.map(str::to_owned);
        let call = Call::List { collection, path: path.cloned(), after, limit: MAX_ENTRIES };
        (Arc::clone(&base), async { node.link(&base)?.ask(call).await }.await)
    };
    let others = known.others();
    let mut away: Vec<Arc<str>> =
        others.iter().filter(|(_, alive)| !alive).map(|(base, _)| Arc::clone(base)).collect();
    let asked = join_all(others.into_iter().filter(|(_, alive)| *alive).map(|(base, _)| ask(base))).await;
    for (base, answer) in asked {
        match answer {
            Ok(Answer::Entries(entries, further)) => {
                merge(&mut merged, entries, None);
                more |= further;
            }
            _ => away.push(base),
        }
    }
    let missing = |home: &Home| match home {
        Home::Here(_) => false,
        Home::There { base, .. } => away.contains(base),
        Home::Nowhere => true,
    };
    let missing_slices =
        known.homes.iter().enumerate().filter(|(_, home)| missing(home)).map(|(at, _)| at).collect();
    more |= merged.len() > MAX_ENTRIES;
    let entries: Vec<_> = merged.into_values().take(MAX_ENTRIES).collect();
    let next = entries.last().filter(|_| more).map(|entry| entry.name.clone());
    Ok(Listing { entries, next, missing_slices })
}
