//! What must hold for the links of any bytes.

use grange_crawl::extract::{Body, Document, Guess, Role, Settings, extract};
use url::Url;

/// Whole and from a reader the links are the same, absolute, without fragments, each once, and within the limits.
pub fn check(bytes: &[u8], content_types: &[&str]) {
    let url = Url::parse("http://example.com/dir/page.html").expect("a URL");
    for javascript in [Guess::Cautious, Guess::Eager] {
        let settings = Settings { javascript, text: true, max_links: 100, ..Settings::default() };
        for content_type in content_types {
            let content_type = Some(*content_type);
            for role in [Role::Any, Role::Sitemap] {
                let body = Body::Bytes(bytes);
                let whole =
                    extract(Document { url: &url, content_type, headers: &[], role, body }, &settings);
                let mut reader = bytes;
                let body = Body::Read(&mut reader);
                let read = extract(Document { url: &url, content_type, headers: &[], role, body }, &settings);
                assert_eq!(whole, read);
                assert!(whole.links.len() <= settings.max_sitemap_links);
                for (index, link) in whole.links.iter().enumerate() {
                    assert!(matches!(link.url.scheme(), "http" | "https") && link.url.fragment().is_none());
                    assert!(link.url.as_str().len() <= settings.max_url_length);
                    assert!(whole.links[..index].iter().all(|other| other.url != link.url));
                }
            }
        }
    }
}
