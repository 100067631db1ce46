use std::io::Write as _;
use std::net::SocketAddr;

use futures_util::FutureExt as _;
use grange_base::Trigger;
use grange_index::access::{Decision, Rule, RuleSet};
use reqwest::{Certificate, Client};

use super::*;
use crate::collection::Collection;
use crate::tests::{Bed, http, revisit};

const HTML: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nStrict-Transport-Security: max-age=9\r\nX-Site: yes";

const KEPT: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nCache-Control: public, max-age=31536000\r\n\
    Expires: Wed, 01 Jan 2031 00:00:00 GMT\r\nPragma: public\r\nAge: 5\r\nETag: \"x\"";

struct Running {
    bed: Bed,
    proxy: Proxy,
    address: SocketAddr,
    stop: Trigger,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.pull();
    }
}

async fn running() -> Running {
    let bed = Bed::new();
    bed.add_gz(
        "7-metadata-1.warc.gz",
        &[crate::tests::record(
            "metadata",
            "metadata://grange/crawl/reports/seeds.txt",
            "2020-01-01T00:00:00Z",
            "Content-Type: text/plain\r\n",
            b"seeds of job 7",
        )],
    );
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://e.org/", "2020-01-01T00:00:00Z", HTML, b"<a href='/x'>first</a>"),
            http("http://e.org/", "2021-01-01T00:00:00Z", HTML, b"second"),
            http("https://s.org/", "2020-01-01T00:00:05Z", HTML, b"secure"),
            http(
                "http://s.org/",
                "2020-01-01T00:00:00Z",
                "HTTP/1.1 301 Moved\r\nLocation: https://s.org/",
                b"",
            ),
            http(
                "http://e.org/film",
                "2020-01-01T00:00:00Z",
                "HTTP/1.1 200 OK\r\nContent-Type: video/mp4",
                b"0123456789",
            ),
            http("http://e.org/kept", "2020-01-01T00:00:00Z", KEPT, b"kept, first"),
            http("http://e.org/kept", "2021-01-01T00:00:00Z", KEPT, b"kept, second"),
            revisit("http://gone.org/", "2020-01-01T00:00:00Z", HTML, b"never stored", ""),
        ],
    );
    let collections = Collections::default();
    let source = &bed.collection;
    collections.add(Collection::new("local", source.index.clone(), source.holdings.clone()));
    let proxy = Proxy::open(collections, Options::default(), &bed.folder.path().join("secrets")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Trigger::new();
    tokio::spawn(serve(listener, proxy.clone(), stop.listener()));
    Running { bed, proxy, address, stop }
}

impl Running {
    fn client(&self, user: &str) -> Client {
        let through = if user.is_empty() {
            format!("http://{}", self.address)
        } else {
            format!("http://{user}:x@{}", self.address)
        };
        let trusted = Certificate::from_pem(self.proxy.authority().certificate_pem().as_bytes()).unwrap();
        Client::builder()
            .proxy(reqwest::Proxy::all(through).unwrap())
            .tls_certs_only([trusted])
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap()
    }
}

/// The chain's response to a reader on this machine.
pub(crate) async fn response(proxy: &Proxy, url: &str, datetime: &str) -> Response<Body> {
    let mut headers = HeaderMap::new();
    let date = jiff::fmt::strtime::parse("%d %b %Y %H:%M:%S", datetime.trim_end_matches(" GMT")).unwrap();
    let date = date.to_datetime().unwrap().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    headers.insert("accept-datetime", date.parse().unwrap());
    let who = Who::stranger(Some("127.0.0.1".parse().unwrap()), &headers, &proxy.options);
    let (url, reader) = (url.to_owned(), "anna".to_owned());
    let ask = Ask { method: Method::GET, url, headers, body: Bytes::new(), reader, who };
    chain::resolve(proxy, &ask).await
}

/// What the chain answers to a reader on this machine: status and body.
async fn resolve(proxy: &Proxy, url: &str, datetime: &str) -> (u16, Vec<u8>) {
    let response = response(proxy, url, datetime).await;
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

/// The bytes of a body, and whether it ended without an error.
async fn what_comes(mut body: Body) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return (bytes, false) };
        bytes.extend(frame.into_data().unwrap_or_default());
    }
    (bytes, true)
}

async fn get(client: &Client, url: &str) -> (u16, String) {
    let response = client.get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn pages_come_from_the_archive_only_and_as_they_were() {
    let running = running().await;
    let client = running.client("");
    for (url, status, text) in [
        ("http://e.org/", 200, "second"),
        ("https://s.org/", 200, "secure"),
        // The latest is the page behind the redirect, and a redirect to it would only lead back.
        ("http://s.org/", 200, "secure"),
        ("http://nowhere.example/", 404, "never asks the live web"),
        ("https://nowhere.example/", 404, "never asks the live web"),
        ("http://gone.org/", 503, "no record with that content"),
    ] {
        let (got, body) = get(&client, url).await;
        assert_eq!(got, status, "{url}: {body}");
        assert!(body.contains(text), "{url}: {body}");
    }
    let response = client
        .get("http://e.org/")
        .header("accept-datetime", "Wed, 01 Jan 2020 10:00:00 GMT")
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["memento-datetime"], "Wed, 01 Jan 2020 00:00:00 GMT");
    assert_eq!(response.headers()["x-site"], "yes");
    assert!(!response.headers().contains_key("strict-transport-security"));
    assert_eq!(response.text().await.unwrap(), "<a href='/x'>first</a>");
    let part = client.get("http://e.org/film").header("range", "bytes=2-3").send().await.unwrap();
    assert_eq!((part.status().as_u16(), part.text().await.unwrap().as_str()), (206, "23"));
}

#[tokio::test]
async fn every_reader_chooses_and_records_alone() {
    let running = running().await;
    let (anna, bert) = (running.client("anna"), running.client("bert"));
    assert_eq!(get(&anna, "http://viewerproxy.invalid/startRecordingURIs").await.0, 303);
    assert_eq!(get(&anna, "http://viewerproxy.invalid/changeDate?date=20200102").await.0, 303);
    assert_eq!(get(&anna, "http://e.org/").await.1, "<a href='/x'>first</a>");
    assert_eq!(get(&bert, "http://e.org/").await.1, "second");
    for client in [&anna, &bert] {
        assert_eq!(get(client, "http://missing.example/a?b=c").await.0, 404);
    }
    assert_eq!(
        get(&anna, "http://viewerproxy.invalid/getRecordedURIs").await.1,
        "http://missing.example/a?b=c\n"
    );
    assert_eq!(get(&bert, "http://viewerproxy.invalid/getRecordedURIs").await.1, "");
    let status = get(&anna, "http://viewerproxy.invalid/getStatus?locale=en").await.1;
    assert!(status.contains("Missing URIs collected: 1"), "{status}");
    assert_eq!(get(&anna, "http://viewerproxy.invalid/clearRecordedURIs").await.0, 303);
    assert_eq!(get(&anna, "http://viewerproxy.invalid/stopRecordingURIs").await.0, 303);
    assert_eq!(get(&anna, "http://missing.example/").await.0, 404);
    assert_eq!(get(&anna, "http://viewerproxy.invalid/getRecordedURIs").await.1, "");
    // Jobs that made none of the files: nothing is there.
    let to =
        "http://netarchivesuite.viewerproxy.invalid/changeIndex?jobID=99&label=x&returnURL=http://e.org/";
    let response = anna.get(to).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["location"].to_str().unwrap()),
        (303, "http://e.org/")
    );
    assert_eq!(get(&anna, "http://e.org/").await.0, 404);
    assert_eq!(get(&anna, "http://viewerproxy.invalid/changeIndex?collection=nope").await.0, 400);
    assert_eq!(get(&anna, "http://viewerproxy.invalid/changeIndex?collection=local").await.0, 303);
    assert_eq!(get(&anna, "http://e.org/").await.0, 200);
    assert_eq!(get(&running.client("local@2020"), "http://e.org/").await.1, "<a href='/x'>first</a>");
}

#[tokio::test]
async fn browsers_keep_nothing_of_one_time_for_another() {
    let running = running().await;
    let client = running.client("anna");
    for (date, text) in [("20200201", "kept, first"), ("20210201", "kept, second")] {
        let change = format!("http://viewerproxy.invalid/changeDate?date={date}");
        assert_eq!(get(&client, &change).await.0, 303);
        for (status, url) in [(200, "http://e.org/kept"), (404, "http://e.org/missing")] {
            let response = client.get(url).send().await.unwrap();
            assert_eq!(response.status().as_u16(), status);
            let headers = response.headers().clone();
            let told: Vec<_> = headers.get_all("cache-control").iter().collect();
            assert_eq!(told, ["no-store"], "{url}");
            for name in ["expires", "pragma", "age"] {
                assert!(!headers.contains_key(name), "{url}: {name}");
            }
            if status == 200 {
                assert_eq!(response.text().await.unwrap(), text);
            }
        }
    }
    // Whoever names the time gets the answer as it was: it is kept apart by what it varies with.
    let named = client.get("http://e.org/kept").header("accept-datetime", "Wed, 01 Jan 2020 10:00:00 GMT");
    let response = named.send().await.unwrap();
    assert_eq!(response.headers()["cache-control"], "public, max-age=31536000");
    assert!(response.headers().contains_key("expires"));
    assert_eq!(response.headers()["vary"], "accept-datetime");
    assert_eq!(response.text().await.unwrap(), "kept, first");
}

#[tokio::test]
async fn archived_pages_cannot_give_commands() {
    let running = running().await;
    let client = running.client("anna");
    let command = "http://viewerproxy.invalid/startRecordingURIs";
    for (name, value, status) in [
        ("referer", "http://e.org/", 403),
        ("origin", "http://e.org", 403),
        ("referer", "http://viewerproxy.invalid/", 303),
    ] {
        let got = client.get(command).header(name, value).send().await.unwrap().status().as_u16();
        assert_eq!(got, status, "{name}: {value}");
    }
}

#[tokio::test]
async fn files_records_and_metadata_are_handed_out() {
    let running = running().await;
    let client = running.client("");
    let stored = std::fs::read(running.bed.folder.path().join("a.warc.gz")).unwrap();
    let file = client.get("http://viewerproxy.invalid/getFile?arcFile=a.warc.gz").send().await.unwrap();
    assert_eq!(file.bytes().await.unwrap(), stored);
    let offset = running.bed.captures("http://e.org/")[1].offset.unwrap();
    let collection = running.proxy.collections.get("local").unwrap();
    let documentation = Rule::new("metadata:", Decision::Allow);
    let (hidden, body) = get(&client, "http://viewerproxy.invalid/getMetadata?jobID=7").await;
    assert_eq!(hidden, 451, "nobody sees it unless a rule says so: {body}");
    assert!(!body.contains("seeds of job 7"));
    collection.set_rules(RuleSet::from(vec![documentation.clone()]));
    for (command, status, text) in [
        (format!("getRecord?arcFile=a.warc.gz&arcOffset={offset}"), 200, "second"),
        ("getRecord?arcFile=a.warc.gz&arcOffset=99999".to_owned(), 404, "no such record"),
        ("getRecord?arcFile=a.warc.gz".to_owned(), 400, "needs"),
        ("getFile?arcFile=../../etc/passwd".to_owned(), 404, "no file"),
        ("getMetadata?jobID=7".to_owned(), 200, "seeds of job 7"),
        ("getMetadata?jobID=8".to_owned(), 404, "no metadata"),
        ("doSomethingElse".to_owned(), 404, "no such command"),
        (String::new(), 200, "Who answers"),
        ("ca.pem".to_owned(), 200, "BEGIN CERTIFICATE"),
    ] {
        let (got, body) = get(&client, &format!("http://viewerproxy.invalid/{command}")).await;
        assert_eq!(got, status, "{command}: {body}");
        assert!(body.contains(text), "{command}: {body}");
    }
    // Where rules hold, a file comes without what they hide.
    let blocked = Rule::new("org,e)/", Decision::Block { message: "Blocked.".into() });
    collection.set_rules(RuleSet::from(vec![documentation, blocked]));
    let record = format!("http://viewerproxy.invalid/getRecord?arcFile=a.warc.gz&arcOffset={offset}");
    assert_eq!(get(&client, &record).await.0, 451);
    assert_eq!(get(&client, "http://viewerproxy.invalid/getMetadata?jobID=7").await.0, 200);
    let file = client.get("http://viewerproxy.invalid/getFile?arcFile=a.warc.gz").send().await.unwrap();
    let mut reader = warc::Reader::from_bytes(file.bytes().await.unwrap().to_vec()).unwrap();
    let mut uris = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        uris.push(String::from_utf8(record.target_uri().unwrap().to_vec()).unwrap());
    }
    assert_eq!(uris, ["https://s.org/", "http://s.org/", "http://gone.org/"]);
    assert_eq!(get(&client, "http://e.org/").await.0, 451);
}

#[tokio::test]
async fn a_record_is_judged_by_the_collections_that_list_it() {
    let running = running().await;
    let bed = &running.bed;
    // It can open the file as well, but lists nothing of it, and comes first in the order of names.
    let empty = grange_index::Index::open(bed.folder.path().join("empty"), grange_index::Settings::default())
        .unwrap();
    let archive = Collection::new("archive", Arc::new(empty), bed.collection.holdings.clone());
    running.proxy.collections.add(archive);
    let local = running.proxy.collections.get("local").unwrap();
    let block = Decision::Block { message: "Blocked.".into() };
    let rule = Rule { collection: Some("local".to_owned()), ..Rule::new("org,e)/", block) };
    local.set_rules(RuleSet::from(vec![rule]));
    let offset = bed.captures("http://e.org/")[1].offset.unwrap();
    let record = format!("http://viewerproxy.invalid/getRecord?arcFile=a.warc.gz&arcOffset={offset}");
    let (status, body) = resolve(&running.proxy, &record, "01 Jan 2020 00:00:00 GMT").await;
    assert_eq!(status, 451, "{}", String::from_utf8_lossy(&body));
}

/// A page whose content is a record of its own, and hidden captures behind it. Whatever that inner record says, it is none.
#[tokio::test]
async fn a_record_inside_of_a_page_hands_out_no_neighbours() {
    let running = running().await;
    let bed = &running.bed;
    let (first, then) = ("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z");
    let inner = http("http://m.org/inner", first, HTML, &[b'i'; 40]);
    let inner = String::from_utf8(inner).unwrap();
    let length = inner.lines().find(|line| line.starts_with("Content-Length")).unwrap().to_owned();
    let inner = inner.replace(&length, "Content-Length: 50000000");
    let page = http("http://m.org/", first, HTML, inner.as_bytes());
    let hidden = http("http://secret.org/", then, HTML, b"nobody may read this");
    // Stored without compression, as encoders do with content that is packed already.
    let stored = |bytes: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    };
    // A damaged record: it ends long before its length.
    let cut = http("http://cut.org/", first, HTML, b"cut off");
    let cut = String::from_utf8(cut).unwrap();
    let length = cut.lines().find(|line| line.starts_with("Content-Length")).unwrap().to_owned();
    let cut = cut.replace(&length, "Content-Length: 50000000").into_bytes();
    bed.add("plain.warc", &[page.clone(), hidden.clone()].concat());
    bed.add("stored.warc.gz", &[stored(&page), stored(&hidden)].concat());
    bed.add("cut.warc", &cut);
    // A line knows where it ends; what follows is no record that anybody would recognize.
    let line = bed.captures("http://cut.org/")[0].clone();
    let mut batch = grange_index::Batch::new();
    let (file, length) = ("known.warc".to_owned(), Some(cut.len() as u64));
    batch.add(&grange_index::Capture { file, length, ..line });
    bed.collection.index.commit(batch).unwrap();
    let path = bed.folder.path().join("known.warc");
    std::fs::write(&path, [&cut[..], b"\r\njunk\r\n\r\n", &hidden].concat()).unwrap();
    bed.files.add("known.warc", crate::holdings::Section::whole(path).unwrap());
    let local = running.proxy.collections.get("local").unwrap();
    let block = Rule::new("org,secret)/", Decision::Block { message: "Blocked.".into() });
    local.set_rules(RuleSet::from(vec![block]));
    for (file, at, status) in [
        ("plain.warc", "WARC/1.1", 200),
        ("plain.warc", "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID", 200),
        ("plain.warc", "inner", 404),
        ("stored.warc.gz", "inner", 404),
        ("known.warc", "WARC/1.1", 200),
    ] {
        let bytes = std::fs::read(bed.folder.path().join(file)).unwrap();
        let find =
            |text: &str| bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        let offset = match at {
            "inner" => {
                let uri = find("http://m.org/inner");
                let before = &bytes[..uri];
                before.windows(8).rposition(|window| window == b"WARC/1.1").unwrap()
            }
            at => find(at),
        };
        let asked = format!("http://viewerproxy.invalid/getRecord?arcFile={file}&arcOffset={offset}");
        let response = response(&running.proxy, &asked, "01 Jan 2020 00:00:00 GMT").await;
        let got = response.status().as_u16();
        let (body, is_whole) = what_comes(response.into_body()).await;
        let body = String::from_utf8_lossy(&body);
        assert_eq!((got, is_whole), (status, file != "known.warc"), "{file} at {offset}: {body}");
        assert!(!body.contains("nobody may read this") && !body.contains("secret.org"), "{file}: {body}");
    }
}

#[tokio::test]
async fn the_metadata_of_a_job_is_handed_out_whole() {
    let running = running().await;
    let log = vec![b'x'; 3 << 20];
    let url = "metadata://grange/crawl/logs/crawl.log";
    let record =
        crate::tests::record("resource", url, "2020-01-01T00:00:00Z", "Content-Type: text/plain\r\n", &log);
    running.bed.add_gz("9-metadata-1.warc.gz", &[record]);
    let collection = running.proxy.collections.get("local").unwrap();
    collection.set_rules(RuleSet::from(vec![Rule::new("metadata:", Decision::Allow)]));
    let asked = "http://viewerproxy.invalid/getMetadata?jobID=9";
    let (status, body) = resolve(&running.proxy, asked, "01 Jan 2020 00:00:00 GMT").await;
    assert_eq!((status, body.len()), (200, url.len() + 1 + log.len() + 2));
}

#[tokio::test]
async fn each_record_of_a_metadata_file_is_judged() {
    let running = running().await;
    let record = |name: &str| {
        let url = format!("metadata://grange/crawl/{name}");
        let date = "2020-01-01T00:00:00Z";
        crate::tests::record("resource", &url, date, "Content-Type: text/plain\r\n", name.as_bytes())
    };
    running.bed.add_gz("9-metadata-1.warc.gz", &["logs/crawl.log", "reports/seeds.txt"].map(record));
    let collection = running.proxy.collections.get("local").unwrap();
    let seen = "metadata://grange/crawl/reports/";
    collection.set_rules(RuleSet::from(vec![Rule::new(seen, Decision::Allow)]));
    let asked = "http://viewerproxy.invalid/getMetadata?jobID=9";
    let (status, body) = resolve(&running.proxy, asked, "01 Jan 2020 00:00:00 GMT").await;
    let expected = format!("{seen}seeds.txt\nreports/seeds.txt\n\n");
    assert_eq!((status, String::from_utf8_lossy(&body).into_owned()), (200, expected));
}

/// Clients that open a file and do not read it: each holds a thread, and the process has no more than 512.
#[tokio::test]
async fn clients_that_do_not_read_hold_only_some_of_the_threads() {
    let running = running().await;
    let body = vec![b'x'; 2 << 20];
    running.bed.add("big.warc", &http("http://big.org/", "2020-01-01T00:00:00Z", HTML, &body));
    let now = "01 Jan 2020 00:00:00 GMT";
    let file = "http://viewerproxy.invalid/getFile?arcFile=big.warc";
    let mut silent = Vec::new();
    for _ in 0..data::WRITERS_MAX {
        silent.push(response(&running.proxy, file, now).await);
    }
    assert!(silent.iter().all(|response| response.status() == StatusCode::OK));
    let (status, text) = resolve(&running.proxy, file, now).await;
    assert_eq!(status, 503);
    assert!(String::from_utf8_lossy(&text).contains("Too many files are being sent"));
    // The threads are for the files only: everything else goes on.
    assert_eq!(resolve(&running.proxy, "http://e.org/film", now).await.0, 200);
    drop(silent);
    grange_testkit::until("the threads are free", async || resolve(&running.proxy, file, now).await.0 == 200)
        .await;
}

#[tokio::test]
async fn metadata_that_no_rule_opens_is_not_even_read() {
    let running = running().await;
    let path = running.bed.folder.path().join("8-metadata-1.warc.gz");
    std::fs::write(&path, b"WARC/1.1 and nothing that could be read").unwrap();
    running.bed.files.add("8-metadata-1.warc.gz", crate::holdings::Section::whole(path).unwrap());
    let (asked, now) = ("http://viewerproxy.invalid/getMetadata?jobID=8", "01 Jan 2020 00:00:00 GMT");
    let collection = running.proxy.collections.get("local").unwrap();
    let allow = |key: &str| Rule::new(key, Decision::Allow);
    let audience = |rule: Rule, network: &str| Rule {
        audience: vec![grange_index::access::Audience::Network(network.to_owned())],
        ..rule
    };
    for (rules, hidden) in [
        (vec![], true),
        (vec![allow(""), allow("org,e)/")], true),
        (vec![audience(allow("metadata:"), "10.0.0.0/8")], true),
        (vec![Rule { collection: Some("other".to_owned()), ..allow("metadata:") }], true),
        (vec![audience(allow("metadata:"), "127.0.0.0/8")], false),
        (vec![Rule { collection: Some("local".to_owned()), ..allow("metadata://e.org/") }], false),
    ] {
        collection.set_rules(RuleSet::from(rules.clone()));
        let (status, _) = resolve(&running.proxy, asked, now).await;
        assert_eq!(status == 451, hidden, "{status}: {rules:?}");
    }
}

/// Captures of one URL, all but the last of which are hidden, and at the end a revisit without an original.
#[tokio::test]
async fn lookups_of_many_captures_wait_for_other_threads() {
    let running = running().await;
    let collection = running.proxy.collections.get("local").unwrap();
    let rules = crate::tests::add_many(&running.bed);
    collection.set_rules(RuleSet::from(rules));
    for (url, date) in
        [("http://many.org/", "01 Jan 2000 00:00:00 GMT"), ("http://again.org/", "01 Jan 2021 00:00:00 GMT")]
    {
        let others = crate::lookup_pool::occupied().await;
        let answered = resolve(&running.proxy, url, date).now_or_never();
        assert!(answered.is_none(), "{url} is answered on this thread");
        drop(others);
        let (status, body) = resolve(&running.proxy, url, date).await;
        assert_eq!(status, 200, "{url}: {}", String::from_utf8_lossy(&body));
    }
}
