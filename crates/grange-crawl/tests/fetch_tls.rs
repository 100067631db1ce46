//! Certificates that can be believed and those that cannot, and proxies on the way.

mod fetch_server;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fetch_server::{Client, Server, read_request, send, settings, text};
use grange_crawl::FetchStatus;
use grange_crawl::fetch::{Request, Settings, Trust, Verdict};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use url::Url;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhello";

/// A TLS server whose certificate says `site.example`, and its authority as a file.
struct TlsServer {
    port: u16,
    roots: PathBuf,
    _folder: TempDir,
}

/// `rude` cuts the connection after each answer without closing TLS.
async fn tls_server(reply: &'static [u8], rude: bool) -> TlsServer {
    let made = rcgen::generate_simple_self_signed(["site.example".to_owned()]).unwrap();
    let folder = TempDir::new().unwrap();
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(made.cert.der().to_vec())], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut tls) = acceptor.accept(tcp).await else { return };
                let seen = Arc::new(Mutex::new(Vec::new()));
                while read_request(&mut tls, &seen).await {
                    if tls.write_all(reply).await.and(tls.flush().await).is_err() || rude {
                        return;
                    }
                }
            });
        }
    });
    TlsServer { port, roots, _folder: folder }
}

impl TlsServer {
    fn settings(&self, trust: Trust) -> Settings {
        Settings { trust, all_hosts_to: format!("127.0.0.1:{}", self.port), ..settings() }
    }
}

#[tokio::test]
async fn certificates_are_verified_recorded_or_left_alone() {
    let server = tls_server(REPLY, false).await;
    let known = |trust| Settings { extra_roots: server.roots.clone(), ..server.settings(trust) };
    for (host, settings, status, verdict) in [
        ("site.example", known(Trust::Verify), 200, Some("certificate verified")),
        ("site.example", known(Trust::Record), 200, Some("certificate verified")),
        ("site.example", known(Trust::TrustAll), 200, Some("certificate not checked")),
        ("other.example", known(Trust::Verify), -2, None),
        ("other.example", known(Trust::Record), 200, Some("certificate not verified: ")),
        ("other.example", known(Trust::TrustAll), 200, Some("certificate not checked")),
        ("site.example", server.settings(Trust::Verify), -2, None),
        ("site.example", server.settings(Trust::Record), 200, Some("certificate not verified: ")),
        ("site.example", server.settings(Trust::TrustAll), 200, Some("certificate not checked")),
        // TLS cannot carry such names, but servers have them.
        ("-a.site.example", known(Trust::Record), 200, Some("certificate not verified: ")),
        ("a-.site.example", known(Trust::TrustAll), 200, Some("certificate not checked")),
    ] {
        let client = Client::new(&settings);
        let mut fetched = client.get(Url::parse(&format!("https://{host}/")).unwrap()).await;
        assert_eq!(fetched.status.0, status, "{host} {:?}: {:?}", settings.trust, fetched.problems);
        let Some(verdict) = verdict else {
            assert_eq!(fetched.annotations().collect::<Vec<_>>(), ["certificateNotVerified"]);
            assert!(fetched.request.is_empty());
            continue;
        };
        let tls = fetched.tls.clone().unwrap();
        assert!(tls.to_string().contains(verdict), "{tls}");
        assert!(tls.to_string().starts_with("TLSv1.3 TLS13_"), "{tls}");
        assert_eq!(text(&mut fetched), "hello");
        // On the same connection the verdict is the same.
        let again = client.get(Url::parse(&format!("https://{host}/2")).unwrap()).await;
        assert!(again.reused && again.tls.unwrap() == tls);
    }
}

#[tokio::test]
async fn a_password_goes_only_to_a_server_whose_certificate_was_verified() {
    let server = tls_server(REPLY, false).await;
    let known = |trust| Settings { extra_roots: server.roots.clone(), ..server.settings(trust) };
    for (settings, sent) in [
        (known(Trust::Verify), true),
        (known(Trust::Record), true),
        (known(Trust::TrustAll), false),
        (server.settings(Trust::Record), false),
    ] {
        let client = Client::new(&settings);
        let url = Url::parse("https://site.example/").unwrap();
        // A connection that waits in the pool is no way round it.
        assert_eq!(client.get(url.clone()).await.status, FetchStatus(200));
        let authorization = Some("Basic dTpw".to_owned());
        let in_url = Url::parse("https://u:p@site.example/").unwrap();
        for secret in [
            Request { is_secret: true, ..Request::get(url.clone()) },
            Request { authorization, ..Request::get(url) },
            Request::get(in_url),
        ] {
            let fetched = client.fetcher.fetch(&secret).await.unwrap();
            let case = format!("{:?} {secret:?}: {:?}", settings.trust, fetched.problems);
            assert_eq!(fetched.status == FetchStatus(200), sent, "{case}");
            assert_eq!(fetched.request.is_empty(), !sent, "{case}");
        }
    }
}

#[tokio::test]
async fn a_name_that_tls_cannot_carry_is_not_verified() {
    let server = tls_server(REPLY, false).await;
    let settings = Settings { extra_roots: server.roots.clone(), ..server.settings(Trust::Verify) };
    let fetched = Client::new(&settings).get(Url::parse("https://-a.site.example/").unwrap()).await;
    assert_eq!(fetched.status, FetchStatus::CONNECT_FAILED);
    assert_eq!(fetched.annotations().collect::<Vec<_>>(), ["tlsFailed"]);
}

#[tokio::test]
async fn a_resumed_session_is_judged_like_the_first() {
    let server = tls_server(REPLY, false).await;
    let client = Client::new(&Settings { keep_alive: false, ..server.settings(Trust::Record) });
    for _ in 0..3 {
        let fetched = client.get(Url::parse("https://site.example/").unwrap()).await;
        let tls = fetched.tls.unwrap();
        assert!(matches!(tls.certificate, Verdict::Failed(_)), "{tls}");
    }
}

#[tokio::test]
async fn tls_that_is_cut_off_is_noted() {
    let server = tls_server(UNTIL_CLOSE, true).await;
    let mut fetched =
        Client::new(&server.settings(Trust::TrustAll)).get(Url::parse("https://a.example/").unwrap()).await;
    assert_eq!((fetched.status.0, fetched.truncated), (200, None));
    assert_eq!(fetched.annotations().collect::<Vec<_>>(), ["noCloseNotify"]);
    assert_eq!(text(&mut fetched), "hello");
}

#[tokio::test]
async fn a_server_without_tls_is_no_tls_server() {
    let server = Server::start(vec![send("HTTP/1.1 400 Bad\r\n\r\n")]).await;
    // The server waits for a blank line that a handshake may never bring.
    let client = Client::new(&Settings {
        all_hosts_to: server.address.to_string(),
        tls_timeout: grange_base::Period::from_millis(100),
        ..settings()
    });
    let fetched = client.get(Url::parse("https://a.example/").unwrap()).await;
    assert_eq!(fetched.status, FetchStatus::CONNECT_FAILED);
    assert_eq!(fetched.annotations().collect::<Vec<_>>(), ["tlsFailed"]);
}

/// Answers CONNECT for `site.example` with a tunnel to `to`, and refuses others.
async fn connect_proxy(to: u16) -> (u16, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let asked = Arc::clone(&asked);
            tokio::spawn(async move {
                if !read_request(&mut tcp, &asked).await {
                    return;
                }
                let line = asked.lock().unwrap().last().cloned().unwrap_or_default();
                if !line.starts_with(b"CONNECT site.example:443 ") {
                    let _ = tcp.write_all(b"HTTP/1.1 403 No\r\n\r\n").await;
                    return;
                }
                let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                tcp.write_all(b"HTTP/1.1 200 Go on\r\nX: y\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut tcp, &mut server).await;
            });
        }
    });
    (port, seen)
}

#[tokio::test]
async fn an_http_proxy_gets_whole_urls_or_opens_a_tunnel() {
    let proxy = Server::start(vec![send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")]).await;
    let through = |port: u16| Settings { proxy: format!("http://me:secret@127.0.0.1:{port}"), ..settings() };
    let mut fetched =
        Client::new(&through(proxy.address.port())).get(Url::parse("http://a.example/p?q").unwrap()).await;
    assert_eq!((fetched.status.0, fetched.ip), (200, None));
    assert_eq!(text(&mut fetched), "hi");
    let sent = proxy.requests().remove(0);
    assert!(
        sent.starts_with("GET http://a.example/p?q HTTP/1.1\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"),
        "{sent}"
    );
    let recorded = String::from_utf8(fetched.request).unwrap();
    assert!(!recorded.contains("Proxy-Authorization"), "the archive is not told our password");
    assert_eq!(sent.replace("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n", ""), recorded);

    let server = tls_server(REPLY, false).await;
    let (port, asked) = connect_proxy(server.port).await;
    let client =
        Client::new(&Settings { extra_roots: server.roots.clone(), trust: Trust::Verify, ..through(port) });
    let mut fetched = client.get(Url::parse("https://site.example/").unwrap()).await;
    assert_eq!(fetched.status.0, 200, "{:?}", fetched.problems);
    assert_eq!(text(&mut fetched), "hello");
    assert!(fetched.request.starts_with(b"GET / HTTP/1.1\r\n"));
    assert!(String::from_utf8_lossy(&asked.lock().unwrap()[0]).contains("Proxy-Authorization: Basic"));
    let refused = client.get(Url::parse("https://other.example/").unwrap()).await;
    assert_eq!(refused.status, FetchStatus::CONNECT_FAILED);
    assert_eq!(refused.problems[0].to_string(), "proxyFailed (CONNECT was answered by HTTP/1.1 403 No)");
}

#[tokio::test]
async fn a_socks_proxy_is_told_the_name() {
    let server = Server::start(vec![send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")]).await;
    let to = server.address;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut greeting = [0; 3];
                tcp.read_exact(&mut greeting).await.unwrap();
                assert_eq!(greeting, [5, 1, 0]);
                tcp.write_all(&[5, 0]).await.unwrap();
                let mut ask = vec![0; 5 + 9 + 2];
                tcp.read_exact(&mut ask).await.unwrap();
                let code = if ask == b"\x05\x01\x00\x03\x09a.example\x00\x50" { 0 } else { 2 };
                tcp.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
                let mut server = TcpStream::connect(to).await.unwrap();
                let _ = copy_bidirectional(&mut tcp, &mut server).await;
            });
        }
    });
    let client = Client::new(&Settings { proxy: format!("socks5://127.0.0.1:{port}"), ..settings() });
    let mut fetched = client.get(Url::parse("http://a.example/").unwrap()).await;
    assert_eq!(fetched.status.0, 200, "{:?}", fetched.problems);
    assert_eq!(text(&mut fetched), "hi");
    assert!(server.requests()[0].starts_with("GET / HTTP/1.1\r\nHost: a.example\r\n"));
    let refused = client.get(Url::parse("http://b.example/").unwrap()).await;
    assert_eq!(refused.annotations().collect::<Vec<_>>(), ["proxyFailed"]);
}
