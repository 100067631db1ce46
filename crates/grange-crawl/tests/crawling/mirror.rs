//! A static mirror served by nginx: every file is captured with its bytes, and the server's own answers as well.

use std::collections::BTreeMap;
use std::path::Path;

use grange_testkit::Daemon;
use warc::{Algorithm, Hasher};

use super::{captured, job, run, template_to};

const HOST: &str = "http://mirror.test";
const SECTIONS: usize = 6;
const PAGES: usize = 9;

/// Writes a site of sections, pages, styles and pictures. The address of every file that the others lead to, and its
/// content.
fn build(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut put = |path: String, content: Vec<u8>| {
        let place = root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, &content).unwrap();
        files.insert(path, content);
    };
    let sections: Vec<_> = (0..SECTIONS).map(|s| format!("<li><a href=section{s}>{s}</a>")).collect();
    let sections = sections.concat();
    put(
        "/index.html".to_owned(),
        format!("<link rel=stylesheet href=/style.css><ul>{sections}</ul>").into_bytes(),
    );
    put("/style.css".to_owned(), b"body { background: url('pictures/back ground.png') }".to_vec());
    put("/pictures/back ground.png".to_owned(), vec![7; 70_000]);
    for section in 0..SECTIONS {
        let pages: Vec<_> =
            (0..PAGES).map(|page| format!("<a href='page-{page}.html?'>{page}</a>\n")).collect();
        let pages = pages.concat();
        put(
            format!("/section{section}/index.html"),
            format!("<html><body>{pages}<a href=gone.html>").into_bytes(),
        );
        for page in 0..PAGES {
            let text =
                format!("<h1>{section}.{page}</h1><img src=\"p{page}.png\"><a href=../index.html>up</a>");
            put(format!("/section{section}/page-{page}.html"), text.into_bytes());
            put(format!("/section{section}/p{page}.png"), vec![(section * PAGES + page) as u8; 1 << page]);
        }
    }
    // Nothing leads here.
    std::fs::write(root.join("orphan.html"), "alone").unwrap();
    files
}

/// The address under which a file is asked for first.
fn address(path: &str) -> String {
    let folder = path.strip_suffix("index.html").filter(|folder| *folder != "/");
    let query = if path.contains("/page-") { "?" } else { "" };
    format!("{HOST}{}{query}", folder.unwrap_or(path).replace(' ', "%20"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_behind_nginx_is_captured_whole() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("site");
    let files = build(&root);
    let Some(nginx) = Daemon::nginx(&root) else { return };
    let crawl = folder.path().join("crawl");
    let mut template = template_to(nginx.addr());
    template.frontier.pace = grange_crawl::politeness::Pace::none();
    run(job(template, vec![format!("{HOST}/index.html")]), &crawl).await;

    let found = captured(&crawl);
    let mut expected: BTreeMap<String, u16> = files.keys().map(|path| (address(path), 200)).collect();
    expected.insert(format!("{HOST}/robots.txt"), 404);
    for section in 0..SECTIONS {
        expected.insert(format!("{HOST}/section{section}"), 301);
        expected.insert(format!("{HOST}/section{section}/gone.html"), 404);
    }
    let statuses: BTreeMap<_, _> = found.iter().map(|(url, all)| (url.clone(), all[0].status)).collect();
    assert_eq!(statuses, expected);
    assert!(found.values().all(|captures| captures.len() == 1), "each once");
    for (path, content) in &files {
        let capture = &found[&address(path)][0];
        let mut hasher = Hasher::new(Algorithm::Sha1);
        hasher.update(content);
        let digest = hasher.finish().to_string();
        assert_eq!((capture.length, &capture.digest), (content.len() as u64, &digest), "{path}");
    }
}
