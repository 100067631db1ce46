//! Findings: states that need a person. What is wrong is read from rows; which findings open and which close is decided
//! here.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::nearest::named;

named! {
    /// What needs a person.
    FindingKind, "kind of finding" {
        /// A copy contradicts the record, which has most voices.
        CorruptCopy = "corrupt-copy",
        /// A replica does not have a copy that it should have.
        MissingCopy = "missing-copy",
        /// A copy contradicts the record, and no majority says which is right.
        UndecidedCopy = "undecided-copy",
        /// A copy could not be served to a reader.
        UnservableCopy = "unservable-copy",
        /// Files that a replica does not take.
        WaitingCopies = "waiting-copies",
        /// Files on a replica that the database does not know.
        StrayFiles = "stray-files",
        /// A replica does not answer, or is not where it should be.
        ReplicaAway = "replica-away",
        /// A node that did not stop and sends no heartbeat.
        LostNode = "lost-node",
        /// A crawl job failed.
        FailedJob = "failed-job",
        /// The last OAI-PMH harvest of a repository failed, or its list was incomplete.
        FailedMetadataHarvest = "failed-metadata-harvest",
        /// A file could not be indexed.
        FailedIndexing = "failed-indexing",
        /// A repair waits for a second person.
        WaitingRepair = "waiting-repair",
        /// The last fixity audit of a replica failed.
        FailedAudit = "failed-audit",
        /// The log of events could not be verified.
        FailedLogVerification = "failed-log-verification",
        /// A harvest definition that could not be planned and was taken out of service.
        DeactivatedHarvest = "deactivated-harvest",
        /// An access rule that a person removed is in force again: an older database was put back.
        ReturnedAccessRule = "returned-access-rule",
        /// An access rule kept beside the bits cannot be read.
        DamagedAccessRule = "damaged-access-rule",
    }
}

/// Findings of one kind in one group that are announced one by one. More at once have one cause, and one line says more
/// than a thousand.
pub const FINDINGS_PER_GROUP_MAX: u64 = 100;

/// The one finding that stands for many is announced again when it stands for more, at most this often: an audit may find
/// another thousand every minute.
pub const ANNOUNCE_AGAIN_AFTER: Duration = Duration::from_secs(10 * 60);

impl FindingKind {
    /// What an operator does about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::CorruptCopy => {
                "run `grange repair --all --yes` on the replica's machine, or ask for the repair and let a second \
                 person confirm it; look at the disk it lies on"
            }
            Self::MissingCopy => {
                "if the replica had it (`grange files show NAME`), find out who removed it; then run `grange repair --all --yes`"
            }
            Self::UndecidedCopy => {
                "compare the copies (`grange files show NAME`) with the depositor's file, then run `grange repair decide NAME` and let a \
                 second person confirm it"
            }
            Self::UnservableCopy => "run `grange audit run --wait`, then `grange repair --all`",
            Self::WaitingCopies => {
                "see `grange replicas ls` and `grange files show NAME` for the reason; free space or start the replica's node"
            }
            Self::StrayFiles => {
                "see `grange audit status`; enter them with `grange archive rebuild` or take them out"
            }
            Self::ReplicaAway => {
                "mount its disk, start its node or check its bucket; nothing is lost meanwhile"
            }
            Self::LostNode => {
                "start the node, or let its machine be looked at; `grange nodes forget NAME` if it will not return"
            }
            Self::FailedJob => "see `grange jobs show NUMBER`, then resubmit or reject the job",
            Self::FailedMetadataHarvest => {
                "see `grange oai history`, ask the repository's people, harvest again"
            }
            Self::FailedIndexing => "see `grange index status`; reindex after the cause is gone",
            Self::WaitingRepair => {
                "another person runs `grange repair ls` and `grange repair confirm ID`; `grange repair withdraw ID` if it is not wanted"
            }
            Self::FailedAudit => "see `grange audit status` for the reason, then `grange audit run --wait`",
            Self::FailedLogVerification => {
                "keep the database and the witnesses as they are, and compare with witnesses kept elsewhere"
            }
            Self::DeactivatedHarvest => {
                "see `grange harvests show NAME` for the reason, correct it, then run `grange harvests activate NAME`; \
                 `grange harvests deactivate NAME` if it is not wanted"
            }
            Self::ReturnedAccessRule => {
                "see `grange access ls`, then run `grange access rm ID`; a rule that is wanted is added again first"
            }
            Self::DamagedAccessRule => {
                "copy the file of that name from another replica over the damaged one; look at the disk it lies on"
            }
        }
    }

    /// How long the state must last before a person hears of it: some heal by themselves.
    pub const fn patience(self) -> Duration {
        match self {
            // A replica that restarts takes what waits within minutes.
            Self::WaitingCopies => Duration::from_secs(15 * 60),
            _ => Duration::ZERO,
        }
    }

    /// The subject of the one finding that stands for too many of a group.
    pub fn collective(self, group: &str) -> String {
        if group.is_empty() { "many".to_owned() } else { format!("many on {group}") }
    }
}

/// One thing that is wrong now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    pub subject: String,
    pub detail: String,
    /// False: it keeps a finding open that is open, and opens none.
    pub opens: bool,
    /// The copy, where it is about one.
    pub file_id: Option<i64>,
    pub replica_id: Option<i64>,
    /// How many states the finding stands for; 0 and 1 are one.
    pub states: u64,
}

/// Everything of one kind that is wrong now in one group, such as a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub kind: FindingKind,
    pub group: String,
    /// How many there are, also where `conditions` does not name all.
    pub count: u64,
    pub complete: bool,
    pub conditions: Vec<Condition>,
}

/// A finding that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFinding {
    pub id: i64,
    pub kind: FindingKind,
    pub group: String,
    pub subject: String,
    /// How many states it stands for, as it was last seen.
    pub states: u64,
}

/// What is to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingChanges {
    pub open: Vec<(FindingKind, String, Condition)>,
    /// Opened without an announcement: the finding that stood for many was announced for them.
    pub open_announced: Vec<(FindingKind, String, Condition)>,
    pub close: Vec<i64>,
    /// Findings that stand for another number of states than before. More are announced again.
    pub counted: Vec<(i64, u64)>,
}

/// The detail of the finding that stands for many.
pub fn collective_detail(states: u64) -> String {
    format!("{states} of them")
}

/// Compares what is wrong with what is known to be wrong.
pub fn changes(observations: &[Observation], open: &[OpenFinding]) -> FindingChanges {
    let mut changes = FindingChanges::default();
    for seen in observations {
        let collective = seen.kind.collective(&seen.group);
        let known: Vec<_> =
            open.iter().filter(|one| one.kind == seen.kind && one.group == seen.group).collect();
        let known_subjects: BTreeSet<_> = known.iter().map(|one| one.subject.as_str()).collect();
        let still: BTreeSet<_> = seen.conditions.iter().map(|one| one.subject.as_str()).collect();
        let standing_for_many = known.iter().find(|one| one.subject == collective);
        // Once too many, one finding stands for all until half of that number is left: repairs of thousands stay quiet, and
        // a number about the limit does not announce itself again and again.
        let many = match standing_for_many {
            None => seen.count > FINDINGS_PER_GROUP_MAX,
            Some(_) => seen.count > FINDINGS_PER_GROUP_MAX / 2 || still.contains(collective.as_str()),
        };
        match standing_for_many {
            None if many => {
                let condition = Condition {
                    subject: collective.clone(),
                    detail: collective_detail(seen.count),
                    opens: true,
                    states: seen.count,
                    ..Condition::default()
                };
                changes.open.push((seen.kind, seen.group.clone(), condition));
            }
            Some(one) if many && one.states != seen.count => changes.counted.push((one.id, seen.count)),
            _ => {}
        }
        if !many {
            let fresh = |one: &&Condition| !known_subjects.contains(one.subject.as_str());
            let opened = |one: &Condition| (seen.kind, seen.group.clone(), one.clone());
            let fresh = seen.conditions.iter().filter(fresh);
            if standing_for_many.is_some() {
                changes.open_announced.extend(fresh.map(opened));
            } else {
                changes.open.extend(fresh.filter(|one| one.opens).map(opened));
            }
        }
        let over = known.iter().filter(|one| {
            if one.subject == collective {
                !many
            } else {
                seen.complete && !still.contains(one.subject.as_str())
            }
        });
        changes.close.extend(over.map(|one| one.id));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(count: u64, subjects: &[&str]) -> Observation {
        let condition = |subject: &&str| Condition {
            subject: (*subject).to_owned(),
            opens: true,
            ..Condition::default()
        };
        Observation {
            kind: FindingKind::MissingCopy,
            group: "two".to_owned(),
            count,
            complete: count <= 1000,
            conditions: subjects.iter().map(condition).collect(),
        }
    }

    fn open(id: i64, subject: &str) -> OpenFinding {
        let (group, subject) = ("two".to_owned(), subject.to_owned());
        OpenFinding { id, kind: FindingKind::MissingCopy, group, subject, states: 1 }
    }

    /// The finding that stands for many.
    fn many(id: i64, states: u64) -> OpenFinding {
        OpenFinding { states, ..open(id, "many on two") }
    }

    /// What opens, by subject, and what closes, by id.
    fn decided(observation: Observation, known: &[OpenFinding]) -> (Vec<String>, Vec<i64>) {
        let changes = changes(&[observation], known);
        (changes.open.into_iter().map(|(_, _, one)| one.subject).collect(), changes.close)
    }

    #[test]
    fn each_finding_opens_once_and_closes_when_it_is_over() {
        let none: [String; 0] = [];
        assert_eq!(decided(seen(2, &["a", "b"]), &[]), (vec!["a".to_owned(), "b".to_owned()], vec![]));
        assert_eq!(decided(seen(2, &["a", "b"]), &[open(1, "a"), open(2, "b")]), (none.to_vec(), vec![]));
        assert_eq!(
            decided(seen(1, &["b"]), &[open(1, "a"), open(2, "b")]),
            (none.to_vec(), vec![1]),
            "a was repaired"
        );
        assert_eq!(decided(seen(0, &[]), &[open(1, "a")]), (none.to_vec(), vec![1]));
    }

    #[test]
    fn a_state_in_between_keeps_a_finding_and_opens_none() {
        let mut between = seen(1, &["a"]);
        between.conditions[0].opens = false;
        assert_eq!(decided(between.clone(), &[]), (vec![], vec![]));
        assert_eq!(decided(between, &[open(1, "a")]), (vec![], vec![]));
    }

    fn names(count: u64) -> Vec<String> {
        (0..count).map(|n| format!("f{n}")).collect()
    }

    fn seen_names(count: u64) -> Observation {
        let names = names(count);
        seen(count, &names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn too_many_are_one_finding_until_half_of_them_are_left() {
        let collective = "many on two".to_owned();
        assert_eq!(decided(seen(5000, &[]), &[open(1, "a")]), (vec![collective.clone()], vec![]));
        assert_eq!(decided(seen_names(101), &[]).0, [collective]);
        let known = [open(1, "a"), many(2, 101)];
        assert_eq!(decided(seen_names(51), &known), (vec![], vec![1]), "they are being repaired");
        // The rest was announced with the others: each is a finding of its own now, and nobody hears of it again.
        let changed = changes(&[seen_names(50)], &known);
        assert_eq!((changed.open.len(), changed.open_announced.len(), changed.close), (0, 50, vec![1, 2]));
        assert_eq!(decided(seen(0, &[]), &known), (vec![], vec![1, 2]));
    }

    #[test]
    fn one_that_stands_for_many_says_so_when_they_become_more() {
        for (states, count, counted) in [
            (101, 101, vec![]),
            (101, 102, vec![(2, 102)]),
            (5000, 4999, vec![(2, 4999)]),
            (60, 61, vec![(2, 61)]),
        ] {
            let changed = changes(&[seen_names(count)], &[many(2, states)]);
            assert_eq!(changed, FindingChanges { counted, ..FindingChanges::default() }, "{states} {count}");
        }
        // Those that are left are findings of their own, so a new one among them is announced by its name.
        let known: Vec<_> = names(50).iter().map(|name| open(7, name)).collect();
        assert_eq!(decided(seen_names(51), &known), (vec!["f50".to_owned()], vec![]));
    }

    #[test]
    fn one_that_is_kept_open_by_its_own_row_stays_however_few_there_are() {
        let known = [many(2, 101)];
        assert_eq!(decided(seen(1, &["many on two"]), &known), (vec![], vec![]));
        assert_eq!(decided(seen(0, &[]), &known), (vec![], vec![2]));
    }

    #[test]
    fn other_kinds_and_groups_are_left_alone() {
        let other_group = OpenFinding { group: "one".to_owned(), ..open(1, "a") };
        let other_kind = OpenFinding { kind: FindingKind::CorruptCopy, ..open(2, "a") };
        assert_eq!(decided(seen(0, &[]), &[other_group, other_kind]), (vec![], vec![]));
    }
}
