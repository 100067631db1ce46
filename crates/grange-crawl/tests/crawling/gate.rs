//! What a virus scanner finds is kept where it can do no harm; what it could not see is never taken for clean.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use grange_crawl::template::Template;
use grange_crawl::virus::{CONTENT_TYPE, KEY, OnUnscanned, xor};
use grange_testkit::Daemon;
use grange_testkit::web::{Options, Profile, Rules, Sub, Web};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use warc::{Reader, RecordType};

use super::{annotations, captured, job, run, serve, template, warcs};

const FOUND: &str = "Win.Test.EICAR_HDB-1";

fn web() -> Web {
    Web::new(Options { hosts: 2, pages: 12, seed: 4, profile: Profile::Plain, ..Options::default() })
}

/// One conversation with a scanner that knows one virus.
async fn scan(mut stream: TcpStream, virus: &[u8]) -> std::io::Result<()> {
    let mut command = [0; 10];
    stream.read_exact(&mut command).await?;
    assert_eq!(&command, b"zINSTREAM\0");
    let mut seen = Vec::new();
    loop {
        let length = stream.read_u32().await? as usize;
        if length == 0 {
            break;
        }
        let start = seen.len();
        seen.resize(start + length, 0);
        stream.read_exact(&mut seen[start..]).await?;
    }
    let answer = if seen == virus { format!("stream: {FOUND} FOUND\0") } else { "stream: OK\0".to_owned() };
    stream.write_all(answer.as_bytes()).await
}

/// A clamd that finds something in this content and in no other. Its address.
async fn clamd(virus: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let virus = virus.clone();
            tokio::spawn(async move { scan(stream, &virus).await });
        }
    });
    address
}

/// A message that was made harmless, turned back, and what was found in it.
struct Quarantined {
    message: Vec<u8>,
    found: String,
}

/// The quarantined messages by URL. They are in the files for them, and nothing else is.
fn quarantined(folder: &Path) -> BTreeMap<String, Quarantined> {
    let mut all = BTreeMap::new();
    for path in warcs(folder) {
        let viral = path.to_string_lossy().contains("-VIRAL");
        let mut reader = Reader::open(&path).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            match record.kind() {
                RecordType::Response | RecordType::Revisit => assert!(!viral, "{}", path.display()),
                RecordType::Conversion => {
                    assert!(viral, "{}", path.display());
                    assert_eq!(record.content_type(), Some(CONTENT_TYPE.as_bytes()));
                    let url = String::from_utf8(record.target_uri().unwrap().to_vec()).unwrap();
                    let found = record.header().get_text("WARC-Virus-Found").unwrap().into_owned();
                    let mut message = Vec::new();
                    record.block().read_to_end(&mut message).unwrap();
                    xor(&mut message, KEY);
                    assert!(all.insert(url, Quarantined { message, found }).is_none(), "only once");
                }
                _ => {}
            }
        }
    }
    all
}

/// The HTTP messages in the response records, by URL.
fn messages(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for path in warcs(folder) {
        let mut reader = Reader::open(&path).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            if record.kind() == RecordType::Response {
                let url = String::from_utf8(record.target_uri().unwrap().to_vec()).unwrap();
                let mut message = Vec::new();
                record.block().read_to_end(&mut message).unwrap();
                all.insert(url, message);
            }
        }
    }
    all
}

/// Crawls into a folder with what `change` makes of the template.
async fn crawl(root: &Path, change: impl FnOnce(&mut Template)) {
    let web = web();
    let server = serve(&web).await;
    let mut template = template(&server);
    change(&mut template);
    run(job(template, web.seeds()), root).await;
    server.stop().await;
}

fn body(message: &[u8]) -> &[u8] {
    let end = message.windows(4).position(|part| part == b"\r\n\r\n").expect("it has a head") + 4;
    &message[end..]
}

#[tokio::test(flavor = "multi_thread")]
async fn one_infected_page_is_quarantined_and_comes_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, gated) = (folder.path().join("plain"), folder.path().join("gated"));
    crawl(&plain, |_| {}).await;
    let plain = messages(&plain);
    let infected = web().url(1, Sub::Bare, "/p/3.html");
    let address = clamd(body(&plain[&infected]).to_vec()).await;
    crawl(&gated, |template| template.virus.clamd = address).await;

    let viral = quarantined(&gated);
    assert_eq!(viral.keys().collect::<Vec<_>>(), [&infected]);
    assert_eq!(viral[&infected].found, FOUND);
    assert!(viral[&infected].message == plain[&infected], "turned back, it is what the server sent");
    let mut normal = messages(&gated);
    normal.insert(infected.clone(), viral[&infected].message.clone());
    assert!(normal == plain, "everything else is as without a scanner");
    assert_eq!(captured(&gated).len() + 1, plain.len());
    let annotations = annotations(&gated);
    assert!(annotations[&infected].contains(FOUND), "{}", annotations[&infected]);
    assert!(annotations.iter().all(|(url, note)| *url == infected || !note.contains("virus")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_clamd_finds_what_it_knows_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, gated) = (folder.path().join("plain"), folder.path().join("gated"));
    crawl(&plain, |_| {}).await;
    let plain = messages(&plain);
    // Without the lists that it fetches from elsewhere, clamd does not know what begins with a doctype, and lets it be.
    let mut infected: Vec<_> = plain.keys().filter(|url| !url.ends_with("/robots.txt")).collect();
    infected.retain(|url| !body(&plain[*url]).is_empty() && !body(&plain[*url]).starts_with(b"<!"));
    infected.truncate(2);
    let known: Vec<_> = infected.iter().map(|url| ("Grange.Test", body(&plain[*url]))).collect();
    let Some(clamd) = Daemon::clamd(&known) else { return };
    crawl(&gated, |template| template.virus.clamd = format!("tcp:{}", clamd.addr())).await;

    let viral = quarantined(&gated);
    assert_eq!((viral.keys().collect::<Vec<_>>(), infected.len()), (infected.clone(), 2));
    for url in infected.iter().copied() {
        // What a database of its own says clamd marks as not official.
        assert_eq!(viral[url].found, "Grange.Test.UNOFFICIAL");
        assert!(viral[url].message == plain[url], "turned back, it is what the server sent");
    }
    assert_eq!(captured(&gated).len() + infected.len(), plain.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_scanner_a_crawl_does_as_it_was_told() {
    // A port where nobody listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    drop(listener);
    let folder = tempfile::tempdir().unwrap();
    let expected = web().expected(&Rules::default());
    let pages = || expected.iter().filter(|(url, page)| page.status == 200 && !url.ends_with("/robots.txt"));
    for (name, policy) in [("quarantine", OnUnscanned::Quarantine), ("flag", OnUnscanned::Flag)] {
        let root = folder.path().join(name);
        crawl(&root, |template| {
            template.virus.clamd.clone_from(&address);
            template.virus.on_unscanned = policy;
        })
        .await;
        let (viral, found, annotations) = (quarantined(&root), captured(&root), annotations(&root));
        let set_aside = if policy == OnUnscanned::Quarantine { pages().count() } else { 0 };
        assert!(pages().count() > 20);
        assert_eq!((viral.len(), found.len()), (set_aside, expected.len() - set_aside), "{name}");
        for (url, page) in pages() {
            assert!(annotations[url].contains("unscanned:unreachable"), "{url} {}", annotations[url]);
            if let Some(viral) = viral.get(url) {
                assert!(viral.found.starts_with("not scanned: "), "{}", viral.found);
                assert_eq!(body(&viral.message).len() as u64, page.length, "{url}");
            } else {
                assert_eq!(found[url][0].digest, page.payload_sha1, "{url}");
            }
        }
    }
}
