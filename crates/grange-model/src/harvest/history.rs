//! History: what was harvested of a domain, why it ended, and what that says about next time.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::domain_name::DomainName;
use super::job::{HarvestId, JobId};
use super::limit::Limits;
use super::name::Name;
use crate::nearest::named;

named! {
    /// Why the harvest of a domain ended.
    StopReason, "stop reason" {
        /// Nothing was left to fetch.
        Complete = "complete",
        /// The harvest's limit on objects.
        ObjectLimit = "object-limit",
        /// The harvest's limit on bytes.
        SizeLimit = "size-limit",
        /// The configuration's own limit on bytes.
        ConfigSizeLimit = "config-size-limit",
        /// Interrupted before anything else applied.
        Unfinished = "unfinished",
        /// The configuration's own limit on objects.
        ConfigObjectLimit = "config-object-limit",
        /// The job's limit on running time.
        TimeLimit = "time-limit",
    }
}

/// What a job reports of one domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DomainReport {
    pub domain: DomainName,
    pub objects: u64,
    pub bytes: u64,
    pub stop: StopReason,
}

/// One line of a domain's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    pub domain: DomainName,
    pub configuration: Name,
    pub harvest: HarvestId,
    pub harvest_name: Name,
    pub run: u64,
    pub job: JobId,
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    #[schemars(with = "String")]
    pub ended_at: Timestamp,
    pub objects: u64,
    pub bytes: u64,
    pub stop: StopReason,
}

/// The earlier harvest of a configuration that says most about the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Best {
    pub objects: u64,
    pub bytes: u64,
    pub complete: bool,
}

impl Best {
    /// Walks the history, newest first: the most objects seen, the older one of equals, up to and including the newest
    /// complete harvest.
    pub fn of(newest_first: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut best: Option<Self> = None;
        for entry in newest_first {
            if best.is_none_or(|best| entry.objects >= best.objects) {
                best = Some(entry);
            }
            if entry.complete {
                break;
            }
        }
        best
    }

    /// The same, one harvest at a time as they end: what [`Best::of`] gives with `newest` put in front.
    #[must_use]
    pub fn then(best: Option<Self>, newest: Self) -> Self {
        match best {
            Some(best) if !newest.complete && best.objects >= newest.objects => best,
            _ => newest,
        }
    }
}

impl DomainReport {
    /// The reason that is kept: a limit that was the configuration's own is told as such.
    pub fn attributed(&self, configuration: Limits, job: Limits) -> StopReason {
        let own = |own: super::Limit, job: super::Limit, reached: u64| {
            own.get().is_some_and(|limit| limit <= job.rank() || limit.unsigned_abs() <= reached)
        };
        match self.stop {
            StopReason::SizeLimit if own(configuration.bytes, job.bytes, self.bytes) => {
                StopReason::ConfigSizeLimit
            }
            StopReason::ObjectLimit if own(configuration.objects, job.objects, self.objects) => {
                StopReason::ConfigObjectLimit
            }
            other => other,
        }
    }
}

/// Whether a domain is still to be harvested by a snapshot that takes up what an earlier one left: `last` is the
/// newest history of the domain in the earlier one or in those that it took up. No history at all means that its job
/// failed or never ran, and unfinished is unfinished: both are harvested.
pub fn still_wanted(last: Option<(StopReason, u64, u64)>, limits: Limits) -> bool {
    let Some((stop, objects, bytes)) = last else { return true };
    let raised =
        |limit: super::Limit, reached: u64| limit.get().is_none_or(|limit| limit.unsigned_abs() > reached);
    match stop {
        StopReason::Complete => false,
        StopReason::ConfigSizeLimit => raised(limits.bytes, bytes),
        StopReason::ConfigObjectLimit => raised(limits.objects, objects),
        StopReason::ObjectLimit | StopReason::SizeLimit | StopReason::TimeLimit | StopReason::Unfinished => {
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::harvest::Limit;

    fn entry(objects: u64, complete: bool) -> Best {
        Best { objects, bytes: objects * 7, complete }
    }

    #[test]
    fn the_best_is_the_largest_since_the_newest_complete_one() {
        let best = |entries: &[(u64, bool)]| {
            Best::of(entries.iter().map(|(objects, complete)| entry(*objects, *complete)))
        };
        for (newest_first, expected) in [
            (&[][..], None),
            (&[(10, true), (1000, true)][..], Some(entry(10, true))),
            (&[(10, false), (50, true), (1000, true)][..], Some(entry(50, true))),
            (&[(90, false), (50, true)][..], Some(entry(90, false))),
            (&[(50, false), (50, true)][..], Some(entry(50, true))),
            (&[(5, false), (70, false), (60, false)][..], Some(entry(70, false))),
        ] {
            assert_eq!(best(newest_first), expected, "{newest_first:?}");
        }
    }

    #[test]
    fn a_limit_of_the_configuration_is_told_apart_from_the_harvests() {
        let limits = |objects, bytes| Limits {
            objects: Limit::new(objects).unwrap(),
            bytes: Limit::new(bytes).unwrap(),
            running_s: Limit::NONE,
        };
        let domain: DomainName = "a.dk".parse().unwrap();
        for (stop, objects, bytes, own, job, kept) in [
            (StopReason::SizeLimit, 1, 100, limits(-1, -1), limits(-1, 100), StopReason::SizeLimit),
            (StopReason::SizeLimit, 1, 100, limits(-1, 100), limits(-1, 100), StopReason::ConfigSizeLimit),
            (StopReason::SizeLimit, 1, 100, limits(-1, 500), limits(-1, 100), StopReason::SizeLimit),
            (StopReason::SizeLimit, 1, 600, limits(-1, 500), limits(-1, 100), StopReason::ConfigSizeLimit),
            (StopReason::ObjectLimit, 9, 1, limits(9, -1), limits(-1, -1), StopReason::ConfigObjectLimit),
            (StopReason::ObjectLimit, 5, 1, limits(9, -1), limits(5, -1), StopReason::ObjectLimit),
            (StopReason::Complete, 9, 9, limits(1, 1), limits(1, 1), StopReason::Complete),
        ] {
            let report = DomainReport { domain: domain.clone(), objects, bytes, stop };
            assert_eq!(report.attributed(own, job), kept, "{report:?} {own:?} {job:?}");
        }
    }

    #[test]
    fn what_a_snapshot_left_is_taken_up_again() {
        let limits = |objects, bytes| Limits {
            objects: Limit::new(objects).unwrap(),
            bytes: Limit::new(bytes).unwrap(),
            running_s: Limit::NONE,
        };
        use StopReason as S;
        for (last, limits, wanted) in [
            // The original silently dropped these two.
            (None, limits(-1, -1), true),
            (Some((S::Unfinished, 5, 5)), limits(-1, -1), true),
            (Some((S::Complete, 5, 5)), limits(-1, -1), false),
            (Some((S::SizeLimit, 5, 100)), limits(-1, 100), true),
            (Some((S::ObjectLimit, 5, 100)), limits(5, 100), true),
            (Some((S::TimeLimit, 5, 100)), limits(-1, 100), true),
            (Some((S::ConfigSizeLimit, 5, 100)), limits(-1, 100), false),
            (Some((S::ConfigSizeLimit, 5, 100)), limits(-1, 101), true),
            (Some((S::ConfigSizeLimit, 5, 100)), limits(-1, -1), true),
            (Some((S::ConfigObjectLimit, 5, 100)), limits(5, -1), false),
            (Some((S::ConfigObjectLimit, 5, 100)), limits(6, -1), true),
        ] {
            assert_eq!(still_wanted(last, limits), wanted, "{last:?} {limits:?}");
        }
    }

    proptest! {
        #[test]
        fn kept_step_by_step_the_best_is_the_same(oldest_first in proptest::collection::vec((0..20u64, any::<bool>()), 0..30)) {
            let entries: Vec<_> = oldest_first.iter().map(|(objects, complete)| entry(*objects, *complete)).collect();
            let walked = Best::of(entries.iter().rev().copied());
            let kept = entries.iter().fold(None, |best, newest| Some(Best::then(best, *newest)));
            prop_assert_eq!(walked, kept);
        }
    }
}
