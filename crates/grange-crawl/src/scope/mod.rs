//! Which URLs are ours. A chain of small rules, each of which accepts, rejects or passes; the last one that does
//! not pass decides. Seeds pass the same chain as everything else.
//!
//! | # | rule | says | about |
//! |---|---|---|---|
//! | 1 | `RejectDecideRule` | reject | everything |
//! | 2 | `SurtPrefixedDecideRule` | accept | what lies under a seed, by the kind of scope, or under a listed SURT |
//! | 3 | `TooManyHopsDecideRule` | reject | more than `max_hops` hops from the seed |
//! | 4 | `TransclusionDecideRule` | accept | parts of accepted pages, wherever they lie |
//! | 5 | `SurtPrefixedDecideRule` | reject | what lies under a rejected SURT |
//! | 6 | `MatchesListRegexDecideRule` | reject | what a trap or rejected regex matches as a whole |
//! | 7 | `PathologicalPathDecideRule` | reject | paths that repeat themselves |
//! | 8 | `TooManyPathSegmentsDecideRule` | reject | deep paths |
//! | 9 | `TooLongDecideRule` | reject | long URLs |
//! | 10 | `TooManyQueryArgumentsDecideRule` | reject | exploding queries |
//! | 11 | `EndlessCalendarDecideRule` | reject | calendars far from today |
//! | 12 | `PrerequisiteAcceptDecideRule` | accept | names and robots.txt of what was accepted |
//! | 13 | `SchemeNotInSetDecideRule` | reject | schemes that are not fetched |
//! | 14 | `TooManyRedirectsDecideRule` | reject | redirects that lead to redirects |
//!
//! Rules 1 to 8, 12 and 13 are those of Heritrix's default profile, in its order and under its names, which readers
//! of `scope.log` know. The rules are pure, so the chain is walked from its end and left at the first rule that
//! does not pass: the answer is the same, and most links are decided by a few comparisons.

mod calendar;
mod chain;
mod hops;
mod live;
mod log;
mod near_content;
mod path;
mod query;
mod regexes;
mod repeated;
mod rule;
mod scheme;
mod seed_layers;
mod session_paths;
mod settings;
mod shape;
mod surts;

pub use chain::{Scope, ScopeError, Scratch};
pub use live::LiveScope;
pub use log::ScopeLog;
pub use regexes::{PatternError, PatternOrigin, check_pattern};
pub use repeated::RepeatedContent;
pub use rule::{Decision, Rule};
pub use session_paths::{Content, Observation, SessionPaths, ShapeContent, ShapeRecord};
pub use settings::{RedirectedSeeds, ScopeKind, Settings, Traps};

#[cfg(test)]
mod tests;
