//! A running crawl does what it is told, at once, and writes down who told it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use grange_base::Clock;
use grange_crawl::engine::{AskError, Crawl, End, Handle, Order, OrderError, Phase, Snapshot, ask};
use grange_crawl::job::{Limits, LimitsChange, StopReason};
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::record::chunk::Manifest;
use grange_testkit::until;
use grange_testkit::web::{Options, Profile, Rules, Sub, Web};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use super::{captured, job, serve, template};

/// Long enough that a crawl of [`web`] is caught in the middle, short enough to wait for its end.
const PACE: Duration = Duration::from_millis(100);

fn web() -> Web {
    Web::new(Options { hosts: 3, pages: 60, seed: 11, profile: Profile::Plain, ..Options::default() })
}

/// Waits for a picture of the crawl.
async fn picture(handle: &Handle, what: &str, holds: impl FnMut(&Snapshot) -> bool) -> Snapshot {
    let mut watch = handle.watch();
    let seen = tokio::time::timeout(Duration::from_secs(60), watch.wait_for(holds)).await;
    seen.unwrap_or_else(|_| panic!("waited for {what}")).expect("the crawl runs").clone()
}

/// Waits until a paused crawl has ended what was under way, and shows that it asks for nothing more.
async fn at_rest(handle: &Handle, asked: impl Fn() -> u64) -> Snapshot {
    let at_rest = |picture: &Snapshot| picture.phase == Phase::Paused && picture.in_flight == 0;
    let first = picture(handle, "the pause", at_rest).await;
    // A picture made wholly after the order.
    let second = picture(handle, "a picture", |picture| at_rest(picture) && picture.at > first.at).await;
    let before = asked();
    let third = picture(handle, "a picture", |picture| picture.at > second.at).await;
    assert_eq!((asked(), third.queued, third.finished), (before, second.queued, second.finished));
    third
}

/// The lines of control.log over all chunks, in their order: who and what.
fn orders(root: &Path) -> Vec<(String, String, String)> {
    let mut lines: Vec<Value> = Vec::new();
    for entry in std::fs::read_dir(root.join("logs")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("control.log") {
            let text = std::fs::read_to_string(path).unwrap();
            lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        }
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines.sort_by_key(|line| text(&line["time"]).parse::<jiff::Timestamp>().unwrap());
    let outcome = |line: &Value| text(&line["outcome"]).split(' ').next().unwrap().to_owned();
    lines.iter().map(|line| (text(&line["who"]), text(&line["order"]["do"]), outcome(line))).collect()
}

/// Every file of a manifest is there as it says.
fn check_manifest(root: &Path, manifest: &Manifest) {
    let sets = [("warcs", &manifest.files), ("logs", &manifest.logs)];
    for (folder, file) in sets.iter().flat_map(|(folder, files)| files.iter().map(move |file| (folder, file)))
    {
        let bytes = std::fs::read(root.join(folder).join(&file.name)).unwrap();
        assert_eq!(file.size, bytes.len() as u64, "{}", file.name);
        assert_eq!(file.sha512, HEXLOWER.encode(&Sha512::digest(&bytes)), "{}", file.name);
    }
    // The logs of the last chunk keep their names, as with Heritrix.
    let suffix = if manifest.last_chunk { ".log".to_owned() } else { format!(".log.{}", manifest.chunk) };
    assert!(manifest.logs.iter().all(|log| log.name.ends_with(&suffix)), "{:?}", manifest.logs);
    assert!(manifest.logs.iter().any(|log| log.name == format!("crawl{suffix}")), "{:?}", manifest.logs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_is_paused_changed_rotated_and_goes_on() {
    let web = web();
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    template.frontier.pace = Pace::fixed(PACE);
    let seeds = web.seeds();
    let crawl = Crawl::start(job(template, seeds[..2].to_vec()), &root, Arc::new(NoOracle), Clock::system());
    let crawl = crawl.unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    let order = async |order| handle.order("anna", order).await;

    until("some pages", async || server.total() > 8).await;
    order(Order::Pause).await.unwrap();
    let paused = at_rest(&handle, || server.total()).await;
    assert!(paused.queued > 20, "{paused:?}");

    // What waits can be seen.
    let queues = order(Order::Queues { after: None, limit: 100 }).await.unwrap();
    let queues = queues.as_array().unwrap();
    let sum: u64 = queues.iter().map(|queue| queue["queued"].as_u64().unwrap()).sum();
    assert_eq!(sum, paused.queued);
    let one = order(Order::Queues { after: None, limit: 1 }).await.unwrap();
    assert_eq!(one[0]["name"], queues[0]["name"]);
    let after = u32::try_from(one[0]["cursor"].as_u64().unwrap()).unwrap();
    let rest = order(Order::Queues { after: Some(after), limit: 100 }).await.unwrap();
    assert_eq!(rest.as_array().unwrap()[..], queues[1..]);
    let mut waiting = BTreeSet::new();
    for queue in queues {
        let queue = queue["name"].as_str().unwrap().to_owned();
        let rows = order(Order::Peek { queue, limit: 1000 }).await.unwrap();
        waiting.extend(rows.as_array().unwrap().iter().map(|row| row["url"].as_str().unwrap().to_owned()));
    }
    assert_eq!(waiting.len() as u64, paused.queued);

    // Half of it is not wanted.
    let unwanted = |url: &String| {
        let stem = url.strip_suffix(".html").filter(|_| url.contains("/p/"));
        stem.is_some_and(|stem| stem.ends_with(['0', '2', '4', '6', '8']))
    };
    let dropped = order(Order::Reject { regex: r".*/p/\d*[02468]\.html".to_owned() }).await.unwrap();
    let expected = waiting.iter().filter(|url| unwanted(url)).count();
    assert!(expected > 5);
    assert_eq!(dropped, json!({"dropped": expected}));
    let bad = order(Order::Reject { regex: "(".to_owned() }).await;
    assert!(bad.is_err());

    // One more site, but little of it.
    let few = Limits { max_objects: 4, ..Limits::default() };
    order(Order::SetLimits { domain: Some("h0002.test".to_owned()), limits: few.into() }).await.unwrap();
    // A limit that is not named stays.
    let wide = LimitsChange { max_bytes: Some(1 << 40), ..LimitsChange::default() };
    order(Order::SetLimits { domain: Some("h0002.test".to_owned()), limits: wide }).await.unwrap();
    let added = order(Order::AddSeeds { urls: vec![seeds[2].clone()], endpoints: Vec::new() }).await.unwrap();
    assert_eq!(added, json!({"queued": 1, "seen_before": 0}));

    // A chunk is closed while nothing happens, another one in the middle.
    let before = server.total();
    let first = handle.order("bo", Order::Rotate).await.unwrap();
    let first: Manifest = serde_json::from_value(first).unwrap();
    check_manifest(&root, &first);
    assert_eq!(first.urls, before);
    assert!(!first.last_chunk);
    assert_eq!(handle.rotate().await.unwrap(), None, "nothing was written since");
    order(Order::Resume).await.unwrap();
    until("more pages", async || server.total() > before + 4).await;
    let second = handle.rotate().await.unwrap().unwrap();
    check_manifest(&root, &second);
    order(Order::SetPace { factor: 0.0 }).await.unwrap();

    let outcome = running.await.unwrap().unwrap();
    assert_eq!(outcome.end, End::Finished);
    let last = outcome.manifest.unwrap();
    check_manifest(&root, &last);
    assert!(last.last_chunk);
    let found = captured(&root);
    assert_eq!(first.urls + second.urls + last.urls, found.len() as u64);
    let late: Vec<_> = found.keys().filter(|url| waiting.contains(*url) && unwanted(url)).collect();
    assert_eq!(late, Vec::<&String>::new());
    let rules = Rules { seeds: seeds[..2].to_vec(), ..Rules::default() };
    for url in web.expected(&rules).keys().filter(|url| waiting.contains(*url) && !unwanted(url)) {
        assert!(found.contains_key(url), "{url} was still wanted");
    }
    let host = format!("http://{}/", web.host(2, Sub::Bare));
    let of_third = found.keys().filter(|url| url.starts_with(&host) && !url.ends_with("/robots.txt")).count();
    assert_eq!(of_third, 4);
    let third = outcome.domains.iter().find(|result| result.domain == "h0002.test").unwrap();
    assert_eq!((third.objects, third.stop_reason), (4, StopReason::ObjectLimit));

    let said = orders(&root);
    let said: Vec<_> = said.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    assert_eq!(
        said,
        [
            ("anna", "pause", "done"),
            ("anna", "reject", "done"),
            ("anna", "reject", "refused"),
            ("anna", "set-limits", "done"),
            ("anna", "set-limits", "done"),
            ("anna", "add-seeds", "done"),
            ("bo", "rotate", "done"),
            ("anna", "resume", "done"),
            ("anna", "set-pace", "done"),
        ]
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_come_over_the_socket_and_a_stopped_crawl_is_resumed() {
    let web = web();
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    template.frontier.pace = Pace::fixed(PACE);
    let mut wanted = job(template, web.seeds());
    let crawl = Crawl::start(wanted.clone(), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    assert!(matches!(ask(&root, "web", Order::Status).await, Err(AskError::NotRunning(..))));
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("some pages", async || server.total() > 8).await;
    ask(&root, "web", Order::Pause).await.unwrap();
    let paused = at_rest(&handle, || server.total()).await;
    let status: Snapshot = serde_json::from_value(ask(&root, "web", Order::Status).await.unwrap()).unwrap();
    assert_eq!((status.phase, status.queued), (Phase::Paused, paused.queued));
    let bad =
        ask(&root, "web", Order::AddSeeds { urls: vec!["nowhere".to_owned()], endpoints: Vec::new() }).await;
    assert!(matches!(bad, Err(AskError::Refused(_))), "{bad:?}");
    let before = server.total();
    ask(&root, "web", Order::Resume).await.unwrap();
    until("more pages", async || server.total() > before + 3).await;
    ask(&root, "cli", Order::Stop).await.unwrap();
    let outcome = running.await.unwrap().unwrap();
    assert_eq!(outcome.end, End::Stopped);
    assert!(outcome.last.queued > 0);
    assert!(outcome.domains.iter().all(|result| result.stop_reason == StopReason::Unfinished));
    check_manifest(&root, &outcome.manifest.unwrap());
    let said = orders(&root);
    let said: Vec<_> = said.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    assert_eq!(
        said,
        [
            ("web", "pause", "done"),
            ("web", "add-seeds", "refused"),
            ("web", "resume", "done"),
            ("cli", "stop", "done"),
        ]
    );
    assert!(matches!(ask(&root, "web", Order::Status).await, Err(AskError::NotRunning(..))));

    // It goes on where it was, faster now; the handle we still have does not stand in the way.
    wanted.template.frontier.pace = Pace::none();
    let crawl = Crawl::resume_as(wanted, &root, Arc::new(NoOracle), Clock::system()).unwrap();
    assert_eq!(crawl.run().await.unwrap().end, End::Finished);
    assert_eq!(handle.order("web", Order::Pause).await, Err(OrderError::Ended));
    let expected: Vec<_> = web.expected(&Rules::default()).into_keys().collect();
    let found = captured(&root);
    assert!(found.values().all(|captures| captures.len() == 1));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), expected);
    server.stop().await;
}
