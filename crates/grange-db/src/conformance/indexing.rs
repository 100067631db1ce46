//! Collections, their files and the access rules.

use grange_model::{Checksums, FileName};
use serde_json::json;

use super::oai::letters;
use super::{Bed, LONG, SHORT, anna};
use crate::{CollectedState, Error, IndexLease, IndexRetry, Indexed, NewCollected, Which};

fn new(path: &str) -> NewCollected {
    NewCollected { path: path.to_owned(), size: 7, modified: None, stored: false }
}

async fn names(bed: &Bed, collection: &str, state: CollectedState) -> Vec<String> {
    let files = bed.db.collections().files(collection, Some(state), 0, 100).await.unwrap();
    files.into_iter().map(|file| file.name).collect()
}

async fn keep(bed: &Bed, collection: &str, node: &str) -> IndexLease {
    bed.db.collections().keep_index(collection, node, LONG, true).await.unwrap().unwrap()
}

async fn files_are_registered_once_and_told_apart(bed: &Bed) {
    let collections = bed.db.collections();
    let missing = collections.enrol("news", vec![new("/a/x.warc")], &anna()).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    collections.ensure("news", &anna()).await.unwrap();
    collections.ensure("news", &anna()).await.unwrap();
    let files = || ["/a/x.warc", "/b/x.warc", "/a/y.warc"].map(new).to_vec();
    let first = collections.enrol("news", files(), &anna()).await.unwrap();
    assert_eq!((first.new, first.known, first.again), (3, 0, 0));
    assert_eq!(names(bed, "news", CollectedState::Waiting).await, ["x.warc", "b/x.warc", "y.warc"]);
    let second = collections.enrol("news", files(), &anna()).await.unwrap();
    assert_eq!((second.new, second.known, second.again), (0, 3, 0));
    let stored = NewCollected { stored: true, ..new("z.warc.gz") };
    collections.enrol("news", vec![stored.clone(), stored], &anna()).await.unwrap();
    let last = collections.files("news", None, 0, 100).await.unwrap().pop().unwrap();
    assert_eq!((last.name.as_str(), last.path), ("z.warc.gz", None));
    let refused = collections.enrol("archive", files(), &anna()).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
}

async fn paths_and_names_may_be_as_long_as_file_systems_take_them(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    let parts = letters(4_000).into_bytes();
    let parts: Vec<_> = parts.chunks(200).map(|part| str::from_utf8(part).unwrap()).collect();
    // Each has the name of the one before for its last parts, so that its own name is the whole path.
    let files: Vec<_> =
        (0..parts.len()).rev().map(|first| new(&format!("/{}", parts[first..].join("/")))).collect();
    let count = files.len() as u64;
    for (new, known) in [(count, 0), (0, count)] {
        let done = collections.enrol("news", files.clone(), &anna()).await.unwrap();
        assert_eq!((done.new, done.known, done.again), (new, known, 0));
    }
    let path = &files[parts.len() - 1].path;
    let name = path.trim_start_matches('/');
    assert!(name.len() > 4_000);
    let found = collections.file_named("news", name).await.unwrap().unwrap();
    assert_eq!((&*found.name, found.path.as_ref()), (name, Some(path)));
    // Its failure has a subject that is a key.
    keep(bed, "news", "one").await;
    for _ in &files {
        let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
        collections.index_failed(&claim, "unreadable", IndexRetry::Never).await.unwrap();
    }
    bed.db.findings().look(LONG).await.unwrap();
    let found = bed.db.findings().list(false, 100).await.unwrap();
    assert_eq!(found.len(), files.len(), "{found:?}");
    assert!(found.iter().all(|finding| finding.subject.len() < 1_000), "{found:?}");
    assert_eq!(collections.roll_back("news", &Which::File(name.to_owned()), &anna()).await.unwrap(), 1);
}

async fn a_file_is_taken_once_marked_and_taken_out_again(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    collections.enrol("news", ["/x", "/y"].map(new).to_vec(), &anna()).await.unwrap();
    keep(bed, "news", "one").await;
    let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    let other = collections.claim(Some("news"), "one", LONG).await.unwrap().unwrap();
    assert_eq!((claim.file.name.as_str(), other.file.name.as_str()), ("x", "y"));
    assert_eq!(collections.claim(None, "one", LONG).await.unwrap(), None);
    collections.renew(&claim, LONG).await.unwrap();
    let came = Indexed { job: Some("7".to_owned()), captures: 3, problems: 1, told: vec!["a\0b".to_owned()] };
    collections.indexed(&claim, came).await.unwrap();
    assert!(matches!(collections.renew(&claim, LONG).await, Err(Error::LeaseLost { .. })));
    collections.index_failed(&other, "unreadable", IndexRetry::Never).await.unwrap();
    let shown = collections.get("news").await.unwrap().files;
    assert_eq!((shown.indexed, shown.failed, shown.captures, shown.problems, shown.bytes), (1, 1, 3, 1, 14));

    assert_eq!(collections.roll_back("news", &Which::Job("8".to_owned()), &anna()).await.unwrap(), 0);
    assert_eq!(collections.roll_back("news", &Which::Job("7".to_owned()), &anna()).await.unwrap(), 1);
    let leaving = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    assert_eq!((leaving.file.name.as_str(), leaving.file.state), ("x", CollectedState::Leaving));
    collections.taken_out(&leaving).await.unwrap();
    assert_eq!(collections.claim(None, "one", LONG).await.unwrap(), None);
    assert_eq!(collections.index_again("news", &Which::All, &anna()).await.unwrap(), 2);
    assert_eq!(names(bed, "news", CollectedState::Waiting).await, ["x", "y"]);
    // Also one that waits may have captures in the index: only the node that keeps the index knows.
    assert_eq!(collections.roll_back("news", &Which::File("y".to_owned()), &anna()).await.unwrap(), 1);
    assert_eq!(names(bed, "news", CollectedState::Out).await, Vec::<String>::new());
    let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    assert_eq!((claim.file.name.as_str(), claim.file.state), ("x", CollectedState::Waiting));
    let leaving = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    assert_eq!((leaving.file.name.as_str(), leaving.file.state), ("y", CollectedState::Leaving));
    collections.taken_out(&leaving).await.unwrap();
    assert_eq!(names(bed, "news", CollectedState::Out).await, ["y"]);
}

async fn a_file_that_has_changed_is_read_again(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    let enrol = async |size: u64, modified: Option<jiff::Timestamp>| {
        let file = NewCollected { size, modified, ..new("/a/x.warc") };
        let done = collections.enrol("news", vec![file], &anna()).await.unwrap();
        let row = collections.files("news", None, 0, 10).await.unwrap().remove(0);
        assert_eq!((row.name.as_str(), done.new + done.known + done.again), ("x.warc", 1));
        (done.again == 1, row)
    };
    let (_, first) = enrol(7, None).await;
    keep(bed, "news", "one").await;
    let (again, waiting) = enrol(8, None).await;
    assert!(again && waiting.size == 8 && waiting.id > first.id, "{waiting:?}");
    let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    let (again, read) = enrol(9, None).await;
    assert!(!again && read.size == 8, "while it is read it stays: {read:?}");
    collections.indexed(&claim, Indexed { captures: 3, ..Indexed::default() }).await.unwrap();
    let (again, grown) = enrol(9, None).await;
    assert!(again && grown.state == CollectedState::Waiting, "{grown:?}");
    assert_eq!((grown.size, grown.captures, grown.told.len()), (9, 3, 1));
    let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    collections.indexed(&claim, Indexed { captures: 4, ..Indexed::default() }).await.unwrap();
    let (again, same) = enrol(9, Some(jiff::Timestamp::UNIX_EPOCH)).await;
    assert!(!again && same.state == CollectedState::Indexed, "{same:?}");
    let later = same.changed_at + LONG;
    let (again, newer) = enrol(9, Some(later)).await;
    assert!(again && newer.state == CollectedState::Waiting, "{newer:?}");
    assert_eq!(collections.files("news", None, 0, 10).await.unwrap().len(), 1);
}

async fn a_dead_claimers_file_is_taken_again_and_the_late_one_is_refused(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    collections.enrol("news", vec![new("/x")], &anna()).await.unwrap();
    keep(bed, "news", "one").await;
    let dead = collections.claim(None, "one", SHORT).await.unwrap().unwrap();
    bed.pass(bed.lease_now() + SHORT).await;
    let alive = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    assert_eq!((alive.file.id, alive.file.attempts, alive.abandoned), (dead.file.id, 2, 1));
    assert!(matches!(collections.indexed(&dead, Indexed::default()).await, Err(Error::LeaseLost { .. })));
    assert_eq!(collections.reclaim("other").await.unwrap(), 0);
    assert_eq!(collections.reclaim("one").await.unwrap(), 1);
    let alive = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    assert_eq!(alive.abandoned, 2);
    // A change of mind ends a lease as well.
    collections.roll_back("news", &Which::All, &anna()).await.unwrap();
    assert!(matches!(collections.indexed(&alive, Indexed::default()).await, Err(Error::LeaseLost { .. })));
    assert_eq!(names(bed, "news", CollectedState::Leaving).await, ["x"]);
}

async fn an_index_is_kept_by_one_node_and_only_that_works_on_it(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    collections.enrol("news", ["/x", "/y", "/z"].map(new).to_vec(), &anna()).await.unwrap();
    assert_eq!(collections.claim(None, "one", LONG).await.unwrap(), None, "nobody keeps the index yet");
    assert_eq!(collections.keep_index("none", "one", LONG, true).await.unwrap(), None);
    let first = collections.keep_index("news", "one", LONG, false).await.unwrap().unwrap();
    assert_eq!(collections.keep_index("news", "two", LONG, true).await.unwrap(), None);
    assert_eq!(collections.claim(None, "two", LONG).await.unwrap(), None);
    let [x, y] = [(); 2].map(|()| collections.claim(Some("news"), "one", LONG));
    let (x, y) = (x.await.unwrap().unwrap(), y.await.unwrap().unwrap());
    collections.indexed(&x, Indexed::default()).await.unwrap();
    assert!(collections.keeps_index(&first).await.unwrap());
    let listed = |of: Vec<crate::IndexedCollection>| of.into_iter().find(|one| one.name == "news").unwrap();
    let owner = listed(collections.indexes().await.unwrap()).owner.unwrap();
    assert_eq!((owner.node.as_str(), owner.token, owner.lapsed), ("one", first.token, false));

    // It is silent for a lease: another takes over, and all that it held is void.
    assert_eq!(collections.keep_index("news", "one", SHORT, false).await.unwrap().as_ref(), Some(&first));
    bed.pass(bed.lease_now() + 2 * SHORT).await;
    assert!(listed(collections.indexes().await.unwrap()).owner.unwrap().lapsed);
    assert_eq!(collections.claim(None, "one", LONG).await.unwrap(), None);
    let second = collections.keep_index("news", "two", LONG, false).await.unwrap().unwrap();
    assert_eq!((second.token, &second.identity), (first.token + 1, &first.identity));
    assert!(!collections.keeps_index(&first).await.unwrap());
    for refused in [
        collections.indexed(&y, Indexed::default()).await,
        collections.index_failed(&y, "late", IndexRetry::Never).await,
        collections.renew(&y, LONG).await,
    ] {
        assert!(matches!(refused, Err(Error::LeaseLost { .. })), "{refused:?}");
    }
    assert_eq!(collections.keep_index("news", "one", LONG, true).await.unwrap(), None);
    // Files that the new owner does not have are read again; only the owner may send them back.
    assert_eq!(collections.send_back(&first, &[x.file.id]).await.unwrap(), 0);
    assert_eq!(collections.send_back(&second, &[x.file.id, y.file.id]).await.unwrap(), 1);
    let claimed = collections.claim(None, "two", LONG).await.unwrap().unwrap();
    assert_eq!((claimed.file.id, claimed.abandoned), (x.file.id, 0));
    let claimed = collections.claim(None, "two", LONG).await.unwrap().unwrap();
    assert_eq!((claimed.file.id, claimed.abandoned), (y.file.id, 1));
    // A lease that is prolonged is the same one.
    assert_eq!(collections.keep_index("news", "two", LONG, true).await.unwrap(), Some(second.clone()));
    // A prolonged lease never takes back what another node has taken over.
    assert!(collections.prolong_index(&second, SHORT).await.unwrap());
    assert!(!collections.prolong_index(&first, LONG).await.unwrap());
    bed.pass(bed.lease_now() + 2 * SHORT).await;
    assert!(!collections.prolong_index(&first, LONG).await.unwrap());
    assert!(
        collections.prolong_index(&second, LONG).await.unwrap()
            && collections.keeps_index(&second).await.unwrap()
    );
    // The token rises above one that copies have, and never falls.
    assert_eq!(collections.raise_index_token(&first, 9).await.unwrap(), None);
    let raised = collections.raise_index_token(&second, 9).await.unwrap().unwrap();
    assert_eq!(raised, IndexLease { token: 10, ..second.clone() });
    assert!(
        collections.keeps_index(&raised).await.unwrap() && !collections.keeps_index(&second).await.unwrap()
    );
    assert_eq!(collections.raise_index_token(&raised, 3).await.unwrap(), None);
}

async fn a_node_that_has_nothing_waits_for_the_one_that_has_the_index(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    collections.enrol("news", vec![new("/x")], &anna()).await.unwrap();
    // As an earlier version left it: indexed, and nobody wrote down where.
    bed.db
        .write("index", "UPDATE collection_files SET state = 'indexed'", |tx, sql| {
            Box::pin(async move { tx.run(sqlx::query(*sql)).await })
        })
        .await
        .unwrap();
    let soon = bed.lease_now() + 25 * SHORT;
    assert_eq!(collections.keep_index("news", "empty", 25 * SHORT, false).await.unwrap(), None);
    let before = collections.keep_index("news", "full", LONG, true).await.unwrap();
    assert!(before.is_some());
    collections.ensure("other", &anna()).await.unwrap();
    assert!(collections.keep_index("other", "empty", LONG, false).await.unwrap().is_some());
    bed.pass(soon).await;
    assert_eq!(collections.keep_index("news", "empty", LONG, false).await.unwrap(), None, "full has it");
}

async fn the_indexes_of_a_node_that_is_forgotten_are_free(bed: &Bed) {
    let (collections, nodes) = (bed.db.collections(), bed.db.nodes());
    let node = nodes.register(super::nodes::new("a")).await.unwrap();
    keep(bed, "archive", &node.id.to_string()).await;
    nodes.mark_stopped(node.id).await.unwrap();
    assert_eq!(collections.keep_index("archive", "two", LONG, false).await.unwrap(), None);
    nodes.forget_one(node.id, LONG, &anna()).await.unwrap();
    assert!(collections.keep_index("archive", "two", LONG, false).await.unwrap().is_some());
}

async fn a_file_that_could_not_be_read_is_tried_again_also_when_it_counts_as_failed(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    collections.enrol("news", ["/x", "/gone", "/bad"].map(new).to_vec(), &anna()).await.unwrap();
    keep(bed, "news", "one").await;
    let fail = async |retry| {
        let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
        collections.index_failed(&claim, "away", retry).await.unwrap();
        claim.file
    };
    for attempt in 1..=6 {
        // Attempts do not end it: after some it is listed as failed, and goes on.
        let file = fail(IndexRetry::After(std::time::Duration::ZERO)).await;
        assert_eq!((file.name.as_str(), file.attempts), ("x", attempt));
        let failed = names(bed, "news", CollectedState::Failed).await;
        assert_eq!(failed.len(), usize::from(attempt >= 5), "attempt {attempt}");
    }
    let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    assert_eq!((claim.file.state, claim.abandoned), (CollectedState::Failed, 0));
    collections.indexed(&claim, Indexed::default()).await.unwrap();
    assert_eq!(fail(IndexRetry::FailedAfter(25 * SHORT)).await.name, "gone");
    assert_eq!(fail(IndexRetry::Never).await.name, "bad");
    assert_eq!(names(bed, "news", CollectedState::Failed).await, ["gone", "bad"]);
    bed.pass(bed.lease_now() + 25 * SHORT).await;
    let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    assert_eq!((claim.file.name.as_str(), claim.file.state), ("gone", CollectedState::Failed));
    assert_eq!(collections.claim(None, "one", LONG).await.unwrap(), None, "the bad one waits for a person");
    // A person who has seen to it does not wait for the attempt under way.
    assert_eq!(collections.index_again("news", &Which::All, &anna()).await.unwrap(), 2);
    assert!(matches!(collections.indexed(&claim, Indexed::default()).await, Err(Error::LeaseLost { .. })));
    assert_eq!(collections.roll_back("news", &Which::File("bad".to_owned()), &anna()).await.unwrap(), 1);
    assert_eq!(names(bed, "news", CollectedState::Leaving).await, ["bad"]);
}

async fn a_collection_made_again_is_another(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    let first = keep(bed, "news", "one").await;
    collections.remove("news", &anna()).await.unwrap();
    let going = collections.indexes().await.unwrap();
    assert!(going.iter().any(|one| one.name == "news" && one.removed));
    collections.forget("news").await.unwrap();
    collections.ensure("news", &anna()).await.unwrap();
    let second = keep(bed, "news", "one").await;
    assert_ne!(first.identity, second.identity);
    assert!(collections.file_named("news", "x").await.unwrap().is_none());
    collections.enrol("news", vec![new("/x")], &anna()).await.unwrap();
    assert_eq!(collections.file_named("news", "x").await.unwrap().unwrap().name, "x");
    assert!(collections.file_named("news", "x\0").await.unwrap().is_none());
}

async fn a_file_waits_for_the_index_from_when_it_is_stored(bed: &Bed) {
    let name: FileName = "1-a.warc.gz".parse().unwrap();
    let new = crate::NewFile { name, size: 9, checksums: Checksums::default(), source: None };
    // Without replicas every copy is proven at once.
    bed.db.files().begin(new, "one", LONG, crate::IfStored::Skip).await.unwrap();
    assert!(names(bed, "archive", CollectedState::Waiting).await.len() <= 1);
    let stored = "UPDATE files SET stored_at = 5 WHERE name = '1-a.warc.gz'";
    let stored =
        bed.db.write("store", stored, |tx, sql| Box::pin(async move { tx.run(sqlx::query(*sql)).await }));
    stored.await.unwrap();
    assert_eq!(names(bed, "archive", CollectedState::Waiting).await, ["1-a.warc.gz"]);
    keep(bed, "archive", "one").await;
    let claim = bed.db.collections().claim(None, "one", LONG).await.unwrap().unwrap();
    assert_eq!((claim.file.collection.as_str(), claim.file.path, claim.file.size), ("archive", None, 9));
}

async fn a_collection_goes_when_its_index_is_gone(bed: &Bed) {
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    collections.enrol("news", vec![new("/x")], &anna()).await.unwrap();
    keep(bed, "news", "one").await;
    collections.forget("news").await.unwrap();
    assert!(!collections.get("news").await.unwrap().removed, "only what was removed is forgotten");
    collections.remove("news", &anna()).await.unwrap();
    assert!(collections.get("news").await.unwrap().removed);
    assert_eq!(collections.claim(None, "one", LONG).await.unwrap(), None);
    assert!(matches!(collections.ensure("news", &anna()).await, Err(Error::Refused { .. })));
    collections.forget("news").await.unwrap();
    assert!(matches!(collections.get("news").await, Err(Error::NotFound { .. })));
    assert!(matches!(collections.remove("archive", &anna()).await, Err(Error::Refused { .. })));
    collections.ensure("news", &anna()).await.unwrap();
}

async fn access_rules_are_kept_and_told(bed: &Bed) {
    let rules = bed.db.access_rules();
    let rule = json!({ "surt_prefix": "com,example)/", "decision": "allow" });
    let made = rules.add(vec![rule.clone()], "asked for by letter", &anna()).await.unwrap().remove(0);
    assert_eq!((&made.rule, made.created_by.as_str()), (&rule, "anna"));
    assert_eq!(rules.list().await.unwrap(), std::slice::from_ref(&made));
    assert_eq!(rules.remove(made.id, &anna()).await.unwrap(), made);
    assert!(matches!(rules.remove(made.id, &anna()).await, Err(Error::NotFound { .. })));
    assert_eq!(rules.list().await.unwrap(), []);
}

async fn access_rules_are_imported_whole_and_their_changes_are_noticed(bed: &Bed) {
    let rules = bed.db.access_rules();
    let rule =
        |prefix: &str| (json!({ "surt_prefix": prefix, "decision": "allow" }), "by contract".to_owned());
    let before = rules.mark().await.unwrap();
    let few = vec![rule("com,a)"), rule("com,b)"), rule("com,a)")];
    assert_eq!(rules.import(few.clone(), &anna()).await.unwrap(), 2);
    assert_eq!(rules.import(few, &anna()).await.unwrap(), 0, "what is there is not made again");
    let with_two = rules.mark().await.unwrap();
    assert_ne!(with_two, before);
    let bad = (json!({ "surt_prefix": "com,d)", "decision": "allow" }), "a\0b".to_owned());
    assert!(rules.import(vec![rule("com,c)"), bad], &anna()).await.is_err());
    assert_eq!(rules.mark().await.unwrap(), with_two, "all or none");
    let listed = rules.list().await.unwrap();
    assert_eq!(listed.iter().map(|row| row.note.as_str()).collect::<Vec<_>>(), ["by contract"; 2]);
    rules.remove(listed[0].id, &anna()).await.unwrap();
    assert_ne!(rules.mark().await.unwrap(), with_two);
    rules.add(vec![rule("com,a)").0], "", &anna()).await.unwrap();
    assert_ne!(rules.mark().await.unwrap(), with_two, "another rule, though as many");
}

super::on_both_engines! {
    files_are_registered_once_and_told_apart,
    paths_and_names_may_be_as_long_as_file_systems_take_them,
    a_file_is_taken_once_marked_and_taken_out_again,
    a_file_that_has_changed_is_read_again,
    a_dead_claimers_file_is_taken_again_and_the_late_one_is_refused,
    an_index_is_kept_by_one_node_and_only_that_works_on_it,
    a_node_that_has_nothing_waits_for_the_one_that_has_the_index,
    the_indexes_of_a_node_that_is_forgotten_are_free,
    a_file_that_could_not_be_read_is_tried_again_also_when_it_counts_as_failed,
    a_collection_made_again_is_another,
    a_file_waits_for_the_index_from_when_it_is_stored,
    a_collection_goes_when_its_index_is_gone,
    access_rules_are_kept_and_told,
    access_rules_are_imported_whole_and_their_changes_are_noticed,
}
