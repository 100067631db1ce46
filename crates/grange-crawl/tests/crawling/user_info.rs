//! A password in a seed opens its origin, and is in no file that the archive or its readers get.

use std::path::{Path, PathBuf};

use grange_crawl::record::settings::Packing;

use super::site::{Asked, Reply, Site};
use super::{captured, job, run, template_to};

const PASSWORD: &str = "s33dpass";

/// The files with the password in them.
fn tell_tales(root: &Path) -> Vec<PathBuf> {
    let folders = ["warcs", "logs", "reports", "manifests"];
    let entries = folders.into_iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        memchr::memmem::find(&bytes, PASSWORD.as_bytes()).is_some()
    };
    entries.map(|entry| entry.unwrap().path()).filter(holds).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_do_not_inherit_the_password_of_a_seed_and_its_origin_is_open_all_the_same() {
    let site = Site::serve(|asked: Asked| async move {
        if asked.url.ends_with("/robots.txt") {
            return Some(Reply::status(404));
        }
        // "user:s33dpass"
        if asked.headers.get("authorization").map(String::as_str) != Some("Basic dXNlcjpzMzNkcGFzcw==") {
            return Some(Reply::status(401).with("WWW-Authenticate: Basic realm=\"all\""));
        }
        Some(Reply::page("<a href='/next'>x</a><img src='i.png'><a href='//elsewhere.test/'>y</a>"))
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.extract.favicon = true;
    template.write.compression = Packing::None;
    run(job(template, vec![format!("http://user:{PASSWORD}@one.test/")]), &root).await;
    let found = captured(&root);
    let last = |url: &str| found.get(url).and_then(|captures| captures.last()).map(|capture| capture.status);
    assert_eq!(last("http://one.test/next"), Some(200), "{:?}", found.keys());
    assert_eq!(last("http://one.test/i.png"), Some(200), "{:?}", found.keys());
    assert_eq!(tell_tales(&root), Vec::<PathBuf>::new());
}
