//! What must hold in every state.

use super::state::{COLLECTIONS, FILE, State, Told};
use crate::collection::Layout;

/// The rule that a state breaks, if any.
pub(super) fn broken(state: &State) -> Option<String> {
    if let Some(rule) = state.broken {
        return Some(rule.to_owned());
    }
    let living = |u: usize| {
        let newest = state.newest(u).is_some_and(|newest| newest.layout != Layout::Gone);
        newest
            || state
                .everybody()
                .any(|server| state.servers[server].disk[u].is_some_and(|own| own.layout != Layout::Gone))
    };
    if (0..COLLECTIONS).filter(|u| living(*u)).count() > 1 {
        return Some("a namespace has two living records".to_owned());
    }
    (0..COLLECTIONS).find_map(|u| file(state, u))
}

/// What clients were told of the file of a collection.
fn file(state: &State, u: usize) -> Option<String> {
    let newest = state.newest(u)?;
    let copies =
        || state.everybody().map(|server| (server, state.file(server, u))).filter(|(_, file)| *file != 0);
    match state.told[u] {
        Told::Stored(_) if newest.layout == Layout::Gone => Some(
            "a collection that was to be removed only if empty took an acknowledged file with it".to_owned(),
        ),
        Told::Stored(bytes) => {
            let spot = newest.layout.spot(FILE)?;
            let at = |slice: usize| state.file(state.host(u, slice), u) == bytes;
            let found = at(spot.slice) || spot.before.is_some_and(at);
            if !found {
                return Some("an acknowledged file is not where the record that holds has it".to_owned());
            }
            if copies().any(|(_, file)| file != bytes) {
                return Some("an acknowledged file has other bytes somewhere".to_owned());
            }
            let moving = matches!(newest.layout, Layout::Moving { .. });
            if !moving && copies().count() != 1 {
                return Some("an acknowledged file is on more than one slice".to_owned());
            }
            None
        }
        Told::Removed if copies().next().is_some() => Some("a file that was removed is back".to_owned()),
        Told::Removed | Told::Nothing | Told::Unknown => None,
    }
}

/// Where nothing can happen any more, nothing may be left undone.
pub(super) fn unfinished(state: &State) -> Option<String> {
    for u in 0..COLLECTIONS {
        let Some(newest) = state.newest(u) else { continue };
        if matches!(newest.layout, Layout::Moving { .. } | Layout::Closing { .. }) {
            return Some(format!("collection {u} stays {:?} for ever", newest.layout));
        }
        for server in state.everybody() {
            let own = state.servers[server].disk[u];
            let host = state.hosts(u, newest.layout).any(|host| host == server);
            let behind = own.is_some_and(|own| own != newest) || (host && own.is_none());
            if behind {
                return Some(format!("server {server} never hears of the last record of collection {u}"));
            }
        }
    }
    None
}
