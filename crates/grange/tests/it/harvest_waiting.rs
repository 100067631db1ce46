//! A replica is away: crawls go on, what is verified somewhere is indexed, and what waits is counted and shown.

use grange_testkit::wait_for;
use grange_testkit::web::Profile;
use serde_json::Value;

use crate::archive_bed::{CHECKSUMS, audit, bytes_at, machine, write_settings};
use crate::harness::Grange;
use crate::harvest_bed::{QUICK, Site, job_with, nothing_left};

/// Three replicas, of which the second takes nothing, or does.
fn replicas(second_takes: bool) -> String {
    let left = if second_takes { "1MB" } else { "999999GiB" };
    let second = format!("{{ url = \"file:replicas/two\", min_space_left = \"{left}\" }}");
    [bytes_at("one", &["file:replicas/one"]), bytes_at("two", &[&second]), CHECKSUMS.to_owned()].concat()
}

fn newest_job(grange: &Grange, harvest: &str) -> Option<Value> {
    grange.run(&["jobs", "ls", "--harvest", harvest, "--json"]).ok().json().get(0).cloned()
}

/// Waits until the crawl of the harvest has ended and its files wait for the archive.
fn waiting(grange: &Grange, harvest: &str) -> Value {
    wait_for("files of the job to wait for a replica", || {
        newest_job(grange, harvest).filter(|job| {
            let reason = job["waiting_reason"].as_str().unwrap_or_default();
            job["waiting_files"].as_u64() > Some(0) && reason.contains("replica two")
        })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replica_that_is_away_holds_up_neither_the_next_crawl_nor_the_index() {
    let site = Site::serve(2, 5, Profile::Plain).await;
    // One crawl at a time, and deposits that are tried for longer than any test lasts.
    let few = ["harvest.jobs_at_once=1", "harvest.deposits_at_once=1", "harvest.upload_attempts=100000"];
    let grange = machine(&[&QUICK[..], &few, &["index.look_every=200ms"]].concat(), &replicas(false));
    site.leads(&grange);
    let node = grange.up();
    site.harvest(&grange, "first", "0s");
    let first = waiting(&grange, "first");
    assert_eq!(first["status"], "started", "{first}");
    // The next job is crawled although the first is not stored.
    site.harvest(&grange, "second", "0s");
    let second = wait_for("the crawl of the second job to end", || {
        newest_job(&grange, "second").filter(|job| job["waiting_files"].as_u64() > Some(0))
    });
    assert_eq!(second["status"], "started", "{second}");
    assert_ne!(first["id"], second["id"]);
    // What one replica has verified is indexed, and what waits is said.
    let shown = wait_for("captures in the index", || {
        let shown = grange.run(&["index", "status", "--json"]).ok().json();
        (shown["files"]["captures"].as_u64() > Some(0)).then_some(shown)
    });
    assert!(shown["waiting_for_replica"]["unproven_files"].as_u64() > Some(0), "{shown}");
    assert_eq!(shown["waiting_for_replica"]["folders"], 2, "{shown}");
    let text = grange.run(&["index", "status"]).ok().stdout;
    assert!(text.contains("wait for a replica") && text.contains("2 job folders"), "{text}");
    assert!(grange.run(&["jobs", "ls"]).ok().stdout.contains("wait for a replica: replica two"));
    let metrics = reqwest::get(format!("{}/metrics", node.local()["url"].as_str().unwrap())).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains("grange_harvest_waiting_folders 2"), "{metrics}");
    assert_eq!(node.stop(), 0);

    // After a restart the deposits go on by themselves, and nothing is crawled again.
    let asked = site.server.total();
    write_settings(&grange, &replicas(true));
    let node = grange.up();
    for harvest in ["first", "second"] {
        let done = job_with(&grange, harvest, "done");
        assert_eq!(done["upload_errors"], Value::Null, "{done}");
    }
    nothing_left(&grange);
    wait_for("nothing to wait any more", || {
        let counts = grange.run(&["index", "status", "--json"]).ok().json()["waiting_for_replica"].clone();
        (counts["folders"] == 0 && counts["unproven_files"] == 0).then_some(())
    });
    assert_eq!(site.server.total(), asked, "nothing was crawled again");
    let [_, missing, corrupt, undecided, extra] = audit(&grange);
    assert_eq!([missing, corrupt, undecided, extra], [0; 4]);
    assert_eq!(node.stop(), 0);
}
