//! What has not changed since the last crawl is written as a revisit of it, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use grange_base::Clock;
use grange_crawl::engine::Crawl;
use grange_crawl::record::oracle::{DuplicateOracle, History, Original};
use grange_testkit::web::{Options, Profile, Rules, Web};
use warc::write::RecordId;
use warc::{Digest, Reader, RecordType};

use super::{annotations, captured, job, run, serve, template, warcs};

/// Knows what lies in the WARC files of an earlier crawl, by URL.
#[derive(Debug, Default)]
struct Earlier {
    captures: BTreeMap<String, (Digest, Original, Validators)>,
    tells_history: bool,
}

/// `ETag`, `Last-Modified` and `Content-Type`.
type Validators = (Option<String>, Option<String>, Option<String>);

impl Earlier {
    fn read(folder: &Path) -> Earlier {
        let mut earlier = Earlier::default();
        for path in warcs(folder) {
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            let mut reader = Reader::open(&path).unwrap();
            while let Some(mut record) = reader.next().unwrap() {
                if record.kind() != RecordType::Response {
                    continue;
                }
                let url = String::from_utf8(record.target_uri().unwrap().to_vec()).unwrap();
                let digest = Digest::parse(record.header().get("WARC-Payload-Digest").unwrap()).unwrap();
                let original = Original {
                    url: url.clone(),
                    date: record.date().unwrap().timestamp(),
                    file: file.clone(),
                    offset: record.place().offset,
                    record: record.record_id().and_then(RecordId::parse),
                };
                let http = record.http().unwrap().unwrap();
                let text = |name| http.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
                let validators = (text("ETag"), text("Last-Modified"), text("Content-Type"));
                earlier.captures.insert(url, (digest, original, validators));
            }
        }
        earlier
    }
}

impl DuplicateOracle for Earlier {
    fn same_url(&self, url: &str, payload: &Digest) -> Option<Original> {
        let (digest, original, _) = self.captures.get(url)?;
        (digest == payload).then(|| original.clone())
    }

    fn same_payload(&self, payload: &Digest) -> Option<Original> {
        let mut captures = self.captures.values();
        captures.find(|(digest, ..)| digest == payload).map(|(_, original, _)| original.clone())
    }

    fn history(&self, url: &str) -> Option<History> {
        let (digest, original, (etag, last_modified, content_type)) = self.captures.get(url)?;
        (self.tells_history && (etag.is_some() || last_modified.is_some())).then(|| History {
            etag: etag.clone(),
            last_modified: last_modified.clone(),
            content_type: content_type.clone().unwrap_or_default(),
            digest: *digest,
            original: original.clone(),
        })
    }
}

/// The revisit records of a crawl: URL, and what each refers to.
fn revisits(folder: &Path) -> BTreeMap<String, BTreeMap<&'static str, String>> {
    const FIELDS: [&str; 5] = [
        "WARC-Profile",
        "WARC-Refers-To",
        "WARC-Refers-To-Target-URI",
        "WARC-Refers-To-Date",
        "WARC-Payload-Digest",
    ];
    let mut found = BTreeMap::new();
    for path in warcs(folder) {
        let mut reader = Reader::open(&path).unwrap();
        while let Some(record) = reader.next().unwrap() {
            if record.kind() == RecordType::Revisit {
                let url = String::from_utf8(record.target_uri().unwrap().to_vec()).unwrap();
                let field = |name| Some((name, record.header().get_text(name)?.into_owned()));
                found.insert(url, FIELDS.into_iter().filter_map(field).collect());
            }
        }
    }
    found
}

fn web(generation: u32) -> Web {
    let options = Options { hosts: 4, pages: 25, seed: 9, profile: Profile::Plain, ..Options::default() };
    Web::new(Options { generation, ..options })
}

/// Crawls the first state of the web, and answers what must be known of it.
async fn first_crawl(root: &Path) -> Earlier {
    let before = web(0);
    let server = serve(&before).await;
    run(job(template(&server), before.seeds()), root).await;
    server.stop().await;
    Earlier::read(root)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unchanged_is_a_revisit_and_the_changed_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut earlier = first_crawl(&folder.path().join("first")).await;
    let now = web(1);
    let expected = now.expected(&Rules::default());
    let changed = now.changed_since(0);
    assert!(changed.iter().all(|url| expected.contains_key(url)) && changed.len() > 5);
    for (name, text_too, conditional) in
        [("pictures", false, false), ("all", true, false), ("asked", true, true)]
    {
        let server = serve(&now).await;
        let root = folder.path().join(name);
        let mut template = template(&server);
        if text_too {
            template.dedup.skip_types.clear();
        }
        earlier.tells_history = conditional;
        let oracle = Arc::new(earlier);
        let crawl = Crawl::start(job(template, now.seeds()), &root, oracle.clone(), Clock::system());
        let outcome = crawl.unwrap().run().await.unwrap();
        server.stop().await;

        let unchanged = |url: &&String| !changed.contains(*url) && expected[*url].length > 0;
        let wanted: BTreeSet<_> = expected
            .keys()
            .filter(unchanged)
            .filter(|url| text_too || !expected[*url].mime.starts_with("text/"))
            .collect();
        let revisits = revisits(&root);
        assert_eq!(revisits.keys().collect::<BTreeSet<_>>(), wanted, "{name}");
        let count = expected.keys().filter(unchanged).count();
        assert_eq!(count + changed.len(), expected.len());
        assert_eq!(outcome.last.duplicates > 0, !wanted.is_empty());
        let annotations = annotations(&root);
        let mut not_modified = 0;
        for (url, fields) in &revisits {
            let (digest, original, _) = &oracle.captures[url];
            let note = &annotations[url];
            if note.contains("duplicate:server-not-modified") {
                assert!(fields["WARC-Profile"].contains("server-not-modified"), "{fields:?}");
                // The links of a page would be lost with it.
                assert_eq!(expected[url].mime, "image/png", "{url}");
                not_modified += 1;
            } else {
                assert!(fields["WARC-Profile"].contains("identical-payload-digest"), "{fields:?}");
                let time = original.date.strftime("%Y%m%d%H%M%S%3f");
                let place = format!("duplicate:\"{},{},{time}\"", original.file, original.offset);
                assert!(note.contains(&place), "{note} lacks {place}");
            }
            assert_eq!(fields["WARC-Refers-To-Target-URI"], *url);
            assert_eq!(fields["WARC-Refers-To"], original.record.unwrap().to_string());
            let date = warc::Date::parse(fields["WARC-Refers-To-Date"].as_bytes()).unwrap();
            assert_eq!(date.timestamp(), original.date);
            assert_eq!(fields["WARC-Payload-Digest"], digest.to_string());
            // It leads to the record it speaks of.
            let path = folder.path().join("first/warcs").join(&original.file);
            let mut reader = Reader::open_at(&path, original.offset).unwrap();
            let record = reader.next().unwrap().unwrap();
            assert_eq!(record.target_uri(), Some(url.as_bytes()));
        }
        assert_eq!(not_modified > 0, conditional, "{name}");
        // The rest is there in full, as it is now.
        let found = captured(&root);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (url, captures) in &found {
            assert_eq!(captures.len(), 1, "{url}");
            if wanted.contains(url) {
                continue;
            }
            let full = (captures[0].kind, captures[0].length, captures[0].digest.as_str());
            let expected = &expected[url];
            assert_eq!(
                full,
                (RecordType::Response, expected.length, expected.payload_sha1.as_str()),
                "{url}"
            );
            assert!(!annotations[url].contains("duplicate"), "{url}");
        }
        earlier = Arc::into_inner(oracle).expect("nobody else asks any more");
    }
}
