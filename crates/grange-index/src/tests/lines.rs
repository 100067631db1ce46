//! Lines that several index files have in common, and lines that come after a deletion.

use crate::dialect::outback_post;
use crate::{Batch, Index, Position, Settings};

const LINE: &str = "com,example)/x 20260102030405 {\"url\": \"http://example.com/x\", \"offset\": \"1\", \"filename\": \"x.warc\", \"digest\": \"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}\n";

fn settings() -> Settings {
    Settings { block_bytes: 64, ..Settings::default() }
}

/// The job whose line is shown; the same up, down, and by digest.
fn shown(index: &Index) -> Option<String> {
    let snapshot = index.snapshot();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut ascending = snapshot.ascending(Position::default(), None);
    while let Some(view) = ascending.next().unwrap() {
        up.push(view.to_capture());
    }
    let mut descending = snapshot.descending(Vec::new(), Position::before("\u{7f}"));
    while let Some(view) = descending.next().unwrap() {
        down.push(view.to_capture());
    }
    assert_eq!(up, down);
    assert!(up.len() <= 1, "{up:?}");
    let by_digest = snapshot.digest("sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
    assert_eq!(by_digest.as_ref().map(|found| (&found.first, found.count)), up.first().map(|one| (one, 1)));
    up.pop().map(|capture| capture.job.unwrap_or_default())
}

type Tidy = fn(&Index);
const TIDIES: [Tidy; 3] = [|_| {}, |index| index.flush().unwrap(), |index| index.merge_all().unwrap()];

#[test]
fn a_capture_that_two_index_files_name_goes_with_the_last_of_them() {
    for tidy in TIDIES {
        for (first, then) in [("a", "b"), ("b", "a")] {
            let folder = tempfile::tempdir().unwrap();
            let index = Index::open(folder.path(), settings()).unwrap();
            for job in ["a", "b"] {
                index.load(LINE.as_bytes(), Some(job)).unwrap();
                tidy(&index);
            }
            assert_eq!(shown(&index).as_deref(), Some("b"), "the newest is shown");
            index.remove_lines(first).unwrap();
            assert_eq!(shown(&index).as_deref(), Some(then));
            tidy(&index);
            assert_eq!(shown(&index).as_deref(), Some(then));
            index.remove_lines(then).unwrap();
            assert_eq!(shown(&index), None);
            tidy(&index);
            assert_eq!(shown(&index), None);
        }
    }
}

/// More rows of one capture than a block has room for, with others around them.
#[test]
fn a_capture_that_many_index_files_name_is_one_answer() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    let jobs: Vec<String> = (0..40).map(|job| format!("job-{job:02}")).collect();
    let lines: String = (0..9).map(|page| LINE.replace("/x", &format!("/{page}"))).collect();
    for job in &jobs {
        index.load(lines.as_bytes(), Some(job)).unwrap();
        index.merge_step().unwrap();
    }
    index.merge_all().unwrap();
    let count = |index: &Index| {
        let snapshot = index.snapshot();
        let (mut count, mut rows) = (0, snapshot.ascending(Position::default(), None));
        while rows.advance().unwrap() {
            count += 1;
        }
        for page in 0..9 {
            let mut of_page = snapshot.captures(&format!("com,example)/{page}"), crate::Stamp::MIN).unwrap();
            assert_eq!(of_page.next().unwrap().is_some(), count > 0, "{page}");
        }
        count
    };
    for job in jobs.iter().rev() {
        assert_eq!(count(&index), 9, "{job}");
        index.remove_lines(job).unwrap();
    }
    assert_eq!(count(&index), 0);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "seg") {
            let report = crate::verify(&path).unwrap();
            assert_eq!(report.problem_count, 0, "{report:?}");
        }
    }
}

#[test]
fn a_deletion_hides_what_is_older_and_nothing_that_is_loaded_later() {
    for tidy in TIDIES {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path(), settings()).unwrap();
        // One that was posted, one of lines, a deletion, and lines that come later.
        let mut posted = Batch::new();
        let capture = {
            let other = tempfile::tempdir().unwrap();
            let other = Index::open(other.path(), settings()).unwrap();
            other.load(LINE.as_bytes(), None).unwrap();
            let snapshot = other.snapshot();
            let mut rows = snapshot.ascending(Position::default(), None);
            rows.next().unwrap().unwrap().to_capture()
        };
        posted.add(&capture);
        index.commit(posted).unwrap();
        index.load(LINE.as_bytes(), Some("older")).unwrap();
        assert_eq!(shown(&index).as_deref(), Some(""), "lines give way");
        tidy(&index);
        let mut deletion = Batch::new();
        deletion.delete(&capture);
        index.commit(deletion).unwrap();
        assert_eq!(shown(&index), None);
        index.load(LINE.as_bytes(), Some("newer")).unwrap();
        assert_eq!(shown(&index).as_deref(), Some("newer"));
        tidy(&index);
        assert_eq!(shown(&index).as_deref(), Some("newer"));
        index.remove_lines("newer").unwrap();
        assert_eq!(shown(&index), None, "the deletion still holds for what is older");
        tidy(&index);
        assert_eq!(shown(&index), None);
    }
}

/// Lines that are longer than others: a piece is committed by its bytes, too.
#[test]
fn posted_lines_are_committed_before_they_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    let note = "n".repeat(900 << 10);
    let mut lines: String = (0..100)
        .map(|page| {
            let line = LINE.replace("/x", &format!("/{page:03}"));
            line.replace("\"offset\"", &format!("\"note\": \"{note}\", \"offset\""))
        })
        .collect();
    lines.push_str("this is no index line\n");
    let failed = outback_post(lines.as_bytes(), &index, false, false).unwrap_err();
    assert!(matches!(failed, crate::dialect::PostFailure::Line { number: 101 }), "{failed}");
    let snapshot = index.snapshot();
    let (mut found, mut rows) = (Vec::new(), snapshot.ascending(Position::default(), None));
    while let Some(view) = rows.next().unwrap() {
        found.push(view.surt().into_owned());
    }
    let expected: Vec<String> = (0..found.len()).map(|page| format!("com,example)/{page:03}")).collect();
    assert_eq!(found, expected, "whole pieces from the first line on");
    assert!((60..100).contains(&found.len()), "{} of 100 lines", found.len());
}
