//! A crawl that waits, for space or by order, fetches nothing, and its limits end it all the same.

use std::sync::Arc;
use std::time::Duration;

use grange_base::{Clock, Size};
use grange_crawl::engine::{Crawl, End, Order, Phase};
use grange_crawl::job::{Limits, StopReason};
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use grange_testkit::web::{Options, Profile, Web};

use super::site::{Asked, Reply, Site};
use super::{job, run, serve, template, template_to};

fn web() -> Web {
    Web::new(Options { hosts: 3, pages: 30, seed: 11, profile: Profile::Plain, ..Options::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn with_less_space_than_asked_for_nothing_is_fetched_until_the_time_is_over() {
    let web = web();
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let mut template = template(&server);
    template.engine.min_free = Size(u64::MAX);
    let mut wanted = job(template, web.seeds());
    wanted.budgets.crawl.max_seconds = 2;
    let outcome = run(wanted, &folder.path().join("crawl")).await;
    assert_eq!(outcome.end, End::Limit(StopReason::TimeLimit));
    assert_eq!(server.total(), 0);
    let reason = outcome.last.waits_for.unwrap_or_default();
    assert!(reason.contains("engine.min_free"), "{reason}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_that_is_lowered_ends_a_crawl_that_is_paused() {
    let web = web();
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let wanted = job(template(&server), web.seeds());
    let root = folder.path().join("crawl");
    let crawl = Crawl::start(wanted, &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    handle.order("anna", Order::Pause).await.unwrap();
    let running = tokio::spawn(crawl.run());
    until("the pause", async || handle.snapshot().phase == Phase::Paused).await;
    let limits = Limits { max_seconds: 0, ..Limits::default() };
    handle.order("anna", Order::SetLimits { domain: None, limits: limits.into() }).await.unwrap();
    assert_eq!(running.await.unwrap().unwrap().end, End::Limit(StopReason::TimeLimit));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_whose_servers_all_asked_for_an_hour_says_that_it_waits() {
    let answer = |asked: Asked| {
        std::future::ready(Some(match asked.url.as_str() {
            "h.test/robots.txt" => Reply::status(404),
            _ => Reply::status(503).with("Retry-After: 3600"),
        }))
    };
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let mut template = template_to(site.addr());
    template.frontier.pace = Pace::fixed(Duration::from_millis(1));
    let wanted = job(template, vec!["http://h.test/".to_owned()]);
    let crawl =
        Crawl::start(wanted, &folder.path().join("crawl"), Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("the wait", async || {
        let snapshot = handle.snapshot();
        let waits = snapshot.waits_for.is_some_and(|reason| reason.contains("asked for a pause"));
        waits && snapshot.phase == Phase::Running
    })
    .await;
    assert_eq!(site.times("h.test/"), 1);
    handle.stop();
    running.await.unwrap().unwrap();
}
