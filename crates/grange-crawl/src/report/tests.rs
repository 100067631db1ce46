//! The reports as Heritrix writes them, and as its tools read them.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::log::{Annotations, CrawlLine, Extra, LEGEND, Original};
use crate::status::FetchStatus;

fn line(
    status: i32,
    bytes: u64,
    url: &str,
    hops: &str,
    via: Option<&str>,
    mime: &str,
    note: &str,
) -> CrawlLine<'static> {
    CrawlLine {
        logged: "2026-11-16T00:51:01.123Z".parse().unwrap(),
        status: FetchStatus(status),
        size: (bytes > 0).then(|| bytes - bytes / 10),
        url: url.to_owned().into(),
        hops: Cow::Owned(hops.parse().unwrap()),
        via: via.map(|via| via.to_owned().into()),
        mime: mime.to_owned().into(),
        worker: 1,
        fetched: None,
        digest: None,
        source: Some("http://a.dk/".into()),
        annotations: note.to_owned().into(),
        extra: Some(Extra { content_size: (bytes > 0).then_some(bytes), ..Extra::default() }),
    }
}

/// A small crawl: two seeds, one of them redirected, a host that cannot be reached, a page robots.txt forbids.
fn crawl() -> Vec<CrawlLine<'static>> {
    let mut duplicate = Annotations::new();
    duplicate.duplicate(Some(Original { file: "1-1.warc.gz", offset: 9, timestamp: "20250101000000" }));
    let home = Some("http://a.dk/");
    vec![
        line(1, 50, "dns:a.dk", "P", home, "text/dns", ""),
        line(404, 200, "http://a.dk/robots.txt", "P", home, "text/html; charset=x", ""),
        line(301, 100, "http://a.dk/", "", None, "text/html", ""),
        line(200, 10_000, "http://www.a.dk/", "R", home, "text/html", "2t"),
        line(
            200,
            4000,
            "http://www.a.dk/logo.png",
            "RE",
            Some("http://www.a.dk/"),
            "image/png",
            duplicate.as_str(),
        ),
        line(
            304,
            300,
            "http://www.a.dk/old",
            "RL",
            Some("http://www.a.dk/"),
            "unknown",
            "duplicate:server-not-modified",
        ),
        line(-9998, 0, "http://www.a.dk/secret", "RL", Some("http://www.a.dk/"), "unknown", ""),
        line(-2, 0, "http://down.dk/", "RL", Some("http://www.a.dk/"), "unknown", "3t"),
        line(200, 5, "http://cdn.example/x", "RE", Some("http://www.a.dk/"), "IMAGE/PNG", ""),
    ]
}

fn statistics() -> Statistics {
    let mut statistics = Statistics::new(["http://a.dk/", "http://never.dk/"]);
    for line in crawl() {
        statistics.add(&line);
    }
    statistics
}

fn report(write: impl FnOnce(&Statistics, &mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&statistics(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_crawl_report_is_exact() {
    let summary = CrawlSummary {
        name: "job 7",
        status: ExitStatus::Finished,
        elapsed: Duration::from_millis(3_724_500),
    };
    assert_eq!(
        report(|statistics, out| crawl_report(&summary, statistics, out)),
        "crawl name: job 7\ncrawl status: Finished\nduration: 1h2m4s500ms\n\
         \nseeds crawled: 1\nseeds uncrawled: 1\n\
         \nhosts visited: 4\n\
         \nURIs processed: 9\nURI successes: 7\nURI failures: 1\nURI disregards: 1\n\
         \nnovel URIs: 5\nduplicate-by-hash URIs: 1\nnot-modified URIs: 1\n\
         \ntotal crawled bytes: 14655 (14 KiB) \nnovel crawled bytes: 10355 (10 KiB)\n\
         duplicate-by-hash crawled bytes: 4000 (3.9 KiB) \nnot-modified crawled bytes: 300 (300 B) \n\
         \nURIs/sec: 0\nKB/sec: 0\n"
    );
    let mut out = Vec::new();
    let fast = CrawlSummary { name: "x", status: ExitStatus::TimeLimit, elapsed: Duration::from_secs(2) };
    crawl_report(&fast, &statistics(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.ends_with("URIs/sec: 3.5\nKB/sec: 7\n") && text.contains("status: Finished - Timelimit hit\n")
    );
    let mut out = Vec::new();
    let none = CrawlSummary { elapsed: Duration::ZERO, status: ExitStatus::Running, ..fast };
    crawl_report(&none, &Statistics::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("novel URIs: 0\n\ntotal crawled bytes: 0 (0 B) \nnovel crawled bytes: 0 (0 B)\n\n")
    );
    assert!(text.ends_with("URIs/sec: 0\nKB/sec: 0\n"));
}

#[test]
fn the_hosts_report_is_exact() {
    assert_eq!(
        report(|statistics, out| hosts_report(statistics, |host| u64::from(host == "www.a.dk") * 8, out)),
        "[#urls] [#bytes] [host] [#robots] [#remaining] [#novel-urls] [#novel-bytes] [#dup-by-hash-urls] \
         [#dup-by-hash-bytes] [#not-modified-urls] [#not-modified-bytes]\n\
         3 14300 www.a.dk 1 8 1 10000 1 4000 1 300 \n\
         2 300 a.dk 0 0 2 300 0 0 0 0 \n\
         1 5 cdn.example 0 0 1 5 0 0 0 0 \n\
         1 50 dns: 0 0 1 50 0 0 0 0 \n\
         0 0 down.dk 0 0 0 0 0 0 0 0 \n"
    );
}

#[test]
fn the_distributions_are_exact() {
    assert_eq!(
        report(mimetype_report),
        "[#urls] [#bytes] [mime-types]\n3 10300 text/html\n2 4005 image/png\n1 50 text/dns\n1 300 unknown\n"
    );
    assert_eq!(report(responsecode_report), "[#urls] [rescode]\n3 200\n1 1\n1 301\n1 304\n1 404\n");
}

#[test]
fn the_seeds_and_source_reports_are_exact() {
    assert_eq!(
        report(seeds_report),
        "[code] [status] [seed] [redirect]\n0 NOTCRAWLED http://never.dk/\n301 CRAWLED http://a.dk/ http://www.a.dk/\n"
    );
    assert_eq!(
        report(source_report),
        "[source] [host] [#urls]\nhttp://a.dk/ www.a.dk 3\nhttp://a.dk/ a.dk 2\nhttp://a.dk/ cdn.example 1\n\
         http://a.dk/ dns: 1\n"
    );
    let mut out = Vec::new();
    source_report(&Statistics::default(), &mut out).unwrap();
    assert_eq!(out, b"No source tag information. (Is 'sourceTagSeeds' enabled?)\n");
}

#[test]
fn seeds_stand_in_the_order_of_heritrix() {
    let mut statistics = Statistics::new(["http://untried.dk/"]);
    for status in [200, -1, 404, -9998, 301] {
        statistics.add(&line(status, 1, &format!("http://s{status}.dk/"), "", None, "x/y", ""));
    }
    let mut out = Vec::new();
    seeds_report(&statistics, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let codes: Vec<i32> =
        text.lines().skip(1).map(|row| row.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(codes, [0, -1, -9998, 404, 301, 200]);
    // The key by which Heritrix sorts, wrapping as Java's numbers do.
    assert!(codes.is_sorted_by_key(|code| (-code).wrapping_sub(i32::MAX)));
}

#[test]
fn seeds_are_found_in_the_log_however_they_are_written() {
    let written = ["HTTP://Example.ORG/", "http://B.dk:80/x#top", "Https://C.dk", "http://D.dk/Not/Tried"];
    let mut statistics = Statistics::new(written);
    for url in ["http://example.org/", "http://b.dk/x", "https://c.dk/"] {
        statistics.add(&line(200, 10, url, "", None, "text/html", ""));
    }
    let mut out = Vec::new();
    seeds_report(&statistics, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "[code] [status] [seed] [redirect]\n0 NOTCRAWLED http://d.dk/Not/Tried\n200 CRAWLED http://b.dk/x\n\
         200 CRAWLED http://example.org/\n200 CRAWLED https://c.dk/\n"
    );
}

#[test]
fn domains_are_charged_by_the_seed_or_else_by_the_url() {
    let mut statistics = Statistics::default();
    let own = |url: &str, source: Option<&'static str>| CrawlLine {
        source: source.map(Cow::Borrowed),
        ..line(200, 10, url, "L", None, "x/y", "")
    };
    for (url, source) in [
        ("http://www.a.co.uk/", Some("http://a.co.uk/")),
        ("http://cdn.example/", Some("http://a.co.uk/")),
        ("http://cdn.example/2", None),
        ("http://192.0.2.1/", None),
        ("dns:b.dk", None),
    ] {
        statistics.add(&own(url, source));
    }
    let domains = domain_tallies(&statistics);
    let told: Vec<_> =
        domains.iter().map(|(name, tally)| (name.as_str(), tally.objects, tally.bytes)).collect();
    assert_eq!(told, [("192.0.2.1", 1, 10), ("a.co.uk", 2, 20), ("cdn.example", 1, 10)]);
}

#[test]
fn the_processors_report_is_exact() {
    let chains = [
        Chain {
            name: "FetchChain",
            processors: vec![
                Processor { name: "fetch".into(), function: "Fetches", work: Work::Handled { uris: 9 } },
                Processor {
                    name: "html".into(),
                    function: "Finds links",
                    work: Work::Extracted { links: 70, uris: 3 },
                },
            ],
        },
        Chain {
            name: "DispositionChain",
            processors: vec![Processor {
                name: "warc".into(),
                function: "Writes WARCs",
                work: Work::Written {
                    uris: 7,
                    revisits: 2,
                    content_bytes: 14_655,
                    record_bytes: 20_000,
                    disk_bytes: 9_000,
                    compressed: true,
                },
            }],
        },
    ];
    let mut out = Vec::new();
    processors_report("2026-11-16T00:51:01Z".parse().unwrap(), &chains, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "FetchChain - Processors report - 202611160051\n  Number of Processors: 2\n\n\
         Processor: fetch\n  Function:          Fetches\n  CrawlURIs handled: 9\n\n\
         Processor: html\n  Function:          Finds links\n  70 links from 3 CrawlURIs\n\n\n\
         DispositionChain - Processors report - 202611160051\n  Number of Processors: 1\n\n\
         Processor: warc\n  Function:          Writes WARCs\n  Total CrawlURIs:   7\n  Revisit records:   2\n\
         \x20 Crawled content bytes (including http headers): 14655 (14 KiB)\n\
         \x20 Total uncompressed bytes (including all warc records): 20000 (20 KiB)\n\
         \x20 Total size on disk (compressed): 9000 (8.8 KiB)\n\n\n"
    );
}

fn queue() -> QueueReport<'static> {
    QueueReport {
        name: "dk,a,",
        precedence: 3,
        items: 8,
        enqueued: 12,
        wakes_in: Some(Duration::from_millis(2500)),
        last_enqueued: Some("http://a.dk/z"),
        expended: 5,
        budget: -1,
        last_cost: 1,
        succeeded: 3,
        failed: 1,
        success_bytes: 77,
        ..QueueReport::default()
    }
}

#[test]
fn the_frontier_summary_is_exact() {
    let summary = FrontierSummary {
        job: "job 7",
        discovered: 20,
        queued: 8,
        succeeded: 10,
        failed: 1,
        disregarded: 1,
        included: 20,
        queues: 9,
        in_process: 1,
        ready: 2,
        snoozed: 1,
        inactive: vec![(1, 2), (3, 1)],
        retired: 1,
        last_state: "RUN",
        longest: QueueSample { queues: vec![queue()], total: 3 },
        ..FrontierSummary::default()
    };
    let mut out = Vec::new();
    frontier_summary_report("2026-11-16T00:51:01Z".parse().unwrap(), &summary, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "Frontier report - 202611160051
 Job being crawled: job 7

 -----===== STATS =====-----
 Discovered:    20
 Queued:        8
 Finished:      12
  Successfully: 10
  Failed:       1
  Disregarded:  1

 -----===== QUEUES =====-----
 Already included size:     20
               pending:     0

 All class queues map size: 9
             Active queues: 4
                    In-process: 1
                         Ready: 2
                       Snoozed: 1
           Inactive queues: 3 (p1: 2; p3: 1)
            Retired queues: 1
          Exhausted queues: 1

             Last state: RUN
 -----===== MANAGER THREAD =====-----

 -----===== 1 LONGEST QUEUES =====-----
LONGEST#0:
Queue dk,a, (p3)
  8 items
   wakes in: 2s500ms
    last enqueued: http://a.dk/z
      last peeked: null
   total expended: 5 (total budget: -1)
   active balance: 0
   last(avg) cost: 1(1.2)
   totalScheduled fetchSuccesses fetchFailures fetchDisregards fetchResponses robotsDenials successBytes totalBytes fetchNonResponses lastSuccessTime
   12 3 1 0 3 0 77 77 1 -
   precedence
   3

...and 2 more LONGEST.

 -----===== IN-PROCESS QUEUES =====-----

 -----===== READY QUEUES =====-----

 -----===== SNOOZED QUEUES =====-----

 -----===== INACTIVE QUEUES =====-----

 -----===== RETIRED QUEUES =====-----
"
    );
}

#[test]
fn every_table_has_a_column_for_each_name() {
    let mut nonempty = Vec::new();
    frontier_nonempty_report(
        &[queue(), QueueReport { name: "dk,b,", ..QueueReport::default() }],
        &mut nonempty,
    )
    .unwrap();
    let nonempty = String::from_utf8(nonempty).unwrap();
    assert_eq!(nonempty.lines().nth(1), Some("dk,a, 3 8 12 0 1(1.2) - 2s500ms 5/-1 0 null http://a.dk/z"));
    for text in [
        report(|statistics, out| hosts_report(statistics, |_| 0, out)),
        report(mimetype_report),
        report(responsecode_report),
        report(source_report),
        nonempty,
    ] {
        let mut rows = text.lines();
        let columns = rows.next().unwrap().split_whitespace().count();
        assert!(rows.all(|row| row.split_whitespace().count() == columns), "{text}");
    }
    assert_eq!(LEGEND.split_whitespace().count(), 13);
}

#[test]
fn types_that_servers_make_up_are_counted_together_in_the_end() {
    let mut statistics = Statistics::default();
    for n in 0..10_100 {
        statistics.add(&line(200, 1, "http://a.dk/", "L", None, &format!("x/{n}"), ""));
    }
    statistics.add(&line(200, 1, "http://a.dk/", "L", None, "x/7", ""));
    assert!(statistics.mimes().count() <= 10_001);
    let of = |name: &str| statistics.mimes().find(|(mime, _)| *mime == name).map(|(_, tally)| tally.urls);
    assert_eq!((of("other"), of("x/7")), (Some(100), Some(2)));
}

fn any_line() -> impl Strategy<Value = CrawlLine<'static>> {
    let notes = prop_oneof![
        Just(""),
        Just("2t"),
        Just("duplicate:digest"),
        Just("2t,duplicate:\"a.warc,1,2\""),
        Just("duplicate:server-not-modified,content-size:7"),
    ];
    (
        prop_oneof![Just(200), Just(404), Just(-2), Just(-9998), Just(1), Just(0), Just(-5003)],
        0_u64..5000,
        "(http://[a-c]\\.dk/[a-z]?|dns:[a-c]\\.dk)",
        "[LERP]{0,3}",
        proptest::option::of("http://[a-c]\\.dk/"),
        "(text/html|IMAGE/png|)(; x=y)?",
        notes,
    )
        .prop_map(|(status, bytes, url, hops, via, mime, note)| {
            line(status, bytes, &url, &hops, via.as_deref(), &mime, note)
        })
}

proptest! {
    /// A resumed crawl reads its own log again.
    #[test]
    fn counts_are_got_back_from_the_log(lines in proptest::collection::vec(any_line(), 0..20)) {
        let mut told = Statistics::new(["http://a.dk/"]);
        let mut log = Vec::new();
        for line in &lines {
            told.add(line);
            line.write(&mut log);
        }
        let mut read = Statistics::new(["http://a.dk/"]);
        for line in String::from_utf8(log).unwrap().lines() {
            read.add(&CrawlLine::parse(line).unwrap());
        }
        prop_assert_eq!(&told, &read);
        let totals = told.totals();
        prop_assert_eq!(totals.finished(), lines.len() as u64);
        let by_host: u64 = told.hosts().map(|(_, host)| host.succeeded.urls + host.failed + host.disregarded).sum();
        prop_assert_eq!(by_host, lines.len() as u64);
        prop_assert_eq!(told.hosts().map(|(_, host)| host.succeeded.bytes).sum::<u64>(), totals.bytes());
        prop_assert_eq!(told.mimes().map(|(_, tally)| tally.bytes).sum::<u64>(), totals.bytes());
        prop_assert_eq!(told.statuses().map(|(_, urls)| urls).sum::<u64>(), totals.succeeded);
    }
}

#[test]
fn a_time_of_logging_does_not_count() {
    let mut early = Statistics::default();
    let mut late = Statistics::default();
    early.add(&line(200, 1, "http://a.dk/", "", None, "x/y", ""));
    late.add(&CrawlLine {
        logged: Timestamp::UNIX_EPOCH,
        ..line(200, 1, "http://a.dk/", "", None, "x/y", "")
    });
    assert_eq!(early, late);
}
