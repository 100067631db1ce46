//! The `fetch` part of a template: who we say we are, how long we wait, how much we take.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use grange_base::{AddressPolicy, Network, Period, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::overrides::{Overrides, parse_place};

/// How documents are fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What we call ourselves. `{contact_url}` is filled in; without it the text itself must hold a web or mail
    /// address, for whoever is bothered by the crawl must be able to find the operator.
    pub user_agent: String,

    /// The page that tells web masters who crawls, why, and how to reach them. Needed by `{contact_url}`.
    pub contact_url: String,

    /// A mail address of the operator for the `From` header; empty sends none.
    pub from: String,

    /// Further request headers by name, such as `Accept-Language`, sent to every host and stored with every request: not
    /// the place of a secret. Refused are `Authorization`, `Proxy-Authorization` and `Cookie`, headers that the crawler
    /// writes itself (`User-Agent`, `Accept`, `Referer` …), those of the connection (`Host`, `Content-Length`, `Upgrade` …),
    /// and those that ask for a part of a page (`Range`, `If-…`).
    pub headers: BTreeMap<String, String>,

    /// The value of `Accept`; empty sends none. `*/*`: we keep whatever there is.
    pub accept: String,

    /// The content encodings offered: `gzip`, `deflate`, `br`, `zstd`. Compressed pages are what most visitors
    /// got, and they cost the site a quarter of the traffic.
    pub accept_encodings: Vec<ContentEncoding>,

    /// The version named in requests. `1.0` is for servers that fail with the other.
    pub http_version: HttpVersion,

    /// The longest wait for a TCP connection to one address. Far hosts answer within seconds or not at all.
    pub connect_timeout: Period,

    /// The longest TLS handshake.
    pub tls_timeout: Period,

    /// The longest wait for the first byte of an answer. Longer than `idle_timeout`: pages are computed.
    pub first_byte_timeout: Period,

    /// The longest silence in the middle of an answer.
    pub idle_timeout: Period,

    /// The longest fetch in all, from name lookup to last byte; bounds servers that drip. 20 minutes, as in
    /// Heritrix: enough for 1 GB at 1 MB/s.
    pub total_timeout: Period,

    /// The longest response kept, headers and body; a longer one is cut and marked with `WARC-Truncated: length`.
    /// `0B` is no limit. 10 GiB, as much as `total_timeout` allows at 9 MB/s: longer than nearly all files on the web, and
    /// an end for streams that have none.
    pub max_bytes: Size,

    /// How much of an answer stays in memory; longer ones go to a file in the scratch folder. At least 128 KiB,
    /// twice the longest head. With 500 fetches at once the default is at most 250 MB.
    pub memory_bytes: Size,

    /// The space that stays free on the disk of the scratch folder, beside the room to pack the responses in it: with less,
    /// a response longer than `memory_bytes` is cut and marked with `WARC-Truncated: disk`. `0B` uses the disk up. 500 MB,
    /// half of `engine.min_free`, so that a crawl pauses before it cuts.
    pub scratch_min_free: Size,

    /// The most bytes per second of one fetch; `0B` is no limit.
    pub max_rate: Size,

    /// What is made of certificates that cannot be verified.
    pub trust: Trust,

    /// A PEM file of further certificate authorities, for sites with authorities of their own. Empty for none.
    pub extra_roots: PathBuf,

    /// `http://[user:password@]host:port` or `socks5://host:port`; empty connects directly. Through a proxy, names
    /// are looked up by it, and the addresses of servers are not known.
    pub proxy: String,

    /// Which addresses of a host are used.
    pub addresses: AddressChoice,

    /// The local address connections start from; empty leaves it to the system.
    pub bind: Option<IpAddr>,

    /// Whether connections are used again for the next request to the same host. It spares the site and us a
    /// handshake per document.
    pub keep_alive: bool,

    /// How long an idle connection is kept. Servers close them after 5 to 75 s; a shorter time loses less than a
    /// connection found closed.
    pub keep_alive_idle: Period,

    /// How many idle connections are kept in all; each is a file handle and up to 20 KiB.
    pub keep_alive_max: u32,

    /// Whether cookies are kept and sent back.
    pub cookies: bool,

    /// How names become addresses.
    pub dns: DnsSettings,

    /// `HOST:PORT:ADDR` sends requests for HOST:PORT to ADDR, as curl's `--resolve` does; `*` for PORT means every
    /// port. ADDR is `ip`, `ip:port` or `[ip6]:port`.
    pub resolve: Vec<String>,

    /// Sends every request to this one `ip` or `ip:port`; empty for none. For tests on a synthetic web.
    pub all_hosts_to: String,

    /// Networks beside the public ones that may be reached, such as `10.0.0.0/8`. Any page can lead to an address; without
    /// an entry here loopback, private, link-local and other special addresses are refused with status -5005.
    pub allow_networks: Vec<Network>,

    /// Single addresses with their port that may be reached although they are not public. `grange crawl` enters those of
    /// the seeds that it is given.
    #[schemars(with = "Vec<String>")]
    pub allow_endpoints: Vec<SocketAddr>,

    /// Whether an order may add seeds at addresses that are not public, as `grange crawl control DIR add-seeds` does. Set by
    /// `grange crawl`, whose operator gives the orders; in crawls of a node the operator's settings decide.
    pub allow_ordered_endpoints: bool,
}

/// A content encoding that can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentEncoding {
    Gzip,
    Deflate,
    Br,
    Zstd,
}

impl ContentEncoding {
    pub(super) const fn name(self) -> &'static str {
        match self {
            ContentEncoding::Gzip => "gzip",
            ContentEncoding::Deflate => "deflate",
            ContentEncoding::Br => "br",
            ContentEncoding::Zstd => "zstd",
        }
    }
}

/// The HTTP version of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpVersion {
    #[serde(rename = "1.0")]
    V10,
    #[default]
    #[serde(rename = "1.1")]
    V11,
}

/// What is made of certificates that cannot be verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// Such a server counts as one that cannot be reached.
    Verify,
    /// The page is fetched, and what was wrong is written beside it. An archive keeps what visitors could see,
    /// and visitors click such warnings away.
    #[default]
    Record,
    /// Nothing is checked.
    TrustAll,
}

/// Which addresses of a host are used, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressChoice {
    /// IPv4 if there is any, else IPv6. Every crawl machine has IPv4.
    #[default]
    Ipv4First,
    Ipv6First,
    Ipv4Only,
    Ipv6Only,
}

/// How names become addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DnsSettings {
    /// Name servers as `ip` or `ip:port`. Without any, those of the machine are asked.
    pub servers: Vec<String>,

    /// Whether the machine's own lookup (its hosts file among other things) is asked for what the name servers do
    /// not know. Such answers are logged as 1001.
    pub system_fallback: bool,

    /// How long one name server has for an answer.
    pub timeout: Period,

    /// How often a question is sent again.
    pub retries: u32,

    /// The shortest time an answer is kept, also when its own time to live is shorter. 6 hours, as in Heritrix: a
    /// crawl asks a host thousands of times and need not follow load balancers.
    pub min_ttl: Period,

    /// The longest time an answer is kept; a crawl of weeks must notice that a site moved.
    pub max_ttl: Period,

    /// How long it is remembered that a name was not found. Shorter than the least wait before a retry
    /// (`frontier.retry_delay`); a retry asks again in any case.
    pub failure_ttl: Period,

    /// How many names are remembered; each takes some 500 bytes.
    pub cache_names: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            user_agent: "Mozilla/5.0 (compatible; grange/0.1; +{contact_url})".to_owned(),
            contact_url: String::new(),
            from: String::new(),
            headers: BTreeMap::new(),
            accept: "*/*".to_owned(),
            accept_encodings: vec![ContentEncoding::Gzip, ContentEncoding::Br],
            http_version: HttpVersion::V11,
            connect_timeout: Period::from_secs(20),
            tls_timeout: Period::from_secs(20),
            first_byte_timeout: Period::from_secs(60),
            idle_timeout: Period::from_secs(20),
            total_timeout: Period::from_secs(1200),
            max_bytes: Size(10 << 30),
            memory_bytes: Size(512 << 10),
            scratch_min_free: Size(500_000_000),
            max_rate: Size(0),
            trust: Trust::Record,
            extra_roots: PathBuf::new(),
            proxy: String::new(),
            addresses: AddressChoice::Ipv4First,
            bind: None,
            keep_alive: true,
            keep_alive_idle: Period::from_secs(15),
            keep_alive_max: 1000,
            cookies: true,
            dns: DnsSettings::default(),
            resolve: Vec::new(),
            all_hosts_to: String::new(),
            allow_networks: Vec::new(),
            allow_endpoints: Vec::new(),
            allow_ordered_endpoints: false,
        }
    }
}

impl Default for DnsSettings {
    fn default() -> DnsSettings {
        DnsSettings {
            servers: Vec::new(),
            system_fallback: true,
            timeout: Period::from_secs(5),
            retries: 2,
            min_ttl: Period::from_secs(6 * 3600),
            max_ttl: Period::from_secs(7 * 24 * 3600),
            failure_ttl: Period::from_secs(30),
            cache_names: 200_000,
        }
    }
}

/// A setting that cannot be used: which one, and what would do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fetch.{field}: {why}")]
pub struct BadSetting {
    pub field: &'static str,
    pub why: String,
}

impl BadSetting {
    pub(super) fn new(field: &'static str, why: impl Into<String>) -> BadSetting {
        BadSetting { field, why: why.into() }
    }
}

/// The least `memory_bytes`: twice the longest head, which must fit in whole.
const MEMORY_MIN: u64 = 128 << 10;

impl Settings {
    /// The `User-Agent` with its placeholder filled in.
    pub fn full_user_agent(&self) -> String {
        self.user_agent.replace("{contact_url}", &self.contact_url)
    }

    /// The addresses that may be connected to.
    pub(super) fn address_policy(&self) -> AddressPolicy {
        AddressPolicy::new(self.allow_networks.clone(), self.allow_endpoints.clone())
    }

    /// Says what cannot be used, before a crawl begins.
    pub fn check(&self) -> Result<(), BadSetting> {
        let bad = |field, why: &str| Err(BadSetting::new(field, why));
        if self.user_agent.contains("{contact_url}") && !is_web_address(&self.contact_url) {
            return bad(
                "contact_url",
                "give the address of a page about this crawl, such as https://example.org/crawl",
            );
        }
        let agent = self.full_user_agent();
        if !agent.contains("http://") && !agent.contains("https://") && !agent.contains('@') {
            return bad(
                "user_agent",
                "it must name the operator: put {contact_url} or a mail address into it",
            );
        }
        for (field, value) in [("user_agent", &agent), ("from", &self.from), ("accept", &self.accept)] {
            if !is_header_value(value.as_bytes()) {
                return bad(field, "it holds a line end or another control character");
            }
        }
        for (name, value) in &self.headers {
            if !is_header_name(name) || !is_header_value(value.as_bytes()) {
                return Err(BadSetting::new("headers", format!("{name:?} is not a header that can be sent")));
            }
            if let Some(why) = refused_header(name) {
                return Err(BadSetting::new(
                    "headers",
                    format!("cannot send {name} with every request: {why}"),
                ));
            }
        }
        if self.memory_bytes.0 < MEMORY_MIN {
            return bad("memory_bytes", "less than 128KiB cannot hold the head of an answer");
        }
        for (field, period) in [
            ("connect_timeout", self.connect_timeout),
            ("tls_timeout", self.tls_timeout),
            ("first_byte_timeout", self.first_byte_timeout),
            ("idle_timeout", self.idle_timeout),
            ("total_timeout", self.total_timeout),
        ] {
            if period.0.is_zero() {
                return bad(field, "0s would end every fetch before it began; give a time such as 20s");
            }
        }
        for server in &self.dns.servers {
            if parse_place(server).is_none() {
                return Err(BadSetting::new("dns.servers", format!("{server:?} is neither ip nor ip:port")));
            }
        }
        if self.dns.min_ttl > self.dns.max_ttl {
            return bad("dns.min_ttl", "it is longer than dns.max_ttl");
        }
        Overrides::new(self)?;
        super::proxy::Proxy::parse(&self.proxy)?;
        Ok(())
    }
}

fn is_web_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Why a template cannot send a header, and what to do instead; none if it can. Never one that a request has already: of
/// two, servers take either, and one of them may be a password.
fn refused_header(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    Some(match &*name {
        "authorization" | "proxy-authorization" => {
            "every host would get it, and the archive; give the password as a login of its domain, or in fetch.proxy"
        }
        "cookie" | "cookie2" => "every host would get it, and the archive; give a login of its domain",
        "user-agent" => "the crawler writes it itself; set fetch.user_agent",
        "from" => "the crawler writes it itself; set fetch.from",
        "accept" => "the crawler writes it itself; set fetch.accept",
        "accept-encoding" => "the crawler writes it itself; set fetch.accept_encodings",
        "referer" => "the crawler writes it itself; leave it out",
        "range" | "if-match" | "if-none-match" | "if-modified-since" | "if-unmodified-since" | "if-range" => {
            "the answer might be a part of a page, or none; leave it out"
        }
        "host" | "connection" | "keep-alive" | "proxy-connection" | "content-length" | "content-type"
        | "content-encoding" | "transfer-encoding" | "te" | "trailer" | "upgrade" | "http2-settings"
        | "expect" => "it belongs to the protocol; leave it out",
        _ => return None,
    })
}

/// A token as RFC 9110 5.6.2 has it.
pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Whether the bytes can stand in a header line: anything but control characters, which could start a new one.
pub(super) fn is_header_value(value: &[u8]) -> bool {
    value.iter().all(|&b| b == b'\t' || (b >= b' ' && b != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named() -> Settings {
        Settings { contact_url: "https://example.org/crawl".to_owned(), ..Settings::default() }
    }

    #[test]
    fn who_crawls_must_be_named() {
        assert_eq!(Settings::default().check().unwrap_err().field, "contact_url");
        assert_eq!(named().check(), Ok(()));
        assert_eq!(
            named().full_user_agent(),
            "Mozilla/5.0 (compatible; grange/0.1; +https://example.org/crawl)"
        );
        let anonymous = Settings { user_agent: "Mozilla/5.0".to_owned(), ..named() };
        assert_eq!(anonymous.check().unwrap_err().field, "user_agent");
        let by_mail = Settings { user_agent: "crawler (web@example.org)".to_owned(), ..Settings::default() };
        assert_eq!(by_mail.check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let header = |name: &str, value: &str| Settings {
            headers: BTreeMap::from([(name.to_owned(), value.to_owned())]),
            ..named()
        };
        for (settings, field) in [
            (header("X-A", "b"), None),
            (header("X A", "b"), Some("headers")),
            (header("X-A", "b\r\nHost: evil"), Some("headers")),
            (header("hOST", "b"), Some("headers")),
            (header("X-A\r\nHost", "b"), Some("headers")),
            (header("X-A", "b\rc"), Some("headers")),
            (header("Accept-Language", "is, en;q=0.5"), None),
            (header("AUTHORIZATION", "x"), Some("headers")),
            (header("Proxy-Authorization", "Basic YTpi"), Some("headers")),
            (header("cookie", "session=1"), Some("headers")),
            (header("TE", "trailers"), Some("headers")),
            (header("Upgrade", "h2c"), Some("headers")),
            (header("Expect", "100-continue"), Some("headers")),
            (header("Range", "bytes=0-9"), Some("headers")),
            (Settings { from: "a\nb".to_owned(), ..named() }, Some("from")),
            (Settings { memory_bytes: Size(1), ..named() }, Some("memory_bytes")),
            (Settings { idle_timeout: Period::from_secs(0), ..named() }, Some("idle_timeout")),
            (Settings { resolve: vec!["a:80".to_owned()], ..named() }, Some("resolve")),
            (Settings { all_hosts_to: "nowhere".to_owned(), ..named() }, Some("all_hosts_to")),
            (Settings { proxy: "ftp://x".to_owned(), ..named() }, Some("proxy")),
            (
                Settings {
                    dns: DnsSettings { servers: vec!["dns.example".to_owned()], ..DnsSettings::default() },
                    ..named()
                },
                Some("dns.servers"),
            ),
        ] {
            assert_eq!(settings.check().err().map(|bad| bad.field), field, "{settings:?}");
        }
    }

    #[test]
    fn every_response_has_an_end_by_default() {
        let settings = Settings::default();
        let bytes_per_second = settings.max_bytes.0 / settings.total_timeout.0.as_secs();
        assert!((1_000_000..20_000_000).contains(&bytes_per_second), "{bytes_per_second}");
        assert!(settings.scratch_min_free.0 > 0, "and leaves space on the disk");
        let text = crate::template::shipped().iter().map(|(_, text)| *text).collect::<String>();
        assert!(!text.contains("max_bytes"), "no shipped template says otherwise");
    }

    #[test]
    fn a_template_says_only_what_differs() {
        let settings: Settings =
            toml::from_str("trust = \"trust-all\"\nmax_bytes = \"10MB\"\n[dns]\nmin_ttl = \"1h\"").unwrap();
        assert_eq!(settings.trust, Trust::TrustAll);
        assert_eq!(settings.max_bytes, Size(10_000_000));
        assert_eq!(settings.dns.max_ttl, DnsSettings::default().max_ttl);
        assert!(toml::from_str::<Settings>("user_agnet = \"x\"").is_err());
    }
}
