//! `grange crawl`: into a folder, killed and resumed, with orders while it runs.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use grange_testkit::wait_for;
use serde_json::Value;

use crate::harness;

/// A synthetic web in a process of its own.
struct Web {
    child: Child,
    address: String,
}

impl Web {
    fn serve(folder: &Path) -> Web {
        let mut child = harness::bare(folder)
            .args(["testkit", "serve-web", "--listen", "127.0.0.1:0", "--profile", "plain"])
            .args(["--hosts", "3", "--pages", "40"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut greeting = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut greeting).unwrap();
        let address = greeting.trim_end().trim_end_matches('.').rsplit(' ').next().unwrap().to_owned();
        Web { child, address }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn documents(folder: &Path) -> usize {
    let text = std::fs::read_to_string(folder.join("out/logs/crawl.log")).unwrap_or_default();
    text.lines().filter(|line| !line.contains("/robots.txt ")).count()
}

#[test]
fn a_crawl_is_limited_resumed_and_complete() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::serve(folder.path());
    let to = ["--all-hosts-to", web.address.as_str(), "--delay", "0s"];
    let template = harness::template_for_small_disks(folder.path());
    let args = ["crawl", "http://h0000.test/", "--out", "out", "--template", &template];
    let limited: Vec<_> = args.into_iter().chain(to).chain(["--max-objects", "5", "--json"]).collect();
    let first = harness::run(folder.path(), &limited).ok().json();
    assert_eq!((&first["end"], documents(folder.path())), (&Value::from("object-limit"), 5));
    for place in ["warcs", "logs", "reports", "manifests"] {
        assert!(std::fs::read_dir(folder.path().join("out").join(place)).unwrap().count() > 0, "{place}");
    }
    harness::run(folder.path(), &limited).fails(1, &["holds a crawl already", "--resume"]);
    let rest = ["crawl", "--resume", "out", "--max-objects", "-1", "--json"];
    let last = harness::run(folder.path(), &rest).ok().json();
    assert_eq!(last["end"], "finished");
    assert_eq!(last["domains"][0]["stop_reason"], "completed");
    let again = harness::run(folder.path(), &["crawl", "--resume", "out", "--json"]).ok().json();
    assert_eq!(again["succeeded"], last["succeeded"], "a crawl that is over has nothing left to do");
    let warcs = std::fs::read_dir(folder.path().join("out/warcs")).unwrap();
    for path in warcs.map(|entry| entry.unwrap().path()) {
        harness::run(folder.path(), &["warc", "check", path.to_str().unwrap()]).ok();
    }
}

#[test]
fn a_killed_crawl_goes_on_and_a_running_one_takes_orders() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::serve(folder.path());
    let mut child = harness::bare(folder.path())
        .args(["crawl", "http://h0000.test/", "--out", "out", "--delay", "500ms", "--quiet"])
        .args(["--all-hosts-to", &web.address])
        .args(["--template", &harness::template_for_small_disks(folder.path())])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("some documents", || {
        assert!(child.try_wait().unwrap().is_none(), "it is far from its end");
        (documents(folder.path()) >= 3).then_some(())
    });
    let control = |order: &[&str]| {
        let args: Vec<_> =
            ["crawl", "control", "out"].iter().chain(order).copied().chain(["--json"]).collect();
        harness::run(folder.path(), &args)
    };
    control(&["pause"]).ok();
    wait_for("the pause", || (control(&["status"]).ok().json()["phase"] == "paused").then_some(()));
    let manifest = control(&["rotate"]).ok().json();
    assert!(manifest["chunk"].as_str().is_some_and(|name| name.starts_with("cp00001-")), "{manifest}");
    control(&["set-limits"]).fails(2, &["--max-objects"]);
    control(&["set-limits", "--max-objects", "5000"]).ok();
    control(&["set-limits", "--max-time", "5h"]).ok();
    control(&["set-pace", "0"]).ok();
    control(&["resume"]).ok();
    child.kill().unwrap();
    child.wait().unwrap();
    control(&["status"]).fails(1, &["no crawl is running"]);
    let last =
        harness::run(folder.path(), &["crawl", "--resume", "out", "--delay", "0s", "--json"]).ok().json();
    assert_eq!(last["end"], "finished");
    let orders = std::fs::read_dir(folder.path().join("out/logs")).unwrap();
    let told: String = orders
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("control.log"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for word in ["\"do\":\"pause\"", "\"do\":\"rotate\"", "\"who\""] {
        assert!(told.contains(word), "{word} in {told}");
    }
}

#[test]
fn what_cannot_be_crawled_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| harness::run(folder.path(), args);
    run(&["crawl"]).fails(2, &["URL"]);
    run(&["crawl", "http://e.test/", "--template", "nonsense"])
        .fails(2, &["neither a file nor a template", "front-page"]);
    run(&["crawl", "http://", "--out", "x"]).fails(2, &["not a URL"]);
    run(&["crawl", "--resume", "nowhere"]).fails(2, &["holds no crawl"]);
    folder
        .path()
        .join("bad.toml")
        .to_str()
        .map(|path| std::fs::write(path, "name = \"x\"\n[scpoe]\n"))
        .unwrap()
        .unwrap();
    run(&["crawl", "http://e.test/", "--template", "bad.toml"]).fails(2, &["line 2", "scpoe", "scope"]);
    let templates = run(&["crawl", "--templates", "--json"]).ok().json();
    assert_eq!(templates.as_array().map(Vec::len), Some(9));
}

/// A server that gives every request this page. Its address.
fn page_server(page: String) -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 8192]);
            let length = page.len();
            let head =
                format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n");
            let _ = stream.write_all((head + &page).as_bytes());
        }
    });
    address
}

#[test]
fn a_seed_that_is_typed_is_reached_on_loopback_and_other_private_addresses_only_when_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let inside = page_server("an image".to_owned());
    let outside = page_server(format!("<img src='http://{inside}/image'>"));
    let seed = format!("http://{outside}/");
    let status_of_image = |out: &str| {
        let log = std::fs::read_to_string(folder.path().join(out).join("logs/crawl.log")).unwrap();
        let line = log.lines().find(|line| line.contains("/image ")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let template = harness::template_for_small_disks(folder.path());
    let crawl = |out: &'static str, more: &[&str]| {
        let args = ["crawl", &seed, "--out", out, "--delay", "0s", "--robots", "ignore", "--json"];
        let roomy = ["--template", &template];
        harness::run(folder.path(), &[&args, &roomy[..], more].concat()).ok().json()
    };
    assert_eq!(crawl("one", &[])["end"], "finished");
    assert_eq!(status_of_image("one"), "-5005");
    assert_eq!(crawl("two", &["--allow-network", "127.0.0.0/8"])["end"], "finished");
    assert_eq!(status_of_image("two"), "200");
    let args = ["crawl", &seed, "--out", "three", "--allow-network", "intranet"];
    harness::run(folder.path(), &args).fails(2, &["invalid network", "10.0.0.0/8"]);
}

#[test]
fn a_seed_that_is_added_by_order_is_reached_on_loopback_too() {
    let folder = tempfile::tempdir().unwrap();
    let added = page_server("added".to_owned());
    let outside = page_server("<a href='/next'>next</a>".to_owned());
    // It waits for its second page, so that there is time for the order.
    let mut child = harness::bare(folder.path())
        .args(["crawl", &format!("http://{outside}/"), "--out", "out", "--delay", "60s", "--quiet"])
        .args(["--template", &harness::template_for_small_disks(folder.path())])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let status_of = |end: &str| {
        let text = std::fs::read_to_string(folder.path().join("out/logs/crawl.log")).unwrap_or_default();
        let line = text.lines().find(|line| line.contains(end))?.to_owned();
        line.split_whitespace().nth(1).map(str::to_owned)
    };
    wait_for("the crawl", || status_of(&format!("http://{outside}/ ")).or_else(|| status_of("/robots.txt ")));
    let order = ["crawl", "control", "out", "add-seeds", &added.to_string(), "--json"];
    assert_eq!(harness::run(folder.path(), &order).ok().json()["queued"], 1);
    let status = wait_for("the added seed", || status_of(&format!("http://{added}/")));
    assert_eq!(status, "200");
    child.kill().unwrap();
    child.wait().unwrap();
}
