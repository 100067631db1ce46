//! What planning promises: each due run once, all of its jobs or none.

use std::time::Duration;

use grange_model::harvest::{ChannelKind, DomainReport, HarvestKind, Limits, StopReason};

use super::harvest_bed::{domain, name};
use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{DomainChange, HarvestChange, JobFilter, JobReport, NewChannel, NewHarvest, RunPlan};

on_both_engines! {
    a_due_harvest_is_taken_by_one_scheduler,
    a_dead_schedulers_plan_is_begun_again,
    a_change_while_planning_makes_the_plan_void,
    a_harvest_that_cannot_be_planned_leaves_service,
    a_job_carries_all_that_a_harvester_needs,
    a_snapshot_takes_every_domain_but_aliases_once,
    what_a_snapshot_left_is_offered_again,
    event_seeds_make_domains_and_configurations,
    channels_fit_the_kind_of_harvest,
    a_harvest_waits_until_its_channel_is_served,
}

async fn a_due_harvest_is_taken_by_one_scheduler(bed: &Bed) {
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk"]).await;
    assert_eq!(bed.db.due_harvests().await.unwrap(), 1);
    assert!(bed.due(HarvestKind::Snapshot).await.is_none());
    let due = bed.due(HarvestKind::Selective).await.unwrap();
    assert!(bed.due(HarvestKind::Selective).await.is_none());
    bed.draft(&due).await;
    assert!(
        bed.db.jobs().list(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap().is_empty(),
        "drafts are invisible"
    );
    assert!(bed.db.jobs().claim(&["focused".parse().unwrap()], "h", LONG).await.unwrap().is_none());
    bed.db.planner().renew(&due, LONG).await.unwrap();
    let next_at = Some(bed.clock.now() + Duration::from_hours(24));
    assert_eq!(bed.db.planner().commit(&due, RunPlan { next_at, ..RunPlan::default() }).await.unwrap(), 1);
    let after = bed.db.harvests().get(&name("h")).await.unwrap().unwrap();
    assert_eq!((after.runs, after.edition), (1, due.harvest.edition), "a run is no edition");
    assert!(after.next_at > due.harvest.next_at);
    assert_eq!(bed.db.planner().commit(&due, RunPlan::default()).await.unwrap_err().code(), "lease-lost");
    let runs = bed.db.harvests().runs(&name("h"), 10).await.unwrap();
    assert_eq!((runs.len(), runs[0].number, runs[0].jobs), (1, 1, 1));
    assert!(bed.due(HarvestKind::Selective).await.is_none());
}

async fn a_dead_schedulers_plan_is_begun_again(bed: &Bed) {
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk", "b.dk"]).await;
    let dead = bed.db.planner().claim(HarvestKind::Selective, "dead", SHORT, None).await.unwrap().unwrap();
    bed.draft(&dead).await;
    bed.pass(bed.lease_now() + SHORT).await;
    let next = bed.due(HarvestKind::Selective).await.unwrap();
    bed.draft(&next).await;
    assert_eq!(bed.db.planner().commit(&dead, RunPlan::default()).await.unwrap_err().code(), "lease-lost");
    assert_eq!(
        bed.db.planner().commit(&next, RunPlan::default()).await.unwrap(),
        1,
        "the dead one's draft is gone"
    );
    let jobs = bed.db.jobs().list(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap();
    assert_eq!((jobs.len(), jobs[0].configurations), (1, 2));
}

async fn a_change_while_planning_makes_the_plan_void(bed: &Bed) {
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk"]).await;
    let due = bed.db.planner().claim(HarvestKind::Selective, "p", SHORT, None).await.unwrap().unwrap();
    bed.draft(&due).await;
    bed.db.harvests().set_active(&name("h"), false, None, &anna()).await.unwrap();
    assert_eq!(bed.db.planner().commit(&due, RunPlan::default()).await.unwrap_err().code(), "lease-lost");
    assert_eq!(bed.db.harvests().get(&name("h")).await.unwrap().unwrap().runs, 0);
    bed.pass(bed.lease_now() + SHORT).await;
    assert!(bed.due(HarvestKind::Selective).await.is_none(), "out of service");
    bed.db.harvests().set_active(&name("h"), true, None, &anna()).await.unwrap();
    assert_eq!(bed.plan(HarvestKind::Selective).await, 1);
}

async fn a_harvest_that_cannot_be_planned_leaves_service(bed: &Bed) {
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk"]).await;
    let due = bed.due(HarvestKind::Selective).await.unwrap();
    bed.draft(&due).await;
    bed.db.planner().give_up(&due, "no \0 luck").await.unwrap();
    let after = bed.db.harvests().get(&name("h")).await.unwrap().unwrap();
    assert!(!after.active && after.deactivated_because.unwrap().contains("luck"));
    assert_eq!(bed.db.planner().jobs_of(due.harvest.id, None).await.unwrap(), []);
    let again = bed.db.harvests().set_active(&name("h"), true, None, &anna()).await.unwrap();
    assert_eq!(again.deactivated_because, None);
}

async fn a_job_carries_all_that_a_harvester_needs(bed: &Bed) {
    bed.stocked(&["a.dk", "alias.dk"]).await;
    let (domains, a) = (bed.db.domains(), domain("a.dk"));
    let seeds = ["http://a.dk/x".to_owned()];
    domains
        .save_seeds(&a, &name("defaultseeds"), "# no\nhttp://a.dk/x", &seeds, "", None, &anna())
        .await
        .unwrap();
    let traps = DomainChange { traps: Some(vec![".*own.*".to_owned()]), ..DomainChange::default() };
    domains.change(&a, traps, None, &anna()).await.unwrap();
    let alias = DomainChange { alias_of: Some(Some(a.clone())), ..DomainChange::default() };
    domains.change(&domain("alias.dk"), alias, None, &anna()).await.unwrap();
    let form = grange_model::harvest::LoginForm {
        user_field: "name".to_owned(),
        secret_field: "pass".to_owned(),
        fields: vec![("remember".to_owned(), "1".to_owned())],
        page_url: None,
        sets_cookie: Some("sid".to_owned()),
        page_matches: None,
        page_lacks: None,
    };
    let login = crate::NewCredential {
        name: name("login"),
        url: "http://a.dk/".to_owned(),
        realm: "r".to_owned(),
        username: "u".to_owned(),
        form: Some(form.clone()),
        sealed: "sealed".to_owned(),
        comments: String::new(),
    };
    domains.save_credential(&a, login, &anna()).await.unwrap();
    let logged_in = crate::ConfigurationChange {
        credentials: Some(vec![name("login")]),
        ..crate::ConfigurationChange::default()
    };
    domains.change_configuration(&a, &name("defaultconfig"), logged_in, None, &anna()).await.unwrap();
    bed.db.traps().save(&name("global"), "", true, &[".*g.*".to_owned()], None, &anna()).await.unwrap();
    bed.db.traps().save(&name("off"), "", false, &[".*off.*".to_owned()], None, &anna()).await.unwrap();
    bed.selective("h", &["a.dk"]).await;
    let change = HarvestChange { traps: Some(vec![".*h.*".to_owned()]), ..HarvestChange::default() };
    bed.db.harvests().change(&name("h"), change, None, &anna()).await.unwrap();
    bed.plan(HarvestKind::Selective).await;
    let jobs = bed.db.jobs();
    let claim = jobs.claim(&["focused".parse().unwrap()], "h1", LONG).await.unwrap().unwrap();
    let year = Duration::from_hours(24 * 365);
    let spec = jobs.spec(claim.job, year).await.unwrap();
    assert_eq!(spec.template_text, "name = \"default\"\n");
    assert_eq!((spec.job.template_version, spec.schedule.as_ref().unwrap().as_str()), (1, "daily"));
    assert_eq!(spec.traps, [".*g.*", ".*h.*"]);
    assert_eq!(spec.seeds(), ["http://a.dk/x"]);
    assert_eq!(spec.configurations[0].traps, [".*own.*"]);
    assert_eq!(spec.configurations[0].limits.bytes.number(), 1_000_000_000);
    assert_eq!(spec.aliases, [(domain("alias.dk"), a.clone())]);
    assert_eq!((spec.credentials.len(), spec.credentials[0].sealed.as_str()), (1, "sealed"));
    assert_eq!(spec.credentials[0].form.as_ref(), Some(&form));
    assert_eq!(domains.credentials(&a).await.unwrap()[0].form.as_ref(), Some(&form));
    assert_eq!(spec.file_prefix(), format!("{}-{}", claim.job, spec.job.harvest));
    // What changes later does not change the job.
    bed.db.templates().put(&name("default"), "newer", "", &anna()).await.unwrap();
    domains
        .save_seeds(
            &a,
            &name("defaultseeds"),
            "http://a.dk/y",
            &["http://a.dk/y".to_owned()],
            "",
            None,
            &anna(),
        )
        .await
        .unwrap();
    let later = jobs.spec(claim.job, year).await.unwrap();
    assert_eq!((later.template_text, later.configurations), (spec.template_text, spec.configurations));
}

async fn a_snapshot_takes_every_domain_but_aliases_once(bed: &Bed) {
    bed.stocked(&["a.dk", "b.dk", "c.dk"]).await;
    let alias = DomainChange { alias_of: Some(Some(domain("b.dk"))), ..DomainChange::default() };
    bed.db.domains().change(&domain("a.dk"), alias, None, &anna()).await.unwrap();
    let snapshot = bed.harvest("s", HarvestKind::Snapshot).await;
    assert!(bed.due(HarvestKind::Snapshot).await.is_none(), "not in service");
    let candidates = async |lifetime| {
        let all = bed.db.planner().candidates(&snapshot, &[], lifetime, 0, 10).await.unwrap();
        assert!(all.iter().all(|one| one.seeded));
        all.len()
    };
    assert_eq!(candidates(LONG).await, 2);
    bed.hand.advance(LONG);
    assert_eq!(candidates(LONG).await, 3, "an expired alias is harvested");
    // By the page.
    let page = bed.db.planner().candidates(&snapshot, &[], LONG, 0, 2).await.unwrap();
    let rest = bed.db.planner().candidates(&snapshot, &[], LONG, page[1].configuration, 2).await.unwrap();
    assert_eq!((page.len(), rest.len()), (2, 1));
    bed.db.harvests().set_active(&name("s"), true, None, &anna()).await.unwrap();
    assert_eq!(bed.plan(HarvestKind::Snapshot).await, 1);
    let after = bed.db.harvests().get(&name("s")).await.unwrap().unwrap();
    assert_eq!((after.runs, after.next_at), (1, None));
    assert_eq!(
        bed.db.harvests().set_active(&name("s"), true, None, &anna()).await.unwrap_err().code(),
        "refused"
    );
}

async fn what_a_snapshot_left_is_offered_again(bed: &Bed) {
    bed.stocked(&["done.dk", "limit.dk", "lost.dk"]).await;
    let first = bed.harvest("first", HarvestKind::Snapshot).await;
    let new = NewHarvest {
        name: name("second"),
        kind: HarvestKind::Snapshot,
        comments: String::new(),
        audience: String::new(),
        schedule: None,
        channel: None,
        limits: Limits::NONE,
        continues: Some(name("first")),
        traps: Vec::new(),
        fields: std::collections::BTreeMap::new(),
    };
    let second = bed.db.harvests().create(new, &anna()).await.unwrap();
    let activate = async || bed.db.harvests().set_active(&name("second"), true, None, &anna()).await;
    assert!(activate().await.unwrap_err().to_string().contains("has not run yet"));
    bed.db.harvests().set_active(&name("first"), true, None, &anna()).await.unwrap();
    bed.plan(HarvestKind::Snapshot).await;
    assert!(activate().await.unwrap_err().to_string().contains("not done"));
    let jobs = bed.db.jobs();
    let claim = jobs.claim(&["snapshot".parse().unwrap()], "h1", LONG).await.unwrap().unwrap();
    jobs.start(&claim, LONG).await.unwrap();
    let report = |name: &str, stop| DomainReport { domain: domain(name), objects: 10, bytes: 500, stop };
    let domains = vec![report("done.dk", StopReason::Complete), report("limit.dk", StopReason::TimeLimit)];
    jobs.finish(&claim, JobReport { domains, ..JobReport::default() }).await.unwrap();
    activate().await.unwrap();
    let mut last: Vec<_> = bed
        .db
        .planner()
        .candidates(&second, &[first.id], LONG, 0, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.last.map(|(stop, objects, bytes)| (stop.to_string(), objects, bytes)))
        .collect();
    last.sort();
    assert_eq!(
        last,
        [None, Some(("complete".to_owned(), 10, 500)), Some(("time-limit".to_owned(), 10, 500))]
    );
    let snapshots = bed.db.planner().snapshots().await.unwrap();
    assert_eq!(snapshots.iter().map(|one| one.continues).collect::<Vec<_>>(), [None, Some(first.id)]);
    assert_eq!(bed.db.planner().jobs_of(first.id, Some(1)).await.unwrap(), [claim.job]);
}

async fn event_seeds_make_domains_and_configurations(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    bed.selective("event", &[]).await;
    let sorted = grange_model::harvest::event_seeds::sort("http://a.dk/x\nhttp://new.dk/y\nhttp://new.dk/z");
    let add = async || {
        let harvests = bed.db.harvests();
        harvests
            .add_event_seeds(&name("event"), sorted.by_domain.clone(), &name("path"), Limits::NONE, &anna())
            .await
            .unwrap()
    };
    let added = add().await;
    assert_eq!((added.added, added.domains_created), (2, 1));
    bed.hand.advance(Duration::from_secs(1));
    assert_eq!(add().await.added, 2, "the name was taken, so another is made");
    let members = bed.db.harvests().members(&name("event")).await.unwrap();
    assert_eq!(members.len(), 4);
    assert_eq!(members[0].1.as_str(), "event_path_UnlimitedBytes_UnlimitedObjects");
    let lists = bed.db.domains().seed_lists(&domain("new.dk")).await.unwrap();
    assert!(lists.iter().any(|list| list.active == 2 && list.seeds == "http://new.dk/y\nhttp://new.dk/z"));
}

async fn channels_fit_the_kind_of_harvest(bed: &Bed) {
    bed.stocked(&[]).await;
    let channels = bed.db.channels();
    let own =
        NewChannel { name: "own".parse().unwrap(), kind: ChannelKind::Focused, comments: String::new() };
    channels.create(own.clone(), &anna()).await.unwrap();
    assert_eq!(channels.create(own, &anna()).await.unwrap_err().code(), "exists");
    bed.selective("h", &["a.dk"]).await;
    let lane =
        |name: &str| HarvestChange { channel: Some(Some(name.parse().unwrap())), ..HarvestChange::default() };
    let harvests = bed.db.harvests();
    assert_eq!(
        harvests.change(&name("h"), lane("snapshot"), None, &anna()).await.unwrap_err().code(),
        "refused"
    );
    assert_eq!(
        harvests.change(&name("h"), lane("none"), None, &anna()).await.unwrap_err().code(),
        "not-found"
    );
    harvests.change(&name("h"), lane("own"), None, &anna()).await.unwrap();
    assert_eq!(bed.plan(HarvestKind::Selective).await, 1);
    let list = channels.list(LONG).await.unwrap();
    let waiting: Vec<_> = list.iter().map(|channel| (channel.name.as_str(), channel.waiting)).collect();
    assert_eq!(waiting, [("focused", 0), ("own", 1), ("snapshot", 0)]);
    assert_eq!(channels.delete(&"own".parse().unwrap(), &anna()).await.unwrap_err().code(), "in-use");
    assert_eq!(channels.delete(&"focused".parse().unwrap(), &anna()).await.unwrap_err().code(), "refused");
    channels.set_default(&"own".parse().unwrap(), &anna()).await.unwrap();
    let defaults: Vec<_> = channels
        .list(LONG)
        .await
        .unwrap()
        .into_iter()
        .filter(|one| one.default)
        .map(|one| one.name.to_string())
        .collect();
    assert_eq!(defaults, ["own", "snapshot"]);
}

async fn a_harvest_waits_until_its_channel_is_served(bed: &Bed) {
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk"]).await;
    let claim = async |served: &[&str]| {
        let served: Vec<_> = served.iter().map(|name| name.parse().unwrap()).collect();
        bed.db.planner().claim(HarvestKind::Selective, "p", LONG, Some(&served)).await.unwrap()
    };
    assert!(claim(&[]).await.is_none());
    assert!(claim(&["snapshot"]).await.is_none());
    assert!(claim(&["focused"]).await.is_some());
}
