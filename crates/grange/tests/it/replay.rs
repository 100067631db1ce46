//! Replay: files on disk without any set-up, and collections on a node, in Wayback and in proxy mode.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Client, Proxy, redirect};
use serde_json::Value;

use crate::harness::{self, Grange};

/// A WARC file with one page.
pub(crate) fn warc(folder: &Path) -> PathBuf {
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nas it was";
    let record = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
         WARC-Date: 2020-01-02T03:04:05Z\r\nWARC-Target-URI: http://example.org/\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    );
    let path = folder.join("page.warc.gz");
    let mut encoder = GzEncoder::new(std::fs::File::create(&path).unwrap(), Compression::default());
    encoder.write_all(record.as_bytes()).unwrap();
    encoder.finish().unwrap();
    path
}

struct Replay {
    child: Child,
    told: Value,
}

impl Replay {
    fn start(folder: &Path, file: &Path) -> Self {
        let mut command = harness::bare(folder);
        command.args(["--json", "replay", "--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:0"]).arg(file);
        Self::run(command)
    }

    fn run(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
        let told = loop {
            assert!(lines.read_line(&mut text).unwrap() > 0, "replay did not start: {text}");
            if let Ok(told) = serde_json::from_str(&text) {
                break told;
            }
        };
        Self { child, told }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn client(proxy: Option<&str>) -> Client {
    let builder = Client::builder().redirect(redirect::Policy::none());
    match proxy {
        Some(proxy) => builder.proxy(Proxy::all(proxy).unwrap()),
        None => builder.no_proxy(),
    }
    .build()
    .unwrap()
}

pub(crate) async fn text(client: &Client, url: &str) -> String {
    client.get(url).send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn a_file_is_replayed_without_any_set_up() {
    let folder = tempfile::tempdir().unwrap();
    let replay = Replay::start(folder.path(), &warc(folder.path()));
    assert_eq!(replay.told["captures"], 1);
    let local = replay.told["url"].as_str().unwrap();
    let direct = client(None);
    assert_eq!(text(&direct, &format!("{local}20200102030405id_/http://example.org/")).await, "as it was");
    let cdx = text(&direct, &format!("{local}cdx?url=http://example.org/")).await;
    assert!(cdx.contains("org,example)/ 20200102030405"), "{cdx}");
    let map = text(&direct, &format!("{local}timemap/link/http://example.org/")).await;
    assert!(map.contains("20200102030405mp_/http://example.org/"), "{map}");
    let proxy = format!("http://{}", replay.told["proxy"].as_str().unwrap());
    assert_eq!(text(&client(Some(&proxy)), "http://example.org/").await, "as it was");
}

#[tokio::test]
async fn a_node_replays_what_was_imported() {
    let grange = Grange::with(&["node.roles=[\"replay\"]"]);
    let file = warc(grange.data().parent().unwrap());
    grange.run(&["collections", "import", "papers", file.to_str().unwrap()]).ok();
    let node = grange.up();
    let at = |path: &str| format!("{}{path}", node.url("replay"));
    assert_eq!(text(&client(None), &at("/papers/2020id_/http://example.org/")).await, "as it was");
    let proxy = node.url("proxy");
    assert_eq!(text(&client(Some(&proxy)), "http://example.org/").await, "as it was");
    assert_eq!(node.stop(), 0);
}

#[tokio::test]
async fn an_archive_puts_its_own_words_over_those_of_the_pages() {
    let grange = Grange::with(&["node.roles=[\"replay\"]", "replay.texts=words"]);
    let words = grange.data().join("words/da");
    std::fs::create_dir_all(&words).unwrap();
    std::fs::write(words.join("own.ftl"), "web-archive = Netarkivet\n").unwrap();
    let file = warc(grange.data().parent().unwrap());
    grange.run(&["collections", "import", "papers", file.to_str().unwrap()]).ok();
    let node = grange.up();
    let page = |path: &str, lang: &'static str| {
        let url = format!("{}{path}", node.url("replay"));
        async move {
            let asked = client(None).get(url).header("accept-language", lang);
            asked.send().await.unwrap().text().await.unwrap()
        }
    };
    let home = page("/papers/", "da").await;
    assert!(home.contains("Netarkivet") && home.contains("lang=\"da\""), "{home}");
    let home = page("/papers/", "de").await;
    assert!(home.contains("Webarchiv") && home.contains("lang=\"de\""), "{home}");
    let missing = page("/papers/2020/http://example.org/none", "da").await;
    assert!(missing.contains("Ikke i arkivet"), "{missing}");
    assert_eq!(node.stop(), 0);
}

/// pywb and Grange replay pywb's own samples, and every body in `id_` mode is the same.
#[test]
fn pywb_gives_the_same_bodies() {
    let Some(python) = std::env::var_os("GRANGE_TEST_PYTHON") else {
        return grange_testkit::skipped("the Python of the judges (GRANGE_TEST_PYTHON)");
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let samples = here.join("../../../shared/warc-samples/pywb");
    if !samples.exists() {
        return grange_testkit::note_skipped("the corpus ../shared/warc-samples");
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&samples).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".warc.gz") || name.ends_with(".warc") || name.ends_with(".arc.gz")
    });
    files.sort();
    assert!(files.len() >= 9, "{files:?}");
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("pywb.cdxj");
    let ask = |script: &str, args: &[&std::ffi::OsStr]| {
        let mut command = Command::new(&python);
        let judged = command.arg(here.join("tests/judges").join(script)).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert!(judged.status.success(), "{said}\n{}", String::from_utf8_lossy(&judged.stderr));
        said
    };
    let mut args: Vec<&std::ffi::OsStr> = vec!["index".as_ref(), index.as_os_str()];
    args.extend(files.iter().map(|path| path.as_os_str()));
    ask("pywb_cdx.py", &args);
    let mut replay = harness::bare(folder.path());
    // What is odd about the samples is not told once more.
    replay.stderr(Stdio::null());
    replay.args(["--json", "replay", "--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:0"]).args(&files);
    let replay = Replay::run(replay);
    let url = replay.told["url"].as_str().unwrap();
    let archive = format!("{}/", samples.display());
    let said = ask("pywb_replay.py", &[index.as_os_str(), archive.as_ref(), url.as_ref(), "local".as_ref()]);
    assert!(said.contains(" 0 different"), "{said}");
}
