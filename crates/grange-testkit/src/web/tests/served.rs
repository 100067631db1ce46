//! What is expected is what is served.

use std::collections::BTreeSet;

use super::client::{get, request};
use crate::web::expect::{Expected, Weight};
use crate::web::{Coding, Options, PASSWORD, Profile, Rules, USER, Web, WebServer, gate};

async fn check(server: &WebServer, url: &str, expected: &Expected, headers: &str) {
    let form = format!("user={USER}&password={PASSWORD}");
    let body = if expected.method == "POST" { form.as_str() } else { "" };
    let got = request(server.addr(), expected.method, url, headers, body).await;
    let mut weight = Weight::default();
    weight.add(&got.body);
    let (length, sha1) = weight.done();
    assert_eq!(
        (got.status, got.header("content-type"), length, sha1.as_str()),
        (expected.status, expected.mime.as_str(), expected.length, expected.payload_sha1.as_str()),
        "{url}"
    );
}

/// Asks for everything that is expected; those who are turned away at first ask twice.
async fn check_all(web: &Web, rules: &Rules, headers: &str) -> usize {
    let server = web.serve("127.0.0.1:0").await.unwrap();
    let expected = web.expected(rules);
    for (url, expected) in &expected {
        if url.contains("/busy/") {
            assert_ne!(get(server.addr(), url, headers).await.status, 200, "{url}");
        }
        check(&server, url, expected, headers).await;
    }
    server.stop().await;
    expected.len()
}

#[tokio::test]
async fn every_expected_url_is_served_as_expected() {
    let web = Web::new(Options { hosts: 13, pages: 12, ..Options::default() });
    let count = check_all(&web, &Rules::default(), &format!("Cookie: {}\r\n", gate::COOKIE)).await;
    assert!(count > 500, "only {count} URLs");
}

#[tokio::test]
async fn whoever_offers_codings_gets_them_and_they_are_expected() {
    let web = Web::new(Options { hosts: 1, pages: 2, ..Options::default() });
    let rules = Rules { codings: Coding::ALL.into(), cookies: false, ..Rules::default() };
    check_all(&web, &rules, "Accept-Encoding: gzip, deflate, br\r\n").await;
}

#[tokio::test]
async fn a_plain_web_is_reached_whole_from_its_front_page() {
    for (hosts, pages) in [(1, 1), (1, 9), (3, 100)] {
        let web = Web::new(Options { hosts, pages, profile: Profile::Plain, ..Options::default() });
        let count = check_all(&web, &Rules::default(), "").await;
        // Pages, a picture for every ten of them, robots.txt.
        assert_eq!(count, hosts * (pages + usize::div_ceil(pages, 10) + 1));
        let all: BTreeSet<_> = web.expected(&Rules::default()).into_keys().collect();
        let one = Rules {
            seeds: vec![web.seeds()[0].clone()],
            scope: crate::web::Scope::Everything,
            ..Rules::default()
        };
        assert_eq!(all, web.expected(&one).into_keys().collect(), "front pages form a ring");
    }
}
