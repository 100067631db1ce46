//! Sites that give every visitor a new session id in the path come to an end; sites with many pages are fetched whole.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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

/// A forum whose first threads are deleted and say so with status 200, with the same list of the latest threads.
#[derive(Debug)]
struct Forum {
    threads: usize,
    dead: usize,
    /// Each thread is busy when it is asked for first, from the time on at which the shape is left alone.
    is_busy: bool,
    asked: Mutex<BTreeSet<String>>,
}

impl Forum {
    fn id(n: usize) -> String {
        blake3::hash(&n.to_le_bytes()).to_hex()[..16].to_owned()
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let path = asked.url.split_once('/').map_or("", |(_, path)| path);
        let links = |most: usize| (0..most).map(|n| format!("/thread/{}", Forum::id(n)));
        let Some(at) = path.strip_prefix("thread/") else {
            return if path.is_empty() {
                Reply::links("front", links(self.threads))
            } else {
                Reply::status(404)
            };
        };
        let mut seen = self.asked.lock().unwrap();
        if seen.insert(asked.url.clone()) && self.is_busy && seen.len() > 51 {
            return Reply::status(503);
        }
        let n = (0..self.threads).find(|n| Forum::id(*n) == at);
        let title = n.filter(|n| *n >= self.dead).map(|n| format!("Thread {n}"));
        Reply::links(title.as_deref().unwrap_or("Deleted. Latest threads:"), links(5))
    }

    /// The threads that were asked for; each must be there once, and all others be left alone.
    async fn crawl(self) -> BTreeSet<String> {
        let threads = self.threads;
        let forum = Arc::new(self);
        let serving = Arc::clone(&forum);
        let site = Site::serve(move |asked| std::future::ready(Some(serving.answer(&asked)))).await;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let seeds = vec!["http://forum.test/".to_owned()];
        let outcome = run(job(template_to(site.addr()), seeds), &root).await;
        assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
        let found = captured(&root);
        let asked = forum.asked.lock().unwrap().clone();
        for url in &asked {
            let captures = found.get(&format!("http://{url}")).into_iter().flatten();
            assert_eq!(captures.map(|capture| capture.status).collect::<Vec<_>>(), [200], "{url}");
        }
        let left = lines(&root).iter().filter(|line| line.status.0 == -4000).count();
        assert!(left > 0, "nothing was left alone");
        assert_eq!(left + asked.len(), threads);
        asked
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_is_fetched_to_its_end() {
    let forum = Forum { threads: 400, dead: 400, is_busy: true, asked: Mutex::default() };
    let asked = forum.crawl().await;
    assert!(asked.len() > 51 + 6, "{} threads were asked for", asked.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn few_pages_behind_many_deleted_ones_are_lost() {
    const DEAD: usize = 1060;
    const LIVE: usize = 400;
    let forum = Forum { threads: DEAD + LIVE, dead: DEAD, is_busy: false, asked: Mutex::default() };
    let asked = forum.crawl().await;
    let is_asked = |n: &usize| asked.contains(&format!("forum.test/thread/{}", Forum::id(*n)));
    let of_live = (DEAD..DEAD + LIVE).filter(is_asked).count();
    assert!(of_live >= LIVE - 64, "{of_live} of {LIVE}");
    // The latest five name themselves, so each is a new content, which takes 19 copies more.
    assert!(
        asked.len() - of_live < 51 + 5 * 19 + 32,
        "{} deleted threads were fetched",
        asked.len() - of_live
    );
}
