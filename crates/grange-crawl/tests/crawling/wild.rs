//! A web of traps and broken servers costs what its budgets say, and leaves sound files behind.

use std::collections::BTreeMap;
use std::path::Path;

use grange_base::Period;
use grange_crawl::engine::End;
use grange_crawl::job::{DomainBudget, Limits, StopReason};
use grange_crawl::log::CrawlLine;
use grange_testkit::web::{Options, Profile, Web};
use warc::{Reader, RecordType};

use super::{captured, job, run, serve, template, warcs};

/// More than the part of a site that ends, so that traps are walked into.
const OBJECTS: i64 = 600;

/// How many response records there are of each URL, HTTP or not.
fn responses(folder: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for path in warcs(folder) {
        let mut reader = Reader::open(&path).unwrap();
        while let Some(record) = reader.next().unwrap() {
            if record.kind() == RecordType::Response {
                let url = String::from_utf8(record.target_uri().unwrap().to_vec()).unwrap();
                *found.entry(url).or_default() += 1;
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn traps_and_broken_servers_end_within_their_budget() {
    let web =
        Web::new(Options { hosts: 4, pages: 4, seed: 21, profile: Profile::Wild, ..Options::default() });
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    // Some answers never come; here nobody is slow for another reason.
    template.fetch.first_byte_timeout = Period::from_millis(400);
    template.fetch.idle_timeout = Period::from_millis(400);
    template.frontier.max_retries = 1;
    // Every host has broken answers in a row; it is to be asked on all the same.
    template.frontier.park_after = 0;
    template.frontier.pace.back_off_first = Period::from_millis(10);
    template.frontier.pace.back_off_most = Period::from_millis(10);
    template.scope.max_hops = 10_000;
    let broken: Vec<_> = (0..4).flat_map(|site| web.broken(site)).map(|(url, ..)| url).collect();
    assert!(broken.len() > 40);
    let mut seeds = web.seeds();
    seeds.extend(broken.iter().cloned());
    let mut job = job(template, seeds);
    let limits = Limits { max_objects: OBJECTS, ..Limits::default() };
    job.budgets.other_domains = DomainBudget { limits, ..DomainBudget::default() };
    let outcome = run(job, &root).await;

    assert_eq!(outcome.end, End::Finished);
    // Every record is sound, also those of messages that are none.
    captured(&root);
    let found = responses(&root);
    let mut reached = 0;
    for result in &outcome.domains {
        assert!(result.objects <= OBJECTS as u64, "{result:?}");
        if result.stop_reason == StopReason::ObjectLimit {
            assert_eq!(result.objects, OBJECTS as u64, "{result:?}");
            reached += 1;
        }
    }
    assert!(reached > 0, "some trap had no end: {:?}", outcome.domains);
    let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let mut lines: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for line in text.lines() {
        let line = CrawlLine::parse(line).unwrap();
        lines.entry(line.url.into_owned()).or_default().push(line.status.0);
    }
    // What came over the wire is a capture, whatever it was; what never came is a line in the log.
    for url in &broken {
        let statuses = lines.get(url).unwrap_or_else(|| panic!("{url} is not in the log"));
        assert_eq!(statuses.len(), 1, "{url}: {statuses:?}");
        assert_eq!(found.contains_key(url), statuses[0] > 0, "{url}: {statuses:?}");
    }
    let logged = lines.values().flatten().filter(|status| **status > 0).count();
    assert_eq!(logged, found.values().sum::<usize>());
    server.stop().await;
}
