//! Files of a bucket: imported where they lie, replayed from there, and indexes that travel through one.

use std::path::Path;
use std::process::Command;

use grange_testkit::{TestBucket, TestDatabase, until};

use crate::harness::Grange;
use crate::replay::{client, text, warc};

/// Puts a file into the bucket.
fn put(store: &TestBucket, key: &str, path: &Path) {
    let at = format!("{}/{}/{key}", store.endpoint, store.bucket);
    let user = format!("{}:{}", store.access_key, store.secret_key);
    let args = ["-sf", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &user, "-T"];
    let sent = Command::new("curl").args(args).arg(path).arg(at).status().unwrap();
    assert!(sent.success(), "{key}");
}

/// Settings for the bucket, with its keys in files of the test.
fn keys(store: &TestBucket, grange: &Grange) -> String {
    let access = grange.file("access.key", &store.access_key);
    let secret = grange.file("secret.key", &store.secret_key);
    format!("access_key_file = \"{}\", secret_key_file = \"{}\"", access.display(), secret.display())
}

#[tokio::test]
async fn files_of_a_bucket_are_replayed_where_they_lie() {
    let Some(store) = TestBucket::lend() else { return };
    let grange = crate::archive_bed::single();
    let file = warc(&grange.path(""));
    let package = grange.path("pages.wacz");
    wacz(&package, &std::fs::read(&file).unwrap());
    put(&store, &format!("{}/crawl/page.warc.gz", store.prefix), &file);
    put(&store, &format!("{}/crawl/notes.txt", store.prefix), &file);
    put(&store, &format!("{}/packed/pages.wacz", store.prefix), &package);
    // As pywb keeps them: lines of an index in one folder, the files that they speak of in the one beside it.
    let lines = grange.run(&["cdx", "index", "--sort", file.to_str().unwrap()]).ok().stdout;
    let lines = grange.file("pages.cdxj", &lines);
    put(&store, &format!("{}/lines/indexes/pages.cdxj", store.prefix), &lines);
    put(&store, &format!("{}/lines/archive/page.warc.gz", store.prefix), &file);
    let url = format!("s3://{}?endpoint={}", store.bucket, store.endpoint);
    let bucket = format!("index.buckets=[{{url = \"{url}\", {}}}]", keys(&store, &grange));
    let grange = grange.set_again(&["node.roles=[\"replay\"]", &bucket]);
    let at = |below: &str| format!("s3://{}/{}/{below}", store.bucket, store.prefix);
    for (collection, below) in
        [("papers", "crawl"), ("packed", "packed/pages.wacz"), ("lines", "lines/indexes")]
    {
        let shown = grange.run(&["collections", "import", collection, &at(below), "--json"]).ok().json();
        assert_eq!(
            (&shown["files"]["indexed"], &shown["files"]["captures"]),
            (&1.into(), &1.into()),
            "{shown}"
        );
    }
    let again = grange.run(&["collections", "import", "papers", &at("crawl"), "--json"]).ok().json();
    assert_eq!(again["registered"]["known"], 1);
    let none = grange.run(&["collections", "import", "papers", &at("nothing"), "s3://other/x"]);
    assert_eq!(none.code, 5, "{none:?}");
    assert!(none.stderr.contains("there is nothing") && none.stderr.contains("index.buckets"), "{none:?}");

    // With storing, the archive has the bytes.
    let shown = grange.run(&["collections", "import", "own", &at("crawl"), "--store", "--json"]).ok().json();
    assert_eq!((&shown["files"]["indexed"], &shown["files"]["captures"]), (&1.into(), &1.into()), "{shown}");
    grange.run(&["get", "page.warc.gz", grange.path("got").to_str().unwrap()]).ok();
    assert_eq!(std::fs::read(grange.path("got")).unwrap(), std::fs::read(&file).unwrap());

    let node = grange.up();
    for collection in ["papers", "packed", "lines", "own"] {
        let url = format!("{}/{collection}/2020id_/http://example.org/", node.url("replay"));
        assert_eq!(text(&client(None), &url).await, "as it was", "{collection}");
    }
    assert_eq!(node.stop(), 0);
}

/// One node indexes, another replays from a data folder of its own; both know one database.
#[tokio::test]
async fn a_replay_node_follows_the_index_through_a_bucket() {
    let Some(store) = TestBucket::lend() else { return };
    let Some(database) = TestDatabase::create().await else { return };
    let indexing = Grange::new();
    let file = warc(&indexing.path(""));
    let url = format!("s3://{}/{}?endpoint={}", store.bucket, store.prefix, store.endpoint);
    let copies = format!("index.copies={{url = \"{url}\", every = \"1s\", {}}}", keys(&store, &indexing));
    let db = format!("db.url={}", database.url);
    let indexing = indexing.set_again(&["node.roles=[\"indexer\"]", &copies, &db]);
    indexing.run(&["db", "migrate"]).ok();
    indexing.run(&["collections", "import", "papers", file.to_str().unwrap()]).ok();
    let indexer = indexing.up();
    let replaying = Grange::with(&["node.roles=[\"replay\"]", "index.look_every=1s", &copies, &db]);
    let node = replaying.up();
    let page = format!("{}/papers/2020id_/http://example.org/", node.url("replay"));
    until("the copied index is served", || async { text(&client(None), &page).await == "as it was" }).await;
    assert!(!replaying.data().join("index/papers").exists(), "nothing but copies is there");
    assert_eq!((node.stop(), indexer.stop()), (0, 0));
}

/// A WACZ with one WARC, stored.
fn wacz(path: &Path, warc: &[u8]) {
    let name = b"archive/data.warc.gz";
    let sum = crc32(warc).to_le_bytes();
    let len = (warc.len() as u32).to_le_bytes();
    let name_len = (name.len() as u16).to_le_bytes();
    let about = [&[0; 4][..], &sum, &len, &len, &name_len, &[0; 2]].concat();
    let local = [&b"PK\x03\x04\x14\0\0\0\0\0"[..], &about, name, warc].concat();
    let directory = [&b"PK\x01\x02\x14\0\x14\0\0\0\0\0"[..], &about, &[0; 14], name].concat();
    let end = [
        &b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..],
        &(directory.len() as u32).to_le_bytes(),
        &(local.len() as u32).to_le_bytes(),
        &[0; 2],
    ]
    .concat();
    std::fs::write(path, [local, directory, end].concat()).unwrap();
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
