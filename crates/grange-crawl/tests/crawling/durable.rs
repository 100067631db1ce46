//! A crawl that is killed resumes as what it was: with its scope, its orders, its budgets, its cookies and log-ins.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use grange_base::Clock;
use grange_crawl::engine::{Crawl, Order, ask};
use grange_crawl::fetch::login::{FormLogin, FormMethod, SuccessCheck};
use grange_crawl::job::{Credential, CredentialKind, Job, Limits};
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::scope::ScopeKind;
use grange_testkit::until;
use tokio::sync::watch;

use super::crash::spawn;
use super::site::{Asked, Reply, Site};
use super::{captured, job, template_to};

const KILLS: usize = 8;

/// Until this is set, `gate.test/late` is not answered: its links are found after the orders were given.
type Ordered = Arc<watch::Sender<bool>>;

fn many(host: &str, path: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://{host}{path}{n}")).collect()
}

/// A site whose seed redirects, with pages behind a cookie, a form and a digest; a page that waits for orders; and
/// two hosts that only orders lead to.
async fn answer(asked: Asked, ordered: Ordered) -> Option<Reply> {
    let cookies = asked.headers.get("cookie").cloned().unwrap_or_default();
    let (host, path) = asked.url.split_once('/').unwrap_or((&asked.url, ""));
    let title = asked.url.as_str();
    Some(match (host, path) {
        (_, "robots.txt") => Reply::page("User-agent: *\nDisallow: /forbidden\n"),
        ("one.test", _) => Reply::status(301).with("Location: http://www.one.test/"),
        ("www.one.test", "") => {
            let mut links = many("www.one.test", "/a", 6);
            links.push("http://www.one.test/cookie/start".to_owned());
            links.extend(many("www.one.test", "/auth/d", 4));
            links.extend(many("www.one.test", "/in/s", 4));
            Reply::links(title, links)
        }
        ("www.one.test", "cookie/start") => Reply::links(title, many("www.one.test", "/cookie/p", 4))
            .with("Set-Cookie: taste=oatmeal; Path=/cookie"),
        ("www.one.test", page) if page.starts_with("cookie/") && !cookies.contains("taste=oatmeal") => {
            Reply::status(403)
        }
        ("www.one.test", page) if page.starts_with("in/") && !cookies.contains("session=in") => {
            Reply::status(403)
        }
        ("www.one.test", page) if page.starts_with("auth/") => {
            let shown = asked.headers.get("authorization").cloned().unwrap_or_default();
            if shown.contains("nonce=\"once\"") && shown.contains("username=\"anna\"") {
                Reply::links(title, Vec::new())
            } else {
                Reply::status(401).with("WWW-Authenticate: Digest realm=\"r\", qop=\"auth\", nonce=\"once\"")
            }
        }
        ("www.one.test", "login") if asked.method == "POST" => {
            Reply::status(303).with("Set-Cookie: session=in; Path=/").with("Location: /in/home")
        }
        ("gate.test", "late") => {
            ordered.subscribe().wait_for(|ordered| *ordered).await.ok()?;
            let links = many("gate.test", "/late/x", 4).into_iter().chain(many("gate.test", "/drop/y", 4));
            Reply::links(title, links)
        }
        ("two.test", "") => Reply::links(title, many("two.test", "/t", 5)),
        ("few.test", "") => Reply::links(title, many("few.test", "/f", 9)),
        // Each page of the first level leads to one of the second.
        (host, page) if !page.ends_with("/deep") => {
            Reply::links(title, [format!("http://{host}/{page}/deep")])
        }
        _ => Reply::links(title, Vec::new()),
    })
}

fn wanted(site: &Site, kind: ScopeKind) -> Job {
    let mut template = template_to(site.addr());
    template.scope.kind = kind;
    template.frontier.pace = Pace::fixed(Duration::from_millis(4));
    let seeds = ["http://one.test/", "http://gate.test/late"].map(str::to_owned);
    let mut job = job(template, seeds.to_vec());
    let http = CredentialKind::Http {
        origin: None,
        realm: None,
        user: "anna".to_owned(),
        password: "secret".to_owned(),
    };
    let form = CredentialKind::Form(FormLogin {
        login_url: "http://www.one.test/login".to_owned(),
        method: FormMethod::Post,
        fields: vec![("user".to_owned(), "anna".to_owned())],
        page_url: None,
        success: SuccessCheck { sets_cookie: Some("session".to_owned()), ..SuccessCheck::default() },
    });
    job.credentials = [http, form].map(|kind| Credential { domain: "one.test".to_owned(), kind }).to_vec();
    job
}

async fn give_orders(root: &Path) {
    let few = Limits { max_objects: 3, ..Limits::default() };
    let seeds = ["http://two.test/", "http://few.test/"].map(str::to_owned).to_vec();
    for order in [
        Order::SetLimits { domain: Some("few.test".to_owned()), limits: few.into() },
        Order::Reject { regex: ".*/drop/.*".to_owned() },
        Order::AddSeeds { urls: seeds, endpoints: Vec::new() },
    ] {
        // The child may still be on its way to its socket.
        until("an order to be taken", async || ask(root, "anna", order.clone()).await.is_ok()).await;
    }
}

/// Every capture by URL: its status and what it holds.
type Found = BTreeMap<String, Vec<(u16, String)>>;

/// Crawls with so many kills at random moments; what is in the files afterwards, and what was asked for.
async fn crawl(kind: ScopeKind, kills: usize) -> (Found, Vec<String>) {
    let ordered: Ordered = Arc::new(watch::Sender::new(false));
    let site = Site::serve({
        let ordered = Arc::clone(&ordered);
        move |asked| answer(asked, Arc::clone(&ordered))
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    drop(Crawl::start(wanted(&site, kind), &root, Arc::new(NoOracle), Clock::system()).unwrap());
    let mut random = 0x9e37_79b9_u64 ^ kind as u64;
    let mut left = kills;
    let ended = |child: &mut Child| child.try_wait().expect("it can be asked");
    loop {
        let mut child = spawn(&root);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // A page alone has few parts to be killed between.
        let few = if kind == ScopeKind::Page { 2 } else { 9 };
        let goal = if left > 0 { site.total() + (random >> 33) as usize % few } else { usize::MAX };
        let mut over = None;
        until("more requests or the end", async || {
            over = ended(&mut child);
            // Half of the kills come before the orders, half after them.
            let is_time = left <= kills / 2 && site.times("gate.test/late") > 0;
            if is_time && !*ordered.borrow() {
                give_orders(&root).await;
                ordered.send_replace(true);
            }
            over.is_some() || site.total() >= goal
        })
        .await;
        if let Some(status) = over {
            assert!(status.success(), "{kind:?}: the last run comes to its end");
            break;
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it is gone");
        left -= 1;
    }
    let found = captured(&root);
    let plain =
        |captures: Vec<super::Captured>| captures.into_iter().map(|one| (one.status, one.digest)).collect();
    (found.into_iter().map(|(url, captures)| (url, plain(captures))).collect(), site.log())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_crawl_has_what_an_undisturbed_one_has_in_every_kind_of_scope() {
    use ScopeKind::{Any, Domain, Host, Page, Path, Seed};
    for (kind, least) in [(Host, 50), (Domain, 50), (Path, 50), (Seed, 50), (Any, 50), (Page, 8)] {
        let (undisturbed, _) = crawl(kind, 0).await;
        assert!(undisturbed.len() >= least, "{kind:?}: {:?}", undisturbed.keys());
        let (killed, asked) = crawl(kind, KILLS).await;
        let missing: Vec<_> = undisturbed.keys().filter(|url| !killed.contains_key(*url)).collect();
        let extra: Vec<_> = killed.keys().filter(|url| !undisturbed.contains_key(*url)).collect();
        let other: Vec<_> = undisturbed
            .iter()
            .filter_map(|(url, captures)| Some((url, captures, killed.get(url)?)))
            .filter(|(_, undisturbed, killed)| undisturbed != killed)
            .collect();
        assert_eq!((missing, extra), (Vec::new(), Vec::new()), "{kind:?}: missing, extra");
        assert!(other.is_empty(), "{kind:?}: {other:#?}");
        if kind != Page {
            assert!(killed.values().flatten().all(|(status, _)| *status != 403), "{kind:?}: logged in");
            let few =
                killed.keys().filter(|url| url.starts_with("http://few.test/") && !url.contains("robots"));
            assert_eq!(few.count(), 3, "{kind:?}: the ordered limit");
        }
        assert!(!asked.iter().any(|line| line.contains("/drop/")), "{kind:?}: rejected by order");
    }
}
