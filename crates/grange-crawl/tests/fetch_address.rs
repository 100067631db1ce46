//! Addresses that are not public are not connected to unless the operator allows them.

mod fetch_server;

use fetch_server::{Client, Server, send, settings};
use grange_crawl::FetchStatus;
use grange_crawl::fetch::Settings;
use url::Url;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

fn nothing_allowed() -> Settings {
    Settings { allow_networks: Vec::new(), ..settings() }
}

#[tokio::test]
async fn every_way_of_writing_a_private_address_is_refused_without_a_connection() {
    let server = Server::start(vec![send(OK)]).await;
    let port = server.url("/").port().unwrap();
    let client = Client::new(&nothing_allowed());
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "localhost",
        "LOCALHOST",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ] {
        let url = format!("http://{host}:{port}/");
        let fetched = client.get(Url::parse(&url).unwrap()).await;
        assert_eq!(fetched.status, FetchStatus::BLOCKED_BY_ADDRESS, "{url}: {:?}", fetched.problems);
        assert_eq!(fetched.annotations().collect::<Vec<_>>(), ["privateAddress"], "{url}");
        assert!(fetched.request.is_empty(), "{url}: nothing is sent");
        let reason = client.fetcher.refusal(&Url::parse(&url).unwrap()).await.unwrap();
        assert!(reason.contains("only the operator can allow"), "{reason}");
    }
    assert!(server.connections() == 0);
}

#[tokio::test]
async fn an_allowed_endpoint_is_one_port_and_an_allowed_network_is_all_of_it() {
    let server = Server::start(vec![send(OK)]).await;
    let other = Server::start(vec![send(OK)]).await;
    let address = server.url("/").socket_addrs(|| None).unwrap()[0];
    let endpoint = Client::new(&Settings { allow_endpoints: vec![address], ..nothing_allowed() });
    assert_eq!(endpoint.get(server.url("/")).await.status, FetchStatus(200));
    assert_eq!(endpoint.get(other.url("/")).await.status, FetchStatus::BLOCKED_BY_ADDRESS);
    let network = Client::new(&settings());
    assert_eq!(network.get(other.url("/")).await.status, FetchStatus(200));
}

#[tokio::test]
async fn a_proxy_is_not_asked_for_private_addresses() {
    let proxy = Server::start(vec![send(OK)]).await;
    let place = proxy.url("/").socket_addrs(|| None).unwrap()[0];
    let client = Client::new(&Settings { proxy: format!("http://{place}"), ..nothing_allowed() });
    for url in ["http://10.0.0.1/", "http://localhost/", "http://[fd00::1]/"] {
        let fetched = client.get(Url::parse(url).unwrap()).await;
        assert_eq!(fetched.status, FetchStatus::BLOCKED_BY_ADDRESS, "{url}");
    }
    assert!(proxy.connections() == 0);
    // Where the proxy is, the operator decides.
    let fetched = client.get(Url::parse("http://a.example/").unwrap()).await;
    assert_eq!(fetched.status, FetchStatus(200));
}
