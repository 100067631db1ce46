//! A foreign tool must accept what a crawl wrote.
//!
//! Only the plain web is judged: warcio hashes chunked bodies as stored, the standard means them decoded.
//!
//! `GRANGE_TEST_PYTHON` names a Python that has warcio installed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use grange_base::{Clock, Size};
use grange_crawl::engine::Crawl;
use grange_crawl::record::{DuplicateOracle, Original};
use grange_testkit::web::{Options, Profile, Web};
use warc::{Digest, Reader};

use super::{job, serve, template, warcs};

/// Counts records by type; a digest that is not right, or a record it cannot read, ends it.
const COUNT: &str = "
import collections, json, sys
from warcio.archiveiterator import ArchiveIterator
count = collections.Counter()
for record in ArchiveIterator(open(sys.argv[1], 'rb'), check_digests='raise'):
    record.content_stream().read()
    count[record.rec_type] += 1
print(json.dumps(count))
";

/// Takes every picture for known, so that there are revisits to judge.
struct KnowsAll;

impl DuplicateOracle for KnowsAll {
    fn same_url(&self, url: &str, _: &Digest) -> Option<Original> {
        Some(Original {
            url: url.to_owned(),
            date: jiff::Timestamp::UNIX_EPOCH,
            file: "earlier.warc.gz".to_owned(),
            offset: 0,
            record: None,
        })
    }

    fn same_payload(&self, _: &Digest) -> Option<Original> {
        None
    }
}

fn count(path: &Path) -> BTreeMap<String, u64> {
    let mut count = BTreeMap::new();
    let mut reader = Reader::open(path).unwrap();
    while let Some(record) = reader.next().unwrap() {
        let kind = record.header().get_text("WARC-Type").unwrap().into_owned();
        *count.entry(kind).or_default() += 1;
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn warcio_accepts_the_files_of_a_crawl() {
    let Some(python) = std::env::var_os("GRANGE_TEST_PYTHON") else {
        return grange_testkit::skipped("the Python of the judges (GRANGE_TEST_PYTHON)");
    };
    let web =
        Web::new(Options { hosts: 3, pages: 20, seed: 8, profile: Profile::Plain, ..Options::default() });
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    // More than one file.
    template.write.roll_at = Size(100_000);
    let crawl = Crawl::start(job(template, web.seeds()), &root, Arc::new(KnowsAll), Clock::system());
    crawl.unwrap().run().await.unwrap();
    server.stop().await;
    let paths = warcs(&root);
    assert!(paths.len() > 1);
    let mut total = BTreeMap::new();
    for path in &paths {
        let output = Command::new(&python).args(["-c", COUNT]).arg(path).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {error}", path.display());
        let theirs: BTreeMap<String, u64> = serde_json::from_slice(&output.stdout).unwrap();
        let ours = count(path);
        assert_eq!(theirs, ours, "{}", path.display());
        for (kind, number) in ours {
            *total.entry(kind).or_default() += number;
        }
        let mut check = Command::new(&python);
        let check = check.args(["-m", "warcio.cli", "check", "-v"]).arg(path).output().unwrap();
        let text = String::from_utf8_lossy(&check.stdout).into_owned();
        assert!(check.status.success() && !text.contains("failed"), "warcio check: {text}");
    }
    for kind in ["warcinfo", "response", "request", "metadata", "revisit"] {
        assert!(total.get(kind).is_some_and(|number: &u64| *number > 1), "{kind}: {total:?}");
    }
}
