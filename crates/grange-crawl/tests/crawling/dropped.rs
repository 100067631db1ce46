//! A crawl whose call is dropped ends: its folder can be used by the next one, and not before that.

use std::sync::Arc;

use grange_base::Clock;
use grange_crawl::engine::{Crawl, End};
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use tokio::sync::watch;

use super::site::{Reply, Site};
use super::{captured, job, template_to};

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_is_dropped_lets_go_of_its_folder_and_can_be_resumed_in_the_same_process() {
    let answers = Arc::new(watch::Sender::new(false));
    let site = Site::serve({
        let answers = Arc::clone(&answers);
        move |asked| {
            let mut answers = answers.subscribe();
            async move {
                if asked.url.ends_with("/slow") {
                    answers.wait_for(|answers| *answers).await.ok()?;
                }
                Some(Reply::links(&asked.url, ["http://h.test/slow".to_owned()]))
            }
        }
    })
    .await;
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("crawl");
    let seeds = vec!["http://h.test/".to_owned()];
    let crawl =
        Crawl::start(job(template_to(site.addr()), seeds), &root, Arc::new(NoOracle), Clock::system());
    let running = tokio::spawn(crawl.unwrap().run());
    until("the request", async || site.times("h.test/slow") == 1).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let mut resumed = None;
    until("the folder", async || {
        resumed = match Crawl::resume(&root, Arc::new(NoOracle), Clock::system()) {
            Ok(crawl) => Some(crawl),
            Err(error) => {
                // Never an error that says anything else of the folder.
                assert!(error.is_in_use(), "{error:?}");
                None
            }
        };
        resumed.is_some()
    })
    .await;
    answers.send_replace(true);
    let outcome = resumed.unwrap().run().await.unwrap();
    assert_eq!(outcome.end, End::Finished);
    let found = captured(&root);
    assert!(found.values().all(|captures| captures.len() == 1), "{found:?}");
    assert!(found.contains_key("http://h.test/slow"));
}
