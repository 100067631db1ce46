//! Foreign judges: curl reads what we write, and the URL standard's own library resolves our addresses.

use std::process::Output;

use tokio::process::Command;
use url::Url;

use crate::web::site::Resource;
use crate::web::{Found, Options, PASSWORD, Place, Rules, ServeOptions, Sub, USER, Web, WebServer};

async fn serve() -> WebServer {
    let web = Web::new(Options { hosts: 2, pages: 5, ..Options::default() });
    web.serve_with("127.0.0.1:0", Some("127.0.0.1:0"), ServeOptions::default()).await.unwrap()
}

/// `None`, said loudly, where there is no curl.
async fn curl(server: &WebServer, arguments: &[&str]) -> Option<Output> {
    let (plain, tls) = (server.addr().port(), server.tls_addr().unwrap().port());
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--noproxy", "*", "--max-time", "60"]);
    for host in ["h0000.test", "h0001.test"] {
        command.args(["--connect-to".to_owned(), format!("{host}:80:127.0.0.1:{plain}")]);
        command.args(["--connect-to".to_owned(), format!("{host}:443:127.0.0.1:{tls}")]);
    }
    match command.args(arguments).output().await {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            crate::skipped("curl");
            None
        }
        Err(error) => panic!("curl does not run: {error}"),
    }
}

#[tokio::test]
async fn curl_gets_what_is_expected() {
    let server = serve().await;
    let expected = server.web().expected(&Rules::default());
    for path in
        ["/", "/p/1.html", "/answers/large-chunked.bin", "/answers/trailers.bin", "/answers/http-1.0.html"]
    {
        let url = format!("http://h0000.test{path}");
        let Some(output) = curl(&server, &[&url]).await else { return };
        assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout.len() as u64, expected[&url].length, "{url}");
    }
}

#[tokio::test]
async fn curl_undoes_every_coding() {
    let server = serve().await;
    let Some(plain) = curl(&server, &["http://h0000.test/answers/gzip.html"]).await else { return };
    for (coding, name) in [("gzip", "gzip"), ("deflate", "deflate")] {
        let accept = format!("Accept-Encoding: {coding}");
        let url = format!("http://h0000.test/answers/{name}.html");
        let Some(output) = curl(&server, &["--compressed", "-H", &accept, &url]).await else { return };
        assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == plain.stdout, "{url}");
    }
}

#[tokio::test]
async fn curl_logs_in_by_digest_and_basic() {
    let server = serve().await;
    let who = format!("{USER}:{PASSWORD}");
    for (way, url) in [
        ("--digest", "http://h0000.test/digest/inside.html?a=1&b=2"),
        ("--basic", "http://h0000.test/basic/inside.html"),
    ] {
        for (who, status) in [(who.as_str(), "200"), ("reader:wrong", "401")] {
            let arguments = [way, "-u", who, "-o", "/dev/null", "-w", "%{http_code}", url];
            let Some(output) = curl(&server, &arguments).await else { return };
            assert_eq!(String::from_utf8_lossy(&output.stdout), status, "{way} {who}");
        }
    }
}

#[tokio::test]
async fn curl_speaks_tls_with_every_host() {
    let server = serve().await;
    for host in ["h0000.test", "h0001.test"] {
        let Some(plain) = curl(&server, &[&format!("http://{host}/p/1.html")]).await else { return };
        let Some(tls) = curl(&server, &["--insecure", &format!("https://{host}/p/1.html")]).await else {
            return;
        };
        assert!(tls.status.success(), "{}", String::from_utf8_lossy(&tls.stderr));
        assert_eq!(plain.stdout, tls.stdout);
        // The certificate names no authority that anybody knows.
        let Some(refused) = curl(&server, &[&format!("https://{host}/p/1.html")]).await else { return };
        assert!(!refused.status.success());
    }
}

/// Decodes the few character references that the page of addresses has.
fn decoded(attribute: &str) -> String {
    attribute.replace("&amp;", "&").replace("&#46;", ".").replace("&#x2e;", ".").replace("&#x6C;", "l")
}

fn resource(web: &Web, path: &str) -> std::sync::Arc<Resource> {
    match web.find(0, Sub::Bare, path) {
        Some(Found::Resource(resource)) => resource,
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn addresses_are_resolved_as_the_standard_says() {
    let web = Web::new(Options { hosts: 2, ..Options::default() });
    for path in ["/addresses/", "/html/based.html"] {
        let page = resource(&web, path);
        let text = String::from_utf8(page.answer.body.whole()).unwrap();
        let mut base = Url::parse(&page.url).unwrap();
        if let Some((_, rest)) = text.split_once("<base href=\"") {
            base = base.join(rest.split('"').next().unwrap()).unwrap();
        }
        let written: Vec<_> =
            text.split("<a href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let planted: Vec<_> = page.links.iter().filter(|link| link.place == Place::AHref).collect();
        assert_eq!(written.len(), planted.len());
        for (written, link) in written.iter().zip(planted) {
            let mut resolved = base.join(&decoded(written)).unwrap();
            resolved.set_fragment(None);
            assert_eq!(resolved.as_str(), link.url, "{written}");
        }
    }
}

#[test]
fn redirects_lead_where_the_standard_says() {
    let web = Web::new(Options { hosts: 2, ..Options::default() });
    let site = web.site(0);
    let mut count = 0;
    for from in site.resources().filter(|resource| (300..400).contains(&resource.answer.status)) {
        let Some(link) = from.links.iter().find(|link| link.place == Place::Location) else { continue };
        let (_, written) = from.answer.headers.iter().find(|(name, _)| *name == "Location").unwrap();
        let mut resolved = Url::parse(&from.url).unwrap().join(written).unwrap();
        resolved.set_fragment(None);
        assert_eq!(resolved.as_str(), link.url, "{}", from.url);
        count += 1;
    }
    assert!(count >= 16, "{count}");
}

#[test]
fn every_planted_address_is_in_its_standard_form() {
    let web = Web::new(Options { hosts: 2, ..Options::default() });
    for resource in web.site(1).resources() {
        for link in &resource.links {
            assert_eq!(Url::parse(&link.url).unwrap().as_str(), link.url, "on {}", resource.url);
        }
    }
}
