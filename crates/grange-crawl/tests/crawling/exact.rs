//! Exactly what the synthetic web says, no URL more, no URL less.

use grange_base::Period;
use grange_crawl::fetch::ContentEncoding;
use grange_testkit::web::{Coding, Options, Profile, Rules, Web};

use super::{captured, job, run, serve, template};

#[tokio::test(flavor = "multi_thread")]
async fn the_deterministic_web_is_captured_exactly() {
    exactly(13, Vec::new(), Rules::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_pages_are_captured_exactly_and_looked_into() {
    let offered = vec![ContentEncoding::Gzip, ContentEncoding::Deflate, ContentEncoding::Br];
    exactly(4, offered, Rules { codings: Coding::ALL.into(), ..Rules::default() }).await;
}

async fn exactly(hosts: usize, offered: Vec<ContentEncoding>, rules: Rules) {
    let web = Web::new(Options {
        hosts,
        pages: 12,
        seed: 7,
        profile: Profile::Deterministic,
        ..Options::default()
    });
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    template.scope.max_hops = 1000;
    // A robots.txt that fails forbids its host at once and until the end, however slow the machine is: it is asked for once.
    let robots = &mut template.robots.cache;
    robots.give_up = Period::from_secs(0);
    (robots.retry, robots.retry_max) = (Period::from_secs(3600), Period::from_secs(3600));
    template.fetch.accept_encodings = offered;
    let outcome = run(job(template, web.seeds()), &root).await;
    let expected = web.expected(&rules);
    let found = captured(&root);
    let mut wrong = Vec::new();
    for (url, expected) in &expected {
        let Some(captures) = found.get(url) else {
            wrong.push(format!("missing {url}: {expected:?}"));
            continue;
        };
        let last = captures.last().unwrap();
        if (last.status, last.length, last.digest.as_str())
            != (expected.status, expected.length, expected.payload_sha1.as_str())
            || last.mime != expected.mime
        {
            wrong.push(format!("other {url}: {last:?} instead of {expected:?}"));
        }
        if captures.len() > 1 {
            wrong.push(format!("{} times {url}", captures.len()));
        }
    }
    for (url, captures) in &found {
        if !expected.contains_key(url) {
            wrong.push(format!("unexpected {url}: {captures:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), expected.len(), wrong.join("\n"));
    assert_eq!(outcome.last.queued, 0);
    server.stop().await;
}
