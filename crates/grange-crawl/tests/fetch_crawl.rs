//! Crawls of servers of our own making: what the fetch layer must not let happen to a whole crawl.

mod fetch_server;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fetch_server::read_request;
use grange_base::{Clock, Period, Size};
use grange_crawl::engine::Crawl;
use grange_crawl::job::{Budgets, Job};
use grange_crawl::log::CrawlLine;
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::scope::Traps;
use grange_crawl::template::{Template, parse, shipped};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use warc::{Reader, RecordType};

/// The requests that a server got, as they came.
type Requests = Arc<Mutex<Vec<Vec<u8>>>>;

/// Serves what `respond` makes of a path, one response for each connection.
async fn serve(respond: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> (SocketAddr, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Requests::default();
    let (seen, respond) = (Arc::clone(&requests), Arc::new(respond));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, respond) = (Arc::clone(&seen), Arc::clone(&respond));
            tokio::spawn(async move {
                let own = Requests::default();
                if read_request(&mut stream, &own).await {
                    let request = own.lock().unwrap().remove(0);
                    let text = String::from_utf8_lossy(&request).into_owned();
                    seen.lock().unwrap().push(request);
                    let _ = stream.write_all(&respond(text.split(' ').nth(1).unwrap())).await;
                }
            });
        }
    });
    (address, requests)
}

fn page(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn none() -> Vec<u8> {
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
}

/// The default template without waiting, for a server of our own.
fn template(server: SocketAddr) -> Template {
    let text = shipped().iter().find(|(name, _)| *name == "default").expect("it is shipped").1;
    let mut template = parse(text).expect("a shipped template is sound");
    "grange-test (+http://grange.invalid/)".clone_into(&mut template.fetch.user_agent);
    template.fetch.all_hosts_to = server.to_string();
    template.frontier.pace = Pace::none();
    template.frontier.retry_delay = Period::from_millis(20);
    template.robots.cache.retry = Period::from_millis(10);
    template.robots.cache.retry_max = Period::from_secs(1);
    template.robots.cache.give_up = Period::from_millis(50);
    template.extract.favicon = false;
    template.engine.min_free = Size(0);
    template.fetch.scratch_min_free = Size(0);
    template
}

async fn crawl(template: Template, seed: &str, folder: &Path) {
    let job = Job {
        name: "test".to_owned(),
        seeds: vec![seed.to_owned()],
        template,
        budgets: Budgets::default(),
        traps: Traps::default(),
        credentials: Vec::new(),
        info: Vec::new(),
    };
    let crawl = Crawl::start(job, folder, Arc::new(NoOracle), Clock::system()).unwrap();
    crawl.run().await.unwrap();
}

/// Status, URL, referring URL and source of each line in crawl.log.
fn log(folder: &Path) -> Vec<(i32, String, String, String)> {
    let text = std::fs::read_to_string(folder.join("logs/crawl.log")).unwrap();
    let lines = text.lines().map(|line| CrawlLine::parse(line).unwrap());
    let text = |text: Option<std::borrow::Cow<'_, str>>| text.unwrap_or_default().into_owned();
    lines.map(|line| (line.status.0, line.url.into_owned(), text(line.via), text(line.source))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_name_in_a_url_stops_no_host_and_stays_out_of_the_archive() {
    let (server, requests) = serve(|path| match path {
        "/" => page("<a href='http://me:secret@site.example/in'>in</a> <a href='/other'>other</a>"),
        "/in" => page("<a href='/further'>further</a>"),
        "/other" | "/further" => page("here"),
        _ => none(),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    crawl(template(server), "http://you:hidden@site.example/#top", folder.path()).await;

    let requests = requests.lock().unwrap().clone();
    let requests: Vec<_> = requests.into_iter().map(|request| String::from_utf8(request).unwrap()).collect();
    let of = |path: &str| {
        let line = format!("GET {path} HTTP/1.1\r\n");
        requests.iter().filter(|request| request.starts_with(&line)).collect::<Vec<_>>()
    };
    assert_eq!(of("/robots.txt").len(), 1, "{requests:#?}");
    for (path, referer) in [("/in", "/"), ("/other", "/"), ("/further", "/in")] {
        assert_eq!(of(path).len(), 1, "{path}");
        assert!(
            of(path)[0].contains(&format!("\r\nReferer: http://site.example{referer}\r\n")),
            "{:?}",
            of(path)
        );
    }
    assert!(of("/")[0].contains("\r\nAuthorization: Basic eW91OmhpZGRlbg==\r\n"));
    assert!(of("/in")[0].contains("\r\nAuthorization: Basic bWU6c2VjcmV0\r\n"));

    let lines = log(folder.path());
    assert!(lines.iter().any(|(status, url, ..)| (*status, url.as_str()) == (200, "http://site.example/in")));
    for line in &lines {
        let text = format!("{line:?}");
        assert!(!text.contains("secret") && !text.contains("hidden") && !text.contains('#'), "{text}");
    }
    let report = std::fs::read_to_string(folder.path().join("reports/seeds-report.txt")).unwrap();
    assert_eq!(report.lines().count(), 2, "{report}");
    assert!(report.contains("200 CRAWLED http://site.example/"), "{report}");
    for entry in std::fs::read_dir(folder.path().join("warcs")).unwrap() {
        let mut reader = Reader::open(entry.unwrap().path()).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            let target = String::from_utf8_lossy(record.target_uri().unwrap_or_default()).into_owned();
            assert!(!target.contains('@') && !target.contains('#'), "{target}");
            if record.kind() == RecordType::Request {
                let mut block = Vec::new();
                std::io::copy(&mut record.block(), &mut block).unwrap();
                let block = String::from_utf8_lossy(&block).into_owned();
                let told = ["secret", "hidden", "bWU6c2Vj", "eW91Omhp", "#top"];
                assert!(told.iter().all(|word| !block.contains(word)), "{block}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_robots_txt_that_was_cut_off_allows_nothing() {
    let (server, requests) = serve(|path| match path {
        // The rules that forbid are in the part that does not come.
        "/robots.txt" => {
            b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nUser-agent: *\nDisallow: /a\n".to_vec()
        }
        _ => page("private"),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    crawl(template(server), "http://site.example/private/x", folder.path()).await;
    let requests = requests.lock().unwrap().clone();
    assert!(requests.iter().all(|request| request.starts_with(b"GET /robots.txt ")), "{requests:?}");
    let last = log(folder.path()).pop().unwrap();
    assert_eq!((last.0, last.1.as_str()), (-9998, "http://site.example/private/x"));
}

/// The most memory this process has held, in kB.
#[cfg(target_os = "linux")]
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn compressed_bombs_cost_no_memory() {
    // 400 members of 1 MiB: 400 MB of page in 400 kB.
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    member.write_all(&vec![b' '; 1 << 20]).unwrap();
    let member = member.finish().unwrap();
    let mut first = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    first.write_all(b"<html><a href='/behind'>behind</a>").unwrap();
    let body = [first.finish().unwrap(), member.repeat(400)].concat();
    assert!(body.len() < 500_000, "it is kept in memory: {}", body.len());
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nConnection: close\r\n";
    let bomb = [format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
    let (server, requests) = serve(move |path| match path {
        "/" => page("<a href='/1'></a><a href='/2'></a><a href='/3'></a><a href='/4'></a>"),
        "/1" | "/2" | "/3" | "/4" => bomb.clone(),
        "/behind" => page("found"),
        _ => none(),
    })
    .await;
    let mut template = template(server);
    template.frontier.parallel_per_queue = 4;
    template.frontier.parallel_per_host = 4;
    template.extract.max_document.html = Size::mib(4);
    let folder = tempfile::tempdir().unwrap();
    let before = peak_kb();
    crawl(template, "http://site.example/", folder.path()).await;
    let more = peak_kb() - before;
    assert!(more < 150 << 10, "{more} kB");
    let requests = requests.lock().unwrap().clone();
    assert!(requests.iter().any(|request| request.starts_with(b"GET /behind ")), "their links are found");
}
