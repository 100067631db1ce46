//! A response that broke off and one that never came are asked for again; half a response is better than none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use grange_base::Period;
use grange_crawl::engine::End;

use super::site::{Asked, Reply, Site};
use super::{captured, job, run, template_to};

#[tokio::test(flavor = "multi_thread")]
async fn what_broke_off_is_tried_again_and_the_last_part_is_kept() {
    let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let answer = move |asked: Asked| {
        let counts = Arc::clone(&counts);
        async move {
            let time = {
                let mut counts = counts.lock().unwrap();
                let count = counts.entry(asked.url.clone()).or_default();
                *count += 1;
                *count
            };
            Some(match (asked.url.as_str(), time) {
                ("h.test/", _) => {
                    let names = ["mends", "never", "fades", "hangs"];
                    Reply::links("front", names.map(|name| format!("http://h.test/{name}")))
                }
                ("h.test/mends", 1 | 2) | ("h.test/never", _) | ("h.test/fades", 1) => {
                    Reply::page("<html>half").cut()
                }
                ("h.test/fades", _) => return None,
                ("h.test/hangs", 1) => std::future::pending().await,
                _ => Reply::page("<html>whole</html>"),
            })
        }
    };
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.fetch.first_byte_timeout = Period::from_millis(300);
    template.frontier.max_retries = 3;
    template.frontier.park_after = 0;
    let outcome = run(job(template, vec!["http://h.test/".to_owned()]), &root).await;
    assert_eq!((outcome.end, outcome.last.failed), (End::Finished, 0));
    let found = captured(&root);
    let (whole, half) = ("<html>whole</html>".len() as u64, "<html>half".len() as u64);
    for (name, length, times) in
        [("mends", whole, 3), ("never", half, 4), ("fades", half, 4), ("hangs", whole, 2)]
    {
        let captures = &found[&format!("http://h.test/{name}")];
        let seen: Vec<_> = captures.iter().map(|capture| (capture.status, capture.length)).collect();
        assert_eq!(seen, [(200, length)], "{name}");
        assert_eq!(site.times(&format!("h.test/{name}")), times, "{name}");
    }
}
