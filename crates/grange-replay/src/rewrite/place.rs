//! Where a capture is shown, and from there: links as the archive serves them, and back again.
//!
//! Every address that is emitted has a path of its own behind the host of its URL, and none that climbs: browsers resolve
//! against it as against any path, and without one `x` on `http://host` would become `http://x`.

use std::borrow::Cow;

use url::Url;

use super::modifier::{Modifier, split_time};
use super::shape::{Shape, as_browsers_read, shape};

/// Where one capture is replayed: `{origin}{prefix}{timestamp}{modifier}/{url}`.
#[derive(Clone, Debug)]
pub struct Place {
    origin: String,
    prefix: String,
    timestamp: String,
    modifier: Modifier,
    url: String,
    /// What relative addresses are resolved against: the capture's URL, or what its `<base>` says.
    base: Option<Url>,
}

impl Place {
    /// `origin`: scheme, host and port of the replay server as the reader's browser sees it; empty where it is not
    /// known. `prefix`: path of the collection, with a slash at both ends. `timestamp`: 14 digits. `url`: of the
    /// capture; one that is no URL is replayed too, but relative addresses in it are left alone.
    pub fn new(origin: &str, prefix: &str, timestamp: &str, modifier: Modifier, url: &str) -> Self {
        Self {
            origin: origin.trim_end_matches('/').to_owned(),
            prefix: prefix.to_owned(),
            timestamp: timestamp.to_owned(),
            modifier,
            url: url.to_owned(),
            base: Url::parse(url).ok().filter(|base| !base.cannot_be_a_base()),
        }
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Path of the collection, with a slash at both ends.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn timestamp(&self) -> &str {
        &self.timestamp
    }

    pub const fn modifier(&self) -> Modifier {
        self.modifier
    }

    /// The capture's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn base(&self) -> Option<&Url> {
        self.base.as_ref()
    }

    /// Path under which `url`, an absolute one, is replayed at this time.
    pub fn path(&self, url: &str, modifier: Modifier) -> String {
        self.path_of(&[&with_path(url)], modifier)
    }

    /// The same for a URL in pieces that has a path.
    fn path_of(&self, url: &[&str], modifier: Modifier) -> String {
        let before = [self.prefix.as_str(), &self.timestamp, modifier.as_str(), "/"];
        let len = before.iter().chain(url).map(|part| part.len()).sum();
        let mut path = String::with_capacity(len);
        before.iter().chain(url).for_each(|part| path.push_str(part));
        path
    }

    /// From here on relative addresses count from `href`, as after `<base href>`.
    pub(super) fn rebase(&mut self, href: &str) {
        let href = href.trim();
        let rebased = match &self.base {
            Some(base) => base.join(href).ok(),
            None => Url::parse(href).ok(),
        };
        if let Some(rebased) = rebased.filter(|rebased| matches!(rebased.scheme(), "http" | "https")) {
            self.base = Some(rebased);
        }
    }

    /// `text` as a link within the archive; what needs no change is returned as it is.
    pub fn link(&self, text: &str, modifier: Modifier) -> String {
        self.changed(text, modifier).unwrap_or_else(|| text.to_owned())
    }

    /// As [`Place::link`], where `None` means: leave it as it is.
    ///
    /// Relative addresses stay: the path of a replayed page mirrors its site, so they lead to the right capture by
    /// themselves, and scripts that read them see what they saw on the live page. Those that could climb out of
    /// the site (`../`) are resolved.
    pub fn changed(&self, text: &str, modifier: Modifier) -> Option<String> {
        let text = as_browsers_read(text);
        if self.is_replay_path(&text) {
            return None;
        }
        match shape(&text) {
            Shape::Kept => None,
            Shape::Absolute { scheme } => {
                if self.is_here(&text) {
                    return None;
                }
                if text.as_bytes()[..scheme].iter().any(u8::is_ascii_uppercase) {
                    let lower = text[..scheme].to_ascii_lowercase();
                    return Some(self.path(&(lower + &text[scheme..]), modifier));
                }
                Some(self.path(&text, modifier))
            }
            Shape::SchemeRelative => {
                if self.is_here(&text) {
                    return None;
                }
                let scheme = self.base.as_ref().map_or("https", Url::scheme);
                Some(self.path(&format!("{scheme}:{text}"), modifier))
            }
            Shape::Rooted => {
                let origin = self.base_origin()?;
                Some(self.path_of(&[origin, &text], modifier))
            }
            Shape::Climbing => {
                if self.is_here(&text) {
                    return None;
                }
                self.resolved(&text).map(|url| self.path(&url, modifier))
            }
            Shape::Relative => None,
        }
    }

    /// As [`Place::changed`], but relative addresses are resolved too: where the modifier must not be lost.
    pub fn changed_fully(&self, text: &str, modifier: Modifier) -> Option<String> {
        let read = as_browsers_read(text);
        match shape(&read) {
            Shape::Relative => self.resolved(&read).map(|url| self.path(&url, modifier)),
            _ => self.changed(text, modifier),
        }
    }

    /// The URL that a link within the archive stands for; `None` when it is no such link.
    pub fn original<'a>(&self, link: &'a str) -> Option<&'a str> {
        let path = link.strip_prefix(self.origin.as_str()).unwrap_or(link);
        let (_, _, url) = split_time(path.strip_prefix(self.prefix.as_str())?)?;
        Some(url)
    }

    /// Resolved against the page; `None` where that gives nothing that could be captured. Query and fragment stay as they are:
    /// browsers write them in the charset of the page.
    pub(super) fn resolved(&self, text: &str) -> Option<String> {
        let (path, tail) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
        let join = |path: &str| match &self.base {
            Some(base) => base.join(path),
            None => Url::parse(path),
        };
        let mut joined = match path.trim_start_matches(['/', '\\']) {
            // Browsers take any number of slashes for two.
            host if path.len() - host.len() > 2 => join(&format!("//{host}")),
            _ => join(path),
        }
        .ok()?;
        if !matches!(joined.scheme(), "http" | "https") {
            return None;
        }
        if tail.starts_with('?') {
            joined.set_query(None);
        }
        joined.set_fragment(None);
        Some(String::from(joined) + tail)
    }

    /// Points into the archive already.
    fn is_here(&self, text: &str) -> bool {
        if self.origin.is_empty() {
            return false;
        }
        // Scheme-relative too: `//host` of the replay server.
        let host = self.origin.find("//").map_or(self.origin.as_str(), |at| &self.origin[at..]);
        let Some(rest) = text.strip_prefix(self.origin.as_str()).or_else(|| text.strip_prefix(host)) else {
            return false;
        };
        self.is_replay_path(rest)
    }

    fn is_replay_path(&self, path: &str) -> bool {
        path.strip_prefix(self.prefix.as_str()).is_some_and(|rest| {
            split_time(rest).is_some_and(|(digits, modifier, url)| {
                (!digits.is_empty() || modifier != Modifier::Top) && url.contains(':')
            })
        })
    }

    /// Scheme, host and port of the page, without a slash at the end.
    fn base_origin(&self) -> Option<&str> {
        let base = self.base.as_ref()?;
        Some(base[..url::Position::BeforePath].trim_end_matches('/'))
    }
}

/// An absolute URL with a path: `http://host` and `http://host?x` have `/`.
pub(crate) fn with_path(url: &str) -> Cow<'_, str> {
    let Some(start) = url.find("://").map(|at| at + 3) else { return Cow::Borrowed(url) };
    let end = url[start..].find(['/', '\\', '?', '#']).map_or(url.len(), |at| start + at);
    match url.as_bytes().get(end) {
        Some(b'/' | b'\\') => Cow::Borrowed(url),
        _ => Cow::Owned([&url[..end], "/", &url[end..]].concat()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> Place {
        Place::new(
            "http://127.0.0.1:8080",
            "/coll/",
            "20200102030405",
            Modifier::Main,
            "https://example.org/a/page.html?q=1",
        )
    }

    #[test]
    fn links_lead_into_the_archive() {
        let cases = [
            ("http://other.org/x?y#z", "/coll/20200102030405im_/http://other.org/x?y#z"),
            // Without a path.
            ("http://other.org", "/coll/20200102030405im_/http://other.org/"),
            ("http://other.org?y/z", "/coll/20200102030405im_/http://other.org/?y/z"),
            ("http://other.org#z/", "/coll/20200102030405im_/http://other.org/#z/"),
            ("HTTP://other.org", "/coll/20200102030405im_/http://other.org/"),
            ("//other.org", "/coll/20200102030405im_/https://other.org/"),
            // Out of the host.
            ("http://other.org/../x", "/coll/20200102030405im_/http://other.org/x"),
            ("http://other.org/a/%2e%2E/../x?../y", "/coll/20200102030405im_/http://other.org/x?../y"),
            ("//other.org/../../x", "/coll/20200102030405im_/https://other.org/x"),
            ("http://other.org\\..\\x", "/coll/20200102030405im_/http://other.org/x"),
            // Queries are the browser's to encode.
            ("../s?q=你好#é", "/coll/20200102030405im_/https://example.org/s?q=你好#é"),
            ("../é?q=é", "/coll/20200102030405im_/https://example.org/%C3%A9?q=é"),
            ("HTTPS://Other.org/", "/coll/20200102030405im_/https://Other.org/"),
            ("//cdn.org/x.js", "/coll/20200102030405im_/https://cdn.org/x.js"),
            ("/root.png", "/coll/20200102030405im_/https://example.org/root.png"),
            ("/", "/coll/20200102030405im_/https://example.org/"),
            ("../up.png", "/coll/20200102030405im_/https://example.org/up.png"),
            ("../../../../up.png", "/coll/20200102030405im_/https://example.org/up.png"),
            ("x/../../../y", "/coll/20200102030405im_/https://example.org/y"),
            ("/../../x", "/coll/20200102030405im_/https://example.org/x"),
            ("\\\\other.org\\x", "/coll/20200102030405im_/https://other.org/x"),
            ("%2E./up.png", "/coll/20200102030405im_/https://example.org/up.png"),
            ("...", "..."),
            ("/\\other.org/x", "/coll/20200102030405im_/https://other.org/x"),
            ("///other.org/x", "/coll/20200102030405im_/https://other.org/x"),
            ("https:\\\\other.org\\x", "/coll/20200102030405im_/https://other.org/x"),
            ("https:here", "/coll/20200102030405im_/https://example.org/a/here"),
            ("  http://other.org/ ", "/coll/20200102030405im_/http://other.org/"),
            ("ht\ntp://oth\ter.org/", "/coll/20200102030405im_/http://other.org/"),
            // Left alone.
            ("img.png", "img.png"),
            ("dir/img.png?u=../x", "dir/img.png?u=../x"),
            ("?q=2", "?q=2"),
            ("", ""),
            ("#top", "#top"),
            ("data:image/png;base64,AAAA", "data:image/png;base64,AAAA"),
            ("javascript:void(0)", "javascript:void(0)"),
            ("mailto:a@b.c", "mailto:a@b.c"),
            ("blob:https://example.org/1", "blob:https://example.org/1"),
            ("{{ url }}", "{{ url }}"),
            // There already.
            ("/coll/20200102030405im_/http://other.org/", "/coll/20200102030405im_/http://other.org/"),
            ("http://127.0.0.1:8080/coll/2020/http://a/", "http://127.0.0.1:8080/coll/2020/http://a/"),
            ("//127.0.0.1:8080/coll/2020mp_/http://a/", "//127.0.0.1:8080/coll/2020mp_/http://a/"),
            // Not there, though it looks alike.
            ("/coll/about", "/coll/20200102030405im_/https://example.org/coll/about"),
            ("http://127.0.0.1:8080/x", "/coll/20200102030405im_/http://127.0.0.1:8080/x"),
        ];
        for (text, link) in cases {
            assert_eq!(place().link(text, Modifier::Image), link, "{text}");
        }
    }

    #[test]
    fn links_lead_back_to_their_urls() {
        let place = place();
        let link = place.link("http://other.org/x", Modifier::Main);
        assert_eq!(place.original(&link), Some("http://other.org/x"));
        assert_eq!(place.original(&format!("http://127.0.0.1:8080{link}")), Some("http://other.org/x"));
        assert_eq!(place.original("/else/2020mp_/http://a/"), None);
        assert_eq!(place.original("img.png"), None);
    }

    #[test]
    fn a_base_moves_relative_addresses() {
        let mut place = place();
        place.rebase("/deep/er/");
        assert_eq!(place.link("../x", Modifier::Main), "/coll/20200102030405mp_/https://example.org/deep/x");
        place.rebase("http://cdn.org/");
        assert_eq!(place.link("/x", Modifier::Main), "/coll/20200102030405mp_/http://cdn.org/x");
        place.rebase("javascript:alert(1)");
        assert_eq!(place.link("/x", Modifier::Main), "/coll/20200102030405mp_/http://cdn.org/x");
    }

    #[test]
    fn a_capture_without_a_url_leaves_relative_addresses_alone() {
        let place = Place::new("", "/c/", "20200102030405", Modifier::Main, "urn:isbn:1");
        assert_eq!(place.link("/x", Modifier::Main), "/x");
        assert_eq!(place.link("../x", Modifier::Main), "../x");
        assert_eq!(place.link("http://a/", Modifier::Main), "/c/20200102030405mp_/http://a/");
        assert_eq!(place.link("http://a/../x", Modifier::Main), "/c/20200102030405mp_/http://a/x");
    }

    /// Addresses as pages have them.
    fn address() -> impl Strategy<Value = String> {
        "(https?:)?//[a-c]{1,3}[.]org(:81)?([/\\\\][a-c./%2eé]{0,8})?([?][a-c=/.]{0,5})?(#[a-c/]{0,3})?\
         |/?[a-c./é]{1,8}([?][a-c=/.]{0,5})?|[?][a-c=/.é]{0,5}|#?"
    }

    proptest! {
        #[test]
        fn rewriting_twice_changes_nothing_more(text in "[ -~\\PC]{0,40}|https?://[a-z/.:@?#\\\\]{0,20}|[./\\\\a-z]{0,12}") {
            let place = place();
            let once = place.link(&text, Modifier::Image);
            prop_assert_eq!(place.link(&once, Modifier::Image), once);
        }

        /// As browsers go: from the page to what it links to, and from there to `x`; live and in the archive.
        #[test]
        fn what_stands_on_a_linked_page_is_found_as_on_the_live_web(
            page in "https?://h[.]org(/[a-c./]{0,8})?([?]q=/../z)?",
            base in proptest::option::of(address()),
            link in address(),
            next in proptest::sample::select(vec!["x", "../x", "/x", "?x", "./x/y", "//o.org/x"]),
        ) {
            // Whoever asks for a page with dots for folders is sent to the page without them first.
            let folders = page.split('?').next().unwrap_or_default();
            prop_assume!(!folders.split('/').any(|folder| folder == "." || folder == ".."));
            let mut place = Place::new("http://r.example", "/coll/", "20200102030405", Modifier::Main, &page);
            let shown = Url::parse("http://r.example").unwrap().join(&place.path(&page, Modifier::Main)).unwrap();
            let live = Url::parse(&page).unwrap();
            let (mut live_base, mut archive_base) = (live, shown);
            if let Some(base) = &base {
                let emitted = place.link(base, Modifier::Main);
                place.rebase(base);
                // A base that is none does not count, here and there.
                if let (Ok(live), Ok(archive)) = (live_base.join(base), archive_base.join(&emitted)) {
                    (live_base, archive_base) = (live, archive);
                }
            }
            let Ok(live) = live_base.join(&link) else { return Ok(()) };
            // No name server knows a host of dots, and no path can hold it.
            let dots = |url: &Url| url.host_str().is_none_or(|host| host.bytes().all(|byte| byte == b'.'));
            prop_assume!(!dots(&live) && !dots(&live_base));
            let archive = archive_base.join(&place.link(&link, Modifier::Main)).unwrap();
            // What stands on the next page is resolved by the rewriter there, as here.
            let there = Place::new("http://r.example", "/coll/", "20200102030405", Modifier::Main, live.as_str());
            let live = live.join(next).unwrap();
            let archive = archive.join(&there.link(next, Modifier::Main)).unwrap();
            let found = place.original(archive.as_str()).and_then(|url| Url::parse(url).ok());
            prop_assert_eq!(found, Some(live), "{} {:?} {} {}", page, base, link, next);
        }
    }
}
