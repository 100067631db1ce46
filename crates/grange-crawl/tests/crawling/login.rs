//! With its log-ins a crawl sees what readers see, and the archive never learns the password of a form.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use grange_base::Clock;
use grange_crawl::engine::{Crawl, End};
use grange_crawl::fetch::login::{FormLogin, FormMethod, SuccessCheck};
use grange_crawl::job::{Credential, CredentialKind};
use grange_crawl::record::NoOracle;
use grange_crawl::record::settings::Packing;
use grange_testkit::web::{Options, PASSWORD, Profile, Rules, Sub, USER, Web};

use super::site::{Asked, Reply, Site};
use super::{captured, job, run, serve, template, template_to};

fn web() -> Web {
    Web::new(Options { hosts: 3, pages: 6, seed: 7, profile: Profile::Deterministic, ..Options::default() })
}

/// Opens all protected areas of all sites.
fn credentials(web: &Web, method: FormMethod) -> Vec<Credential> {
    let of = |site: usize| {
        let domain = web.host(site, Sub::Bare);
        let http = CredentialKind::Http {
            origin: None,
            realm: None,
            user: USER.to_owned(),
            password: PASSWORD.to_owned(),
        };
        let form = CredentialKind::Form(FormLogin {
            login_url: web.url(site, Sub::Bare, "/login/enter"),
            method,
            fields: [("user", USER), ("password", PASSWORD)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            page_url: None,
            success: SuccessCheck { sets_cookie: Some("session".to_owned()), ..SuccessCheck::default() },
        });
        [http, form].map(|kind| Credential { domain: domain.clone(), kind })
    };
    (0..web.options().hosts).flat_map(of).collect()
}

/// The files of a crawl that go to the archive and to its readers.
fn kept(root: &Path) -> Vec<PathBuf> {
    let folders = ["warcs", "logs", "reports", "manifests"];
    let entries = folders.into_iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The kept files with the password in them.
fn tell_tales(root: &Path) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        memchr::memmem::find(&bytes, PASSWORD.as_bytes()).is_some()
    };
    kept(root).into_iter().filter(holds).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn protected_areas_are_captured_exactly_and_the_password_is_not() {
    let web = web();
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    template.scope.max_hops = 1000;
    // So that a search of the files sees everything.
    template.write.compression = Packing::None;
    let mut wanted = job(template, web.seeds());
    wanted.credentials = credentials(&web, FormMethod::Post);
    run(wanted, &root).await;

    let expected = web.expected(&Rules { credentials: true, ..Rules::default() });
    let found = captured(&root);
    let mut wrong = Vec::new();
    for (url, expected) in &expected {
        let Some(captures) = found.get(url) else {
            wrong.push(format!("missing {url}: {expected:?}"));
            continue;
        };
        // Refusals are kept too: they are what everybody else sees.
        let (last, before) = captures.split_last().unwrap();
        let refused = before.len() <= 1 && before.iter().all(|capture| capture.status == 401);
        if (last.status, last.length, last.digest.as_str())
            != (expected.status, expected.length, expected.payload_sha1.as_str())
            || !refused
        {
            wrong.push(format!("other {url}: {captures:?} instead of {expected:?}"));
        }
    }
    for (url, captures) in found.iter().filter(|(url, _)| !expected.contains_key(*url)) {
        wrong.push(format!("unexpected {url}: {captures:?}"));
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), expected.len(), wrong.join("\n"));
    let refusals = found.values().flatten().filter(|capture| capture.status == 401).count();
    assert!(refusals >= 2, "each area refuses once");
    let mut posts = server.requests();
    posts.retain(|url, _| url.ends_with("/login/enter"));
    assert!(!posts.is_empty() && posts.values().all(|times| *times == 1), "{posts:?}");
    assert_eq!(tell_tales(&root), Vec::<PathBuf>::new());
    server.stop().await;
}

/// A form sent by GET has the password in its address. This web lets nobody in that way, which is no matter here.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_in_the_address_leaves_no_password_behind_either() {
    let web = web();
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    template.write.compression = Packing::None;
    let mut wanted = job(template, web.seeds()[..1].to_vec());
    wanted.credentials = credentials(&web, FormMethod::Get);
    run(wanted, &root).await;
    let asked = server.requests();
    assert!(asked.keys().any(|url| url.contains(PASSWORD)), "the form was sent");
    assert_eq!(tell_tales(&root), Vec::<PathBuf>::new());
    server.stop().await;
}

/// Two hosts of one domain ask for a password, in the same words.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_hosts_of_a_domain_that_ask_for_a_password_the_one_it_was_entered_for_gets_it() {
    let given = Arc::new(Mutex::new(BTreeSet::new()));
    let log = Arc::clone(&given);
    let site = Site::serve(move |asked: Asked| {
        let with = asked.headers.contains_key("authorization");
        let host = asked.url.split('/').next().unwrap_or_default().to_owned();
        log.lock().unwrap().extend(with.then_some(host));
        async move {
            Some(if with || asked.url.ends_with("/robots.txt") {
                Reply::links("x", ["//www.one.test/a", "//one.test/b"].map(str::to_owned))
            } else {
                Reply::status(401).with("WWW-Authenticate: Basic realm=\"all\"")
            })
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let seeds = ["http://one.test/", "http://www.one.test/"].map(str::to_owned).to_vec();
    let mut wanted = job(template_to(site.addr()), seeds);
    let kind = CredentialKind::Http {
        origin: Some("http://www.one.test".to_owned()),
        realm: None,
        user: USER.to_owned(),
        password: PASSWORD.to_owned(),
    };
    wanted.credentials = vec![Credential { domain: "one.test".to_owned(), kind }];
    run(wanted, &root).await;
    assert_eq!(*given.lock().unwrap(), BTreeSet::from(["www.one.test".to_owned()]));
    let found = captured(&root);
    let last = |url: &str| found.get(url).and_then(|captures| captures.last()).map(|capture| capture.status);
    assert_eq!((last("http://www.one.test/"), last("http://one.test/")), (Some(200), Some(401)), "{found:?}");
    assert_eq!(
        (last("http://www.one.test/a"), last("http://one.test/b")),
        (Some(200), Some(401)),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_whose_server_hung_up_is_sent_again() {
    let posts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&posts);
    let answer = move |asked: Asked| {
        let count = Arc::clone(&count);
        async move {
            let is_let_in = asked.headers.get("cookie").is_some_and(|cookie| cookie.contains("session=1"));
            match (asked.method.as_str(), asked.url.as_str()) {
                ("POST", "members.test/enter") if count.fetch_add(1, Ordering::SeqCst) == 0 => None,
                ("POST", "members.test/enter") => {
                    Some(Reply::page("welcome").with("Set-Cookie: session=1; Path=/"))
                }
                (_, "members.test/robots.txt") => Some(Reply::status(404)),
                (_, "members.test/") if is_let_in => Some(Reply::links("in", vec!["/page".to_owned()])),
                (_, url) if is_let_in => Some(Reply::page(url)),
                _ => Some(Reply::status(403)),
            }
        }
    };
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut wanted = job(template_to(site.addr()), vec!["http://members.test/".to_owned()]);
    let form = FormLogin {
        login_url: "http://members.test/enter".to_owned(),
        method: FormMethod::Post,
        fields: vec![("password".to_owned(), PASSWORD.to_owned())],
        page_url: None,
        success: SuccessCheck { sets_cookie: Some("session".to_owned()), ..SuccessCheck::default() },
    };
    wanted.credentials =
        vec![Credential { domain: "members.test".to_owned(), kind: CredentialKind::Form(form) }];
    run(wanted, &root).await;
    assert_eq!(posts.load(Ordering::SeqCst), 2);
    let found = captured(&root);
    for url in ["http://members.test/", "http://members.test/page"] {
        let statuses: Vec<_> = found[url].iter().map(|capture| capture.status).collect();
        assert_eq!(statuses, [200], "{url}");
    }
}

/// A site whose pages below `/members/` are for those whose session it knows. Each log-in with the right user name begins a
/// session.
struct Members {
    site: Site,
    posts: Arc<AtomicUsize>,
    /// The sessions that count are those from this number on.
    valid_from: Arc<AtomicUsize>,
}

const MEMBER_PAGES: usize = 20;

impl Members {
    /// `ends_after` is how many pages are served in a session; Pages below `/secret/` are refused whoever asks.
    async fn serve(ends_after: usize) -> Members {
        let (posts, valid_from) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(1)));
        let (count, valid, served) =
            (Arc::clone(&posts), Arc::clone(&valid_from), Arc::new(AtomicUsize::new(0)));
        let site = Site::serve(move |asked: Asked| {
            let (count, valid, served) = (Arc::clone(&count), Arc::clone(&valid), Arc::clone(&served));
            async move {
                let cookie = asked.headers.get("cookie").and_then(|cookie| cookie.strip_prefix("session="));
                let session = cookie.and_then(|number| number.parse().ok()).unwrap_or(0_usize);
                let is_let_in = session >= valid.load(Ordering::SeqCst);
                Some(match (asked.method.as_str(), asked.url.strip_prefix("members.test").unwrap_or("")) {
                    ("POST", _) if asked.body.contains("user=right") => {
                        let session = count.fetch_add(1, Ordering::SeqCst) + 1;
                        served.store(0, Ordering::SeqCst);
                        Reply::page("welcome").with(&format!("Set-Cookie: session={session}; Path=/"))
                    }
                    ("POST", _) => {
                        count.fetch_add(1, Ordering::SeqCst);
                        Reply::page("wrong password")
                    }
                    (_, "/robots.txt") => Reply::status(404),
                    (_, "/") => {
                        Reply::links("front", ["/members/", "/secret/1", "/secret/2"].map(str::to_owned))
                    }
                    (_, path) if path.starts_with("/members/") && is_let_in => {
                        if served.fetch_add(1, Ordering::SeqCst) + 1 == ends_after {
                            valid.store(session + 1, Ordering::SeqCst);
                        }
                        let pages = (0..MEMBER_PAGES).map(|page| format!("/members/{page}"));
                        if path == "/members/" { Reply::links("in", pages) } else { Reply::page(path) }
                    }
                    _ => Reply::status(403),
                })
            }
        })
        .await;
        Members { site, posts, valid_from }
    }

    fn job(&self, user: &str, seeds: &[&str]) -> grange_crawl::job::Job {
        let seeds = seeds.iter().map(|path| format!("http://members.test{path}")).collect();
        let mut wanted = job(template_to(self.site.addr()), seeds);
        let form = FormLogin {
            login_url: "http://members.test/login".to_owned(),
            method: FormMethod::Post,
            fields: vec![("user".to_owned(), user.to_owned()), ("password".to_owned(), PASSWORD.to_owned())],
            page_url: None,
            success: SuccessCheck {
                page_lacks: Some("wrong password".to_owned()),
                ..SuccessCheck::default()
            },
        };
        wanted.credentials =
            vec![Credential { domain: "members.test".to_owned(), kind: CredentialKind::Form(form) }];
        wanted
    }
}

/// The statuses of the captures of each member page.
fn member_pages(root: &Path) -> Vec<Vec<u16>> {
    let found = captured(root);
    let url = |page| format!("http://members.test/members/{page}");
    let of = |page| found.get(&url(page)).into_iter().flatten().map(|capture| capture.status).collect();
    (0..MEMBER_PAGES).map(of).collect()
}

fn alerts(root: &Path) -> String {
    std::fs::read_to_string(root.join("logs/alerts.log")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_log_in_is_reported_and_not_repeated() {
    let members = Members::serve(usize::MAX).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let outcome = run(members.job("wrong", &["/"]), &root).await;
    assert_eq!(members.posts.load(Ordering::SeqCst), 1);
    let [trouble] = &outcome.login_troubles[..] else { panic!("{:?}", outcome.login_troubles) };
    assert_eq!((trouble.domain.as_str(), trouble.at.as_str()), ("members.test", "http://members.test/login"));
    assert_eq!(trouble.refused.as_deref(), Some("the page holds wrong password"));
    // /members/ and two that nobody may see.
    assert_eq!(trouble.pages, 3);
    assert!(alerts(&root).contains("logging in at http://members.test/login failed"), "{}", alerts(&root));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_while_it_is_used_is_begun_again() {
    let members = Members::serve(8).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let outcome = run(members.job("right", &["/"]), &root).await;
    assert_eq!(member_pages(&root), vec![vec![200]; MEMBER_PAGES]);
    // 21 pages, 8 in a session; once more because of pages that are for nobody.
    let posts = members.posts.load(Ordering::SeqCst);
    assert!((3..=4).contains(&posts), "{posts}");
    assert_eq!(outcome.login_troubles, []);
    let alerts = alerts(&root);
    assert!(alerts.contains("the session of http://members.test/login has ended at "), "{alerts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ended_while_the_crawl_was_down_is_begun_again() {
    let members = Members::serve(usize::MAX).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut first = members.job("right", &["/members/"]);
    // The page that leads to all others, and its robots.txt.
    first.budgets.crawl.max_objects = 2;
    let outcome = run(first, &root).await;
    assert_eq!(members.posts.load(Ordering::SeqCst), 1);
    assert!(outcome.last.queued > 0, "{:?}", outcome.last);
    members.valid_from.store(2, Ordering::SeqCst);
    let again = members.job("right", &["/members/"]);
    let crawl = Crawl::resume_as(again, &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let outcome = crawl.run().await.unwrap();
    assert_eq!(outcome.end, End::Finished);
    assert_eq!(members.posts.load(Ordering::SeqCst), 2);
    assert_eq!(member_pages(&root), vec![vec![200]; MEMBER_PAGES]);
    assert_eq!(outcome.login_troubles, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_ends_every_session_costs_a_bounded_number_of_log_ins() {
    // The page that is served ends the session that it was asked for in.
    let members = Members::serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let outcome = run(members.job("right", &["/members/"]), &root).await;
    assert_eq!(members.posts.load(Ordering::SeqCst), 4);
    let pages = member_pages(&root);
    let refused = pages.iter().filter(|statuses| statuses[..] == [403]).count();
    assert_eq!(pages.iter().filter(|statuses| statuses[..] == [200]).count() + refused, MEMBER_PAGES);
    let [trouble] = &outcome.login_troubles[..] else { panic!("{:?}", outcome.login_troubles) };
    assert_eq!((trouble.refused.as_deref(), trouble.pages), (None, refused as u64));
    let alerts = alerts(&root);
    assert_eq!(alerts.matches("is not begun again now: it was begun too often").count(), 1, "{alerts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_a_server_refuses_is_reported() {
    let site = Site::serve(|asked: Asked| async move {
        Some(match asked.url.as_str() {
            "one.test/" => Reply::links("front", (0..3).map(|page| format!("/closed/{page}"))),
            url if url.ends_with("/robots.txt") => Reply::status(404),
            _ => Reply::status(401).with("WWW-Authenticate: Basic realm=\"all\""),
        })
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut wanted = job(template_to(site.addr()), vec!["http://one.test/".to_owned()]);
    let (user, password) = (USER.to_owned(), PASSWORD.to_owned());
    let kind = CredentialKind::Http { origin: None, realm: None, user, password };
    wanted.credentials = vec![Credential { domain: "one.test".to_owned(), kind }];
    let outcome = run(wanted, &root).await;
    let [trouble] = &outcome.login_troubles[..] else { panic!("{:?}", outcome.login_troubles) };
    assert_eq!((trouble.at.as_str(), trouble.pages), ("http://one.test", 3));
    assert!(trouble.refused.is_some());
    assert_eq!(alerts(&root).matches("logging in at http://one.test failed").count(), 1);
}
