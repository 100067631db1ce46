//! Responses whose end can be read in two ways, and bytes that nobody asked for: whatever a server sends, the body
//! of the next URL is its own.
#![cfg(target_os = "linux")]

mod fetch_server;

use std::net::{SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex};

use fetch_server::{Act, Client, Server, read_request, send, settings, text};
use grange_crawl::fetch::{Method, Request, Settings, Trust};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use url::Url;

/// Responses after which a connection may or may not be used again.
fn first_responses() -> Vec<(&'static str, Vec<u8>)> {
    let long = "x".repeat(20_000);
    let wrong = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong";
    let mut responses: Vec<(&str, Vec<u8>)> = [
        ("length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"),
        ("chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n"),
        (
            "length and chunked",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        ),
        ("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nfirst"),
        ("a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nfirst"),
        ("a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nfirst"),
        ("identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nfirst"),
        (
            "two codings",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        ),
        (
            "chunked in HTTP/1.0",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        ),
        ("204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
        ("204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nwrong"),
        ("304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        ("304 with a body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nwrong"),
        ("a body longer than its length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirstwrong"),
        (
            "bytes after the last chunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\nwrong",
        ),
        ("bytes before the headers", "wrong\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"),
        (
            "an interim response",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        ),
        ("bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 5\n\nfirst"),
        ("a space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nfirst"),
    ]
    .into_iter()
    .map(|(name, response)| (name, response.as_bytes().to_vec()))
    .collect();
    // The first read does not reach the end of the body, and the second one stops there.
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{long}", long.len());
    responses.push(("a second response behind a long one", format!("{long}{wrong}").into_bytes()));
    responses.push(("a second response behind a short one", wrong.repeat(2).into_bytes()));
    responses
}

/// What arrives on the idle connection, before the next request.
const LATE: [&str; 4] = [
    "",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong",
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 5\r\n\r\nwrong",
    "w",
];

/// The first request of the first connection gets `first`, then `late` when the test asks for it. Every other request
/// gets a response that names its path.
struct Script {
    first: Vec<u8>,
    late: &'static [u8],
    go: Notify,
    delivered: Notify,
}

async fn start(script: Arc<Script>, tls: Option<TlsAcceptor>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut script = Some(script);
        while let Ok((tcp, _)) = listener.accept().await {
            let (script, tls) = (script.take(), tls.clone());
            tokio::spawn(async move {
                let ends = (tcp.peer_addr().unwrap(), tcp.local_addr().unwrap());
                match tls {
                    None => converse(tcp, script, ends).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(tcp).await {
                            converse(stream, script, ends).await;
                        }
                    }
                }
            });
        }
    });
    port
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    mut script: Option<Arc<Script>>,
    (client, server): (SocketAddr, SocketAddr),
) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    while read_request(&mut stream, &seen).await {
        if let Some(script) = script.take() {
            let _ = stream.write_all(&script.first).await.and(stream.flush().await);
            script.go.notified().await;
            if !script.late.is_empty() {
                let _ = stream.write_all(script.late).await.and(stream.flush().await);
                while is_open(client, server) == Some(0) {
                    tokio::task::yield_now().await;
                }
            }
            script.delivered.notify_one();
            continue;
        }
        let request = String::from_utf8(seen.lock().unwrap().pop().unwrap()).unwrap();
        let own = format!("own {}", request.split(' ').nth(1).unwrap());
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{own}", own.len());
        if stream.write_all(response.as_bytes()).await.and(stream.flush().await).is_err() {
            return;
        }
    }
}

/// How many bytes wait unread at the end of a connection that is at `here`; none if it is closed.
fn is_open(here: SocketAddr, there: SocketAddr) -> Option<u64> {
    const ESTABLISHED: &str = "01";
    let hex = |address: SocketAddr| match address {
        SocketAddr::V4(v4) => {
            let v4: SocketAddrV4 = v4;
            format!("{:08X}:{:04X}", u32::from_ne_bytes(v4.ip().octets()), v4.port())
        }
        SocketAddr::V6(_) => unreachable!("the listener is at 127.0.0.1"),
    };
    let (here, there) = (hex(here), hex(there));
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    // The table may have tens of thousands of lines, of connections that others closed.
    table.lines().filter(|line| line.contains(&here)).find_map(|line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let ours = columns.len() > 4 && (columns[1], columns[2]) == (&here, &there);
        (ours && columns[3] == ESTABLISHED)
            .then(|| u64::from_str_radix(columns[4].split(':').nth(1).unwrap(), 16).unwrap())
    })
}

fn acceptor() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["site.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(made.cert.der().to_vec())], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn the_body_of_the_next_url_is_its_own() {
    let acceptor = acceptor();
    for tls in [None, Some(&acceptor)] {
        for (name, first) in first_responses() {
            for late in LATE {
                let script = Arc::new(Script {
                    first: first.clone(),
                    late: late.as_bytes(),
                    go: Notify::new(),
                    delivered: Notify::new(),
                });
                let port = start(Arc::clone(&script), tls.cloned()).await;
                let scheme = if tls.is_some() { "https" } else { "http" };
                let url = |path: &str| Url::parse(&format!("{scheme}://127.0.0.1:{port}{path}")).unwrap();
                let client = Client::new(&Settings { trust: Trust::TrustAll, ..settings() });
                assert!(client.get(url("/a")).await.status.is_success());
                script.go.notify_one();
                script.delivered.notified().await;
                for path in ["/b", "/c"] {
                    let mut next = client.get(url(path)).await;
                    let got = (next.status.0, text(&mut next));
                    assert_eq!(got, (200, format!("own {path}")), "{scheme}, {name}, then {late:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_sound_connection_is_used_again_over_tls_too() {
    let acceptor = acceptor();
    for (tls, scheme) in [(None, "http"), (Some(acceptor), "https")] {
        let script = Script {
            first: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst".to_vec(),
            late: b"",
            go: Notify::new(),
            delivered: Notify::new(),
        };
        script.go.notify_one();
        let port = start(Arc::new(script), tls).await;
        let client = Client::new(&Settings { trust: Trust::TrustAll, ..settings() });
        for (path, reused) in [("/a", false), ("/b", true), ("/c", true)] {
            let fetched =
                client.get(Url::parse(&format!("{scheme}://127.0.0.1:{port}{path}")).unwrap()).await;
            assert_eq!((fetched.status.0, fetched.reused), (200, reused), "{scheme} {path}");
        }
    }
}

#[tokio::test]
async fn a_response_that_crosses_the_request_is_asked_for_again() {
    let first = || send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst");
    let own = || send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown");
    let timeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 5\r\n\r\nwrong";
    for crossing in [
        vec![send(timeout), Act::Close],
        vec![send("wrong\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")],
        vec![Act::Send(b"wrong ".repeat(2000)), Act::Close],
    ] {
        let named = format!("{crossing:?}");
        let acts = [vec![first(), Act::Next], crossing].concat();
        let server = Server::with(move |n| if n == 0 { acts.clone() } else { vec![own()] }).await;
        let client = Client::new(&settings());
        client.get(server.url("/a")).await;
        let mut next = client.get(server.url("/b")).await;
        assert_eq!(
            (next.status.0, text(&mut next), next.reused),
            (200, "own".to_owned(), false),
            "{named:.99}"
        );
        assert_eq!(server.connections(), 2);
    }
    // On a connection of its own it is the response.
    let server = Server::start(vec![send(timeout)]).await;
    assert_eq!(Client::new(&settings()).get(server.url("/")).await.status.0, 408);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_cannot_be_repeated_gets_a_connection_of_its_own() {
    let reply = || send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    let server = Server::start(vec![reply(), Act::Next, reply()]).await;
    let client = Client::new(&settings());
    client.get(server.url("/")).await;
    let post = Request {
        method: Method::Post { content_type: "text/plain".to_owned(), body: b"form".to_vec() },
        ..Request::get(server.url("/login"))
    };
    let fetched = client.fetcher.fetch(&post).await.unwrap();
    assert_eq!((fetched.status.0, fetched.reused, server.connections()), (200, false, 2));
    // Its connection serves others afterwards.
    assert!(client.get(server.url("/")).await.reused);
}
