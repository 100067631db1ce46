//! Sites that give every visitor a new session id in the path come to an end; sites with many pages are fetched whole.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grange_base::Clock;
use grange_crawl::engine::{Crawl, End};
use grange_crawl::log::CrawlLine;
use grange_crawl::record::NoOracle;
use grange_testkit::until;

use super::crash::spawn;
use super::site::{Asked, Reply, Site};
use super::{captured, job, run, template_to};

/// More than a trap may cost.
const OBJECTS: i64 = 3000;

/// Session ids as a server makes them: ever new ones, whatever it was asked.
#[derive(Clone, Debug, Default)]
struct Ids(Arc<AtomicU64>);

impl Ids {
    fn next(&self) -> String {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        blake3::hash(&n.to_le_bytes()).to_hex()[..24].to_owned()
    }
}

/// Whatever is asked for is answered with the page of that name, in which each link has a new session.
fn session_site(asked: &Asked, ids: &Ids) -> Reply {
    let path = asked.url.split_once('/').map_or("", |(_, path)| path);
    let name = path.rsplit('/').next().unwrap_or_default();
    let id = ids.next();
    let link = |name: &str| match asked.url.split('/').next() {
        Some("segment.test") => format!("/s/{id}/{name}"),
        Some("aspx.test") => format!("/(S({id}))/{name}"),
        Some("query.test") => format!("/p/{name}?visitor={id}"),
        _ => format!("/{id}/{name}"),
    };
    match name.split('?').next().unwrap_or_default() {
        "robots.txt" => Reply::status(404),
        "logo.png" => Reply::page("logo").with("X-Kind: image"),
        name @ ("" | "home" | "about" | "help") => {
            let links: Vec<_> = ["home", "about", "help"].map(link).to_vec();
            Reply::page(format!(
                "<html><title>{name}</title><img src='{}'><form><input name=token value={}></form>\
                 <a href='{}'>1</a><a href='{}'>2</a><a href='{}'>3</a></html>",
                link("logo.png"),
                ids.next(),
                links[0],
                links[1],
                links[2],
            ))
        }
        _ => Reply::status(404),
    }
}

/// The lines of all crawl logs.
fn lines(root: &Path) -> Vec<CrawlLine<'static>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join("logs")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("crawl.log") {
            let text: &'static str = Box::leak(std::fs::read_to_string(path).unwrap().into_boxed_str());
            found.extend(text.lines().map(|line| CrawlLine::parse(line).unwrap()));
        }
    }
    found
}

async fn serve_sessions() -> Site {
    let ids = Ids::default();
    Site::serve(move |asked| std::future::ready(Some(session_site(&asked, &ids)))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_end_are_left_after_some_and_the_log_says_why() {
    let site = serve_sessions().await;
    let hosts = ["segment.test", "aspx.test", "query.test", "first.test"];
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.scope.max_hops = 10_000;
    let mut wanted = job(template, hosts.map(|host| format!("http://{host}/")).to_vec());
    // The test ends also where the sessions do not.
    wanted.budgets.crawl.max_objects = OBJECTS;
    let outcome = run(wanted, &root).await;
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    let log = site.log();
    for host in hosts {
        let asked = log.iter().filter(|line| line.contains(host)).count();
        // Three pages and a logo, each some 50 times and some more to make sure.
        assert!((3 * 50..=600).contains(&asked), "{host} was asked {asked} times");
    }
    let left: Vec<_> = lines(&root).into_iter().filter(|line| line.status.0 == -4000).collect();
    assert!(!left.is_empty());
    assert!(left.iter().all(|line| line.annotations == "sessionPath"), "{left:?}");
    let alerts = std::fs::read_to_string(root.join("logs/alerts.log")).unwrap();
    for shape in [
        "segment.test/s/*/home",
        "aspx.test/(S(*))/about",
        "query.test/p/help?visitor=*",
        "first.test/*/home",
    ] {
        let said =
            alerts.lines().any(|line| line.contains("WARNING scope") && line.contains(&format!(" {shape} ")));
        assert!(said, "{shape} in {alerts}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_does_not_begin_to_count_again() {
    let site = serve_sessions().await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.scope.max_hops = 10_000;
    let mut wanted = job(template, vec!["http://segment.test/".to_owned()]);
    wanted.budgets.crawl.max_objects = OBJECTS;
    drop(Crawl::start(wanted, &root, Arc::new(NoOracle), Clock::system()).unwrap());
    // Each run fetches less than a trap needs.
    for kill in 1..=8_usize {
        let mut child = spawn(&root);
        until("more requests or the end", async || {
            site.total() >= kill * 60 || child.try_wait().expect("it can be asked").is_some()
        })
        .await;
        child.kill().expect("it can be killed");
        child.wait().expect("it is gone");
    }
    let crawl = Crawl::resume(&root, Arc::new(NoOracle), Clock::system()).unwrap();
    let outcome = crawl.run().await.unwrap();
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    // At each kill, of four shapes, what was counted since the last multiple of five.
    let asked = site.total();
    assert!(asked <= 600 + 8 * 4 * 5, "{asked} requests");
    assert!(lines(&root).iter().any(|line| line.status.0 == -4000));
}

/// A site whose pages are told apart only by what they say.
async fn archive(asked: Asked) -> Option<Reply> {
    let (_, path) = asked.url.split_once('/')?;
    let id = |n: u64| blake3::hash(&n.to_le_bytes()).to_hex()[..16].to_owned();
    let all = |kind: &str| (0..150).map(|n| format!("/{kind}/{}", id(n))).collect::<Vec<_>>();
    let (kind, rest) = path.split_once('/').unwrap_or((path, ""));
    let n = (0..150).find(|n| rest.starts_with(&id(*n)));
    Some(match (kind, n) {
        ("", _) => {
            let kinds = ["article", "gone", "album", "stub", "px"];
            Reply::links("front", kinds.into_iter().flat_map(all))
        }
        ("article", Some(n)) => {
            Reply::links(&format!("Article {n}"), [format!("/article/{}", id((n + 1) % 150))])
        }
        // Deleted pages, with the newest ones beside them.
        ("gone", Some(_)) => Reply::links("This page is gone", all("article").into_iter().take(5)),
        // Albums that differ in their image alone.
        ("album", Some(n)) if rest.ends_with("/photo.jpg") => Reply::page(format!("JFIF {n}")),
        ("album", Some(n)) if rest.ends_with('/') => {
            Reply::page(format!("<img src=photo.jpg><a href='/album/{}/'>next</a>", id((n + 1) % 150)))
        }
        ("album", Some(_)) => Reply::status(301).with(&format!("Location: /{path}/")),
        ("stub", Some(_)) => Reply::page(""),
        ("px", Some(_)) => Reply::page("GIF89a"),
        _ => Reply::status(404),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_with_many_pages_and_many_alike_is_fetched_whole() {
    let site = Site::serve(archive).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let outcome = run(job(template_to(site.addr()), vec!["http://big.test/".to_owned()]), &root).await;
    assert_eq!(outcome.end, End::Finished);
    let found: BTreeSet<_> = captured(&root).into_keys().collect();
    let count = |start: &str, end: &str| {
        found
            .iter()
            .filter(|url| url.starts_with(&format!("http://big.test/{start}/")) && url.ends_with(end))
            .count()
    };
    for (start, end, expected) in [
        ("article", "", 150),
        ("gone", "", 150),
        ("album", "/photo.jpg", 150),
        ("stub", "", 150),
        ("px", "", 150),
    ] {
        assert_eq!(count(start, end), expected, "{start}");
    }
    assert!(lines(&root).iter().all(|line| line.status.0 != -4000));
}
