//! Collections, the index and access rules through the command line: imported, killed half-way, taken out, served.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use grange_testkit::wait_for;
use serde_json::Value;

use crate::archive_bed::single;
use crate::harness::{Grange, bare};

fn record(url: &str, second: usize) -> String {
    let body = format!("<html>{url} at {second}</html>");
    let block =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{:012}>\r\n\
         WARC-Date: 2026-01-02T03:{:02}:{:02}Z\r\nWARC-Target-URI: {url}\r\n\
         Content-Type: application/http;msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        url.len() * 100_000 + second,
        second / 60 % 60,
        second % 60,
        block.len()
    )
}

/// WARC files with as many records each, all of different URLs.
fn warcs(folder: &Path, files: usize, records: usize) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    for file in 0..files {
        let text: String =
            (0..records).map(|n| record(&format!("http://e{file}.example.com/page/{n}"), n)).collect();
        std::fs::write(folder.join(format!("f{file:03}.warc")), text).unwrap();
    }
    folder.to_owned()
}

fn count(shown: &Value, field: &str) -> u64 {
    shown["files"][field].as_u64().unwrap_or_else(|| panic!("{field} in {shown}"))
}

#[test]
fn an_import_is_in_place_repeatable_and_tells_what_is_wrong() {
    let grange = Grange::new();
    let folder = warcs(&grange.path("foreign"), 3, 4);
    std::fs::write(folder.join("notes.txt"), "not this").unwrap();
    let first = grange.run(&["collections", "import", "news", "foreign", "--json"]).ok().json();
    assert_eq!((count(&first, "indexed"), count(&first, "captures")), (3, 12));
    assert_eq!(first["registered"]["new"], 3);
    let again = grange.run(&["collections", "import", "news", "foreign", "--json"]).ok().json();
    assert_eq!((again["registered"]["known"].as_u64(), count(&again, "captures")), (Some(3), 12));

    let torn = [record("http://torn.example.com/", 1).as_bytes(), b"WARC/1.1\r\nWARC-Ty"].concat();
    std::fs::write(folder.join("torn.warc"), torn).unwrap();
    let partly = grange.run(&["collections", "import", "news", "foreign", "gone.warc", "--json"]);
    assert_eq!(partly.code, 5, "{partly:?}");
    assert!(partly.stderr.contains("gone.warc"), "{}", partly.stderr);
    let partly = partly.json();
    assert_eq!(count(&partly, "captures"), 13);
    assert_eq!(partly["troubled"][0]["name"], "torn.warc");

    // The writer of the torn file has finished it.
    let whole = [record("http://torn.example.com/", 1), record("http://torn.example.com/end", 2)].concat();
    std::fs::write(folder.join("torn.warc"), whole).unwrap();
    let whole = grange.run(&["collections", "import", "news", "foreign", "--json"]).ok().json();
    let registered = (&whole["registered"]["known"], &whole["registered"]["again"]);
    assert_eq!((registered, count(&whole, "captures")), ((&3.into(), &1.into()), 14));

    grange.run(&["collections", "import", "No", "foreign"]).fails(2, &["small letters"]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 5, "nothing was copied or changed");
    grange.run(&["collections", "rm", "news"]).ok();
    assert!(!grange.data().join("index/news").exists());
    assert_eq!(grange.run(&["collections", "ls", "--json"]).ok().json().as_array().unwrap().len(), 1);
    grange.run(&["collections", "show", "news"]).fails(3, &["news"]);
}

#[test]
fn an_import_that_was_killed_goes_on_and_counts_are_as_without() {
    let grange = Grange::new();
    let (files, records) = (40, 50);
    warcs(&grange.path("foreign"), files, records);
    grange.run(&["collections", "ls"]).ok();
    let mut kills = 0;
    for attempt in 0..3 {
        let mut import = bare(&grange.path(""))
            .args(["--data", grange.data().to_str().unwrap(), "collections", "import", "news", "foreign"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed when it is under way: the index has some segment or log of this attempt.
        let log = grange.data().join("index/news");
        wait_for("the index", || (log.exists() || import.try_wait().unwrap().is_some()).then_some(()));
        // Not a wait for something: it spreads the kills over the steps of an import.
        let until = Instant::now() + Duration::from_millis(attempt * 37);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        if import.try_wait().unwrap().is_none() {
            import.kill().unwrap();
            kills += 1;
        }
        import.wait().unwrap();
    }
    assert!(kills > 0, "every import ended before it could be killed");
    let shown = grange.run(&["collections", "import", "news", "foreign", "--json"]).ok().json();
    assert_eq!(count(&shown, "indexed"), files as u64, "after {kills} kills: {shown}");
    assert_eq!(count(&shown, "captures"), (files * records) as u64);
    let server = Served::start(&[grange.data().join("index/news").to_str().unwrap()]);
    assert_eq!(server.get("/news/cdx/ia?url=*.example.com&fl=timestamp").lines().count(), files * records);
}

#[test]
fn stored_files_are_indexed_by_a_node_and_can_be_rolled_back() {
    let grange = single();
    let node = grange.up();
    for (name, url) in [
        ("7-1-a.warc", "http://e.com/a"),
        ("7-metadata-1.warc", "metadata://e.com/x"),
        ("8-1-a.warc", "http://e.com/b"),
    ] {
        let path = grange.file(name, &record(url, 1));
        grange.run(&["store", path.to_str().unwrap()]).ok();
    }
    let shown = wait_for("all three to be indexed", || {
        let shown = grange.run(&["index", "status", "--json"]).ok().json();
        (count(&shown, "indexed") == 3).then_some(shown)
    });
    assert_eq!(count(&shown, "captures"), 3);
    let jobs = |args: &[&str]| grange.run(&[&["index", "jobs"], args].concat());
    assert_eq!(jobs(&["7"]).ok().stdout.lines().count(), 3, "a legend and two captures");
    assert_eq!(jobs(&["7", "8", "--kind", "full"]).ok().stdout.lines().count(), 2);
    assert_eq!(jobs(&["9"]).code, 5);
    grange.run(&["index", "rollback", "--job", "7"]).ok();
    assert_eq!(jobs(&["7"]).code, 5);
    assert_eq!(jobs(&["8"]).ok().stdout.lines().count(), 2);
    grange.run(&["index", "again", "--all"]).ok();
    assert_eq!(jobs(&["7"]).ok().stdout.lines().count(), 3);
    grange.run(&["index", "rollback", "none.warc"]).fails(2, &["no such file"]);
    assert_eq!(node.stop(), 0);
}

#[test]
fn access_rules_are_kept_tried_and_taken_away() {
    let grange = Grange::new();
    let made = grange
        .run(&[
            "access",
            "add",
            "--block",
            "taken down",
            "--url",
            "example.com",
            "--match",
            "domain",
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(made.as_array().unwrap().len(), 3);
    let said = |args: &[&str]| grange.run(&[&["access", "test"], args].concat()).ok().stdout;
    let seen = |args: &[&str]| said(args).lines().next().unwrap_or_default().to_owned();
    assert_eq!(seen(&["http://www.example.com/x"]), "hidden by rule 1: taken down");
    assert_eq!(seen(&["http://shop.example.com/"]), "hidden by rule 3: taken down");
    assert_eq!(said(&["http://example.company/"]), "visible\n");
    grange.run(&["access", "add", "--networks", "10.1.0.0/16", "--url", "http://h0001.dk/x/"]).ok();
    assert_eq!(seen(&["http://h0001.dk/x/", "--from", "10.1.2.3"]), "visible");
    assert_eq!(seen(&["http://h0001.dk/x/", "--from", "10.2.2.3"]), "hidden by rule 6");
    grange.run(&["access", "add", "--embargo", "365d", "--url", "http://h0001.dk/"]).ok();
    assert_eq!(seen(&["http://h0001.dk/x/", "--from", "10.1.2.3"]), "hidden by rule 7");
    grange.run(&["access", "add", "--allow", "--for", "user:anna", "--everything"]).ok();
    let anna = ["http://h0001.dk/x/", "--from", "10.2.2.3", "--as", "anna"];
    assert_eq!(
        said(&anna),
        "visible\n  rule 7: embargo on dk,h0001)/*: lifted by rule 8\n  rule 6: networks on dk,h0001)/x: lifted by rule 8\n  \
         rule 8: allow for user:anna on everything: allows it, as far as it can\n"
    );
    let films =
        grange.run(&["access", "add", "--block", "film", "--url", "film.dk", "--mime", "video/*", "--json"]);
    let rule = films.ok().json()[0]["id"].as_i64().unwrap();
    assert_eq!(
        said(&["http://film.dk/x"]),
        format!(
            "visible, unless a rule about its type hides it\n  rule 8: allow for user:anna on everything: is for other readers\n  \
             rule {rule}: block on dk,film)/*, mime video/*: applies to captures of that type; name a type with --mime\n"
        )
    );
    assert_eq!(seen(&["http://film.dk/x", "--mime", "Video/mp4"]), format!("hidden by rule {rule}: film"));
    assert_eq!(seen(&["http://film.dk/x", "--mime", "text/html"]), "visible");
    assert_eq!(seen(&["metadata://e.org/crawl/x"]), "hidden by default (documentation of crawls)");
    grange.run(&["access", "rm", "1"]).ok();
    assert_eq!(seen(&["http://example.com/y"]), "visible");
    grange.run(&["access", "rm", "1"]).fails(3, &["access rule 1"]);
    grange.run(&["access", "add", "--networks", "10.1.0.0/99", "--everything"]).fails(2, &["no network"]);
    grange.run(&["access", "add", "--block", "x"]).fails(2, &["--everything"]);
    grange.run(&["access", "add", "--block", "x", "--everything", "--collection", "none"]).ok();
    let id = rule + 1;
    assert_eq!(seen(&["http://e.org/", "--collection", "none"]), format!("hidden by rule {id}: x"));
    assert_eq!(seen(&["http://e.org/"]), "visible");
    grange.run(&["access", "add", "--block", "closed", "--everything"]).ok();
    let id = id + 1;
    assert_eq!(seen(&["http://e.org/"]), format!("hidden by rule {id}: closed"));
    grange.run(&["access", "rm", &id.to_string()]).ok();
    grange.run(&["access", "add", "--url", "example.com"]).fails(2, &[]);
    let table = grange.run(&["access", "export"]).ok().stdout;
    let file = grange.file("rules.csv", &table);
    let again = grange.run(&["access", "import", file.to_str().unwrap()]).ok().stdout;
    assert!(again.starts_with("Added 0 access rules"), "{again}");
    let more = grange.file("more.csv", "url,decision\nhttp://a.dk/,allow\nhttp://b.dk/,maybe\n");
    grange.run(&["access", "import", more.to_str().unwrap()]).fails(2, &["line 3", "nothing was imported"]);
    assert_eq!(grange.run(&["access", "export"]).ok().stdout, table);
    // No replica could keep it.
    let long = "m".repeat(66_000);
    let add = ["access", "add", "--block", &long, "--url", "http://long.dk/"];
    grange.run(&add).fails(2, &["dk,long", "shorten its message or its note", "no rule was added"]);
    let noted = format!("url,decision,note\nhttp://a.dk/,allow,\nhttp://long.dk/,allow,{long}\n");
    let noted = grange.file("noted.csv", &noted);
    grange
        .run(&["access", "import", noted.to_str().unwrap()])
        .fails(2, &["dk,long", "shorten", "no rule was added"]);
    assert_eq!(grange.run(&["access", "export"]).ok().stdout, table);
    let good = grange.file("good.csv", "url,match,decision\na.dk,domain,allow\n");
    let done = grange.run(&["access", "import", good.to_str().unwrap()]).ok().stdout;
    assert!(done.starts_with("Added 3 access rules"), "{done}");
    assert!(grange.run(&["changes", "--json"]).ok().stdout.contains("access.add"));
}

/// `grange cdx serve` for the time of a test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let mut command: Command = bare(Path::new("/"));
        let mut child = command
            .args(["cdx", "serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
        Self { address: address.to_owned(), child }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}")).1.to_owned()
    }

    fn get(&self, path: &str) -> String {
        self.send("GET", path, "")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_index_is_served_from_files_and_changed_only_when_told() {
    let grange = Grange::new();
    let folder = warcs(&grange.path("foreign"), 1, 3);
    let warc = folder.join("f000.warc");
    let lines = grange.run(&["cdx", "index", "--sort", warc.to_str().unwrap()]).ok().stdout;
    let lines = grange.file("index.cdxj", &lines);
    for path in [&warc, &lines] {
        let server = Served::start(&[path.to_str().unwrap()]);
        assert_eq!(server.get("/local/cdx?url=*.example.com").lines().count(), 3, "{}", path.display());
        assert_eq!(
            server.get("/cdx/ia?url=e0.example.com/page/1&fl=original"),
            "http://e0.example.com/page/1\n"
        );
        let line = "- 20200101000000 http://new.org/ text/html 200 - - - 10 0 a.warc.gz\n";
        assert!(server.send("POST", "/local", line).contains("cannot be changed"));
        assert_eq!(server.get("/local?url=new.org"), "");
        let server = Served::start(&["--writable", path.to_str().unwrap()]);
        assert_eq!(server.send("POST", "/local", line), "Added 1 records\n");
        assert_eq!(server.get("/local?url=new.org&fl=length"), "10\n");
    }
}

/// pywb indexes files, and both answer the same questions about that index.
#[test]
fn pywb_gives_the_same_answers() {
    let Some(python) = std::env::var_os("GRANGE_TEST_PYTHON") else {
        return grange_testkit::skipped("the Python of the judges (GRANGE_TEST_PYTHON)");
    };
    let grange = Grange::new();
    let folder = warcs(&grange.path("foreign"), 3, 5);
    // Several captures of one URL, one of them a redirect, and a URL whose spelling matters.
    let odd: String =
        ["http://www.e.com/", "https://e.com/", "http://e.com/?b=2&a=1", "http://e.com/A%20b/%C3%BC"]
            .iter()
            .enumerate()
            .flat_map(|(n, url)| [record(url, n * 7), record(url, n * 7 + 300)])
            .collect();
    std::fs::write(folder.join("odd.warc"), odd).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let files: Vec<&str> = files.iter().map(|path| path.to_str().unwrap()).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judges/pywb_cdx.py");
    let index = grange.path("pywb.cdxj");
    let index = index.to_str().unwrap();
    let ask = |args: &[&str]| {
        let judged = Command::new(&python).arg(&script).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert!(judged.status.success(), "{said}\n{}", String::from_utf8_lossy(&judged.stderr));
        said
    };
    ask(&[&["index", index], files.as_slice()].concat());
    let server = Served::start(&[index]);
    let said = ask(&["compare", index, &format!("http://{}", server.address), "local"]);
    assert!(said.contains(" 0 different answers"), "{said}");
}
