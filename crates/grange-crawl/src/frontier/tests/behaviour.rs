//! Order, claims, retries, parking, budgets and control, case by case.

use std::net::IpAddr;

use grange_base::Period;

use super::*;
use crate::frontier::{Added, FrontierError, QueueBy, QueueFilter, QueueState};
use crate::job::{ByteLimitFrom, DomainBudget, Limits, StopReason};

const NONE: Limits = Limits { max_objects: -1, max_bytes: -1, max_seconds: -1 };

fn each_domain(limits: Limits) -> Budgets {
    let other_domains = DomainBudget { limits, bytes_from: ByteLimitFrom::Harvest };
    Budgets { other_domains, ..Budgets::default() }
}

fn reasons(bench: &Bench, millis: i64) -> Vec<(String, u64, u64, StopReason)> {
    let results = bench.frontier().domains(at(millis)).into_iter();
    results.map(|r| (r.domain, r.objects, r.remaining, r.stop_reason)).collect()
}

#[test]
fn a_url_is_taken_once_whatever_its_dress() {
    let bench = Bench::new(impolite(), Budgets::default());
    let added = bench.frontier().add(
        &[seed("http://a.org/"), seed("http://a.org/#x"), seed("http://u:p@a.org/?"), seed("https://a.org/")],
        at(0),
    );
    assert_eq!(added.unwrap(), Added { queued: 2, seen_before: 2, ..Added::default() });
    assert_eq!(bench.drain(0, 1), ["http://a.org/", "https://a.org/"]);
    assert_eq!(bench.frontier().add(&[seed("http://a.org/")], at(0)).unwrap().queued, 0);
    let again = Candidate { force: true, ..seed("http://a.org/") };
    assert_eq!(bench.frontier().add(&[again], at(0)).unwrap().queued, 1);
    assert_eq!(bench.drain(0, 1), ["http://a.org/"]);
    assert!(matches!(bench.next(0), Next::Empty));
}

#[test]
fn order_is_by_kind_then_hops_then_arrival() {
    let bench = Bench::new(impolite(), Budgets::default());
    bench.add(&[
        found("http://a.org/sitemap-entry", "M"),
        found("http://a.org/link2", "LL"),
        found("http://a.org/link1", "L"),
        found("http://a.org/link1b", "L"),
        found("http://a.org/embed", "LE"),
        seed("http://a.org/"),
        prerequisite("http://a.org/robots.txt"),
    ]);
    let urls = bench.drain(0, 1);
    let paths: Vec<&str> = urls.iter().map(|url| &url["http://a.org/".len()..]).collect();
    assert_eq!(paths, ["robots.txt", "", "embed", "link1", "link1b", "link2", "sitemap-entry"]);
}

#[test]
fn queues_take_turns_and_have_one_in_flight() {
    let bench = Bench::new(impolite(), Budgets::default());
    let urls = ["http://a.org/1", "http://a.org/2", "http://b.org/1", "http://b.org/2", "http://a.org:81/1"];
    bench.add(&urls.map(seed));
    let first = bench.claim(0);
    let second = bench.claim(0);
    assert_eq!(first.candidate.url.as_str(), urls[0]);
    assert_eq!(second.candidate.url.as_str(), urls[2]);
    // The other port is another queue, but the same host.
    assert!(matches!(bench.next(0), Next::Idle));
    bench.finish(done(first, 200, 1), 0);
    assert_eq!(bench.drain(0, 1), [urls[4], urls[1]]);
    assert!(matches!(bench.next(0), Next::Idle));
    bench.finish(done(second, 200, 1), 0);
    assert_eq!(bench.drain(0, 1), [urls[3]]);
    assert!(matches!(bench.next(0), Next::Empty));
}

#[test]
fn an_address_has_so_many_in_flight_and_no_queue_is_forgotten() {
    let settings = Settings { parallel_per_ip: 2, ..impolite() };
    let bench = Bench::new(settings, Budgets::default());
    let ip: IpAddr = "192.0.2.1".parse().unwrap();
    let urls: Vec<String> = (0..6).map(|i| format!("http://h{i}.org/")).collect();
    for i in 0..6 {
        bench.frontier().set_address(&format!("h{i}.org"), ip);
    }
    bench.add(&urls.iter().map(|url| seed(url)).collect::<Vec<_>>());
    let (one, two) = (bench.claim(0), bench.claim(0));
    assert!(matches!(bench.next(0), Next::Idle));
    assert_eq!(bench.frontier().counts(at(0)).queues.blocked, 4);
    bench.finish(done(one, 200, 1), 0);
    let three = bench.claim(0);
    assert!(matches!(bench.next(0), Next::Idle));
    bench.finish(done(two, 200, 1), 0);
    bench.finish(done(three, 200, 1), 0);
    assert_eq!(bench.drain(0, 1).len(), 3);
    assert!(matches!(bench.next(0), Next::Empty));
}

#[test]
fn the_pace_is_kept_and_can_be_changed() {
    let settings = Settings::default();
    let bench = Bench::new(settings, Budgets::default());
    bench.add(&[seed("http://a.org/1"), seed("http://a.org/2"), seed("http://a.org/3"), seed("dns:a.org")]);
    let claim = bench.claim(0);
    bench.finish(done(claim, 200, 1), 100);
    let Next::Wait(time) = bench.next(100) else { panic!() };
    assert_eq!(time, at(3100));
    assert!(matches!(bench.next(3099), Next::Wait(_)));
    bench.frontier().set_pace_factor(2.0);
    let claim = bench.claim(3100);
    bench.finish(done(claim, 429, 1), 3200);
    let Next::Wait(time) = bench.next(3200) else { panic!() };
    assert_eq!(time, at(33_200), "a strained server gets its time");
    bench.frontier().set_pace(Pace::none());
    let claim = bench.claim(33_200);
    bench.finish(done(claim, 200, 1), 33_300);
    assert_eq!(bench.drain(33_300, 1), ["dns:a.org"]);
}

#[test]
fn a_name_and_a_blocked_url_cost_no_wait() {
    let bench = Bench::new(Settings::default(), Budgets::default());
    bench.add(&[prerequisite("dns:a.org"), seed("http://a.org/1"), seed("http://a.org/2")]);
    for (url, status) in [("dns:a.org", 1), ("http://a.org/1", -9998), ("http://a.org/2", 200)] {
        let claim = bench.claim(0);
        assert_eq!(claim.candidate.url.as_str(), url);
        bench.finish(done(claim, status, 50), 0);
    }
    let counts = bench.frontier().counts(at(0));
    assert_eq!((counts.succeeded, counts.disregarded, counts.objects, counts.bytes), (2, 1, 1, 150));
}

#[test]
fn what_failed_waits_and_the_others_go_on() {
    let mut bench = Bench::new(Settings { park_after: 0, ..impolite() }, Budgets::default());
    bench.add(&[seed("http://a.org/1"), seed("http://a.org/2")]);
    let claim = bench.claim(0);
    let after = bench.settings.retry(FetchStatus(-2), false, claim.tries).unwrap();
    let outcome = Outcome::Retry { visit: visit(-2, 0), after };
    bench.finish(Finished { claim, outcome, discovered: Vec::new() }, 0);
    assert_eq!(bench.drain(0, 1), ["http://a.org/2"]);
    let Next::Wait(time) = bench.next(0) else { panic!() };
    assert_eq!(time, at(60_000));
    bench.reopen(at(10));
    let Next::Wait(time) = bench.next(10) else { panic!("the wait holds over a restart") };
    assert_eq!(time, at(60_000));
    bench.add(&[seed("http://a.org/3")]);
    let claim = bench.claim(60_000);
    assert_eq!((claim.candidate.url.as_str(), claim.tries), ("http://a.org/1", 1), "it stood before 3");
    bench.finish(done(claim, -2, 0), 60_000);
    assert_eq!(bench.drain(60_000, 1), ["http://a.org/3"]);
    let counts = bench.frontier().counts(at(60_000));
    assert_eq!((counts.discovered, counts.succeeded, counts.failed, counts.queued), (3, 2, 1, 0));
}

#[test]
fn what_waits_was_not_tried_and_did_not_fail() {
    let mut bench = Bench::new(Settings { park_after: 1, ..impolite() }, Budgets::default());
    bench.add(&[seed("http://a.org/1"), seed("http://a.org/2")]);
    let wait = |claim| {
        let outcome = Outcome::Wait { after: Duration::from_secs(60) };
        Finished { claim, outcome, discovered: Vec::new() }
    };
    bench.finish(wait(bench.claim(0)), 0);
    assert_eq!(bench.drain(0, 1), ["http://a.org/2"]);
    for n in 1..=5_i64 {
        let Next::Wait(time) = bench.next(n * 60_000 - 1) else { panic!() };
        assert_eq!(time, at(n * 60_000));
        bench.reopen(at(n * 60_000));
        let claim = bench.claim(n * 60_000);
        assert_eq!((claim.candidate.url.as_str(), claim.tries), ("http://a.org/1", 0));
        bench.finish(wait(claim), n * 60_000);
    }
    assert_eq!(bench.frontier().waiting_queues().failing, []);
    assert_eq!(bench.drain(360_000, 1), ["http://a.org/1"]);
    assert_eq!(bench.frontier().counts(at(360_000)).failed, 0);
}

#[test]
fn a_host_that_cannot_be_reached_is_parked_and_then_given_up() {
    let settings = Settings { park_after: 2, park_for: Period::from_secs(100), max_parks: 2, ..impolite() };
    let mut bench = Bench::new(settings, Budgets::default());
    bench.add(&[1, 2, 3, 4].map(|i| seed(&format!("http://a.org/{i}"))));
    for _ in 0..2 {
        let claim = bench.claim(0);
        bench.finish(done(claim, -2, 0), 0);
    }
    let Next::Wait(time) = bench.next(0) else { panic!() };
    assert_eq!(time, at(100_000));
    bench.reopen(at(5));
    assert!(matches!(bench.next(99_999), Next::Wait(_)), "parked over a restart");
    let claim = bench.claim(100_000);
    bench.finish(done(claim, -4, 0), 100_000);
    assert!(matches!(bench.next(900_000), Next::Empty), "given up");
    assert_eq!(reasons(&bench, 900_000), [("a.org".into(), 0, 1, StopReason::Unfinished)]);
    bench.frontier().unretire("a.org", at(900_000)).unwrap();
    assert_eq!(bench.drain(900_000, 1), ["http://a.org/4"]);
}

#[test]
fn prerequisites_come_first_and_alone_and_are_not_charged() {
    let settings = Settings { parallel_per_queue: 2, parallel_per_host: 0, ..impolite() };
    let budgets = each_domain(Limits { max_objects: 2, ..NONE });
    let mut bench = Bench::new(settings, budgets);
    bench.add(&[seed("http://a.org/1"), seed("http://a.org/2")]);
    let (one, two) = (bench.claim(0), bench.claim(0));
    let needs = || Outcome::Defer {
        prerequisites: vec![prerequisite("dns:a.org"), prerequisite("http://a.org/robots.txt")],
    };
    bench
        .frontier()
        .finish(
            &[
                Finished { claim: one, outcome: needs(), discovered: Vec::new() },
                Finished { claim: two, outcome: needs(), discovered: Vec::new() },
            ],
            &[],
            at(0),
        )
        .unwrap();
    bench.reopen(at(0));
    for (url, status) in [("dns:a.org", 1), ("http://a.org/robots.txt", 404)] {
        let claim = bench.claim(0);
        assert!(claim.candidate.url.as_str() == url && claim.is_prerequisite());
        assert!(matches!(bench.next(0), Next::Idle), "none beside a prerequisite");
        bench.finish(done(claim, status, 100), 0);
    }
    assert_eq!(bench.drain(0, 1), ["http://a.org/1", "http://a.org/2"]);
    assert_eq!(reasons(&bench, 0), [("a.org".into(), 2, 0, StopReason::Completed)]);
    // Asked for again it comes again: a robots.txt grows old.
    bench.frontier().set_budgets(Budgets::default(), at(0));
    bench.add(&[seed("http://a.org/3")]);
    let claim = bench.claim(0);
    bench.finish(Finished { claim, outcome: needs(), discovered: Vec::new() }, 0);
    assert_eq!(bench.drain(0, 1), ["dns:a.org", "http://a.org/robots.txt", "http://a.org/3"]);
}

#[test]
fn a_prerequisite_that_failed_keeps_its_queue_waiting() {
    let bench = Bench::new(impolite(), Budgets::default());
    bench.add(&[prerequisite("http://a.org/robots.txt"), seed("http://a.org/1")]);
    let claim = bench.claim(0);
    let outcome = Outcome::Retry { visit: visit(-3, 0), after: Duration::from_secs(60) };
    bench.finish(Finished { claim, outcome, discovered: Vec::new() }, 0);
    let Next::Wait(time) = bench.next(0) else { panic!() };
    assert_eq!(time, at(60_000));
    let claim = bench.claim(60_000);
    assert_eq!((claim.candidate.url.path(), claim.tries), ("/robots.txt", 1));
}

#[test]
fn object_limits_are_exact_per_domain_and_over_its_hosts() {
    let budgets = each_domain(Limits { max_objects: 3, ..NONE });
    let mut bench = Bench::new(impolite(), budgets);
    let urls: Vec<Candidate> =
        (0..4).flat_map(|h| (0..3).map(move |i| seed(&format!("http://h{h}.a.org/{i}")))).collect();
    bench.add(&urls);
    bench.add(&[seed("http://b.org/1"), seed("http://b.org/2"), seed("http://b.org/3")]);
    let mut claims = Vec::new();
    while let Next::Uri(claim) = bench.next(0) {
        claims.push(*claim);
    }
    assert_eq!(claims.len(), 4, "three of a.org, one of b.org");
    // A failure gives its room back.
    let failed = claims.remove(0);
    bench.finish(done(failed, -4, 0), 0);
    let claim = bench.claim(0);
    claims.push(claim);
    assert!(matches!(bench.next(0), Next::Idle));
    for claim in claims {
        bench.finish(done(claim, 200, 5), 0);
    }
    assert_eq!(bench.drain(0, 5).len(), 2);
    let wanted = [
        ("a.org".to_owned(), 3, 8, StopReason::ObjectLimit),
        ("b.org".to_owned(), 3, 0, StopReason::Completed),
    ];
    assert_eq!(reasons(&bench, 0), wanted);
    assert!(matches!(bench.next(0), Next::Empty));
    bench.reopen(at(1));
    assert!(matches!(bench.next(1), Next::Empty));
    assert_eq!(reasons(&bench, 1), wanted);
    assert_eq!(bench.frontier().counts(at(1)).queues.retired, 4);
    // More is allowed: it goes on by exactly so much.
    bench.frontier().set_budgets(each_domain(Limits { max_objects: 5, ..NONE }), at(1));
    assert_eq!(bench.drain(1, 5).len(), 2);
}

#[test]
fn byte_limits_end_with_the_record_that_reaches_them() {
    for (from, reason) in [
        (ByteLimitFrom::Harvest, StopReason::SizeLimit),
        (ByteLimitFrom::Configuration, StopReason::ConfigSizeLimit),
    ] {
        let mut budgets = Budgets::default();
        let budget = DomainBudget { limits: Limits { max_bytes: 250, ..NONE }, bytes_from: from };
        budgets.domains.insert("a.org".into(), budget);
        let bench = Bench::new(impolite(), budgets);
        bench.add(&[0, 1, 2, 3, 4].map(|h| seed(&format!("http://h{h}.a.org/"))));
        bench.add(&[seed("http://b.org/")]);
        let (a, b) = (bench.claim(0), bench.claim(0));
        assert!(matches!(bench.next(0), Next::Idle), "one of a.org at a time");
        bench.finish(done(a, 200, 100), 0);
        bench.finish(done(b, 200, 100), 0);
        assert_eq!(bench.drain(0, 100).len(), 2);
        assert_eq!(reasons(&bench, 0)[0], ("a.org".to_owned(), 3, 2, reason));
    }
}

#[test]
fn time_limits_leave_pauses_out_and_wake_in_time() {
    let mut bench = Bench::new(Settings::default(), each_domain(Limits { max_seconds: 2, ..NONE }));
    bench.add(&[seed("http://a.org/1"), seed("http://a.org/2")]);
    let claim = bench.claim(1000);
    bench.finish(done(claim, 200, 1), 1500);
    bench.frontier().set_running(false, at(1600));
    assert!(matches!(bench.next(50_000), Next::Idle));
    assert_eq!(bench.frontier().counts(at(50_000)).ran, Duration::from_millis(1600));
    bench.frontier().set_running(true, at(50_000));
    let claim = bench.claim(50_000);
    bench.finish(done(claim, 200, 1), 50_100);
    assert_eq!(reasons(&bench, 59_000)[0].3, StopReason::Completed);
    bench.add(&[seed("http://a.org/3")]);
    // The queue would wake later than its time ends.
    assert!(matches!(bench.next(51_000), Next::Wait(time) if time == at(51_400)), "{:?}", bench.next(51_000));
    assert!(matches!(bench.next(51_400), Next::Empty));
    assert_eq!(reasons(&bench, 51_400)[0].3, StopReason::TimeLimit);

    bench =
        Bench::new(impolite(), Budgets { crawl: Limits { max_seconds: 10, ..NONE }, ..Budgets::default() });
    bench.add(&[seed("http://a.org/1"), seed("http://b.org/1"), seed("http://b.org/2")]);
    let (a, _b) = (bench.claim(0), bench.claim(0));
    bench.finish(done(a, 200, 1), 4000);
    bench.reopen(at(100_000));
    assert!(
        matches!(bench.next(105_999), Next::Uri(_)),
        "what was run before a restart counts, the gap does not"
    );
    assert!(matches!(bench.next(106_000), Next::Idle));
    bench.reopen(at(200_000));
    let all = reasons(&bench, 206_000);
    assert_eq!(all.iter().map(|r| r.3).collect::<Vec<_>>(), [StopReason::Completed, StopReason::TimeLimit]);
    assert!(matches!(bench.next(206_000), Next::Limit(StopReason::TimeLimit)));
}

#[test]
fn limits_of_the_crawl_are_exact_and_leave_domains_unfinished() {
    let budgets = Budgets { crawl: Limits { max_objects: 3, ..NONE }, ..Budgets::default() };
    let bench = Bench::new(impolite(), budgets);
    bench.add(&[0, 1, 2, 3, 4].map(|h| seed(&format!("http://h{h}.org/"))));
    let claims = [bench.claim(0), bench.claim(0), bench.claim(0)];
    assert!(matches!(bench.next(0), Next::Idle));
    let [a, b, c] = claims;
    bench.finish(done(a, -4, 0), 0);
    let d = bench.claim(0);
    for claim in [b, c, d] {
        bench.finish(done(claim, 404, 10), 0);
    }
    assert!(matches!(bench.next(0), Next::Limit(StopReason::ObjectLimit)));
    let counted = |reason| reasons(&bench, 0).iter().filter(|r| r.3 == reason).count();
    assert_eq!((counted(StopReason::Completed), counted(StopReason::Unfinished)), (4, 1));

    let budgets = Budgets { crawl: Limits { max_bytes: 8 << 20, ..NONE }, ..Budgets::default() };
    let bench = Bench::new(impolite(), budgets);
    bench.add(&(0..50).map(|h| seed(&format!("http://h{h}.org/"))).collect::<Vec<_>>());
    let mut bytes = 0;
    loop {
        let mut claims = Vec::new();
        while let Next::Uri(claim) = bench.next(0) {
            claims.push(*claim);
        }
        if claims.is_empty() {
            break;
        }
        for claim in claims {
            assert!(bytes < 8 << 20, "no record after the one that reached the limit");
            bytes += 700_000;
            bench.finish(done(claim, 200, 700_000), 0);
        }
    }
    assert!(matches!(bench.next(0), Next::Limit(StopReason::SizeLimit)));
}

#[test]
fn nothing_means_nothing() {
    for limits in [
        Limits { max_objects: 0, ..NONE },
        Limits { max_bytes: 0, ..NONE },
        Limits { max_seconds: 0, ..NONE },
    ] {
        let bench = Bench::new(impolite(), each_domain(limits));
        bench.add(&[seed("http://a.org/")]);
        assert!(matches!(bench.next(0), Next::Empty), "{limits:?}");
        assert_ne!(reasons(&bench, 0)[0].3, StopReason::Completed);
        let bench = Bench::new(impolite(), Budgets { crawl: limits, ..Budgets::default() });
        bench.add(&[seed("http://a.org/")]);
        assert!(matches!(bench.next(0), Next::Limit(_)), "{limits:?}");
    }
}

#[test]
fn domains_can_be_queues() {
    let bench = Bench::new(Settings { queue_by: QueueBy::Domain, ..impolite() }, Budgets::default());
    bench.add(&[seed("http://x.a.co.uk/"), seed("http://y.a.co.uk/"), seed("http://192.0.2.1/")]);
    let one = bench.claim(0);
    assert_eq!(bench.drain(0, 1), ["http://192.0.2.1/"]);
    assert!(matches!(bench.next(0), Next::Idle));
    bench.finish(done(one, 200, 1), 0);
    assert_eq!(bench.drain(0, 1), ["http://y.a.co.uk/"]);
}

#[test]
fn operators_list_peek_delete_retire_and_revive() {
    let mut bench = Bench::new(impolite(), Budgets::default());
    bench.add(&(0..700).map(|i| seed(&format!("http://h{}.org/{i:03}", i % 7))).collect::<Vec<_>>());
    let claim = bench.claim(0);
    assert_eq!(claim.candidate.url.as_str(), "http://h0.org/000");
    let frontier = bench.frontier();
    let all = frontier.queues(&QueueFilter::default(), 100).unwrap();
    assert_eq!(all.len(), 7);
    assert_eq!((all[1].queued, all[1].head.as_deref()), (100, Some("http://h1.org/001")));
    let after = QueueFilter { after: Some(all[4].cursor), ..QueueFilter::default() };
    assert_eq!(frontier.queues(&after, 1).unwrap()[0].name, "h5.org");
    let busy = QueueFilter { state: Some(QueueState::InProcess), ..QueueFilter::default() };
    assert_eq!(frontier.queues(&busy, 9).unwrap().len(), 1);

    let page = frontier.peek("h1.org", 2, None).unwrap();
    let page2 = frontier.peek("h1.org", 1000, Some(&page[1].cursor)).unwrap();
    assert_eq!((page[1].url.as_str(), page2[0].url.as_str()), ("http://h1.org/008", "http://h1.org/015"));
    assert_eq!(page2.len(), 98);

    // In flight is out of reach.
    assert_eq!(frontier.reject(None, &|url| url.ends_with('0'), at(0)).unwrap(), 69);
    assert_eq!(frontier.delete("h2.org", at(0)).unwrap(), 90);
    assert!(matches!(frontier.delete("nowhere", at(0)), Err(FrontierError::NoQueue { .. })));
    frontier.retire("h3.org", at(0)).unwrap();
    bench.finish(done(claim, 200, 1), 0);
    assert_eq!(bench.drain(0, 1).len(), 700 - 70 - 90 - 90);
    bench.reopen(at(0));
    assert!(matches!(bench.next(0), Next::Empty), "retired over a restart");
    let counts = bench.frontier().counts(at(0));
    assert_eq!((counts.queued, counts.disregarded, counts.succeeded, counts.finished), (90, 159, 451, 610));
    bench.frontier().unretire("h3.org", at(0)).unwrap();
    assert_eq!(bench.drain(0, 1).len(), 90);
    assert_eq!(bench.frontier().counts(at(0)).queued, 0);
}

#[test]
fn a_claim_is_finished_once() {
    let bench = Bench::new(impolite(), Budgets::default());
    bench.add(&[seed("http://a.org/1"), seed("http://a.org/2")]);
    let claim = bench.claim(0);
    let twice = [done(claim.clone(), 200, 1), done(claim.clone(), 200, 1)];
    assert!(matches!(bench.frontier().finish(&twice, &[], at(0)), Err(FrontierError::NotClaimed { .. })));
    bench.finish(done(claim.clone(), 200, 1), 0);
    let again = bench.frontier().finish(&[done(claim, 200, 1)], &[], at(0));
    assert!(matches!(again, Err(FrontierError::NotClaimed { .. })));
    assert_eq!(bench.drain(0, 1), ["http://a.org/2"]);
    assert_eq!(bench.frontier().counts(at(0)).succeeded, 2);
}

#[test]
fn what_is_kept_beside_urls_comes_back_and_other_settings_are_refused() {
    let mut bench = Bench::new(impolite(), Budgets::default());
    bench.add(&[seed("http://a.org/1")]);
    let claim = bench.claim(0);
    let marks = [("warc".to_owned(), b"17".to_vec())];
    bench.frontier().finish(&[done(claim, 200, 1)], &marks, at(0)).unwrap();
    bench.frontier().put_host("a.org", "robots", b"User-agent: *").unwrap();
    let resumed = bench.reopen(at(9));
    assert!(!resumed.is_new);
    assert_eq!(resumed.marks.into_iter().collect::<Vec<_>>(), marks);
    assert_eq!(resumed.counts.succeeded, 1);
    assert_eq!(bench.frontier().get_host("a.org", "robots").unwrap().as_deref(), Some(&b"User-agent: *"[..]));
    assert_eq!(bench.frontier().get_host("a.org", "other").unwrap(), None);
    bench.frontier = None;
    let other = Settings { queue_by: QueueBy::Domain, ..impolite() };
    let refused = Frontier::open(bench.folder.path(), other, Budgets::default(), at(9));
    assert!(matches!(refused, Err(FrontierError::OtherSettings { .. })));
}

#[tokio::test]
async fn who_waits_is_woken_by_a_finish_and_passes_it_on() {
    let bench = std::sync::Arc::new(Bench::new(impolite(), Budgets::default()));
    bench.add(&[seed("http://a.org/"), seed("http://b.org/")]);
    let (a, b) = (bench.claim(0), bench.claim(0));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let bench = std::sync::Arc::clone(&bench);
            tokio::spawn(async move {
                let mut done_here = 0;
                loop {
                    match bench.next(0) {
                        Next::Uri(claim) => {
                            bench.finish(done(*claim, 200, 1), 0);
                            done_here += 1;
                        }
                        Next::Empty => return done_here,
                        _ => bench.frontier().changed().await,
                    }
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    let discovered = (0..50).map(|i| found(&format!("http://h{i}.org/"), "L")).collect();
    bench.finish(Finished { discovered, ..done(a, 200, 1) }, 0);
    bench.finish(done(b, 200, 1), 0);
    let mut all = 0;
    for worker in workers {
        all += worker.await.unwrap();
    }
    assert_eq!(all, 50);
}

#[test]
fn a_search_of_a_queue_says_when_it_has_not_seen_all() {
    let bench = Bench::new(impolite(), Budgets::default());
    let long: Vec<_> = (0..1_001).map(|n| seed(&format!("http://long.org/{n}"))).collect();
    bench.add(&long);
    bench.add(&[seed("http://short.org/1"), seed("http://short.org/2")]);
    let any = |queue: &str, wanted: &str| {
        bench.frontier().any_in_queue(queue, &|url| url.ends_with(wanted)).unwrap()
    };
    for (queue, wanted, found) in [
        ("long.org", "/999", Some(true)),
        ("long.org", "/1000", None),
        ("short.org", "/2", Some(true)),
        ("short.org", "/3", Some(false)),
        ("none.org", "/1", Some(false)),
    ] {
        assert_eq!(any(queue, wanted), found, "{queue} {wanted}");
    }
}

#[test]
fn hosts_of_one_domain_and_of_one_crawl_have_a_bound() {
    let settings = Settings { max_hosts_per_domain: 3, max_queues: 6, ..impolite() };
    let bench = Bench::new(settings, Budgets::default());
    let links = |range: std::ops::Range<u32>, domain: &str| -> Vec<Candidate> {
        range.map(|n| found(&format!("http://r{n}.{domain}/"), "L")).collect()
    };
    let add = |candidates: &[Candidate]| {
        let added = bench.frontier().add(candidates, at(0)).unwrap();
        (added.queued, added.left_out, added.crowded_domain)
    };
    // In one batch and over several.
    assert_eq!(add(&links(0..2, "evil.dk")), (2, 0, None));
    assert_eq!(add(&links(0..200_000, "evil.dk")), (1, 199_997, Some("evil.dk".to_owned())));
    assert_eq!(add(&links(3..4, "evil.dk")), (0, 1, Some("evil.dk".to_owned())));
    // Known hosts get more URLs, and seeds are always queued.
    assert_eq!(add(&[found("http://r1.evil.dk/x", "L")]), (1, 0, None));
    assert_eq!(add(&[seed("http://seed.evil.dk/")]), (1, 0, None));
    // Others have their own count, up to that of the crawl.
    assert_eq!(add(&links(0..9, "good.dk")), (2, 7, Some("good.dk".to_owned())));
    assert_eq!(add(&[found("http://new.dk/", "E")]), (0, 1, Some("new.dk".to_owned())));
    assert_eq!(add(&[seed("http://new.dk/")]), (1, 0, None));
    // Nothing of the others is left, also not as seen.
    assert_eq!(bench.drain(0, 1).len(), 8);
    assert_eq!(add(&[found("http://r0.evil.dk/", "L")]), (0, 0, None));

    let bench =
        Bench::new(Settings { max_hosts_per_domain: 0, max_queues: 0, ..impolite() }, Budgets::default());
    assert_eq!(bench.frontier().add(&links(0..500, "evil.dk"), at(0)).unwrap().queued, 500);
}
