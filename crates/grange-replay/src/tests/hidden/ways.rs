//! The ways out: how each is asked, and whether its answer shows a capture.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use grange_index::Index;
use grange_index::access::{Rule, RuleSet};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use super::web::{Captured, Reader, content, set_accounts};
use crate::cdx::Options;
use crate::collection::{Collection, Collections};
use crate::proxy::{self, Proxy};
use crate::tests::Bed;

/// Ways that show a capture whenever they show it to a reader whom no rule concerns.
pub(super) const WAYS: [&str; 41] = [
    "replay",
    "head",
    "range",
    "rewritten",
    "as im_",
    "as js_",
    "as if_",
    "form",
    "framed",
    "timegate",
    "timemap link",
    "timemap json",
    "timemap cdxj",
    "calendar",
    "list",
    "urls",
    "start",
    "ia",
    "ia of one",
    "ia prefix",
    "ia domain",
    "ia urn",
    "ia documentation",
    "pywb",
    "pywb prefix",
    "pywb resolved",
    "pywb link",
    "outback",
    "outback prefix",
    "outback keys",
    "access point",
    "check",
    "xml",
    "xml prefix",
    "warc",
    "warc prefix",
    "warc documentation",
    "wacz",
    "wacz domain",
    "proxy",
    "file",
];

/// Ways whose answer depends on what else is visible, such as the capture nearest to a time: they must show nothing hidden.
pub(super) const DEPENDENT_WAYS: [&str; 13] = [
    "near",
    "near framed",
    "proxy near",
    "ia pages",
    "ia paged index",
    "ia first",
    "ia last",
    "ia collapsed",
    "pywb pages",
    "pywb paged index",
    "pywb near",
    "record",
    "metadata",
];

/// Ways that do not depend on a URL, or know only one spelling of it.
const WITHOUT_FORMS: [&str; 9] = [
    "start",
    "file",
    "record",
    "metadata",
    "ia urn",
    "ia documentation",
    "warc documentation",
    "outback keys",
    "ia of one",
];

/// Ways of the proxy port, where nobody is signed in.
pub(super) fn is_proxied(way: &str) -> bool {
    ["proxy", "proxy near", "file", "record", "metadata"].contains(&way)
}

/// Ways whose request names the time of the capture, so that the answer may repeat it.
pub(super) fn names_time(way: &str) -> bool {
    ["replay", "head", "range", "rewritten", "as im_", "as js_", "as if_", "form", "framed", "check", "proxy"]
        .contains(&way)
}

/// Ways that read the body of a capture.
pub(super) fn needs_body(way: &str) -> bool {
    ["replay", "head", "range", "rewritten", "as im_", "as js_", "as if_", "proxy"].contains(&way)
}

/// The ways of spelling a URL that have one key; one where no URL is asked for.
pub(super) fn forms(way: &str, url: &str) -> Vec<String> {
    let Some(rest) = url.strip_prefix("http://") else { return vec![url.to_owned()] };
    if WITHOUT_FORMS.contains(&way) {
        return vec![url.to_owned()];
    }
    let rest = if way == "form" { rest.split('?').next().unwrap_or_default() } else { rest };
    let bare = rest.strip_prefix("www.").unwrap_or(rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    vec![
        format!("http://{rest}"),
        format!("https://{rest}"),
        format!("http://www.{bare}"),
        format!("http://{host}:80/{path}"),
        format!("HTTP://{}/{path}", host.to_uppercase()),
        format!("http://{host}/{}", path.to_uppercase()),
        format!("http://{host}/{}", path.replacen("film", "%66ilm", 1).replacen("shared", "sh%61red", 1)),
    ]
}

/// What a way out gave.
pub(super) struct Given {
    pub(super) status: u16,
    /// The headers that say which capture this is.
    named: String,
    headers: String,
    pub(super) text: String,
}

impl Given {
    async fn of(response: Response<Body>, read: fn(&[u8]) -> String) -> Self {
        let status = response.status().as_u16();
        let header = |headers: &HeaderMap, name: &str| {
            headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
        };
        let headers = response.headers();
        let named = format!("{} {}", header(headers, "memento-datetime"), header(headers, "location"));
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes()))
        };
        let headers = headers.iter().map(line).collect();
        let text = read(&response.into_body().collect().await.unwrap().to_bytes());
        Self { status, named, headers, text }
    }

    /// Everything that leaves.
    pub(super) fn all(&self) -> String {
        format!("{}\n{}", self.headers, self.text)
    }

    /// Whether it shows a capture: each has a day of its own.
    pub(super) fn shows(&self, way: &str, one: &Captured) -> bool {
        let day = one.day;
        let digits = format!("202001{day:02}000000");
        if self.status >= 400 {
            return false;
        }
        match way {
            "replay" | "head" | "range" | "rewritten" | "as im_" | "as js_" | "as if_" | "form" | "proxy" => {
                self.named.contains(&format!("{day:02} Jan 2020 00:00:00 GMT"))
                    || self.named.contains(&digits)
            }
            "check" => self.text.contains("\"allowed\":true"),
            "framed" | "timegate" => {
                self.status == 200 && self.text.contains(&digits) || self.named.contains(&digits)
            }
            // Of two records in one place the first is meant.
            "record" => self.status == 200 && day != 13,
            "metadata" => self.text.contains(one.url) && one.documentation,
            _ => marks(day).iter().any(|mark| self.text.contains(mark)),
        }
    }
}

/// The ways in which answers write the day of a capture.
pub(super) fn marks(day: u8) -> [String; 4] {
    [
        format!("202001{day:02}000000"),
        format!("2020-01-{day:02}"),
        format!("{day:02} Jan 2020"),
        format!(">{day} January 2020"),
    ]
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn unpacked(bytes: &[u8]) -> String {
    let mut plain = Vec::new();
    let _ = flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain);
    text(&plain)
}

/// The records of a WACZ, whose first member is stored as it is, and everything else in it.
fn wacz_records(bytes: &[u8]) -> String {
    let start = bytes.windows(3).position(|three| three == [0x1f, 0x8b, 8]).unwrap_or(bytes.len());
    unpacked(&bytes[start..]) + &text(bytes)
}

fn encoded(url: &str) -> String {
    percent_encoding::utf8_percent_encode(url, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A collection served on both ports.
pub(super) struct Served {
    site: Router,
    proxy: Proxy,
}

impl Served {
    pub(super) fn new(bed: &Bed, index: &Arc<Index>, rules: &[Value]) -> Self {
        let collections = Collections::default();
        let collection = Collection::new("local", index.clone(), bed.collection.holdings.clone());
        let rules: Vec<Rule> =
            rules.iter().map(|rule| serde_json::from_value(rule.clone()).unwrap()).collect();
        collection.set_rules(RuleSet::from(rules));
        collections.add(collection);
        set_accounts(&collections);
        let options =
            Options { user_header: Some(HeaderName::from_static("x-reader")), ..Options::default() };
        let site = crate::routes(collections.clone(), options.clone());
        let proxy = Proxy::open(collections, options, &bed.folder.path().join("secrets")).unwrap();
        Self { site, proxy }
    }

    /// Asks on the replay port from this machine.
    pub(super) async fn get(&self, path: &str, reader: Reader) -> Given {
        self.send(Request::get(path).body(Body::empty()).unwrap(), reader, text).await
    }

    async fn send(&self, mut request: Request<Body>, reader: Reader, read: fn(&[u8]) -> String) -> Given {
        request.headers_mut().insert("host", "h".parse().unwrap());
        if let Some(name) = reader.name() {
            request.headers_mut().insert("x-reader", name.parse().unwrap());
        }
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 9))));
        Given::of(self.site.clone().oneshot(request).await.unwrap(), read).await
    }

    /// Asks a way out for a capture. `url` is a form of its URL.
    pub(super) async fn ask(
        &self,
        way: &str,
        one: &Captured,
        offset: u64,
        url: &str,
        reader: Reader,
    ) -> Given {
        let time = format!("202001{:02}000000", one.day);
        let (file, encoded) = (one.file, encoded(url));
        if is_proxied(way) {
            let target = match way {
                "proxy" | "proxy near" => url.to_owned(),
                "file" => format!("http://viewerproxy.invalid/getFile?arcFile={file}"),
                "record" => format!("http://viewerproxy.invalid/getRecord?arcFile={file}&arcOffset={offset}"),
                _ => "http://viewerproxy.invalid/getMetadata?jobID=7".to_owned(),
            };
            let day = if way == "proxy near" { 31 } else { one.day };
            let date = format!("{day:02} Jan 2020 00:00:00 GMT");
            let response = proxy::tests::response(&self.proxy, &target, &date).await;
            return Given::of(response, if way == "file" { unpacked } else { text }).await;
        }
        let path = match way {
            "replay" | "head" | "range" => format!("/local/{time}id_/{url}"),
            "rewritten" | "form" => format!("/local/{time}mp_/{url}"),
            "as im_" => format!("/local/{time}im_/{url}"),
            "as js_" => format!("/local/{time}js_/{url}"),
            "as if_" => format!("/local/{time}if_/{url}"),
            "framed" => format!("/local/{time}/{url}"),
            "near" => format!("/local/20200131000000id_/{url}"),
            "near framed" => format!("/local/20200131000000/{url}"),
            "timegate" => format!("/local/{url}"),
            "timemap link" => format!("/local/timemap/link/{url}"),
            "timemap json" => format!("/local/timemap/json/{url}"),
            "timemap cdxj" => format!("/local/timemap/cdxj/{url}"),
            "calendar" => format!("/local/*/{url}"),
            "list" if url.contains('?') => format!("/local/2020*/{url}&grange-view=list"),
            "list" => format!("/local/2020*/{url}?grange-view=list"),
            "urls" => format!("/local/*/{url}*"),
            "start" => "/local/".to_owned(),
            "ia" => format!("/local/cdx/ia?url={encoded}"),
            "ia of one" => format!("/cdx/ia?url={encoded}"),
            "ia prefix" => {
                format!("/local/cdx/ia?url={encoded}&matchType=prefix&showResumeKey=true&limit=99")
            }
            "ia domain" => format!("/local/cdx/ia?url={encoded}&matchType=domain"),
            "ia urn" => "/local/cdx/ia?url=urn:*".to_owned(),
            "ia documentation" => "/local/cdx/ia?url=metadata:*".to_owned(),
            "ia pages" => format!("/local/cdx/ia?url={encoded}&matchType=prefix&showNumPages=true"),
            "ia paged index" => {
                format!("/local/cdx/ia?url={encoded}&matchType=prefix&showPagedIndex=true")
            }
            "ia first" => {
                format!("/local/cdx/ia?url={encoded}&matchType=prefix&showResumeKey=true&limit=1")
            }
            "ia last" => format!("/local/cdx/ia?url={encoded}&matchType=prefix&limit=-1"),
            "ia collapsed" => format!(
                "/local/cdx/ia?url={encoded}&matchType=prefix&collapse=urlkey&showDupeCount=true&showSkipCount=true\
                 &lastSkipTimestamp=true&resolveRevisits=true"
            ),
            "pywb" => format!("/local/cdx?url={encoded}&allowFuzzy=0"),
            "pywb prefix" => format!("/local/cdx?url={encoded}&matchType=prefix"),
            "pywb link" => format!("/local/cdx?url={encoded}&allowFuzzy=0&output=link"),
            "pywb resolved" => format!("/local/cdx?url={encoded}&allowFuzzy=0&resolveRevisits=true"),
            "pywb pages" => format!("/local/cdx?url={encoded}&matchType=prefix&showNumPages=true"),
            "pywb paged index" => {
                format!("/local/cdx?url={encoded}&matchType=prefix&showPagedIndex=true")
            }
            "pywb near" => format!("/local/cdx?url={encoded}&closest=20200131000000&limit=1"),
            "outback" => format!("/local?url={encoded}"),
            "outback prefix" => format!("/local?url={encoded}&matchType=prefix"),
            "outback keys" => "/local?urlkey=!&matchType=range".to_owned(),
            "access point" => format!("/local/ap/x?url={encoded}"),
            "check" => format!("/local/ap/x/check?url={encoded}&timestamp={time}"),
            "xml" => format!("/local?q=type:urlquery+url:{encoded}"),
            "xml prefix" => format!("/local?q=type:prefixquery+url:{encoded}"),
            "warc" => format!("/local/export/warc?url={encoded}"),
            "warc prefix" => format!("/local/export/warc?url={encoded}&matchType=prefix"),
            "warc documentation" => "/local/export/warc?url=metadata:&matchType=prefix".to_owned(),
            "wacz" => format!("/local/export/wacz?url={encoded}"),
            "wacz domain" => format!("/local/export/wacz?url={encoded}&matchType=domain"),
            way => panic!("{way} is not a way out"),
        };
        let request = match way {
            "head" => Request::head(path).body(Body::empty()),
            "range" => Request::get(path).header("range", "bytes=0-3").body(Body::empty()),
            "form" => Request::post(path)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(Body::from("q=1")),
            _ => Request::get(path).body(Body::empty()),
        };
        let read = match way.split(' ').next() {
            Some("warc") => unpacked,
            Some("wacz") => wacz_records,
            _ => text,
        };
        self.send(request.unwrap(), reader, read).await
    }
}

/// Bodies that nobody may see where all captures that have them are hidden.
pub(super) fn contents(hidden: &[&Captured], visible: &[&Captured]) -> Vec<String> {
    // A revisit does not open the body of its original.
    let own = visible.iter().filter(|one| one.original.is_none());
    let shown: Vec<String> = own.map(|one| content(one.day)).collect();
    hidden.iter().map(|one| content(one.day)).filter(|content| !shown.contains(content)).collect()
}
