//! Pages crawled, then replayed offline in a real Chromium: what they show is what they showed live.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness;

/// A process that says in its first line where it is, and stays until dropped.
struct Staying {
    child: Child,
    greeting: Value,
}

impl Staying {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut text = String::new();
        // The answer is one JSON value, on one line or several.
        let greeting = loop {
            text.push_str(&lines.next().expect("a greeting before the end").unwrap());
            if let Ok(greeting) = serde_json::from_str(&text) {
                break greeting;
            }
        };
        // What it says later is read and dropped, so that it never waits for a reader.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, greeting }
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui")
}

fn is_there(program: &str) -> bool {
    let probe = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok_and(|status| status.success())
}

/// Says what is missing, if something is.
fn missing() -> bool {
    let chromium = std::env::var("GRANGE_TEST_CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
    let here = is_there("node")
        && is_there(&chromium)
        && ui().join("node_modules/playwright-core").is_dir()
        && Path::new("/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf").is_file();
    if !here {
        grange_testkit::skipped("Chromium, node, fonts-dejavu-core or ui/node_modules/playwright-core");
    }
    !here
}

/// Runs the browser over all pages and prints how far they differ; on failure shows what it found.
#[track_caller]
fn browse(args: &[&str], folder: &Path) {
    let mut command = Command::new("node");
    command.arg(ui().join("tests/browse.mjs")).args(args).arg(folder);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{args:?}:\n{out}");
    assert!(output.status.success(), "{args:?}:\n{out}\n{err}");
}

/// A folder that stays when the test fails: its pictures show what differs.
fn picture_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn pictures_that_differ_by_what_nobody_sees_are_the_same_and_others_are_not() {
    if !is_there("node") {
        return grange_testkit::skipped("node");
    }
    let output = Command::new("node").arg(ui().join("tests/pictures.mjs")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn replayed_pages_look_and_work_as_they_did_live() {
    if missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let site = Staying::start(Command::new("node").arg(ui().join("tests/site.mjs")));
    let port = site.greeting["port"].to_string();
    let live = picture_folder("replay_browser");
    browse(&["live", &port], &live);

    let hosts = format!("127.0.0.1:{port}");
    let urls = site.greeting["urls"].as_array().unwrap().iter().map(|url| url.as_str().unwrap());
    let mut crawl: Vec<&str> = ["crawl"].into_iter().chain(urls).collect();
    let template = harness::template_for_small_disks(folder.path());
    crawl.extend([
        "--out",
        "out",
        "--all-hosts-to",
        &hosts,
        "--template",
        &template,
        "--delay",
        "0s",
        "--json",
    ]);
    let crawled = harness::run(folder.path(), &crawl).ok().json();
    assert_eq!(crawled["end"], "finished");
    // From here on there is no live site: what is shown comes from the archive or not at all.
    drop(site);

    let mut replay = harness::bare(folder.path());
    replay.args(["replay", "--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:0", "--json"]);
    for file in std::fs::read_dir(folder.path().join("out/warcs")).unwrap() {
        replay.arg(file.unwrap().path());
    }
    let replay = Staying::start(&mut replay);
    let place = replay.greeting["url"].as_str().unwrap().trim_end_matches('/').to_owned();
    browse(&["replay", &place], &live);
    // The same pages under their own addresses, with nothing rewritten.
    browse(&["proxy", replay.greeting["proxy"].as_str().unwrap()], &live);
    std::fs::remove_dir_all(&live).unwrap();
}
