//! The vote: which copies of a file are the file.
//!
//! Every replica that holds the file has a voice, and so has what Grange itself wrote down when the file came in. The
//! value with most voices wins. Where two values have equally many nobody is blamed: people must look.

use std::collections::BTreeMap;

use crate::holding::{Presence, Verdict};

/// What one replica says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ballot<R> {
    pub replica: R,
    pub presence: Presence,
    /// The replica's own checksum; absent when it was never asked.
    pub checksum: Option<String>,
}

/// How the vote ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// All voices say the same.
    Agreed,
    /// Some were outvoted.
    Decided,
    /// Two values have equally many voices.
    Tied,
    /// Replicas hold it, but none was asked for its checksum yet.
    Unasked,
    /// No replica holds the file.
    Nowhere,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote<R> {
    pub decision: Decision,
    /// The checksum that won.
    pub winner: Option<String>,
    /// One per ballot that voted, in the order given.
    pub verdicts: Vec<(R, Verdict)>,
    /// What Grange itself had written down lost.
    pub record_outvoted: bool,
}

/// Counts the voices. `recorded` is the checksum from when the file came in.
pub fn vote<R: Clone>(recorded: &str, ballots: &[Ballot<R>]) -> Vote<R> {
    let present = ballots.iter().filter(|ballot| ballot.presence == Presence::Ok);
    let cast: Vec<(&R, &str)> =
        present.clone().filter_map(|ballot| Some((&ballot.replica, ballot.checksum.as_deref()?))).collect();
    if cast.is_empty() {
        let decision = if present.count() == 0 { Decision::Nowhere } else { Decision::Unasked };
        return Vote { decision, winner: None, verdicts: Vec::new(), record_outvoted: false };
    }
    let mut voices = BTreeMap::from([(recorded, 1_usize)]);
    for (_, checksum) in &cast {
        *voices.entry(checksum).or_default() += 1;
    }
    let most = voices.values().copied().max().unwrap_or_default();
    let mut first = voices.iter().filter(|(_, count)| **count == most);
    let winner = first.next().map(|(checksum, _)| *checksum).filter(|_| first.next().is_none());
    let judged = |checksum: &str| match winner {
        None => Verdict::Unknown,
        Some(winner) if winner == checksum => Verdict::Ok,
        Some(_) => Verdict::Corrupt,
    };
    Vote {
        decision: match winner {
            None => Decision::Tied,
            Some(_) if voices.len() == 1 => Decision::Agreed,
            Some(_) => Decision::Decided,
        },
        winner: winner.map(str::to_owned),
        verdicts: cast.iter().map(|(replica, checksum)| ((*replica).clone(), judged(checksum))).collect(),
        record_outvoted: winner.is_some_and(|winner| winner != recorded),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One letter per replica: a checksum, `-` for missing, `?` for held but never asked, `.` for never listed.
    fn ballots(text: &str) -> Vec<Ballot<usize>> {
        let ballot = |(replica, letter): (usize, char)| {
            let (presence, checksum) = match letter {
                '-' => (Presence::Missing, None),
                '?' => (Presence::Ok, None),
                '.' => (Presence::Unknown, Some("a".to_owned())),
                letter => (Presence::Ok, Some(letter.to_string())),
            };
            Ballot { replica, presence, checksum }
        };
        text.chars().enumerate().map(ballot).collect()
    }

    #[test]
    fn the_table_of_votes() {
        use Decision::{Agreed, Decided, Nowhere, Tied, Unasked};
        // recorded is always "a"; the verdicts are those of the replicas that voted.
        for (text, decision, winner, verdicts, outvoted) in [
            ("aaa", Agreed, Some("a"), "ooo", false),
            ("a", Agreed, Some("a"), "o", false),
            ("aab", Decided, Some("a"), "ooc", false),
            ("ab-", Decided, Some("a"), "oc", false),
            ("b", Tied, None, "u", false),
            ("b--", Tied, None, "u", false),
            ("abb", Tied, None, "uuu", false),
            ("bbb", Decided, Some("b"), "ooo", true),
            ("bb", Decided, Some("b"), "oo", true),
            ("bc", Tied, None, "uu", false),
            ("abc", Decided, Some("a"), "occ", false),
            ("abbcc", Tied, None, "uuuuu", false),
            ("a?-", Agreed, Some("a"), "o", false),
            ("a.", Agreed, Some("a"), "o", false),
            ("---", Nowhere, None, "", false),
            ("", Nowhere, None, "", false),
            ("..", Nowhere, None, "", false),
            ("?-", Unasked, None, "", false),
        ] {
            let result = vote("a", &ballots(text));
            let told: String = result
                .verdicts
                .iter()
                .map(|(_, verdict)| match verdict {
                    Verdict::Ok => 'o',
                    Verdict::Corrupt => 'c',
                    Verdict::Unknown => 'u',
                })
                .collect();
            assert_eq!(
                (result.decision, result.winner.as_deref(), told.as_str(), result.record_outvoted),
                (decision, winner, verdicts, outvoted),
                "{text}"
            );
        }
    }

    proptest! {
        /// Whoever wins has more voices than any other, and the order of the replicas does not matter.
        #[test]
        fn the_winner_has_most_voices_in_any_order(text in "[abc?.-]{0,7}", turn in 0_usize..7) {
            let given = ballots(&text);
            let result = vote("a", &given);
            let count = |value: &str| {
                let cast = given.iter().filter(|b| b.presence == Presence::Ok);
                cast.filter(|b| b.checksum.as_deref() == Some(value)).count() + usize::from(value == "a")
            };
            if let Some(winner) = &result.winner {
                for other in ["a", "b", "c"].iter().filter(|other| *other != winner) {
                    prop_assert!(count(winner) > count(other));
                }
            } else {
                prop_assert!(result.verdicts.iter().all(|(_, verdict)| *verdict == Verdict::Unknown));
            }
            let mut turned = given.clone();
            turned.rotate_left(turn.min(given.len()));
            let again = vote("a", &turned);
            let mut verdicts = again.verdicts.clone();
            verdicts.sort_by_key(|(replica, _)| *replica);
            prop_assert_eq!((again.decision, again.winner, verdicts), (result.decision, result.winner, result.verdicts));
        }
    }
}
