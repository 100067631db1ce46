//! Redirects without end are left after some, by the server, by the page, and by robots.txt; the log says why.

use grange_crawl::engine::End;

use super::site::{Asked, Reply, Site};
use super::{job, run, template_to};

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_redirects_ends_and_the_log_says_why() {
    let answer = |asked: Asked| async move {
        let (host, path) = asked.url.split_once('/').unwrap_or((&asked.url, ""));
        let next =
            |path: &str| path.rsplit('/').next().and_then(|n| n.parse::<u32>().ok()).map_or(0, |n| n + 1);
        Some(match (host, path) {
            ("robots.test", "") => Reply::links("front", Vec::new()),
            ("robots.test", path) => Reply::status(302).with(&format!("Location: /r/{}", next(path))),
            (_, "robots.txt") => Reply::status(404),
            ("meta.test", path) => {
                let to = format!("0; url=/m/{}", next(path));
                Reply::page(format!("<html><meta http-equiv=\"refresh\" content=\"{to}\">{path}</html>"))
            }
            (_, path) => Reply::status(302).with(&format!("Location: /h/{}", next(path))),
        })
    };
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.scope.max_hops = 10_000;
    template.scope.repeated_content = 0;
    let seeds = ["header", "meta", "robots"].map(|name| format!("http://{name}.test/")).to_vec();
    let mut wanted = job(template, seeds);
    // The test ends also where chains do not.
    wanted.budgets.crawl.max_objects = 500;
    let outcome = run(wanted, &root).await;
    assert_eq!(outcome.end, End::Finished);
    let log = site.log();
    let asked = |start: &str| log.iter().filter(|line| line.starts_with(&format!("GET {start}"))).count();
    assert_eq!((asked("header.test/h/"), asked("meta.test/m/")), (20, 20));
    assert_eq!(asked("robots.test/r/"), 5);
    let scope = std::fs::read_to_string(root.join("logs/scope.log")).unwrap();
    for url in ["http://header.test/h/20", "http://meta.test/m/20", "http://robots.test/r/5"] {
        let told = scope
            .lines()
            .any(|line| line.contains(" 14 TooManyRedirectsDecideRule REJECT ") && line.contains(url));
        assert!(told, "{url} in {scope}");
    }
}
