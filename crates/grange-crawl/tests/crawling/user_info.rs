//! A password in a seed opens its origin, and is in no file that the archive or its readers get.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use grange_base::Clock;
use grange_crawl::engine::{Crawl, End, Order, Phase, StartError};
use grange_crawl::record::NoOracle;
use grange_crawl::record::settings::Packing;
use grange_testkit::until;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::site::{Asked, Reply, Site};
use super::{captured, job, run, template_to};

const PASSWORD: &str = "s33dpass";

/// All files with the password in them, but for those that only the crawl itself reads: the job, and `state`.
fn tell_tales(root: &Path) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path == root.join("job.json") || path == root.join("state") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if holds_password(&std::fs::read(&path).unwrap()) {
                found.push(path);
            }
        }
    }
    found
}

fn holds_password(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, PASSWORD.as_bytes()).is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_do_not_inherit_the_password_of_a_seed_and_its_origin_is_open_all_the_same() {
    let site = Site::serve(|asked: Asked| async move {
        if asked.url.ends_with("/robots.txt") {
            return Some(Reply::status(404));
        }
        // "user:s33dpass"
        if asked.headers.get("authorization").map(String::as_str) != Some("Basic dXNlcjpzMzNkcGFzcw==") {
            return Some(Reply::status(401).with("WWW-Authenticate: Basic realm=\"all\""));
        }
        Some(Reply::page("<a href='/next'>x</a><img src='i.png'><a href='//elsewhere.test/'>y</a>"))
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.extract.favicon = true;
    template.write.compression = Packing::None;
    run(job(template, vec![format!("http://user:{PASSWORD}@one.test/")]), &root).await;
    let found = captured(&root);
    let last = |url: &str| found.get(url).and_then(|captures| captures.last()).map(|capture| capture.status);
    assert_eq!(last("http://one.test/next"), Some(200), "{:?}", found.keys());
    assert_eq!(last("http://one.test/i.png"), Some(200), "{:?}", found.keys());
    assert_eq!(tell_tales(&root), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_and_reports_see_a_waiting_seed_without_its_password() {
    let site = Site::serve(|_: Asked| async { Some(Reply::status(404)) }).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let seeds = vec![format!("http://user:{PASSWORD}@one.test/a")];
    let wanted = job(template_to(site.addr()), seeds);
    let crawl = Crawl::start(wanted, &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    handle.pause();
    let running = tokio::spawn(crawl.run());
    until("the pause", async || handle.snapshot().phase == Phase::Paused).await;
    // One that waits behind it, and some that are refused.
    let added = vec![format!("http://user:{PASSWORD}@one.test/b")];
    handle.order("anna", Order::AddSeeds { urls: added, endpoints: Vec::new() }).await.unwrap();
    for seed in
        ["http://user:s33dpass@exa mple.test/", "http://user:s33dpass@[::1/", "ftp://user:s33dpass@[::1/"]
    {
        let refused = handle
            .order("anna", Order::AddSeeds { urls: vec![seed.to_owned()], endpoints: Vec::new() })
            .await
            .unwrap_err();
        assert!(!holds_password(refused.to_string().as_bytes()), "{seed}: {refused}");
    }
    let queue = "one.test".to_owned();
    for order in [Order::Queues { after: None, limit: 10 }, Order::Peek { queue, limit: 10 }, Order::Status] {
        let answer = handle.order("anna", order.clone()).await.unwrap().to_string();
        assert!(answer.contains("one.test/a") || order == Order::Status, "{answer}");
        assert!(!holds_password(answer.as_bytes()), "{answer}");
    }
    handle.stop();
    assert_eq!(running.await.unwrap().unwrap().end, End::Stopped);
    let report = std::fs::read_to_string(root.join("reports/frontier-nonempty-report.txt")).unwrap();
    assert!(report.contains("http://one.test/a"), "{report}");
    assert_eq!(tell_tales(&root), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_reason_why_a_crawl_cannot_begin_names_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let template = template_to("127.0.0.1:1".parse().unwrap());
    let bad = job(template, vec![format!("http://user:{PASSWORD}@exa mple.test/")]);
    let error = Crawl::start(bad, &folder.path().join("crawl"), Arc::new(NoOracle), Clock::system());
    let error = error.expect_err("it is refused");
    assert!(matches!(error, StartError::Seed(_)), "{error:?}");
    assert!(!holds_password(format!("{error} {error:?}").as_bytes()), "{error:?}");
}

/// A site over TLS whose certificate is for `site.test`; its requests, and its certificate as PEM.
async fn tls_site() -> (std::net::SocketAddr, Arc<Mutex<Vec<String>>>, String) {
    let made = rcgen::generate_simple_self_signed(["site.test".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let (acceptor, listener) =
        (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let (addr, log) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&log);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let mut tls = acceptor.accept(tcp).await.ok()?;
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(tls.read_u8().await.ok()?);
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let (status, more) =
                    match request.contains("\r\nAuthorization: Basic dXNlcjpzMzNkcGFzcw==\r\n") {
                        _ if request.contains(" /robots.txt ") => (404, ""),
                        true => (200, ""),
                        false => (401, "WWW-Authenticate: Basic realm=\"all\"\r\n"),
                    };
                seen.lock().unwrap().push(request);
                let reply =
                    format!("HTTP/1.1 {status} X\r\n{more}Content-Length: 2\r\nConnection: close\r\n\r\nok");
                tls.write_all(reply.as_bytes()).await.ok()?;
                tls.shutdown().await.ok()
            });
        }
    });
    (addr, log, made.cert.pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_the_password_of_a_seed_goes_only_to_a_server_whose_certificate_was_verified() {
    for (is_known, status) in [(false, 401), (true, 200)] {
        let (addr, log, certificate) = tls_site().await;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let mut template = template_to(addr);
        template.write.compression = Packing::None;
        if is_known {
            template.fetch.extra_roots = folder.path().join("roots.pem");
            std::fs::write(&template.fetch.extra_roots, certificate).unwrap();
        }
        run(job(template, vec![format!("https://user:{PASSWORD}@site.test/")]), &root).await;
        let requests = log.lock().unwrap().clone();
        let with_password = requests.iter().filter(|request| request.contains("\r\nAuthorization: ")).count();
        assert_eq!(with_password, usize::from(is_known), "{requests:?}");
        // A page that cannot be opened is archived as everybody sees it.
        let last = captured(&root)["https://site.test/"].last().map(|capture| capture.status);
        assert_eq!(last, Some(status), "{requests:?}");
        let alerts = std::fs::read_to_string(root.join("logs/alerts.log")).unwrap_or_default();
        assert_eq!(alerts.contains("no password is sent to https://site.test"), !is_known, "{alerts}");
        assert_eq!(tell_tales(&root), Vec::<PathBuf>::new());
    }
}
