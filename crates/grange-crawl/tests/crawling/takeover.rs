//! A crawl whose folder is lost is continued from the files that were stored meanwhile, as if nothing had happened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grange_base::{Clock, Size};
use grange_crawl::engine::{Crawl, LastingOrders, Order, Outcome, TakeOver, TakenOver};
use grange_crawl::job::{Credential, CredentialKind, Job, Limits, StopReason};
use grange_crawl::log::CrawlLine;
use grange_crawl::politeness::Pace;
use grange_crawl::record::chunk::Manifest;
use grange_crawl::record::{DuplicateOracle, Original};
use grange_testkit::until;
use warc::Digest;

use super::site::{Asked, Reply, Site};
use super::{captured, job, template_to};

/// Takes every picture for known, so that there are revisits.
struct KnowsPictures;

impl DuplicateOracle for KnowsPictures {
    fn same_url(&self, url: &str, _: &Digest) -> Option<Original> {
        url.contains(".png").then(|| Original {
            url: url.to_owned(),
            date: jiff::Timestamp::UNIX_EPOCH,
            file: "earlier.warc.gz".to_owned(),
            offset: 77,
            record: None,
        })
    }

    fn same_payload(&self, _: &Digest) -> Option<Original> {
        None
    }
}

/// A seed that redirects to another host, with pages three levels deep, pictures, pages that need a cookie, one of them
/// given by a page that redirects to itself, a robots.txt that redirects, and links that lead out.
async fn answer(asked: Asked) -> Option<Reply> {
    let cookies = asked.headers.get("cookie").cloned().unwrap_or_default();
    let (host, path) = asked.url.split_once('/').unwrap_or((&asked.url, ""));
    let title = format!("{} {}", asked.url, "filler ".repeat(60));
    let links = |paths: Vec<String>| {
        Reply::links(&title, paths.into_iter().map(|path| format!("http://{host}/{path}")))
    };
    Some(match (host, path) {
        ("www.one.test", "robots.txt") => Reply::status(302).with("Location: /rules.txt"),
        (_, "robots.txt" | "rules.txt") => Reply::page("User-agent: *\nDisallow: /forbidden\n"),
        ("one.test", _) => Reply::status(301).with("Location: http://www.one.test/"),
        (_, "") => {
            let mut all: Vec<_> = (0..12).map(|n| format!("a{n}")).collect();
            all.extend(["cookie/start", "itself", "forbidden/x"].map(str::to_owned));
            let out = "<a href=\"http://out.test/\">out</a>".to_owned();
            links(all).and(&out)
        }
        (_, "itself") if !cookies.contains("itself=1") => {
            Reply::status(302).with("Set-Cookie: itself=1; Path=/").with("Location: /itself")
        }
        (_, "cookie/start") => links((0..6).map(|n| format!("cookie/p{n}")).collect())
            .with("Set-Cookie: taste=oatmeal; Path=/cookie"),
        (_, page) if page.starts_with("cookie/") && !cookies.contains("taste=oatmeal") => Reply::status(403),
        (_, page) if page.contains(".png") => Reply::picture(page),
        // Three levels, with a picture on each page.
        (_, page) if page.matches('/').count() < 2 => {
            links(vec![format!("{page}/deep")]).and(&format!("<img src=\"/{page}.png\">"))
        }
        _ => links(Vec::new()),
    })
}

fn wanted(site: &Site) -> Job {
    let mut template = template_to(site.addr());
    template.frontier.pace = Pace::fixed(std::time::Duration::from_millis(8));
    template.write.chunk_size = Size(6_000);
    template.write.roll_at = Size(3_000);
    template.write.writers = 2;
    template.dedup.skip_types = vec!["text/.*".to_owned()];
    job(template, ["http://one.test/", "http://two.test/"].map(str::to_owned).to_vec())
}

fn oracle() -> Arc<dyn DuplicateOracle> {
    Arc::new(KnowsPictures)
}

async fn undisturbed(job: Job, root: &Path) -> Outcome {
    Crawl::start(job, root, oracle(), Clock::system()).unwrap().run().await.unwrap()
}

/// Crawls until so many chunks are closed, then loses everything but the files that they name.
async fn lost(job: Job, folder: &Path, chunks: usize) -> Vec<PathBuf> {
    lost_with(job, folder, chunks, Vec::new()).await.0
}

/// The same with orders, and what of them lasts.
async fn lost_with(
    job: Job,
    folder: &Path,
    chunks: usize,
    orders: Vec<Order>,
) -> (Vec<PathBuf>, LastingOrders) {
    let root = folder.join("lost");
    let crawl = Crawl::start(job, &root, oracle(), Clock::system()).unwrap();
    let handle = crawl.handle();
    for order in orders {
        handle.order("anna", order).await.unwrap();
    }
    let lasting = handle.lasting_orders().unwrap();
    let running = tokio::spawn(crawl.run());
    let manifests = || {
        let entries = std::fs::read_dir(root.join("manifests")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        paths
    };
    until("closed chunks", async || manifests().len() >= chunks).await;
    running.abort();
    let _ = running.await;
    let stored = folder.join("stored");
    std::fs::create_dir(&stored).unwrap();
    let mut paths = Vec::new();
    for manifest in &manifests()[..chunks] {
        for file in Manifest::load(manifest).unwrap().files {
            let path = stored.join(&file.name);
            std::fs::copy(root.join("warcs").join(&file.name), &path).unwrap();
            paths.push(path);
        }
    }
    until("the lost crawl to let go of its folder", async || std::fs::remove_dir_all(&root).is_ok()).await;
    paths.sort();
    (paths, (*lasting).clone())
}

/// The folder of a job that nobody has crawled.
fn prepared(job: &Job, root: &Path) {
    std::fs::create_dir_all(root).unwrap();
    std::fs::write(root.join("job.json"), serde_json::to_vec(job).unwrap()).unwrap();
}

fn begin(root: &Path, files: &[PathBuf]) -> TakeOver {
    TakeOver::begin(root, files.len() as u64, Clock::system()).unwrap().expect("nobody has crawled here")
}

fn import(root: &Path, files: &[PathBuf]) -> TakenOver {
    let mut import = begin(root, files);
    for path in files {
        import.add_file(path).unwrap();
    }
    import.finish().unwrap()
}

/// What the logs say of each capture, as far as it does not depend on time and place. Names are asked for again by
/// another machine.
fn logged(root: &Path) -> BTreeMap<String, Vec<String>> {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("logs")).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_string_lossy().starts_with("crawl.log") {
            continue;
        }
        for text in std::fs::read_to_string(path).unwrap().lines() {
            let line = CrawlLine::parse(text).unwrap();
            if line.url.starts_with("dns:") {
                continue;
            }
            let size = line.content_size();
            let CrawlLine { status, size: body, url, hops, via, mime, digest, source, annotations, .. } =
                line;
            lines.entry(url.into_owned()).or_default().push(format!(
                "{} {body:?} {hops} {via:?} {mime} {digest:?} {source:?} {annotations} {size}",
                status.0
            ));
        }
    }
    for lines in lines.values_mut() {
        lines.sort();
    }
    lines
}

fn report(root: &Path, name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root.join("reports").join(name)).unwrap();
    text.lines().filter(|line| !line.contains("dns")).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_continued_from_its_stored_files_equals_an_undisturbed_one() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let (whole, root) = (folder.path().join("whole"), folder.path().join("crawl"));
    let expected = undisturbed(wanted(&site), &whole).await;
    let stored = lost(wanted(&site), folder.path(), 4).await;
    let asked_before = site.log().len();
    prepared(&wanted(&site), &root);
    // An import that is interrupted leaves nothing behind.
    let mut interrupted = begin(&root, &stored);
    interrupted.add_file(&stored[0]).unwrap();
    drop(interrupted);
    let taken = import(&root, &stored);
    assert_eq!((taken.files, taken.unexplained), (stored.len() as u64, 0));
    assert!(taken.captures > 15 && taken.queued > 5, "{taken:?}");
    let crawl = Crawl::resume(&root, oracle(), Clock::system()).unwrap();
    let outcome = crawl.run().await.unwrap();

    let kept = folder.path().join("kept");
    std::fs::create_dir_all(kept.join("warcs")).unwrap();
    for path in &stored {
        std::fs::copy(path, kept.join("warcs").join(path.file_name().unwrap())).unwrap();
    }
    let (earlier, later) = (captured(&kept), captured(&root));
    let doubled: Vec<_> = later.keys().filter(|url| earlier.contains_key(*url)).collect();
    // The page that redirects to itself may have been stored only once.
    assert!(doubled.iter().all(|url| url.ends_with("/itself")), "fetched again: {doubled:?}");
    let asked = site.log().split_off(asked_before);
    let again: Vec<_> =
        asked.iter().filter(|line| earlier.contains_key(&format!("http://{}", &line[4..]))).collect();
    assert!(again.iter().all(|line| line.ends_with("/itself")), "asked for again: {again:?}");
    assert_eq!(logged(&root), logged(&whole));
    let sorted = |outcome: &Outcome| {
        let mut domains: Vec<_> = outcome
            .domains
            .iter()
            .map(|one| (one.domain.clone(), one.objects, one.bytes, one.stop_reason))
            .collect();
        domains.sort_by(|a, b| a.0.cmp(&b.0));
        domains
    };
    assert_eq!(sorted(&outcome), sorted(&expected));
    for name in ["hosts-report.txt", "mimetype-report.txt", "responsecode-report.txt", "seeds-report.txt"] {
        assert_eq!(report(&root, name), report(&whole, name), "{name}");
    }
    let extracted = |root: &Path| -> BTreeSet<String> {
        report(root, "processors-report.txt")
            .into_iter()
            .filter(|line| line.contains(" links from "))
            .collect()
    };
    assert_eq!(extracted(&root), extracted(&whole));
    // Each file is named by one manifest, the stored ones by the first.
    let mut named = Vec::new();
    for entry in std::fs::read_dir(root.join("manifests")).unwrap() {
        named.extend(Manifest::load(&entry.unwrap().path()).unwrap().files.into_iter().map(|file| file.name));
    }
    let names = |paths: Vec<PathBuf>| {
        paths
            .into_iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect::<Vec<_>>()
    };
    let mut there = [names(stored), names(super::warcs(&root))].concat();
    named.sort();
    there.sort();
    assert_eq!(named, there);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_before_is_charged_to_the_limits() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let mut job = wanted(&site);
    job.budgets.other_domains.limits = Limits { max_objects: 14, ..Limits::default() };
    let (whole, root) = (folder.path().join("whole"), folder.path().join("crawl"));
    let expected = undisturbed(job.clone(), &whole).await;
    let stored = lost(job.clone(), folder.path(), 3).await;
    prepared(&job, &root);
    let taken = import(&root, &stored);
    let asked_before = site.total();
    let outcome = Crawl::resume(&root, oracle(), Clock::system()).unwrap().run().await.unwrap();
    for domain in ["one.test", "two.test"] {
        let of = |outcome: &Outcome| {
            let found = outcome.domains.iter().find(|one| one.domain == domain).unwrap();
            (found.objects, found.stop_reason)
        };
        assert_eq!(of(&expected), (14, StopReason::ObjectLimit));
        assert_eq!(of(&outcome), (14, StopReason::ObjectLimit), "{domain}");
    }
    let asked = (site.total() - asked_before) as u64;
    let all: usize = logged(&whole).values().map(Vec::len).sum();
    assert!(
        taken.captures > 10 && asked + taken.captures <= all as u64 + 4,
        "{asked} and {taken:?} of {all}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_people_gave_hold_in_a_crawl_that_is_continued_without_its_folder() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let limits = Limits { max_objects: 9, ..Limits::default() };
    let orders = vec![
        Order::Reject { regex: ".*/deep".to_owned() },
        Order::AddSeeds { urls: vec!["http://three.test/".to_owned()], endpoints: Vec::new() },
        Order::SetLimits { domain: Some("two.test".to_owned()), limits: limits.into() },
        Order::SetPace { factor: 0.5 },
    ];
    let (stored, lasting) = lost_with(wanted(&site), folder.path(), 1, orders).await;
    let asked_before = site.total();
    prepared(&wanted(&site), &root);
    let mut import = begin(&root, &stored);
    // As they are kept elsewhere.
    let kept = serde_json::to_string(&lasting).unwrap();
    import.follow_orders(&serde_json::from_str(&kept).unwrap()).unwrap();
    for path in &stored {
        import.add_file(path).unwrap();
    }
    assert!(import.finish().unwrap().queued > 3);
    let crawl = Crawl::resume(&root, oracle(), Clock::system()).unwrap();
    assert_eq!(*crawl.handle().lasting_orders().unwrap(), lasting, "the next take-over has them too");
    let outcome = crawl.run().await.unwrap();
    let asked = site.log().split_off(asked_before);
    assert!(!asked.iter().any(|line| line.ends_with("/deep")), "{asked:?}");
    let seen = logged(&root);
    assert!(seen.contains_key("http://three.test/a11"), "pages of the added seed are in scope");
    let two = outcome.domains.iter().find(|one| one.domain == "two.test").unwrap();
    assert_eq!((two.objects, two.stop_reason), (9, StopReason::ObjectLimit));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_has_begun_is_not_touched_and_one_without_stored_files_begins() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let (whole, root) = (folder.path().join("whole"), folder.path().join("crawl"));
    undisturbed(wanted(&site), &whole).await;
    let before = logged(&whole);
    assert!(TakeOver::begin(&whole, 3, Clock::system()).unwrap().is_none());
    assert_eq!(logged(&whole), before);
    prepared(&wanted(&site), &root);
    assert_eq!(import(&root, &[]), TakenOver::default());
    Crawl::resume(&root, oracle(), Clock::system()).unwrap().run().await.unwrap();
    assert_eq!(logged(&root), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_whose_files_do_not_say_how_they_came_about_are_fetched_again() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let mut job = wanted(&site);
    job.template.write.metadata = false;
    let (whole, root) = (folder.path().join("whole"), folder.path().join("crawl"));
    undisturbed(job.clone(), &whole).await;
    let mut stored = lost(job.clone(), folder.path(), 2).await;
    let damaged = folder.path().join("damaged.warc.gz");
    std::fs::write(&damaged, b"\x1f\x8b\x08\x00nothing of this can be read").unwrap();
    stored.push(damaged);
    prepared(&job, &root);
    let taken = import(&root, &stored);
    assert!(taken.captures == 0 && taken.unexplained > 3, "{taken:?}");
    Crawl::resume(&root, oracle(), Clock::system()).unwrap().run().await.unwrap();
    assert_eq!(logged(&root), logged(&whole));
}

/// A page for members, to whom nobody is let in before the door opens: whoever gives the password gets no answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_password_was_not_answered_is_fetched_by_the_next_crawl() {
    let open = Arc::new(AtomicBool::new(false));
    let door = Arc::clone(&open);
    let site = Site::serve(move |asked: Asked| {
        let door = Arc::clone(&door);
        async move {
            let is_member = asked.headers.contains_key("authorization");
            let is_protected = asked.url.starts_with("members.test/") && !asked.url.ends_with("robots.txt");
            match (is_protected, is_member) {
                (false, _) => answer(asked).await,
                (true, false) => Some(Reply::status(401).with("WWW-Authenticate: Basic realm=\"Members\"")),
                (true, true) if !door.load(Ordering::Relaxed) => None,
                (true, true) if asked.url.ends_with(".test/") => {
                    Some(Reply::links("members", ["http://members.test/inside".to_owned()]))
                }
                (true, true) => Some(Reply::page("inside")),
            }
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut job = wanted(&site);
    job.seeds.insert(0, "http://members.test/".to_owned());
    job.template.write.writers = 1;
    job.credentials = vec![Credential {
        domain: "members.test".to_owned(),
        kind: CredentialKind::Http {
            origin: None,
            realm: None,
            user: "u".to_owned(),
            password: "p".to_owned(),
        },
    }];
    let stored = lost(job.clone(), folder.path(), 3).await;
    prepared(&job, &root);
    import(&root, &stored);
    let refusals = |root: &Path| logged(root).get("http://members.test/").map_or(0, Vec::len);
    assert_eq!(refusals(&root), 1, "the refusal was stored");
    let asked_before = site.log().len();
    open.store(true, Ordering::Relaxed);
    let outcome = Crawl::resume(&root, oracle(), Clock::system()).unwrap().run().await.unwrap();
    let found = captured(&root);
    for url in ["http://members.test/", "http://members.test/inside"] {
        assert_eq!(found[url].iter().map(|capture| capture.status).collect::<Vec<_>>(), [200], "{url}");
    }
    let asked = site.log().split_off(asked_before);
    let asked = asked.iter().filter(|line| line.ends_with("members.test/")).count();
    assert_eq!(asked, 1, "the challenge was known");
    let members = outcome.domains.iter().find(|one| one.domain == "members.test").unwrap();
    assert_eq!(members.objects, 2, "no URL is charged twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_was_killed_at_any_moment_is_made_again() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let stored = lost(wanted(&site), folder.path(), 2).await;
    type Wreck = fn(&Path);
    let wrecks: [(&str, Wreck); 4] = [
        ("without its version", |frontier| std::fs::remove_file(frontier.join("version")).unwrap()),
        ("empty", |frontier| {
            std::fs::remove_dir_all(frontier).unwrap();
            std::fs::create_dir(frontier).unwrap();
        }),
        ("gone", |frontier| std::fs::remove_dir_all(frontier).unwrap()),
        ("cut off", |frontier| {
            for entry in std::fs::read_dir(frontier).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    std::fs::remove_dir_all(path).unwrap();
                } else {
                    std::fs::write(path, b"?").unwrap();
                }
            }
        }),
    ];
    for (name, wreck) in wrecks {
        let root = folder.path().join(name);
        prepared(&wanted(&site), &root);
        let mut killed = begin(&root, &stored);
        killed.add_file(&stored[0]).unwrap();
        drop(killed);
        wreck(&root.join("state/frontier"));
        let taken = import(&root, &stored);
        assert_eq!(taken.files, stored.len() as u64, "{name}");
        assert!(TakeOver::begin(&root, 2, Clock::system()).unwrap().is_none(), "{name}: it has begun");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_has_begun_is_kept_even_if_its_frontier_is_damaged() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    undisturbed(wanted(&site), &root).await;
    let frontier = root.join("state/frontier");
    let warcs = super::warcs(&root);
    for step in ["without its version", "gone"] {
        if step == "gone" {
            std::fs::remove_dir_all(&frontier).unwrap();
        } else {
            std::fs::remove_file(frontier.join("version")).unwrap();
        }
        let begun = TakeOver::begin(&root, 2, Clock::system());
        assert!(begun.is_err(), "{step}: {begun:?}");
        assert_eq!(super::warcs(&root), warcs, "{step}");
        assert!(root.join("logs/crawl.log").exists(), "{step}");
    }
}
