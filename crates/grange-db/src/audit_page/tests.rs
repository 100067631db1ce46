//! The comparison of a replica's list with the rows, case by case.

use std::collections::HashMap;

use grange_model::{AuditId, AuditKind, Presence, Verdict};
use jiff::{SignedDuration, Timestamp};

use super::{Compared, Found, Known, Page, Seen, compare, counted};

/// When the replica was asked.
fn asked_at() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A row of 10 bytes that changed this many seconds after the replica was asked.
fn known(name: &str, presence: Presence, changed_after: i64) -> Known {
    Known {
        id: i64::from(name.as_bytes()[0]),
        name: name.to_owned(),
        size: 10,
        recorded: "right".to_owned(),
        presence,
        verdict: Verdict::Unknown,
        changed_at: asked_at() + SignedDuration::from_secs(changed_after),
        uploading: false,
    }
}

fn seen(name: &str, size: u64, checksum: Option<&str>) -> Seen {
    Seen { name: name.parse().unwrap(), size, checksum: checksum.map(ToOwned::to_owned) }
}

/// What the comparison says of each name, for example `a equal`.
fn told(compared: &Compared<'_>) -> Vec<String> {
    let mut told: Vec<_> = compared.equal.iter().map(|row| format!("{} equal", row.name)).collect();
    told.extend(compared.listed.iter().map(|row| format!("{} listed", row.name)));
    told.extend(compared.other.iter().map(|(row, answer)| format!("{} {answer}", row.name)));
    told.extend(compared.missing.iter().map(|row| format!("{} missing", row.name)));
    told.extend(compared.extra.iter().map(|copy| format!("{} extra", copy.name)));
    told.sort();
    told
}

#[test]
fn a_copy_is_fine_unless_its_checksum_or_its_size_differs() {
    let rows: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| known(name, Presence::Ok, -1)).into();
    let copies = [
        seen("a", 10, Some("right")),
        seen("b", 10, Some("wrong")),
        seen("c", 9, Some("right")),
        seen("d", 9, None),
        seen("e", 10, None),
    ];
    let compared = compare(&rows, &copies, asked_at());
    assert_eq!(told(&compared), ["a equal", "b wrong", "c size=9", "d size=9", "e listed"]);
    assert_eq!(compared.bytes, 48);
    let copies = [seen("a", 9, Some("wrong"))];
    let read = compare(&rows[..1], &copies, asked_at());
    assert_eq!(told(&read), ["a wrong"], "the checksum of a copy says more than its size");
}

#[test]
fn names_on_one_side_only_are_missing_or_extra() {
    let rows: Vec<_> = ["b", "d"].map(|name| known(name, Presence::Ok, -1)).into();
    let copies = ["a", "c", "d", "e"].map(|name| seen(name, 10, None));
    let compared = compare(&rows, &copies, asked_at());
    assert_eq!(told(&compared), ["a extra", "b missing", "c extra", "d listed", "e extra"]);
    assert_eq!(compared.bytes, 10, "only files that are known count");
}

#[test]
fn rows_that_changed_after_the_replica_was_asked_are_not_judged_by_its_list() {
    for (changed_after, expected) in [(-1, &["a wrong"][..]), (0, &["a wrong"]), (1, &[])] {
        let rows = [known("a", Presence::Ok, changed_after)];
        let copies = [seen("a", 10, Some("wrong"))];
        let compared = compare(&rows, &copies, asked_at());
        assert_eq!(told(&compared), expected, "listed, changed {changed_after} s after");
        assert_eq!(compared.bytes, 10 * expected.len() as u64);
    }
    for presence in [Presence::Ok, Presence::Unknown] {
        for (changed_after, expected) in [(-1, &["a missing"][..]), (0, &[]), (1, &[])] {
            let rows = [known("a", presence, changed_after)];
            let compared = compare(&rows, &[], asked_at());
            assert_eq!(
                told(&compared),
                expected,
                "{presence:?}, not listed, changed {changed_after} s after"
            );
        }
    }
    let rows = [known("a", Presence::Missing, 1)];
    assert_eq!(told(&compare(&rows, &[], asked_at())), ["a missing"], "known as missing, and still missing");
}

#[test]
fn a_copy_that_somebody_sends_now_is_neither_missing_nor_judged_nor_extra() {
    for presence in [Presence::Unknown, Presence::Missing] {
        let rows = [Known { uploading: true, ..known("a", presence, -1) }, known("b", Presence::Ok, -1)];
        assert_eq!(told(&compare(&rows, &[], asked_at())), ["b missing"], "{presence:?}");
        let copies = [seen("a", 10, Some("wrong")), seen("b", 10, Some("right"))];
        assert_eq!(told(&compare(&rows, &copies, asked_at())), ["b equal"], "{presence:?}");
    }
}

fn count(kind: AuditKind, rows: &[(Verdict, Option<Verdict>)]) -> Found {
    let page = Page {
        audit: AuditId::new(),
        replica_id: 7,
        replica: "one".to_owned(),
        kind,
        after: None,
        upto: None,
        seen: Vec::new(),
        asked_at: asked_at(),
        by: "anna".to_owned(),
    };
    let row = |(id, (verdict, _)): (usize, &(Verdict, Option<Verdict>))| Known {
        id: id as i64,
        verdict: *verdict,
        ..known("a", Presence::Ok, -1)
    };
    let held: Vec<_> = rows.iter().enumerate().map(row).collect();
    let voted = rows.iter().enumerate().filter_map(|(id, (_, voted))| Some(((id as i64, 7), (*voted)?)));
    // Verdicts on the copies of another replica are not this replica's.
    let others = rows.iter().enumerate().map(|(id, _)| ((id as i64, 8), Verdict::Corrupt));
    let verdicts: HashMap<_, _> = voted.chain(others).collect();
    let compared = match kind {
        AuditKind::List => Compared { listed: held.iter().collect(), ..Compared::default() },
        _ => Compared { equal: held.iter().collect(), ..Compared::default() },
    };
    counted(&page, &compared, &verdicts)
}

#[test]
fn every_copy_that_is_held_counts_as_fine_or_corrupt_or_undecided() {
    use Verdict::{Corrupt, Ok, Unknown};
    let rows = [
        (Ok, None),
        (Ok, None),
        (Ok, Some(Corrupt)),
        (Unknown, Some(Unknown)),
        (Unknown, Some(Unknown)),
        (Corrupt, Some(Ok)),
    ];
    for kind in [AuditKind::List, AuditKind::Checksum] {
        let found = count(kind, &rows);
        let counts = (found.files, found.ok, found.corrupt, found.undecided);
        assert_eq!(counts, (6, 3, 1, 2), "{kind:?}");
    }
}

#[test]
fn a_list_check_repeats_that_a_copy_is_corrupt_and_a_checksum_check_does_not() {
    let corrupt = [(Verdict::Corrupt, None)];
    let found = count(AuditKind::List, &corrupt);
    assert_eq!((found.ok, found.corrupt), (0, 1), "nobody has read it since");
    let found = count(AuditKind::Checksum, &corrupt);
    assert_eq!((found.ok, found.corrupt), (1, 0), "it was read now, and is right");
    let found = count(AuditKind::List, &[(Verdict::Unknown, None)]);
    assert_eq!((found.ok, found.undecided), (1, 0), "a copy that was never read is not contested");
}
