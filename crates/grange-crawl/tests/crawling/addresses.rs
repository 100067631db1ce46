//! A page cannot make the crawler fetch from private addresses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grange_base::Clock;
use grange_crawl::FetchStatus;
use grange_crawl::engine::{Crawl, End, Order, OrderError};
use grange_crawl::log::CrawlLine;
use grange_crawl::record::NoOracle;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{captured, job, run, template_to};

/// Serves what `page` says for a path, and counts connections.
async fn serve(page: impl Fn(&str) -> String + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let (count, page) = (Arc::clone(&connections), Arc::new(page));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let page = Arc::clone(&page);
            tokio::spawn(async move {
                let mut request = vec![0; 16 << 10];
                let len = stream.read(&mut request).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&request[..len]).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default();
                let _ = stream.write_all(page(path).as_bytes()).await;
            });
        }
    });
    (address, connections)
}

fn html(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_embeds_links_or_redirects_to_stays_out_of_private_networks() {
    let (inside, asked) = serve(|_| html("secret")).await;
    let port = inside.port();
    let (outside, _) = serve(move |path| match path {
        "/" => html(&format!(
            "<img src='http://127.0.0.1:{port}/embedded'><img src='http://127.0.0.2:{port}/neighbour'>\
             <img src='http://localhost:{port}/by-name'><a href='/away'>x</a><a href='/page'>y</a>"
        )),
        "/away" => format!("HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:{port}/redirected\r\n\r\n"),
        "/page" => html("fine"),
        _ => "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    })
    .await;
    let mut template = template_to(outside);
    template.fetch.all_hosts_to = String::new();
    template.fetch.allow_endpoints = vec![outside];
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let outcome = run(job(template, vec![format!("http://{outside}/")]), &root).await;
    assert_eq!(outcome.end, End::Finished);
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nothing of the private server was asked for");
    let log = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let mut refused: Vec<_> = log
        .lines()
        .map(|line| CrawlLine::parse(line).unwrap())
        .filter(|line| line.status == FetchStatus::BLOCKED_BY_ADDRESS)
        .map(|line| {
            assert!(line.annotations.contains("privateAddress"), "{}", line.annotations);
            line.url.rsplit('/').next().unwrap().to_owned()
        })
        .collect();
    refused.sort();
    assert_eq!(refused, ["by-name", "embedded", "neighbour", "redirected"]);
    let reasons = std::fs::read_to_string(root.join("logs/nonfatal-errors.log")).unwrap();
    assert!(
        reasons.contains("127.0.0.2 is a loopback address, which only the operator can allow"),
        "{reasons}"
    );
    assert!(captured(&root).contains_key(&format!("http://{outside}/page")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_robots_txt_that_leads_to_a_private_address_allows_nothing() {
    let (outside, _) = serve(|path| match path {
        "/robots.txt" => "HTTP/1.0 302 Found\r\nLocation: http://127.0.0.2:1/robots.txt\r\n\r\n".to_owned(),
        _ => html("fine"),
    })
    .await;
    let mut template = template_to(outside);
    template.fetch.all_hosts_to = String::new();
    template.fetch.allow_endpoints = vec![outside];
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    run(job(template, vec![format!("http://{outside}/")]), &root).await;
    assert!(!captured(&root).contains_key(&format!("http://{outside}/")));
}

/// A crawl of one public-looking page that is paused, an order to it, and what is fetched after that.
async fn ordered_seed(allowed: bool, networks: &[&str]) -> (Result<serde_json::Value, OrderError>, usize) {
    let (inside, asked) = serve(|_| html("intranet")).await;
    let (outside, _) = serve(|path| if path == "/robots.txt" { html("") } else { html("fine") }).await;
    let mut template = template_to(outside);
    template.fetch.all_hosts_to = String::new();
    template.fetch.allow_endpoints = vec![outside];
    template.fetch.allow_ordered_endpoints = allowed;
    template.fetch.allow_networks = networks.iter().map(|network| network.parse().unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let wanted = job(template, vec![format!("http://{outside}/")]);
    let crawl = Crawl::start(wanted, &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let order = Order::AddSeeds { urls: vec![format!("http://{inside}/")], endpoints: vec![inside] };
    let answer = crawl.handle().order("anna", order).await;
    // The order outlives a crawl that is killed before it does anything.
    drop(crawl);
    let crawl = Crawl::resume(&root, Arc::new(NoOracle), Clock::system()).unwrap();
    assert_eq!(crawl.run().await.unwrap().end, End::Finished);
    (answer, asked.load(Ordering::SeqCst))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordered_seed_at_a_private_address_is_fetched_only_where_the_operator_gives_the_orders() {
    let (answer, asked) = ordered_seed(true, &[]).await;
    assert_eq!(answer.unwrap(), serde_json::json!({"queued": 1, "seen_before": 0}));
    assert!(asked > 0, "its server is asked");
    let (answer, asked) = ordered_seed(false, &[]).await;
    let Err(OrderError::Bad(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("private address 127.0.0.1:") && reason.contains("harvest.network"), "{reason}");
    assert_eq!(asked, 0);
    // Where the operator has allowed the network, nothing needs to be allowed by the order.
    let (answer, asked) = ordered_seed(false, &["127.0.0.0/8"]).await;
    assert_eq!(answer.unwrap(), serde_json::json!({"queued": 1, "seen_before": 0}));
    assert!(asked > 0, "its server is asked");
}
