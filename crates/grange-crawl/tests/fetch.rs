//! Fetching from servers that behave.

mod fetch_server;

use fetch_server::{Act, Client, Server, send, settings, text};
use grange_crawl::FetchStatus;
use warc::{Algorithm, Digest};

#[tokio::test]
async fn an_answer_is_kept_as_it_came() {
    let wire = "HTTP/1.1 200 Fine\r\nContent-Type: Text/HTML; charset=x\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\nhello";
    let server = Server::start(vec![send(wire), Act::Hang]).await;
    let client = Client::new(&settings());
    let mut fetched = client.get(server.url("/a?b")).await;
    assert_eq!(fetched.status, FetchStatus(200));
    assert_eq!(fetched.response.bytes(), Some(wire.as_bytes()));
    assert_eq!(fetched.head_len, wire.len() - 5);
    assert_eq!(fetched.block_digest, Digest::of(Algorithm::Sha1, wire.as_bytes()));
    assert_eq!(fetched.payload_digest, Digest::of(Algorithm::Sha1, b"hello"));
    assert_eq!((fetched.payload_length, fetched.wire_length), (5, wire.len() as u64));
    assert_eq!((fetched.ip, fetched.truncated), (Some(server.address.ip()), None));
    assert_eq!(fetched.annotations().count(), 0);
    assert_eq!(fetched.mime().as_deref(), Some("text/html"));
    assert_eq!(fetched.validators().unwrap().etag.as_deref(), Some("\"1\""));
    assert!(fetched.first_byte.unwrap() <= fetched.duration);
    assert_eq!(String::from_utf8_lossy(&fetched.request), server.requests()[0]);
    assert!(
        server.requests()[0]
            .contains("User-Agent: Mozilla/5.0 (compatible; grange/0.1; +http://operator.example/crawl)")
    );
    assert_eq!(text(&mut fetched), "hello");
}
