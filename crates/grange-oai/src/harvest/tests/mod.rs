//! Whole harvests over HTTP that die in the midst, and go on.

mod bed;
mod held;
mod losses;
mod probing;
mod resuming;
mod skipped;

use std::path::Path;
use std::sync::Arc;

use bed::{Facts, PER_PAGE, Server, harvest, list, record};
use grange_base::Size;
use grange_model::oai::{HarvestSpec, Validation};

use super::Ended;
use crate::settings::Settings;

fn plain(number: u64) -> String {
    format!("<a>{number}</a>")
}

fn all() -> HarvestSpec {
    HarvestSpec::all("oai_dc")
}

/// How many files hold what their record says.
fn whole_files(folder: &Path, records: u64) -> usize {
    let holds = |number: &u64| {
        let text = std::fs::read_to_string(folder.join(format!("x/{number}.xml")));
        text.is_ok_and(|text| text.ends_with(&format!(">{number}</a>\n")))
    };
    (0..records).filter(holds).count()
}

#[tokio::test]
async fn what_was_received_is_kept_without_being_asked_for_again() {
    const PAGES: u64 = 12;
    // The first commit is that of the position; the crash comes with any later one.
    for commit in 1..6 {
        let (dir, facts) = (tempfile::tempdir().unwrap(), Arc::new(Facts::default()));
        let server = Server::start(PAGES, plain).await;
        facts.go_away(commit, if commit == 1 { 0 } else { 6 }, &server);
        let first = harvest(&server, &facts, dir.path(), Settings::default(), all()).await;
        assert_eq!(first.ended, Ended::Failed("the database is away".to_owned()));
        let (asked, kept) = (server.asked().len(), facts.records.lock().unwrap().len() as u64 / PER_PAGE);
        facts.come_back();
        let second = harvest(&server, &facts, dir.path(), Settings::default(), all()).await;
        assert!(matches!(second.ended, Ended::Whole { .. }), "{second:?}");
        let again = server.asked().len() - asked;
        // All that was answered is there, but for an answer that was under way.
        let lost = asked as u64 - kept - second.replayed;
        assert!(lost <= 1, "{asked} asked, {kept} kept, {} replayed", second.replayed);
        assert_eq!(
            again as u64,
            PAGES - kept - second.replayed,
            "asked for what was not received, and no more"
        );
        assert!(commit == 1 || second.replayed >= 1, "{second:?}");
        let counts = *facts.counts.lock().unwrap();
        assert_eq!((counts.new, counts.delivered()), (PAGES * PER_PAGE, PAGES * PER_PAGE), "each once");
        assert_eq!(whole_files(dir.path(), PAGES * PER_PAGE) as u64, PAGES * PER_PAGE);
    }
}

#[tokio::test]
async fn files_that_a_power_cut_took_are_written_again_from_the_journal() {
    let (dir, facts) = (tempfile::tempdir().unwrap(), Arc::new(Facts::default()));
    let server = Server::start(3, plain).await;
    let first = harvest(&server, &facts, dir.path(), Settings::default(), all()).await;
    assert!(matches!(first.ended, Ended::Whole { .. }));
    let [segment] = &first.segments[..] else { panic!("one small journal: {first:?}") };
    // The rows were synced, the files were not; and the machine starts anew.
    for number in 0..30 {
        std::fs::write(dir.path().join(format!("x/{number}.xml")), "").unwrap();
    }
    let journal = std::fs::read(segment).unwrap();
    let start = journal.iter().position(|byte| *byte == b'\n').unwrap();
    let mut other = b"grange-oai-journal 1 another".to_vec();
    other.extend_from_slice(&journal[start..]);
    std::fs::write(segment, other).unwrap();
    let second = harvest(&server, &facts, dir.path(), Settings::default(), all()).await;
    assert!(matches!(second.ended, Ended::Whole { .. }));
    assert_eq!(facts.counts.lock().unwrap().unchanged, 30, "nothing came that the rows did not know");
    assert_eq!(whole_files(dir.path(), 30), 30);
    // Its files are synced beside everything else, and then it goes.
    while segment.exists() && !second.segments.contains(segment) {
        tokio::task::yield_now().await;
    }
    crate::store::journal::retire(dir.path(), &second.segments).unwrap();
    assert_eq!(std::fs::read_dir(dir.path().join("+journal")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_list_without_end_is_stopped_by_every_limit() {
    let large = |number: u64| format!("<a>{}</a>", number.to_string().repeat(1_000));
    for (settings, word) in [
        (Settings { pages_max: 7, ..Settings::default() }, "7 pages"),
        (Settings { records_max: 55, ..Settings::default() }, "60 records"),
        (Settings { harvest_bytes_max: Size(200_000), ..Settings::default() }, "received"),
        (Settings { page_bytes_max: Size(9_000), ..Settings::default() }, "larger than"),
    ] {
        let (dir, facts) = (tempfile::tempdir().unwrap(), Arc::new(Facts::default()));
        let server = Server::start(u64::MAX, large).await;
        let outcome = harvest(&server, &facts, dir.path(), settings, all()).await;
        let Ended::Failed(reason) = outcome.ended else { panic!("{word}: {outcome:?}") };
        assert!(reason.contains(word), "{reason}");
        assert!(server.asked().len() < 100, "{word}: {}", server.asked().len());
        // What came before is kept.
        let kept = facts.records.lock().unwrap().len() as u64;
        assert_eq!(kept, facts.counts.lock().unwrap().new, "{word}");
    }
}

#[tokio::test]
async fn a_packed_page_is_read_whole_and_a_bomb_is_too_large() {
    // A page unpacks to more than is taken at once, and to a thousand times what it was packed.
    let large = |number: u64| record(number, &format!("<a>{}</a>", " ".repeat(100_000)));
    let page = list((0..PER_PAGE).map(large), "");
    let (plain_bytes, packed) = (page.len() as u64, zstd::encode_all(page.as_bytes(), 1).unwrap());
    assert!(packed.len() < 10_000);
    for (page_bytes_max, word) in [(plain_bytes, "Whole"), (plain_bytes - 1, "larger than")] {
        let (dir, facts) = (tempfile::tempdir().unwrap(), Arc::new(Facts::default()));
        let packed = packed.clone();
        let server = Server::answering(move |_, _| packed.clone()).await;
        let settings = Settings { page_bytes_max: Size(page_bytes_max), ..Settings::default() };
        let outcome = harvest(&server, &facts, dir.path(), settings, all()).await;
        assert!(format!("{:?}", outcome.ended).contains(word), "{word}: {outcome:?}");
        assert!(word != "Whole" || facts.counts.lock().unwrap().new == PER_PAGE);
    }
}

#[tokio::test]
async fn very_strict_names_every_record_that_is_wrong() {
    let some_wrong = |number: u64| {
        let name = if number % 4 == 3 { "tittle" } else { "title" };
        format!(
            "<oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/' \
             xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:{name}>A</dc:{name}></oai_dc:dc>"
        )
    };
    let (dir, facts) = (tempfile::tempdir().unwrap(), Arc::new(Facts::default()));
    let server = Server::start(2, some_wrong).await;
    let spec = HarvestSpec { validation: Validation::VeryStrict, ..all() };
    let outcome = harvest(&server, &facts, dir.path(), Settings::default(), spec).await;
    let Ended::Failed(reason) = outcome.ended else { panic!("{outcome:?}") };
    assert!(reason.starts_with("2 records") && reason.contains("record oai:x:3:"), "{reason}");
    let warnings = facts.warnings.lock().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for (warning, name) in warnings.iter().zip(["oai:x:3", "oai:x:7"]) {
        assert!(warning.starts_with(&format!("record {name}:")) && warning.contains("tittle"), "{warning}");
    }
    assert!(facts.records.lock().unwrap().is_empty(), "nothing of the page is taken");
    assert_eq!(server.asked().len(), 1);
}
