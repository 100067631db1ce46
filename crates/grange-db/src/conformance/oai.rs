//! What the stores of metadata harvesting promise.

use std::time::Duration;

use grange_model::FindingKind;
use grange_model::harvest::{Every, Unit};
use grange_model::oai::{
    Counts, DeletedSupport, Format, Granularity, HarvestSpec, Identified, OaiJobStatus, OaiPage, Outcome,
    RecordRow, RecordStatus, Repository, RepositoryId, RepositoryRules, Set,
};
use jiff::Timestamp;

use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{
    ClaimedHarvest, Ending, NewOaiJob, NewRecurring, OaiClaim, OaiHistoryFilter, OaiPolicy, ServeFilter,
};

on_both_engines! {
    a_repository_is_added_described_changed_and_deleted,
    a_page_is_kept_whole_and_compared_by_one_question,
    a_page_of_a_lost_lease_leaves_nothing,
    no_repository_is_asked_by_two_jobs_at_once,
    two_claimers_of_one_repository_get_one_job,
    a_dead_harvesters_job_is_failed_and_planned_again,
    a_running_job_that_is_deleted_stops_first,
    a_whole_harvest_sets_the_mark_and_a_failed_one_keeps_its_place,
    an_incomplete_harvest_moves_no_mark_and_leaves_no_place,
    text_of_a_repository_may_have_any_length,
    a_harvest_whose_lists_lacked_records_is_remembered_until_one_lacks_none,
    records_a_whole_harvest_did_not_see_are_found,
    holdings_are_served_in_the_order_they_changed,
}

const POLICY: OaiPolicy = OaiPolicy { takeovers_max: 1, failures_max: 3 };

pub(crate) fn identified() -> Identified {
    let format = |prefix: &str| Format {
        prefix: prefix.to_owned(),
        schema: format!("http://x/{prefix}.xsd"),
        namespace: format!("http://x/{prefix}/"),
    };
    Identified {
        name: "Alliance".to_owned(),
        protocol_version: "2.0".to_owned(),
        admin_emails: vec!["a@x.org".to_owned()],
        granularity: Granularity::Second,
        deleted_support: DeletedSupport::Persistent,
        earliest: Some("2020-01-01T00:00:00Z".parse().unwrap()),
        registry_prefix: Some("ilLib".to_owned()),
        formats: vec![format("marc"), format("oai_dc")],
        sets: vec![Set { spec: "a:b".to_owned(), name: "B".to_owned() }],
        remarks: Vec::new(),
        formats_incomplete: false,
        sets_incomplete: false,
    }
}

impl Bed {
    pub(crate) async fn repository(&self, url: &str) -> Repository {
        let repositories = self.db.oai_repositories();
        repositories.add(url, identified(), RepositoryRules::default(), &anna()).await.unwrap()
    }

    pub(crate) async fn oai_claim(&self, repository: RepositoryId) -> OaiClaim {
        self.oai_due(repository).await;
        self.db.oai_jobs().claim("node", LONG).await.unwrap().unwrap()
    }

    pub(crate) async fn oai_due(&self, repository: RepositoryId) {
        let due_at = self.clock.now();
        // Each of another span, since the same harvest is not planned twice.
        let waiting = self.db.oai_jobs().list(Some(repository)).await.unwrap().len() as i64;
        let from = Some(Timestamp::from_second(waiting).unwrap());
        let spec = HarvestSpec { from, ..HarvestSpec::all("oai_dc") };
        let jobs = self.db.oai_jobs();
        let made = jobs.add(NewOaiJob { repository, spec: spec.clone(), due_at }, &anna()).await.unwrap();
        let again = jobs.add(NewOaiJob { repository, spec, due_at }, &anna()).await.unwrap();
        assert_eq!(made, again);
    }
}

pub(crate) fn row(identifier: &str, deleted: bool) -> RecordRow {
    RecordRow {
        fresh: false,
        identifier: identifier.to_owned(),
        filename: format!("{identifier}.xml"),
        datestamp: "2021-05-06T07:08:09Z".parse().unwrap(),
        deleted,
        digest: format!("d-{identifier}"),
        sets: vec!["a:b".to_owned(), "c".to_owned()],
    }
}

async fn a_repository_is_added_described_changed_and_deleted(bed: &Bed) {
    let repositories = bed.db.oai_repositories();
    let made = bed.repository("http://x/oai").await;
    assert_eq!(made.said, identified());
    let again = repositories.add("http://x/oai", identified(), made.rules.clone(), &anna()).await;
    assert_eq!(again.unwrap_err().code(), "exists");
    let other = bed.repository("http://y/oai").await;
    let said = Identified { sets: Vec::new(), formats: Vec::new(), ..identified() };
    repositories.identified(made.id, said.clone()).await.unwrap();
    assert_eq!(repositories.get(made.id).await.unwrap().unwrap().said, said);
    assert_eq!(repositories.get(other.id).await.unwrap().unwrap().said.formats.len(), 2, "shared, not taken");
    let rules = RepositoryRules { no_windows: true, ..RepositoryRules::default() };
    let changed = repositories.change(made.id, rules.clone(), Some(1), &anna()).await.unwrap();
    assert_eq!((changed.rules, changed.edition), (rules.clone(), 2));
    assert_eq!(repositories.change(made.id, rules, Some(1), &anna()).await.unwrap_err().code(), "stale");
    let claim = bed.oai_claim(made.id).await;
    assert_eq!(repositories.delete(made.id, &anna()).await.unwrap_err().code(), "in-use");
    bed.db.oai_jobs().finish(&claim, Ending::Stopped, 3).await.unwrap();
    repositories.delete(made.id, &anna()).await.unwrap();
    assert_eq!(repositories.list().await.unwrap().len(), 1);
    assert_eq!(repositories.get(made.id).await.unwrap(), None);
    assert_eq!(repositories.begin_list(made.id).await.unwrap_err().code(), "not-found");
    assert_eq!(repositories.begin_list(other.id).await.unwrap(), 1);
    assert_eq!(repositories.begin_list(other.id).await.unwrap(), 2);
}

async fn a_page_is_kept_whole_and_compared_by_one_question(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let claim = bed.oai_claim(repository).await;
    let (jobs, records) = (bed.db.oai_jobs(), bed.db.oai_records());
    let page = OaiPage {
        list: 1,
        records: vec![row("oai:x:1", false), row("oai:x:'2\"\u{1f600}", true)],
        folders: vec![("x".to_owned(), 2)],
        position: "{\"token\":\"t\"}".to_owned(),
        pages: 1,
        expected: Some(7),
        counts: Counts { new: 1, deleted: 1, ..Counts::default() },
        warnings: vec!["a bad\0 one".to_owned()],
        ..OaiPage::default()
    };
    jobs.commit(&claim, page).await.unwrap();
    let asked = ["oai:x:1", "oai:x:none", "oai:x:'2\"\u{1f600}"];
    let mut known = records.known(repository, "oai_dc", &asked).await.unwrap();
    known.sort_by(|a, b| b.identifier.cmp(&a.identifier));
    assert_eq!(known.len(), 2);
    assert_eq!((known[0].identifier.as_str(), known[0].deleted, known[0].list), ("oai:x:1", false, 1));
    assert!(records.known(repository, "marc", &asked).await.unwrap().is_empty());
    // Again with one of them changed, one the same.
    let changed =
        RecordRow { digest: "other".to_owned(), sets: vec!["d".to_owned()], ..row("oai:x:1", false) };
    let page = OaiPage { list: 2, records: vec![changed], same: vec![known[1].id], ..OaiPage::default() };
    jobs.commit(&claim, page).await.unwrap();
    let listed = records.list(repository, "oai_dc", "", 10).await.unwrap();
    assert_eq!(listed.len(), 2);
    let one = listed.iter().find(|record| record.identifier == "oai:x:1").unwrap();
    assert_eq!((one.id, &one.sets[..], one.updated), (known[0].id, &["d".to_owned()][..], true));
    let two = listed.iter().find(|record| record.identifier != "oai:x:1").unwrap();
    assert_eq!((two.status, two.sets.len()), (RecordStatus::Deleted, 2));
    assert!(records.known(repository, "oai_dc", &asked).await.unwrap().iter().all(|known| known.list == 2));
    assert_eq!(records.folders(repository, &["x", "y"]).await.unwrap(), [("x".to_owned(), 2)]);
    assert_eq!(records.count(repository).await.unwrap(), (1, 1));
    assert_eq!(records.clear_updated(&[(one.id, one.changed_at)]).await.unwrap(), 1);
    assert!(!records.list(repository, "oai_dc", "", 1).await.unwrap().is_empty());
    let history = bed.db.oai_history().list(&OaiHistoryFilter::default()).await.unwrap();
    assert_eq!(history[0].reason.as_deref(), Some("a bad\u{fffd} one"));
    assert_eq!(history[0].outcome, Outcome::Warning);
}

async fn a_page_of_a_lost_lease_leaves_nothing(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    bed.oai_due(repository).await;
    let jobs = bed.db.oai_jobs();
    let claim = jobs.claim("slow", SHORT).await.unwrap().unwrap();
    bed.pass(claim.lease_until).await;
    jobs.supervise(POLICY).await.unwrap();
    let page = OaiPage { records: vec![row("oai:x:1", false)], ..OaiPage::default() };
    assert_eq!(jobs.commit(&claim, page).await.unwrap_err().code(), "lease-lost");
    assert_eq!(bed.db.oai_records().count(repository).await.unwrap(), (0, 0));
    assert_eq!(jobs.renew(&claim, LONG).await.unwrap_err().code(), "lease-lost");
    assert_eq!(jobs.finish(&claim, Ending::Stopped, 3).await.unwrap_err().code(), "lease-lost");
}

async fn no_repository_is_asked_by_two_jobs_at_once(bed: &Bed) {
    let (one, two) = (bed.repository("http://x/oai").await.id, bed.repository("http://y/oai").await.id);
    for repository in [one, one, two] {
        bed.oai_due(repository).await;
    }
    let jobs = bed.db.oai_jobs();
    let first = jobs.claim("node", LONG).await.unwrap().unwrap();
    let second = jobs.claim("node", LONG).await.unwrap().unwrap();
    let order = |claim: &OaiClaim| claim.clone();
    assert_eq!(jobs.order(&order(&first)).await.unwrap().repository.id, one);
    assert_eq!(jobs.order(&order(&second)).await.unwrap().repository.id, two);
    assert_eq!(jobs.claim("node", LONG).await.unwrap(), None);
    jobs.release(&first).await.unwrap();
    let third = jobs.claim("node", LONG).await.unwrap().unwrap();
    assert_eq!((third.job, third.token), (first.job, 2));
    assert_eq!(jobs.get(first.job).await.unwrap().unwrap().attempts, 1, "given back, not begun twice");
}

async fn two_claimers_of_one_repository_get_one_job(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    for _ in 0..20 {
        bed.oai_due(repository).await;
    }
    let claimers = (0..10).map(|n| {
        let db = bed.db.clone();
        tokio::spawn(async move { db.oai_jobs().claim(&n.to_string(), LONG).await.unwrap() })
    });
    let mut claimed = 0;
    for task in claimers.collect::<Vec<_>>() {
        claimed += u32::from(task.await.unwrap().is_some());
    }
    assert_eq!(claimed, 1);
}

async fn a_dead_harvesters_job_is_failed_and_planned_again(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    bed.oai_due(repository).await;
    let jobs = bed.db.oai_jobs();
    let claim = jobs.claim("first", SHORT).await.unwrap().unwrap();
    let page = OaiPage { position: "here".to_owned(), pages: 3, ..OaiPage::default() };
    jobs.commit(&claim, page).await.unwrap();
    bed.pass(claim.lease_until).await;
    assert_eq!(jobs.supervise(POLICY).await.unwrap().taken_back, [claim.job]);
    let again = jobs.claim("second", SHORT).await.unwrap().unwrap();
    let ClaimedHarvest { job, position, .. } = jobs.order(&again).await.unwrap();
    assert_eq!((position.as_deref(), job.attempts, job.pages), (Some("here"), 2, 3));
    bed.pass(again.lease_until).await;
    assert_eq!(jobs.supervise(POLICY).await.unwrap().ended, [claim.job]);
    assert_eq!(jobs.get(claim.job).await.unwrap(), None);
    let history = bed.db.oai_history().list(&OaiHistoryFilter::default()).await.unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].reason.as_deref(), Some("the harvester second fell silent"));
    assert!(history.iter().all(|line| line.outcome == Outcome::Failed && line.job == claim.job));
    assert_eq!(bed.db.oai_history().delete(&[history[0].id], &anna()).await.unwrap(), 1);
}

async fn a_running_job_that_is_deleted_stops_first(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let jobs = bed.db.oai_jobs();
    let claim = bed.oai_claim(repository).await;
    bed.oai_due(repository).await;
    let waiting = jobs.list(Some(repository)).await.unwrap()[1].id;
    jobs.delete(waiting, &anna()).await.unwrap();
    assert_eq!(jobs.get(waiting).await.unwrap(), None);
    assert!(!jobs.renew(&claim, LONG).await.unwrap().stop_wanted);
    jobs.delete(claim.job, &anna()).await.unwrap();
    assert_eq!(jobs.get(claim.job).await.unwrap().unwrap().status, OaiJobStatus::Stopping);
    assert!(jobs.renew(&claim, LONG).await.unwrap().stop_wanted);
    jobs.finish(&claim, Ending::Stopped, 3).await.unwrap();
    assert_eq!(jobs.get(claim.job).await.unwrap(), None);
    let filter = OaiHistoryFilter { job: Some(claim.job), ..OaiHistoryFilter::default() };
    let history = bed.db.oai_history().list(&filter).await.unwrap();
    assert_eq!(history[0].reason.as_deref(), Some("deleted by anna"));
    assert_eq!(jobs.delete(claim.job, &anna()).await.unwrap_err().code(), "not-found");
}

async fn a_whole_harvest_sets_the_mark_and_a_failed_one_keeps_its_place(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let jobs = bed.db.oai_jobs();
    let mark: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let claim = bed.oai_claim(repository).await;
    jobs.commit(&claim, OaiPage { position: "p".to_owned(), ..OaiPage::default() }).await.unwrap();
    jobs.finish(&claim, Ending::Failed { reason: "x".to_owned() }, 3).await.unwrap();
    let claim = bed.oai_claim(repository).await;
    let ClaimedHarvest { position, next_from, rules, .. } = jobs.order(&claim).await.unwrap();
    assert_eq!((position.as_deref(), next_from, rules.as_str()), (Some("p"), None, ""));
    let rules = || "filter a".to_owned();
    jobs.finish(&claim, Ending::Whole { next_from: Some(mark), rules: rules(), lacking: false }, 3)
        .await
        .unwrap();
    let claim = bed.oai_claim(repository).await;
    let ordered = jobs.order(&claim).await.unwrap();
    assert_eq!((ordered.position, ordered.next_from, ordered.rules), (None, Some(mark), rules()));
    jobs.finish(&claim, whole(None), 3).await.unwrap();
    let claim = bed.oai_claim(repository).await;
    let ordered = jobs.order(&claim).await.unwrap();
    assert_eq!((ordered.next_from, ordered.rules), (Some(mark), rules()), "a closed span moves nothing");
    jobs.finish(&claim, whole(Some(mark)), 3).await.unwrap();
    let claim = bed.oai_claim(repository).await;
    assert_eq!(jobs.order(&claim).await.unwrap().rules, "", "the mark of other rules");
}

/// The end of a whole harvest without rules.
pub(super) fn whole(next_from: Option<Timestamp>) -> Ending {
    Ending::Whole { next_from, rules: String::new(), lacking: false }
}

async fn an_incomplete_harvest_moves_no_mark_and_leaves_no_place(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let jobs = bed.db.oai_jobs();
    let mark: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let claim = bed.oai_claim(repository).await;
    jobs.finish(&claim, whole(Some(mark)), 3).await.unwrap();
    let new = NewRecurring {
        repository,
        spec: HarvestSpec { incremental: true, ..HarvestSpec::all("oai_dc") },
        starts_at: bed.clock.now(),
        ends_at: None,
        every: Some(Every { count: 1, unit: Unit::Day }),
    };
    bed.db.oai_recurring().add(new, &anna()).await.unwrap();
    bed.db.oai_recurring().plan().await.unwrap();
    let claim = jobs.claim("node", LONG).await.unwrap().unwrap();
    let due = jobs.get(claim.job).await.unwrap().unwrap().due_at;
    jobs.commit(&claim, OaiPage { position: "the end".to_owned(), ..OaiPage::default() }).await.unwrap();
    let reason = "3400 of 4000 records came".to_owned();
    jobs.finish(&claim, Ending::Incomplete { reason: reason.clone() }, 3).await.unwrap();
    let filter = OaiHistoryFilter { outcome: Some(Outcome::Incomplete), ..OaiHistoryFilter::default() };
    let [line] = &bed.db.oai_history().list(&filter).await.unwrap()[..] else { panic!("one line") };
    assert_eq!((line.job, line.reason.as_ref()), (claim.job, Some(&reason)));
    let [next] = &jobs.list(None).await.unwrap()[..] else { panic!("one job waits") };
    assert_eq!(next.due_at, due + Duration::from_hours(24), "at its next slot");
    let claim = bed.oai_claim(repository).await;
    let ordered = jobs.order(&claim).await.unwrap();
    assert_eq!((ordered.position, ordered.next_from), (None, Some(mark)), "as if it had not been");
}

/// Letters in no order, which no index can compress.
pub(super) fn letters(count: usize) -> String {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + (state >> 33) as u8 % 26)
    };
    (0..count).map(|_| next()).collect()
}

async fn text_of_a_repository_may_have_any_length(bed: &Bed) {
    let long = letters(9_000);
    let mut said = identified();
    said.sets = ["1", "2"].map(|end| Set { spec: format!("{long}{end}"), name: long.clone() }).to_vec();
    said.formats[0].namespace.clone_from(&long);
    let repositories = bed.db.oai_repositories();
    let added = repositories.add("http://x/oai", said.clone(), RepositoryRules::default(), &anna()).await;
    let repository = added.unwrap().id;
    repositories.identified(repository, said.clone()).await.unwrap();
    assert_eq!(repositories.get(repository).await.unwrap().unwrap().said, said);
    let claim = bed.oai_claim(repository).await;
    let (jobs, records) = (bed.db.oai_jobs(), bed.db.oai_records());
    // Two that differ in the last letter only, and short ones around them in the order.
    let (one, two) = (format!("oai:x:{long}1"), format!("oai:x:{long}2"));
    let names = ["oai:x:", one.as_str(), two.as_str(), "oai:y:"];
    let sets = vec![format!("{long}1"), format!("{long}2")];
    let rows = names.map(|name| RecordRow { sets: sets.clone(), ..row(name, false) }).to_vec();
    for list in [1, 2] {
        let page = OaiPage { list, records: rows.clone(), ..OaiPage::default() };
        jobs.commit(&claim, page).await.unwrap();
    }
    let known = records.known(repository, "oai_dc", &[two.as_str(), "oai:y:", "oai:none"]).await.unwrap();
    let mut found: Vec<_> = known.iter().map(|known| (known.identifier.as_str(), known.list)).collect();
    found.sort_unstable();
    assert_eq!(found, [(two.as_str(), 2), ("oai:y:", 2)]);
    let (mut after, mut listed) = (String::new(), Vec::new());
    while let [record] = &records.list(repository, "oai_dc", &after, 1).await.unwrap()[..] {
        assert_eq!(record.sets, sets);
        after.clone_from(&record.identifier);
        listed.push(after.clone());
    }
    assert_eq!(listed, names, "each once and in order");
    assert_eq!(bed.db.oai_holdings().record(repository, &one).await.unwrap().len(), 1);
    assert_eq!(records.active(repository, "oai_dc", Some(&sets[0])).await.unwrap(), 4);
    // Its failure has a subject that is a key.
    let said = Identified { name: long, ..said };
    repositories.identified(repository, said).await.unwrap();
    jobs.finish(&claim, Ending::Incomplete { reason: "short".to_owned() }, 3).await.unwrap();
    bed.db.findings().look(Duration::from_hours(24)).await.unwrap();
    let found = bed.db.findings().list(false, 10).await.unwrap();
    let [finding] = &found[..] else { panic!("one finding: {found:?}") };
    assert_eq!((finding.kind, finding.detail.as_str()), (FindingKind::FailedMetadataHarvest, "short"));
    assert!(finding.subject.len() < 1_000, "{finding:?}");
    // The place and the mark of a harvest of one set are kept under the name of the set.
    let mark: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let one_set = async |set: &str| {
        let spec = HarvestSpec { set: Some(set.to_owned()), ..HarvestSpec::all("oai_dc") };
        jobs.add(NewOaiJob { repository, spec, due_at: bed.clock.now() }, &anna()).await.unwrap();
        jobs.claim("node", LONG).await.unwrap().unwrap()
    };
    for set in &sets {
        let claim = one_set(set).await;
        let page = OaiPage { position: "here".to_owned(), ..OaiPage::default() };
        jobs.commit(&claim, page).await.unwrap();
        let ordered = jobs.order(&claim).await.unwrap();
        assert_eq!((ordered.position.as_deref(), ordered.next_from), (Some("here"), None));
        jobs.finish(&claim, whole(Some(mark)), 3).await.unwrap();
    }
    let claim = one_set(&sets[0]).await;
    assert_eq!(jobs.order(&claim).await.unwrap().next_from, Some(mark));
}

async fn a_harvest_whose_lists_lacked_records_is_remembered_until_one_lacks_none(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let jobs = bed.db.oai_jobs();
    let mark: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    for (next_from, lacking, kept) in [
        (Some(mark), false, mark),
        (None, true, mark),
        (Some(mark + LONG), true, mark + LONG),
        (None, false, mark + LONG),
    ] {
        let claim = bed.oai_claim(repository).await;
        let ending = Ending::Whole { next_from, rules: String::new(), lacking };
        jobs.finish(&claim, ending, 3).await.unwrap();
        let claim = bed.oai_claim(repository).await;
        let ordered = jobs.order(&claim).await.unwrap();
        assert_eq!((ordered.next_from, ordered.lacking), (Some(kept), lacking));
        jobs.finish(&claim, Ending::Failed { reason: "x".to_owned() }, 3).await.unwrap();
    }
}

async fn records_a_whole_harvest_did_not_see_are_found(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let claim = bed.oai_claim(repository).await;
    let (jobs, records) = (bed.db.oai_jobs(), bed.db.oai_records());
    let rows = ["1", "2", "3"].map(|name| row(name, name == "3")).to_vec();
    jobs.commit(&claim, OaiPage { list: 1, records: rows, ..OaiPage::default() }).await.unwrap();
    jobs.commit(&claim, OaiPage { list: 2, records: vec![row("1", false)], ..OaiPage::default() })
        .await
        .unwrap();
    let unseen = async |set| {
        let found = records.unseen(repository, "oai_dc", set, 2, 10).await.unwrap();
        found.into_iter().map(|record| record.identifier).collect::<Vec<_>>()
    };
    assert_eq!(unseen(None).await, ["2"]);
    assert_eq!(unseen(Some("a")).await, ["2"], "a:b is below a");
    assert!(unseen(Some("b")).await.is_empty());
    for (set, count) in [(None, 1), (Some("a"), 1), (Some("b"), 0)] {
        assert_eq!(records.unseen_count(repository, "oai_dc", set, 2).await.unwrap(), count, "{set:?}");
    }
    assert_eq!(records.active(repository, "oai_dc", None).await.unwrap(), 2);
    assert_eq!(records.active(repository, "oai_dc", Some("zz")).await.unwrap(), 0);
}

async fn holdings_are_served_in_the_order_they_changed(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let claim = bed.oai_claim(repository).await;
    let (jobs, holdings) = (bed.db.oai_jobs(), bed.db.oai_holdings());
    assert_eq!(holdings.earliest().await.unwrap(), None);
    assert!(holdings.formats().await.unwrap().is_empty());
    for page in 0..3 {
        let rows = (0..4).map(|n| row(&format!("r{page}{n}"), false)).collect();
        jobs.commit(&claim, OaiPage { list: 1, records: rows, ..OaiPage::default() }).await.unwrap();
        bed.hand.advance(Duration::from_secs(5));
    }
    let mut filter = ServeFilter {
        prefix: "oai_dc".to_owned(),
        repository: None,
        set: None,
        from: Timestamp::UNIX_EPOCH,
        before: Timestamp::MAX,
        after: None,
        limit: 5,
    };
    let mut names = Vec::new();
    loop {
        let page = holdings.page(filter.clone()).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.after = Some((last.changed_at, last.id));
        names.extend(page.into_iter().map(|record| record.identifier));
    }
    assert_eq!(names.len(), 12);
    let pages: Vec<_> = names.iter().map(|name| &name[..2]).collect();
    assert!(pages.is_sorted(), "{names:?}");
    let count = async |filter: ServeFilter| holdings.page(filter).await.unwrap().len();
    let all = ServeFilter { after: None, limit: 100, ..filter };
    let set = |set: &str| ServeFilter { set: Some(set.to_owned()), ..all.clone() };
    assert_eq!(count(set("a")).await, 12);
    assert_eq!(count(set("zz")).await, 0);
    let from = bed.clock.now() - Duration::from_secs(12);
    assert_eq!(count(ServeFilter { from, ..all.clone() }).await, 8);
    assert_eq!(count(ServeFilter { repository: Some(RepositoryId(99)), ..all }).await, 0);
    assert_eq!(holdings.record(repository, "r00").await.unwrap().len(), 1);
    assert_eq!(holdings.formats().await.unwrap().len(), 1);
    assert_eq!(holdings.sets().await.unwrap().len(), 1);
}
