use grange_base::Clock;
use grange_testkit::wait::until;
use jiff::SignedDuration;
use reqwest::Method;

use super::bed::{Bed, KEY};
use crate::admin::NewCollection;
use crate::place::Point;

/// Names that lie on slice `slice` of `slices`.
pub(super) fn names(slices: u32, slice: u32, count: usize) -> Vec<String> {
    let all = (0..).map(|n| format!("docs/{}/file{n}.txt", n % 7));
    all.filter(|name| Point::of(name).slice(slices.try_into().unwrap()) == slice).take(count).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn any_server_answers_for_any_path_with_one_redirect() {
    let bed = Bed::new(3, 1).await;
    bed.create("chronopolis/umiacs/code", 3, false).await;
    let mut redirects = 0;
    for slice in 0..3 {
        for (server, name) in names(3, slice, 3).iter().enumerate() {
            let path = format!("put/chronopolis/umiacs/code/{name}");
            let first = bed.once(Method::PUT, server, &path, Some(name.as_bytes())).await;
            redirects += usize::from(first.status() == 307);
            assert!([201, 307].contains(&first.status().as_u16()), "{}", first.status());
            assert!(bed.put(server, "chronopolis/umiacs/code", name, name.as_bytes()).await < 202);
            for server in 0..3 {
                assert_eq!(bed.get(server, "chronopolis/umiacs/code", name).await.unwrap(), name.as_bytes());
            }
        }
    }
    assert_eq!(redirects, 6, "two of three servers do not keep a name");
    // Who waits with the body is redirected as the paper says.
    let name = &names(3, 1, 4)[3];
    let mut found = Vec::new();
    for server in 0..3 {
        let url = bed.url(server, &format!("put/chronopolis/umiacs/code/{name}"));
        let sent = bed.client.put(url).header("Expect", "100-continue").body("x").send().await.unwrap();
        found.push(sent.status().as_u16());
    }
    assert_eq!(found.iter().filter(|status| **status == 302).count(), 2, "{found:?}");
    // A server that was sent a request it does not keep, by the very table it has, does not send it on.
    let mut found = Vec::new();
    for server in 0..3 {
        let path = format!("get/chronopolis/umiacs/code/{name}?swap-hop=1&swap-epoch=1");
        found.push(bed.once(Method::GET, server, &path, None).await.status().as_u16());
    }
    found.sort_unstable();
    assert_eq!(found, [200, 508, 508]);
    let copied = bed.copied("chronopolis/umiacs/code");
    assert_eq!(copied.len(), 10);
    // Listings are merged, in HTML and JSON.
    let json = bed.once(Method::GET, 1, "get/chronopolis/umiacs/code/docs/?format=json", None).await;
    let json: serde_json::Value = json.json().await.unwrap();
    let entries = json["entries"].as_array().unwrap();
    let expected: std::collections::BTreeSet<_> =
        copied.keys().map(|name| name.split('/').nth(1).unwrap()).collect();
    assert_eq!(
        entries
            .iter()
            .map(|entry| entry["name"].as_str().unwrap())
            .collect::<std::collections::BTreeSet<_>>(),
        expected
    );
    let html = bed.once(Method::GET, 2, "get/chronopolis/umiacs/code/", None).await.text().await.unwrap();
    assert!(html.contains("<a href=\"./docs/\">docs/</a>"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_takes_only_its_own_files_with_it() {
    let mut bed = Bed::new(3, 1).await;
    bed.create("c", 3, true).await;
    let all: Vec<String> = (0..3).flat_map(|slice| names(3, slice, 4)).collect();
    for name in &all {
        assert_eq!(bed.put(0, "c", name, name.as_bytes()).await, 201);
    }
    bed.stop(2).await;
    bed.sees(0, 1).await;
    bed.sees(1, 1).await;
    let mut away = 0;
    for name in &all {
        match bed.get(0, "c", name).await {
            Ok(bytes) => assert_eq!(bytes, name.as_bytes()),
            Err(status) => {
                assert_eq!(status, 503);
                let response = bed.once(Method::GET, 0, &format!("get/c/{name}"), None).await;
                assert!(response.headers().contains_key("retry-after"));
                away += 1;
            }
        }
    }
    assert_eq!(away, 4);
    // No new collection while somebody might know the name.
    let new = NewCollection { namespace: "d".into(), slices: 1, public: true, mixed_disks: false };
    assert_eq!(bed.admin(0).create(&new).await.unwrap_err().status(), 503);
    bed.start(2).await;
    for server in 0..3 {
        bed.sees(server, 2).await;
    }
    for name in &all {
        assert_eq!(bed.get(1, "c", name).await.unwrap(), name.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_rebuilt_from_the_disks() {
    let mut bed = Bed::new(2, 2).await;
    bed.create("a/b", 4, true).await;
    bed.create("a/c", 2, false).await;
    for name in names(4, 1, 3).iter().chain(&names(4, 2, 3)) {
        assert_eq!(bed.put(1, "a/b", name, name.as_bytes()).await, 201);
    }
    let before = bed.admin(0).status().await.unwrap();
    for server in 0..2 {
        bed.stop(server).await;
    }
    for server in 0..2 {
        bed.start(server).await;
    }
    for server in 0..2 {
        bed.sees(server, 1).await;
    }
    let after = bed.admin(1).status().await.unwrap();
    let records = |status: &crate::admin::Status| {
        status.collections.iter().map(|c| c.record.clone()).collect::<Vec<_>>()
    };
    assert_eq!(records(&before), records(&after));
    for name in names(4, 1, 3) {
        assert_eq!(bed.get(0, "a/b", &name).await.unwrap(), name.as_bytes());
    }
    let report = bed.verify(0, "a/b").await;
    assert_eq!((report.files, report.problem_count, report.without_checksum), (6, 0, 0), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_do_not_overlap_and_need_partitions() {
    let bed = Bed::new(2, 1).await;
    bed.create("a/b", 2, true).await;
    for (namespace, slices, status) in [
        ("a/b", 1, 409),
        ("a", 1, 409),
        ("a/b/c", 1, 409),
        ("x", 3, 409),
        ("x", 0, 409),
        ("../x", 1, 400),
        (".swap", 1, 400),
    ] {
        let new = NewCollection { namespace: namespace.into(), slices, public: true, mixed_disks: false };
        let error = bed.admin(1).create(&new).await.unwrap_err();
        assert_eq!(error.status(), status, "{namespace} {slices}: {error}");
    }
    bed.create("a/c", 1, true).await;
    assert_eq!(bed.put(0, "a/b", "x", b"x").await, 201);
    assert_eq!(bed.admin(0).remove_collection("a/b", false).await.unwrap_err().status(), 409);
    bed.admin(0).remove_collection("a/b", true).await.unwrap();
    until("the collection is gone everywhere", async || {
        bed.servers.iter().flatten().all(|server| server.node().view().get("a/b").is_none())
    })
    .await;
    assert_eq!(bed.get(0, "a/b", "x").await, Err(404));
    assert_eq!(bed.copied("a/b").len(), 0);
    assert_eq!(bed.copied(".swap-attic").len(), 1);
    bed.create("a/b", 2, true).await;
    assert_eq!(bed.get(0, "a/b", "x").await, Err(404));
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_finds_damage_and_what_lies_in_the_wrong_place() {
    let bed = Bed::new(2, 1).await;
    bed.create("c", 2, true).await;
    let (here, there) = (names(2, 0, 2), names(2, 1, 1));
    for name in here.iter().chain(&there) {
        bed.put(0, "c", name, name.as_bytes()).await;
    }
    let tree_of = |name: &str| {
        bed.all_partitions().into_iter().map(|p| p.join("c").join(name)).find(|p| p.exists()).unwrap()
    };
    let damaged = tree_of(&here[0]);
    std::fs::write(&damaged, "rotten").unwrap();
    let wrong = tree_of(&there[0]).parent().unwrap().join("other.txt");
    let moved = tree_of(&here[1]);
    std::fs::create_dir_all(wrong.parent().unwrap()).unwrap();
    let slice_one = tree_of(&there[0]);
    let root = bed.all_partitions().into_iter().find(|p| slice_one.starts_with(p)).unwrap();
    let target = root.join("c").join(&here[1]);
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    std::fs::rename(&moved, &target).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("c/link")).unwrap();
    let report = bed.verify(1, "c").await;
    assert_eq!(report.files, 3);
    let mut kinds: Vec<_> = report
        .problems
        .iter()
        .map(|p| serde_json::to_value(p).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    kinds.sort();
    assert_eq!(kinds, ["foreign", "misplaced", "other_bytes"], "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_ahead_is_reported_and_named_where_it_refuses_a_redirect() {
    let mut bed = Bed::tuned(2, 1, |settings| settings.trust_local = false).await;
    bed.stop(1).await;
    bed.other_clocks.insert(1, Clock::shifted(SignedDuration::from_hours(1)));
    bed.start(1).await;
    bed.sees(0, 1).await;
    bed.sees(1, 1).await;
    bed.create("c", 2, true).await;
    for (server, other, minutes) in [(0, 1, 60), (1, 0, -60)] {
        let node = bed.servers[server].as_ref().unwrap().node();
        let base = format!("http://{}", bed.addresses[other]);
        until("the clocks are compared", async || node.clock_ahead(&base).is_some()).await;
        let ahead = node.clock_ahead(&base).unwrap();
        assert!(
            (ahead - SignedDuration::from_mins(minutes)).abs() < SignedDuration::from_mins(5),
            "{ahead:?}"
        );
        let status = bed.admin(server).status().await.unwrap();
        let told = status.servers.iter().find(|seen| seen.base == base).unwrap().clock_ahead_ms;
        assert_eq!(told, Some(ahead.as_millis() as i64));
    }
    // Each server sends the other's files on with a ticket by its own clock.
    let mut answers = Vec::new();
    for server in 0..2 {
        for slice in 0..2 {
            let url = bed.url(server, &format!("put/c/{}", names(2, slice, 1)[0]));
            let sent = bed.client.put(url).bearer_auth(KEY).body("x").send().await.unwrap();
            if sent.status() != 307 {
                continue;
            }
            let location = sent.headers()["location"].to_str().unwrap().to_owned();
            let sent = bed.client.put(&location).body("x").send().await.unwrap();
            answers.push((sent.status().as_u16(), sent.text().await.unwrap()));
            let forged = location.replace("swap-ticket=", "swap-ticket=1");
            let sent = bed.client.put(&forged).body("x").send().await.unwrap();
            let text = sent.text().await.unwrap();
            assert!(text.contains("this needs the key"), "{text}");
        }
    }
    let [(401, ended), (200 | 201, _)] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(ended.contains("ended at") && ended.contains("the clock of this server shows"), "{ended}");
}
