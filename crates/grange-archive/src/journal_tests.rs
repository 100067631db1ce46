use grange_model::Md5;
use tempfile::TempDir;

use super::*;

fn name(text: &str) -> FileName {
    text.parse().unwrap()
}

fn line(text: &str, byte: u8) -> Line {
    let checksums = Checksums { md5: Some(Md5([byte; 16])), ..Checksums::default() };
    Line { name: name(text), size: u64::from(byte), checksums, removed: false, at: Timestamp::UNIX_EPOCH }
}

fn entry(byte: u8) -> Entry {
    Entry::Sums(u64::from(byte), line("x", byte).checksums)
}

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("checksums.journal")
}

#[test]
fn later_lines_supersede_and_earlier_ones_stay() {
    let dir = TempDir::new().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    for (text, byte) in [("b", 1), ("a", 2), ("b", 3)] {
        journal.append(&line(text, byte)).unwrap();
    }
    journal.append(&Line { removed: true, ..line("a", 0) }).unwrap();
    for journal in [&journal, &Journal::open(dir.path()).unwrap()] {
        assert_eq!(
            (journal.get(&name("a")).unwrap(), journal.get(&name("b")).unwrap()),
            (None, Some(entry(3)))
        );
        assert_eq!(journal.list(None, 9), [("b".to_owned(), entry(3))]);
    }
    assert_eq!(std::fs::read_to_string(file(&dir)).unwrap().lines().count(), 4);
    // Another process added a line meanwhile.
    Journal::open(dir.path()).unwrap().append(&line("c", 4)).unwrap();
    assert!(!journal.append_if(&line("c", 5), |known| known.is_none()).unwrap());
    assert_eq!(journal.get(&name("c")).unwrap(), Some(entry(4)));
}

#[test]
fn a_cut_at_any_byte_loses_the_torn_line_only() {
    let dir = TempDir::new().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    for byte in 1..=4 {
        journal.append(&line(&format!("file-{byte}"), byte)).unwrap();
    }
    let whole = std::fs::read(file(&dir)).unwrap();
    let mut cuts = 0;
    for cut in 0..=whole.len() {
        let dir = TempDir::new().unwrap();
        std::fs::write(file(&dir), &whole[..cut]).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let lines = String::from_utf8_lossy(&whole[..cut]).matches('\n').count();
        assert_eq!(journal.list(None, 9).len(), lines, "cut at {cut}");
        assert_eq!(journal.refresh().unwrap(), 0);
        // It goes on where it was cut, and the whole of it fits.
        journal.append(&line("after", 9)).unwrap();
        let again = Journal::open(dir.path()).unwrap();
        assert_eq!(
            (again.list(None, 9).len(), again.get(&name("after")).unwrap()),
            (lines + 1, Some(entry(9)))
        );
        assert_eq!(again.refresh().unwrap(), 0);
        cuts += 1;
    }
    assert_eq!(cuts, whole.len() + 1);
}

#[test]
fn an_edited_line_is_damaged_and_every_flipped_bit_is_seen() {
    let dir = TempDir::new().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    for (text, byte) in [("a", 1), ("b", 2), ("c", 3)] {
        journal.append(&line(text, byte)).unwrap();
    }
    let whole = std::fs::read(file(&dir)).unwrap();
    // The checksum in the second line, written anew without its chain.
    let edited = String::from_utf8(whole.clone()).unwrap().replace(&"02".repeat(16), &"07".repeat(16));
    std::fs::write(file(&dir), &edited).unwrap();
    assert_eq!(journal.refresh().unwrap(), 1);
    assert_eq!(journal.get(&name("a")).unwrap(), Some(entry(1)));
    assert_eq!(journal.get(&name("b")).unwrap(), Some(Entry::Damaged));
    assert_eq!(journal.get(&name("c")).unwrap(), Some(entry(3)));
    // With its own chain made anew the line after it no longer fits.
    let mut lines: Vec<String> = edited.lines().map(str::to_owned).collect();
    let before = lines[0].rsplit_once(' ').unwrap().1.to_owned();
    let body = lines[1].rsplit_once(' ').unwrap().0.to_owned();
    lines[1] = format!("{body} {}", chained(&before, &body));
    std::fs::write(file(&dir), lines.join("\n") + "\n").unwrap();
    assert_eq!(journal.refresh().unwrap(), 1);
    let mut flips = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(file(&dir), &flipped).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let says_as_before = journal.list(None, 9).len() == 3
            && journal.refresh().unwrap() == 0
            && journal.get(&name("b")).unwrap() == Some(entry(2))
            && journal.get(&name("c")).unwrap() == Some(entry(3));
        assert!(!says_as_before, "a bit flipped at {at} went unseen");
        std::fs::remove_dir_all(dir.path()).unwrap();
        std::fs::create_dir_all(dir.path()).unwrap();
        flips += 1;
    }
    assert_eq!(flips, whole.len());
}

#[test]
fn a_line_whose_sync_failed_counts_for_nothing_until_it_is_written_and_synced_again() {
    use std::sync::atomic::Ordering::SeqCst;
    // Cut off at once; or only at the third try, because the disk does not even let a file be cut.
    for cuts in [0, 2] {
        let dir = TempDir::new().unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        journal.append(&line("a", 1)).unwrap();
        let before = std::fs::read(file(&dir)).unwrap();
        journal.syncs.to_fail.store(1, SeqCst);
        journal.syncs.cuts_to_fail.store(cuts, SeqCst);
        assert!(journal.append(&line("b", 2)).is_err());
        for _ in 1..cuts {
            assert!(journal.get_now(&name("b")).is_err() && journal.get(&name("b")).is_err());
        }
        assert_eq!(journal.get(&name("b")).unwrap(), None, "what was not synced is not known");
        assert_eq!(std::fs::read(file(&dir)).unwrap(), before);
        let synced = journal.syncs.made.load(SeqCst);
        journal.append(&line("b", 2)).unwrap();
        assert_eq!(journal.syncs.made.load(SeqCst), synced + 1);
        for journal in [&journal, &Journal::open(dir.path()).unwrap()] {
            assert_eq!(journal.get(&name("b")).unwrap(), Some(entry(2)));
            assert_eq!(journal.refresh().unwrap(), 0);
        }
        assert_eq!(std::fs::read_to_string(file(&dir)).unwrap().lines().count(), 2);
    }
}

/// A process that was killed between the writing of a line and its sync leaves a line that is on no disk yet.
#[test]
fn lines_of_another_process_are_synced_before_they_count() {
    use std::sync::atomic::Ordering::SeqCst;
    let dir = TempDir::new().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    journal.append(&line("a", 1)).unwrap();
    let mut written = 2;
    let mut other_adds = |name: &str| {
        Journal::open(dir.path()).unwrap().append(&line(name, written)).unwrap();
        written += 1;
    };
    for (name, byte, look) in [
        (
            "b",
            2,
            (|journal: &Journal| journal.get(&name("b"))) as fn(&Journal) -> Result<Option<Entry>, Error>,
        ),
        ("c", 3, |journal| journal.refresh().and_then(|_| journal.get(&name("c")))),
    ] {
        other_adds(name);
        let synced = journal.syncs.made.load(SeqCst);
        journal.syncs.to_fail.store(1, SeqCst);
        assert!(look(&journal).is_err(), "{name}: its sync failed");
        assert_eq!(look(&journal).unwrap(), Some(entry(byte)));
        assert!(journal.syncs.made.load(SeqCst) >= synced + 2);
        assert_eq!(journal.refresh().unwrap(), 0, "written again in place, it is what it was");
    }
    // One's own lines were synced when they were written.
    let synced = journal.syncs.made.load(SeqCst);
    assert_eq!(journal.get(&name("a")).unwrap(), Some(entry(1)));
    assert_eq!(journal.syncs.made.load(SeqCst), synced);
    let journal = Journal::open(dir.path()).unwrap();
    assert_eq!((journal.list(None, 9).len(), journal.syncs.made.load(SeqCst)), (3, 1));
}

/// The disk lets a line neither be synced nor cut off; another handle reads it, syncs it, and adds its own.
#[test]
fn a_line_that_another_handle_added_behind_an_unsynced_one_is_never_cut_off() {
    use std::sync::atomic::Ordering::SeqCst;
    let looks: [fn(&Journal); 3] = [
        |journal| assert_eq!(journal.get(&name("c")).unwrap(), Some(entry(3))),
        |journal| assert_eq!(journal.refresh().unwrap(), 0),
        |journal| journal.append(&line("d", 4)).unwrap(),
    ];
    for look in looks {
        let dir = TempDir::new().unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        journal.append(&line("a", 1)).unwrap();
        journal.syncs.to_fail.store(1, SeqCst);
        journal.syncs.cuts_to_fail.store(1, SeqCst);
        assert!(journal.append(&line("b", 2)).is_err());
        let other = Journal::open(dir.path()).unwrap();
        other.append(&line("c", 3)).unwrap();
        look(&journal);
        for journal in [&journal, &other, &Journal::open(dir.path()).unwrap()] {
            assert_eq!(journal.get(&name("c")).unwrap(), Some(entry(3)), "it was acknowledged");
            assert_eq!((journal.get(&name("b")).unwrap(), journal.refresh().unwrap()), (Some(entry(2)), 0));
        }
    }
}

#[test]
fn a_journal_whose_name_was_not_synced_is_made_again() {
    let dir = TempDir::new().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    for with_line in [false, true] {
        let act = || if with_line { journal.append(&line("a", 1)) } else { journal.create() };
        FOLDER_SYNCS_TO_FAIL.lock().unwrap().push(dir.path().to_owned());
        assert!(act().is_err());
        assert!(!file(&dir).exists(), "it would be believed");
        act().unwrap();
        assert!(file(&dir).exists());
        std::fs::remove_file(file(&dir)).unwrap();
    }
}
