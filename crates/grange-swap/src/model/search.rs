//! Breadth first through all states, each visited once; the way to a state that breaks a rule is told.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash as _, Hasher as _};

use super::judge::{broken, unfinished};
use super::state::{Bounds, State};
use super::steps::steps;

/// What an exploration covered: all of it, within the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    pub states: u64,
    pub transitions: u64,
    /// Steps to the state that is farthest away.
    pub deepest: u64,
}

/// 128 bits stand for a state: among a billion states two with the same are less likely than one in 10^20.
fn fingerprint(state: &State) -> u128 {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        state.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0x5157_4150) << 64 | half(0x4d4f_4445)
}

/// Visits every state that can be reached, `most` at most; the error is the shortest way to a broken rule.
pub fn explore(bounds: Bounds, most: u64) -> Result<Explored, String> {
    let first = State::first(bounds);
    let root = fingerprint(&first);
    // Where each state was reached from.
    let mut from: HashMap<u128, u128> = HashMap::from([(root, root)]);
    let (mut level, mut explored) = (vec![first], Explored { states: 1, transitions: 0, deepest: 0 });
    while !level.is_empty() {
        let mut next_level = Vec::new();
        for state in level {
            let own = fingerprint(&state);
            let all = steps(&state, false);
            if all.is_empty()
                && let Some(rule) = unfinished(&state)
            {
                return Err(told(bounds, &from, own, &rule));
            }
            for (_, next) in all {
                explored.transitions += 1;
                let key = fingerprint(&next);
                let Entry::Vacant(entry) = from.entry(key) else { continue };
                entry.insert(own);
                explored.states += 1;
                if let Some(rule) = broken(&next) {
                    return Err(told(bounds, &from, key, &rule));
                }
                next_level.push(next);
            }
            if explored.states > most {
                return Err(format!("more than {most} states with {bounds:?}"));
            }
        }
        explored.deepest += u64::from(!next_level.is_empty());
        level = next_level;
    }
    Ok(explored)
}

/// The way from the first state, found again by walking it.
fn told(bounds: Bounds, from: &HashMap<u128, u128>, end: u128, rule: &str) -> String {
    let mut way = vec![end];
    while let Some(before) =
        way.last().and_then(|last| from.get(last)).filter(|before| way.last() != Some(before))
    {
        way.push(*before);
    }
    let mut state = State::first(bounds);
    let mut text = format!("{rule}, with {bounds:?}:");
    for key in way.iter().rev().skip(1) {
        let Some((name, next)) = steps(&state, true).into_iter().find(|(_, next)| fingerprint(next) == *key)
        else {
            break;
        };
        text += "\n  ";
        text += &name;
        state = next;
    }
    format!("{text}\n{state:?}")
}
