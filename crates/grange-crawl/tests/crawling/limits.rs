//! Limits are kept to the object, and to one record for bytes; every stop has its reason.

use std::sync::Arc;
use std::time::Duration;

use grange_base::Clock;
use grange_crawl::engine::{Crawl, End};
use grange_crawl::job::{ByteLimitFrom, DomainBudget, Limits, StopReason};
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use grange_testkit::web::{Options, Profile, Web};
use jiff::Timestamp;

use super::site::{Asked, Reply, Site};
use super::{captured, job, run, serve, template, template_to};

#[tokio::test(flavor = "multi_thread")]
async fn every_limit_stops_where_it_says() {
    let web =
        Web::new(Options { hosts: 6, pages: 30, seed: 3, profile: Profile::Plain, ..Options::default() });
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut job = job(template(&server), web.seeds());
    let domain = |site: usize| format!("h{site:04}.test");
    let limits = |objects, bytes| Limits { max_objects: objects, max_bytes: bytes, ..Limits::default() };
    let budgets = &mut job.budgets.domains;
    budgets.insert(domain(0), DomainBudget { limits: limits(7, -1), ..DomainBudget::default() });
    budgets.insert(domain(1), DomainBudget { limits: limits(-1, 50_000), ..DomainBudget::default() });
    budgets.insert(
        domain(2),
        DomainBudget { limits: limits(-1, 50_000), bytes_from: ByteLimitFrom::Configuration },
    );
    budgets.insert(domain(3), DomainBudget { limits: limits(0, -1), ..DomainBudget::default() });
    let outcome = run(job, &root).await;
    assert_eq!(outcome.end, End::Finished);
    let result = |site| {
        let name = domain(site);
        outcome.domains.iter().find(|result| result.domain == name).cloned().unwrap()
    };
    assert_eq!((result(0).objects, result(0).stop_reason), (7, StopReason::ObjectLimit));
    for (site, reason) in [(1, StopReason::SizeLimit), (2, StopReason::ConfigSizeLimit)] {
        let result = result(site);
        assert_eq!(result.stop_reason, reason);
        // The record that reaches the limit is the last one; the largest page has about 11 kB.
        assert!((50_000..62_000).contains(&result.bytes), "{}", result.bytes);
    }
    assert_eq!((result(3).objects, result(3).stop_reason), (0, StopReason::ObjectLimit));
    assert_eq!(result(4).stop_reason, StopReason::Completed);
    let found = captured(&root);
    let of = |site| {
        let start = format!("http://{}/", domain(site));
        found.keys().filter(|url| url.starts_with(&start) && !url.ends_with("/robots.txt")).count()
    };
    assert_eq!((of(0), of(3)), (7, 0));
    assert_eq!(of(4) as u64, result(4).objects);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_the_whole_crawl_is_exact_and_can_be_raised() {
    let web =
        Web::new(Options { hosts: 5, pages: 20, seed: 3, profile: Profile::Plain, ..Options::default() });
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut first = job(template(&server), web.seeds());
    first.budgets.crawl.max_objects = 17;
    let outcome = run(first.clone(), &root).await;
    assert_eq!(outcome.end, End::Limit(StopReason::ObjectLimit));
    let documents = |root| captured(root).keys().filter(|url| !url.ends_with("/robots.txt")).count();
    assert_eq!(documents(&root), 17);
    assert!(outcome.domains.iter().any(|result| result.stop_reason == StopReason::Unfinished));
    // Raised, the crawl goes on where it was.
    first.budgets.crawl.max_objects = 40;
    let oracle = Arc::new(NoOracle);
    let crawl = Crawl::resume_as(first, &root, oracle, Clock::system()).unwrap();
    let outcome = crawl.run().await.unwrap();
    assert_eq!(outcome.end, End::Limit(StopReason::ObjectLimit));
    assert_eq!(documents(&root), 40);
    assert!(captured(&root).values().all(|captures| captures.len() == 1));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_does_not_come_does_not_outlast_the_time_limit() {
    let site = Site::serve(|asked: Asked| async move {
        if asked.url == "one.test/never" {
            std::future::pending::<()>().await;
        }
        Some(Reply::links("x", vec!["/never".to_owned()]))
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let mut template = template_to(site.addr());
    template.robots.policy = grange_crawl::robots::Policy::Ignore;
    template.engine.stop_within = grange_base::Period::from_millis(10);
    let mut job = job(template, vec!["http://one.test/".to_owned()]);
    job.budgets.crawl.max_seconds = 1;
    let (clock, hand) = Clock::test(Timestamp::from_second(1_700_000_000).unwrap());
    let root = folder.path().join("crawl");
    let running = tokio::spawn(Crawl::start(job, &root, Arc::new(NoOracle), clock).unwrap().run());
    until("the page that does not come", async || site.times("one.test/never") == 1).await;
    until("the crawl to end", async || {
        hand.advance(Duration::from_secs(1));
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    assert_eq!(outcome.end, End::Limit(StopReason::TimeLimit));
    assert_eq!((outcome.last.queued, site.times("one.test/never")), (1, 1), "it is left for a resume");
}
