//! The vote: which copies of a file are the file.
//!
//! The record is what the depositor handed in: its checksum was computed from those bytes before anything was stored.
//! The record alone says what the file is. Copies can contradict it, and then people must decide; copies never replace it.
//!
//! * A copy that answers the recorded checksum is the file, whatever other copies answer.
//! * A copy that answers otherwise is corrupt if the record has more voices than every other checksum. The record has a
//!   voice of its own, and one from every replica that answers the same.
//! * Otherwise the copy is undecided. Either the record is wrong or the copies are: a person asks for one or the other,
//!   and a second person confirms it.
//! * A copy that cannot be read is corrupt and has no voice.

use std::collections::BTreeMap;

use crate::holding::{Presence, UploadState, Verdict};

/// The answer of a replica that holds a file and cannot read it.
pub const UNREADABLE: &str = "unreadable";

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
    /// Every voice confirms the record.
    Agreed,
    /// The record has most voices, and some copies are corrupt.
    Decided,
    /// Another checksum has as many voices as the record, or more. People must decide.
    Undecided,
    /// Replicas hold it, but none was asked for its checksum yet.
    Unasked,
    /// No replica holds the file.
    Nowhere,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote<R> {
    pub decision: Decision,
    /// One per ballot that voted, in the order given.
    pub verdicts: Vec<(R, Verdict)>,
}

impl Verdict {
    /// The upload state of a copy with this verdict. A copy is complete if it answers the recorded checksum, and only then.
    pub const fn upload_state(self) -> UploadState {
        match self {
            Self::Ok => UploadState::UploadCompleted,
            Self::Corrupt | Self::Unknown => UploadState::UploadFailed,
        }
    }
}

/// Counts the voices. `recorded` is the checksum from when the file came in.
pub fn vote<R: Clone>(recorded: &str, ballots: &[Ballot<R>]) -> Vote<R> {
    let present = ballots.iter().filter(|ballot| ballot.presence == Presence::Ok);
    let cast: Vec<(&R, &str)> =
        present.clone().filter_map(|ballot| Some((&ballot.replica, ballot.checksum.as_deref()?))).collect();
    if cast.is_empty() {
        let decision = if present.count() == 0 { Decision::Nowhere } else { Decision::Unasked };
        return Vote { decision, verdicts: Vec::new() };
    }
    let voices = count(cast.iter().map(|(_, checksum)| *checksum));
    let confirmed = 1 + voices.get(recorded).copied().unwrap_or_default();
    let rivals = voices.iter().filter(|(checksum, _)| **checksum != recorded);
    let strongest_rival = rivals.map(|(_, count)| *count).max().unwrap_or_default();
    let verdict = |checksum: &str| {
        if checksum == recorded {
            Verdict::Ok
        } else if checksum == UNREADABLE || confirmed > strongest_rival {
            Verdict::Corrupt
        } else {
            Verdict::Unknown
        }
    };
    let verdicts: Vec<_> =
        cast.iter().map(|(replica, checksum)| ((*replica).clone(), verdict(checksum))).collect();
    let has = |wanted| verdicts.iter().any(|(_, verdict)| *verdict == wanted);
    let decision = if has(Verdict::Unknown) {
        Decision::Undecided
    } else if has(Verdict::Corrupt) {
        Decision::Decided
    } else {
        Decision::Agreed
    };
    Vote { decision, verdicts }
}

/// What to record of a file whose record is lost, from what the replicas answer and whether each keeps bytes: the checksum
/// that most answer; none on a tie. Checksum replicas were written from the lost record. Where copies with bytes outnumber
/// them, their checksum is recorded all the same, and the vote leaves the file undecided.
pub fn recovered_record(answers: &[(String, bool)]) -> Option<&str> {
    let voices = count(answers.iter().map(|(answer, _)| answer.as_str()));
    let most = voices.values().copied().max()?;
    let mut first = voices.iter().filter(|(_, count)| **count == most);
    let most_frequent = first.next().map(|(checksum, _)| *checksum).filter(|_| first.next().is_none())?;
    let kept = count(answers.iter().filter(|(_, bytes)| !bytes).map(|(answer, _)| answer.as_str()));
    let mut kept = kept.into_keys();
    match (kept.next(), kept.next()) {
        (Some(one), None) => Some(one),
        _ => Some(most_frequent),
    }
}

fn count<'a>(answers: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut voices = BTreeMap::new();
    for checksum in answers.filter(|checksum| *checksum != UNREADABLE) {
        *voices.entry(checksum).or_default() += 1;
    }
    voices
}

/// What the other copies of a contested file say with one voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction<'a> {
    /// The checksum that every readable copy with bytes answers instead of the recorded one.
    pub checksum: &'a str,
    /// A checksum replica answers the recorded one.
    pub record_confirmed: bool,
}

/// Whether every copy with bytes contradicts the record and agrees with the others: two replicas at least. `ballots` come
/// with whether the replica keeps bytes.
pub fn contradiction<'a, R>(recorded: &str, ballots: &'a [(Ballot<R>, bool)]) -> Option<Contradiction<'a>> {
    let cast = || {
        let present = ballots.iter().filter(|(ballot, _)| ballot.presence == Presence::Ok);
        present.filter_map(|(ballot, bytes)| Some((ballot.checksum.as_deref()?, *bytes)))
    };
    let checksum = cast().find(|(_, bytes)| *bytes)?.0;
    let agree = cast().all(|(answer, bytes)| answer == checksum || !bytes);
    // A size is not a checksum: the copies must have been read.
    let read = checksum != UNREADABLE && !checksum.starts_with("size=");
    let supporters = cast().filter(|(answer, _)| *answer == checksum).count();
    let contradicted = checksum != recorded && agree && read && supporters >= COPIES_AGAINST_RECORD_MIN;
    contradicted.then(|| Contradiction {
        checksum,
        record_confirmed: cast().any(|(answer, bytes)| !bytes && answer == recorded),
    })
}

/// Replicas that must answer the same against the record. One against one is a tie.
pub const COPIES_AGAINST_RECORD_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One letter per replica: a checksum, `-` for missing, `?` for held but never asked, `.` for never listed, `!` for
    /// unreadable.
    fn ballots(text: &str) -> Vec<Ballot<usize>> {
        let ballot = |(replica, letter): (usize, char)| {
            let (presence, checksum) = match letter {
                '-' => (Presence::Missing, None),
                '?' => (Presence::Ok, None),
                '.' => (Presence::Unknown, Some("a".to_owned())),
                '!' => (Presence::Ok, Some(UNREADABLE.to_owned())),
                letter => (Presence::Ok, Some(letter.to_string())),
            };
            Ballot { replica, presence, checksum }
        };
        text.chars().enumerate().map(ballot).collect()
    }

    fn letters(verdicts: &[(usize, Verdict)]) -> String {
        let letter = |(_, verdict): &(usize, Verdict)| match verdict {
            Verdict::Ok => 'o',
            Verdict::Corrupt => 'c',
            Verdict::Unknown => 'u',
        };
        verdicts.iter().map(letter).collect()
    }

    #[test]
    fn the_table_of_votes() {
        use Decision::{Agreed, Decided, Nowhere, Unasked, Undecided};
        // recorded is always "a"; the verdicts are those of the replicas that voted.
        for (text, decision, verdicts) in [
            ("aaa", Agreed, "ooo"),
            ("a", Agreed, "o"),
            ("aab", Decided, "ooc"),
            ("ab-", Decided, "oc"),
            ("b", Undecided, "u"),
            ("b--", Undecided, "u"),
            ("abb", Undecided, "ouu"),
            ("bbb", Undecided, "uuu"),
            ("bb", Undecided, "uu"),
            ("abbb", Undecided, "ouuu"),
            ("aabbb", Undecided, "oouuu"),
            ("aabb", Decided, "oocc"),
            ("bc", Undecided, "uu"),
            ("abc", Decided, "occ"),
            ("abbc", Undecided, "ouuu"),
            ("a?-", Agreed, "o"),
            ("a.", Agreed, "o"),
            ("---", Nowhere, ""),
            ("", Nowhere, ""),
            ("..", Nowhere, ""),
            ("?-", Unasked, ""),
            ("!", Decided, "c"),
            ("!!!", Decided, "ccc"),
            ("a!!", Decided, "occ"),
            ("b!!", Undecided, "ucc"),
        ] {
            let result = vote("a", &ballots(text));
            assert_eq!((result.decision, letters(&result.verdicts).as_str()), (decision, verdicts), "{text}");
        }
    }

    #[test]
    fn a_lost_record_is_what_most_answer_unless_a_checksum_replica_contradicts_them() {
        // Upper case: a checksum replica.
        for (text, expected) in [
            ("aabA", Some("a")),
            ("aab", Some("a")),
            ("a", Some("a")),
            ("A", Some("a")),
            ("ab", None),
            ("abC", None),
            ("a!!", Some("a")),
            ("!", None),
            ("bbA", Some("a")),
            ("bbbA", Some("a")),
            ("bbAC", Some("b")),
            ("", None),
        ] {
            let answer = |letter: char| match letter {
                '!' => (UNREADABLE.to_owned(), true),
                letter => (letter.to_lowercase().to_string(), letter.is_lowercase()),
            };
            let answers: Vec<_> = text.chars().map(answer).collect();
            assert_eq!(recovered_record(&answers), expected, "{text}");
        }
    }

    #[test]
    fn copies_contradict_the_record_only_with_one_voice() {
        // Upper case: a checksum replica. The record says "a".
        for (text, expected) in [
            ("bbB", Some(("b", false))),
            ("bbbA", Some(("b", true))),
            ("bB", Some(("b", false))),
            ("b", None),
            ("bA", None),
            ("bb", Some(("b", false))),
            ("bbC", Some(("b", false))),
            ("bc", None),
            ("ab", None),
            ("aa", None),
            ("b-B", Some(("b", false))),
            ("b!", None),
            ("BB", None),
            ("--", None),
        ] {
            let given: Vec<_> = ballots(&text.to_lowercase())
                .into_iter()
                .zip(text.chars())
                .map(|(ballot, letter)| (ballot, !letter.is_uppercase()))
                .collect();
            let found = contradiction("a", &given).map(|one| (one.checksum, one.record_confirmed));
            assert_eq!(found, expected, "{text}");
        }
        let size = |replica| Ballot { replica, presence: Presence::Ok, checksum: Some("size=9".to_owned()) };
        assert_eq!(contradiction("a", &[(size(0), true), (size(1), true)]), None, "a size says too little");
    }

    proptest! {
        /// Only what answers the record is complete, only against a record with most voices is a copy corrupt, and the
        /// order of the replicas does not matter.
        #[test]
        fn a_copy_is_complete_if_and_only_if_it_answers_the_record(text in "[abc?.!-]{0,7}", turn in 0_usize..7) {
            let given = ballots(&text);
            let result = vote("a", &given);
            let cast = |value: &str| {
                let cast = given.iter().filter(|b| b.presence == Presence::Ok);
                cast.filter(|b| b.checksum.as_deref() == Some(value)).count()
            };
            let confirmed = 1 + cast("a");
            for (replica, verdict) in &result.verdicts {
                let answer = given[*replica].checksum.as_deref();
                let complete = verdict.upload_state() == UploadState::UploadCompleted;
                prop_assert_eq!(complete, answer == Some("a"));
                let most = answer == Some(UNREADABLE) || ["b", "c"].iter().all(|other| confirmed > cast(other));
                prop_assert_eq!(*verdict == Verdict::Corrupt, answer != Some("a") && most);
            }
            let mut turned = given.clone();
            turned.rotate_left(turn.min(given.len()));
            let again = vote("a", &turned);
            let mut verdicts = again.verdicts.clone();
            verdicts.sort_by_key(|(replica, _)| *replica);
            prop_assert_eq!((again.decision, verdicts), (result.decision, result.verdicts));
        }
    }
}
