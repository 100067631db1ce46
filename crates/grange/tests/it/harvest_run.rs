//! Harvests end to end: a schedule fires, a real crawl runs, every file ends up proven on every replica, the statistics
//! are right and nothing is left on the harvester. Also when processes are killed on the way.

use grange_testkit::web::Profile;
use grange_testkit::{ReservedPorts, TestDatabase, nats};

use crate::archive_bed::{CHECKSUMS, audit, bytes_at, lying_in, machine, single_with};
use crate::harness::Grange;
use crate::harvest_bed::{QUICK, Site, captured, captured_in, files_of, job_with, nothing_left};

/// Both bitarchives hold the job's captures and papers, and every copy of every file is good.
fn is_kept(site: &Site, archiver: &Grange, job: &str, papers: &[&str]) {
    let [one, two] = ["one", "two"].map(|name| archiver.data().join(format!("replicas/{name}/filedir")));
    site.is_captured(&one, job);
    assert!(!files_of(&one, job).is_empty());
    let sorted = |folder| {
        let mut names = lying_in(folder);
        names.sort();
        names
    };
    assert_eq!(sorted(&one), sorted(&two));
    let metadata: Vec<_> = sorted(&one).into_iter().filter(|name| name.contains("-metadata-")).collect();
    assert_eq!(metadata, papers);
    let [_, missing, corrupt, undecided, extra] = audit(archiver);
    assert_eq!([missing, corrupt, undecided, extra], [0; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_harvest_goes_all_the_way_on_one_machine() {
    let site = Site::serve(3, 12, Profile::Deterministic).await;
    // Nobody dies here, and a machine that stands still for a moment takes no job away.
    let grange = single_with(&[&QUICK[..], &["harvest.lease=60s"]].concat());
    grange.crawls_at(site.server.addr());
    let node = grange.up();
    site.harvest(&grange, "news", "0s");
    let job = job_with(&grange, "news", "done");
    let id = job["id"].to_string();
    assert_eq!(
        (&job["attempts"], &job["harvest_errors"], &job["upload_errors"]),
        (&1.into(), &().into(), &().into())
    );
    nothing_left(&grange);
    is_kept(&site, &grange, &id, &[&format!("{id}-metadata-1.warc.gz")]);
    site.is_counted(&grange, &id);
    let runs = grange.run(&["harvests", "runs", "news", "--json"]).ok().json();
    assert_eq!((&runs[0]["jobs"], &runs[0]["jobs_done"]), (&1.into(), &1.into()));
    assert_eq!(node.stop(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_machine_killed_on_the_way_loses_and_doubles_nothing() {
    let site = Site::serve(4, 60, Profile::Plain).await;
    let grange = single_with(&QUICK);
    grange.crawls_at(site.server.addr());
    let mut node = grange.up();
    site.harvest(&grange, "news", "100ms");
    for percent in [3, 25, 50, 75] {
        site.asked(percent);
        node.kill();
        node = grange.up();
    }
    let job = job_with(&grange, "news", "done");
    let id = job["id"].to_string();
    nothing_left(&grange);
    is_kept(&site, &grange, &id, &[&format!("{id}-metadata-1.warc.gz")]);
    site.is_counted(&grange, &id);
    assert_eq!(node.stop(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_disk_keeps_jobs_waiting_and_a_stop_is_only_a_pause() {
    let site = Site::serve(2, 40, Profile::Plain).await;
    let full = QUICK
        .map(|set| if set.contains("min_space_left") { "harvest.min_space_left=999999GiB" } else { set });
    let grange = single_with(&full);
    grange.crawls_at(site.server.addr());
    let node = grange.up();
    site.harvest(&grange, "news", "100ms");
    let waiting = job_with(&grange, "news", "new");
    let harvesters = grange.run(&["channels", "harvesters", "--json"]).ok().json();
    assert_eq!((&harvesters[0]["state"], &harvesters[0]["jobs"]), (&"full".into(), &serde_json::json!([])));
    assert_eq!(waiting["attempts"], 0);
    assert_eq!(node.stop(), 0);

    let grange = grange.set_again(&QUICK);
    let node = grange.up();
    site.asked(30);
    assert_eq!(node.stop(), 0, "a crawl does not hold a node up");
    let folders = std::fs::read_dir(grange.data().join("harvest")).unwrap().count();
    assert_eq!(folders, 1, "the crawl waits in its folder");
    let node = grange.up();
    let job = job_with(&grange, "news", "done");
    let id = job["id"].to_string();
    nothing_left(&grange);
    is_kept(&site, &grange, &id, &[&format!("{id}-metadata-1.warc.gz")]);
    site.is_counted(&grange, &id);
    assert_eq!(node.stop(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancelled_job_is_stored_and_reported_as_failed() {
    let site = Site::serve(2, 60, Profile::Plain).await;
    let grange = single_with(&QUICK);
    grange.crawls_at(site.server.addr());
    let node = grange.up();
    site.harvest(&grange, "news", "300ms");
    site.asked(20);
    let id = job_with(&grange, "news", "started")["id"].to_string();
    grange.run(&["jobs", "cancel", &id]).ok();
    let job = job_with(&grange, "news", "failed");
    assert!(job["harvest_errors"].as_str().unwrap().contains("cancelled by"), "{job}");
    assert_eq!(job["upload_errors"], serde_json::Value::Null);
    nothing_left(&grange);
    let filedir = grange.data().join("replicas/one/filedir");
    assert!(!files_of(&filedir, &id).is_empty(), "what was captured is kept");
    let shown = grange.run(&["jobs", "show", &id, "--json"]).ok().json();
    assert!(shown["statistics"].as_array().unwrap().iter().all(|row| row["stop"] == "unfinished"), "{shown}");
    assert_eq!(node.stop(), 0);
}

/// Machines on one PostgreSQL and NATS: a scheduler, an archiver with all replicas, and harvesters.
struct Cluster {
    scheduler: Grange,
    archiver: Grange,
    harvesters: Vec<Grange>,
    _database: TestDatabase,
    _ports: ReservedPorts,
}

impl Cluster {
    async fn new(harvesters: usize, more: &[&str]) -> Option<Cluster> {
        let database = TestDatabase::create().await?;
        let bus = format!("bus.url={}", nats::shared_url()?);
        let ports = ReservedPorts::new(2 + harvesters);
        let environment = format!("bus.environment=H{}X{}", std::process::id(), ports[0].port());
        let build = |own: usize, roles: &str| {
            let place = |name: &str| match own {
                1 => format!("file:replicas/{name}"),
                _ => format!("peer://{}/{name}", ports[1]),
            };
            let settings = ["one", "two"].map(|name| bytes_at(name, &[&place(name)])).concat() + CHECKSUMS;
            let (db, listen) = (format!("db.url={}", database.url), format!("node.listen={}", ports[own]));
            let (roles, name) = (format!("node.roles={roles}"), format!("node.name=m{own}"));
            let own = [db.as_str(), &bus, &environment, &listen, &roles, &name, "node.heartbeat=200ms"];
            machine(&[&own[..], &QUICK, more].concat(), &settings)
        };
        let scheduler = build(0, "[\"scheduler\", \"admin\"]");
        scheduler.run(&["db", "migrate"]).ok();
        let archiver = build(1, "[\"archiver\", \"bitarchive\"]");
        let harvesters = (0..harvesters).map(|number| build(2 + number, "[\"harvester\"]")).collect();
        Some(Cluster { scheduler, archiver, harvesters, _database: database, _ports: ports })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_with_every_role_killed_on_the_way_loses_and_doubles_nothing() {
    let Some(cluster) = Cluster::new(1, &[]).await else { return };
    let Cluster { scheduler, archiver, harvesters, .. } = &cluster;
    let site = Site::serve(4, 60, Profile::Plain).await;
    for harvester in harvesters {
        harvester.crawls_at(site.server.addr());
    }
    let mut archive = archiver.up();
    let mut plan = scheduler.up();
    let mut harvest = harvesters[0].up();
    site.harvest(scheduler, "news", "15ms");
    site.asked(10);
    harvest.kill();
    harvest = harvesters[0].up();
    site.asked(25);
    archive.kill();
    site.asked(40);
    archive = archiver.up();
    plan.kill();
    site.asked(55);
    plan = scheduler.up();
    site.asked(70);
    harvest.kill();
    harvest = harvesters[0].up();
    let id = job_with(scheduler, "news", "done")["id"].to_string();
    nothing_left(&harvesters[0]);
    is_kept(&site, archiver, &id, &[&format!("{id}-metadata-1.warc.gz")]);
    site.is_counted(scheduler, &id);
    for node in [harvest, plan, archive] {
        assert_eq!(node.stop(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_job_of_a_dead_harvester_is_taken_over() {
    let Some(cluster) = Cluster::new(2, &[]).await else { return };
    let Cluster { scheduler, archiver, harvesters, .. } = &cluster;
    let site = Site::serve(2, 30, Profile::Plain).await;
    for harvester in harvesters {
        harvester.crawls_at(site.server.addr());
    }
    let (_archive, _plan) = (archiver.up(), scheduler.up());
    let first = harvesters[0].up();
    site.harvest(scheduler, "news", "15ms");
    site.asked(30);
    first.kill();
    let _second = harvesters[1].up();
    let job = job_with(scheduler, "news", "done");
    let id = job["id"].to_string();
    assert!(job["attempts"].as_u64() >= Some(2), "{job}");
    nothing_left(&harvesters[1]);
    site.is_counted(scheduler, &id);
    // Whoever died with it comes back: what it had is documented and stored beside the rest, and reported by nobody.
    let _first = harvesters[0].up();
    nothing_left(&harvesters[0]);
    let filedir = archiver.data().join("replicas/one/filedir");
    let papers: Vec<_> = lying_in(&filedir).into_iter().filter(|name| name.contains("-metadata-")).collect();
    assert_eq!(papers.len(), 2, "{papers:?}");
    site.is_counted(scheduler, &id);
    let [_, missing, corrupt, undecided, extra] = audit(archiver);
    assert_eq!([missing, corrupt, undecided, extra], [0; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_dead_harvester_stored_is_not_fetched_again() {
    let Some(cluster) = Cluster::new(2, &[]).await else { return };
    let Cluster { scheduler, archiver, harvesters, .. } = &cluster;
    let site = Site::serve(2, 80, Profile::Plain).await;
    for harvester in harvesters {
        harvester.crawls_at(site.server.addr());
    }
    let (_archive, _plan) = (archiver.up(), scheduler.up());
    let first = harvesters[0].up();
    site.harvest(scheduler, "news", "15ms");
    let id = job_with(scheduler, "news", "started")["id"].to_string();
    let [one, two] = ["one", "two"].map(|name| archiver.data().join(format!("replicas/{name}/filedir")));
    let on_both = || {
        let second = files_of(&two, &id);
        let mut names = files_of(&one, &id);
        names.retain(|name| second.contains(name));
        names
    };
    grange_testkit::wait_for("stored chunks", || (on_both().len() >= 4).then_some(()));
    first.kill();
    // Its disk is lost with it.
    std::fs::remove_dir_all(harvesters[0].data().join("harvest")).unwrap();
    // The newest file may not have been proven yet.
    let mut stored = on_both();
    stored.pop();
    let stored = captured_in(&one, &stored);
    assert!(stored.len() > 10, "{stored:?}");
    let _second = harvesters[1].up();
    let job = job_with(scheduler, "news", "done");
    assert!(job["attempts"].as_u64() >= Some(2), "{job}");
    nothing_left(&harvesters[1]);
    let captured = captured(&one, &id);
    let missing: Vec<_> = site.expected.keys().filter(|url| !captured.contains_key(*url)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let doubled: Vec<_> = stored.keys().filter(|url| captured[*url].len() > 1).collect();
    assert!(doubled.is_empty(), "{} of {} were fetched again: {doubled:?}", doubled.len(), stored.len());
    // The papers and the statistics tell of both parts.
    site.is_counted(scheduler, &id);
    let [_, missing, corrupt, undecided, _] = audit(archiver);
    assert_eq!([missing, corrupt, undecided], [0; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn by_policy_the_job_of_a_dead_harvester_fails() {
    let Some(cluster) = Cluster::new(1, &["schedule.dead_harvester=fail", "harvest.lease=5s"]).await else {
        return;
    };
    let Cluster { scheduler, archiver, harvesters, .. } = &cluster;
    let site = Site::serve(2, 30, Profile::Plain).await;
    for harvester in harvesters {
        harvester.crawls_at(site.server.addr());
    }
    let (_archive, _plan) = (archiver.up(), scheduler.up());
    let harvest = harvesters[0].up();
    site.harvest(scheduler, "news", "30ms");
    site.asked(30);
    harvest.kill();
    let job = job_with(scheduler, "news", "failed");
    assert!(job["harvest_errors"].as_str().unwrap().contains("fell silent"), "{job}");
    let _harvest = harvesters[0].up();
    nothing_left(&harvesters[0]);
    let id = job["id"].to_string();
    assert!(
        !files_of(&archiver.data().join("replicas/two/filedir"), &id).is_empty(),
        "what it had is stored"
    );
    // The job stays failed; what was found of it is told and counted.
    let shown = scheduler.run(&["jobs", "show", &id, "--json"]).ok().json();
    let rows = shown["statistics"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["stop"] == "unfinished"), "{shown}");
    assert!(rows.iter().any(|row| row["objects"].as_u64() > Some(0)), "{shown}");
    let job = job_with(scheduler, "news", "failed");
    assert!(job["harvest_error_details"].as_str().unwrap().contains("was found by the harvester"), "{job}");
}
