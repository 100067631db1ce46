//! One request at a time for each host, and a pause between them.

use std::time::Duration;

use grange_crawl::engine::End;
use grange_crawl::politeness::Pace;
use grange_testkit::web::{Options, Profile, Rules, Sub, Web};

use super::{captured, job, run, serve, template};

const PAUSE: Duration = Duration::from_millis(30);
/// The frontier counts whole milliseconds: from up to one before an answer ended.
const RESOLUTION: Duration = Duration::from_millis(1);

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_asked_one_thing_at_a_time_with_pauses() {
    let web =
        Web::new(Options { hosts: 3, pages: 20, seed: 2, profile: Profile::Plain, ..Options::default() });
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    template.frontier.pace = Pace::fixed(PAUSE);
    let outcome = run(job(template, web.seeds()), &root).await;
    assert_eq!(outcome.end, End::Finished);
    let expected = web.expected(&Rules::default());
    assert_eq!(captured(&root).len(), expected.len());
    for site in 0..3 {
        let host = web.host(site, Sub::Bare);
        assert_eq!(server.concurrent_peak(&host), 1, "{host}");
        // From when one answer begins to be written to when the next request has been read: the crawl counts its
        // pause from later, and asks before it is read. A slow machine can only make this longer.
        let moments = server.moments(&host);
        assert!(moments.len() > 20, "{host}: {}", moments.len());
        for (before, after) in moments.iter().zip(&moments[1..]) {
            let pause = after.start.duration_since(before.start);
            assert!(pause + RESOLUTION > PAUSE, "{host}: {pause:?}");
        }
    }
    server.stop().await;
}
