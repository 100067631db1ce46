//! The key that OutbackCDX computes, for reading its indexes and speaking to its clients.
//!
//! It stands on Java's URL class, so the parts are cut as that class cuts them. Where Java refuses a URL,
//! OutbackCDX falls back to another library; this dialect then leaves the text as it is, which agrees for the
//! schemes that archives hold (`dns:`, `urn:`, `warcinfo:`, `filedesc:`).

use crate::escape::{escape_at, escape_lower};
use crate::host::www_len;
use crate::{idn, session};
use std::fmt::Write as _;

/// Appends the OutbackCDX key of `url` to `out`.
pub(crate) fn write(url: &str, out: &mut String) {
    if let Some((scheme, inner)) = embedded(url) {
        let scheme = scheme.to_lowercase();
        out.push_str(if scheme == "urn:transclusions" { "youtube-dl" } else { &scheme });
        out.push(':');
        write_plain(inner, out);
    } else {
        write_plain(url, out);
    }
}

/// `screenshot:http://…`: the name before the last `:http(s)://`, and the URL.
fn embedded(url: &str) -> Option<(&str, &str)> {
    let head = &url[..url.find('/')?];
    let (scheme, http) = head.strip_suffix(':')?.rsplit_once(':')?;
    let is_http = http.eq_ignore_ascii_case("http") || http.eq_ignore_ascii_case("https");
    let inner = &url[scheme.len() + 1..];
    let whole = is_http && inner[http.len() + 1..].starts_with("//") && !url.contains(['\n', '\r']);
    (whole && !scheme.is_empty()).then_some((scheme, inner))
}

fn write_plain(url: &str, out: &mut String) {
    let cleaned: String = url.chars().filter(|c| !matches!(c, '\t' | '\r' | '\n')).collect();
    let has_scheme = match (cleaned.find(':'), cleaned.find('/')) {
        (Some(colon), Some(slash)) => colon < slash,
        (colon, _) => colon.is_some(),
    };
    let cleaned = if has_scheme { cleaned } else { format!("http://{cleaned}") };
    match JavaUrl::parse(&cleaned) {
        Some(parts) => parts.write(out),
        None => out.push_str(url),
    }
}

struct JavaUrl<'a> {
    scheme: String,
    host: &'a str,
    /// Java reads any `int` here.
    port: Option<u32>,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> JavaUrl<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(|c: char| c <= ' ');
        let text =
            text.get(..4).filter(|head| head.eq_ignore_ascii_case("url:")).map_or(text, |_| &text[4..]);
        let (scheme, rest) = text.split_once(':')?;
        let scheme = scheme.to_lowercase();
        if !matches!(scheme.as_str(), "http" | "https" | "ftp" | "file" | "mailto" | "jar") {
            return None;
        }
        let rest = rest.split('#').next().unwrap_or("");
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let mut parts = Self { scheme, host: "", port: None, path: rest, query };
        if let Some(after) = rest.strip_prefix("//")
            && parts.scheme != "mailto"
        {
            let end = after.find('/').unwrap_or(after.len());
            parts.path = &after[end..];
            parts.split_authority(&after[..end])?;
        }
        Some(parts)
    }

    fn split_authority(&mut self, authority: &'a str) -> Option<()> {
        let host = match authority.split_once('@') {
            // Java gives no host at all to an authority with two at signs.
            Some((_, host)) if host.contains('@') => "",
            Some((_, host)) => host,
            None => authority,
        };
        let (host, port) = if host.starts_with('[') {
            let close = host.find(']')?;
            let after = &host[close + 1..];
            (&host[..=close], if after.is_empty() { "" } else { after.strip_prefix(':')? })
        } else {
            host.split_once(':').unwrap_or((host, ""))
        };
        self.host = host;
        if !port.is_empty() {
            self.port = Some(port.parse().ok().filter(|port| i32::try_from(*port).is_ok())?);
        }
        Some(())
    }

    fn write(&self, out: &mut String) {
        let host = canonical_host(self.host);
        if is_dotted_quad(&host) {
            out.push_str(&host);
        } else {
            for (i, label) in host.trim_end_matches('.').rsplit('.').enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(label);
            }
            out.push(')');
        }
        match (self.port, self.scheme.as_str()) {
            (None, _) | (Some(80), "http") | (Some(443), "https") => {}
            (Some(port), _) => {
                let _ = write!(out, ":{port}");
            }
        }
        out.push_str(&canonical_path(self.path));
        if let Some(query) = self.query.and_then(canonical_query) {
            out.push('?');
            out.push_str(&query);
        }
    }
}

fn canonical_host(host: &str) -> String {
    let host = host.replace("..", ".");
    let host = host.strip_suffix('.').unwrap_or(&host);
    let host = if host.is_ascii() {
        host.to_owned()
    } else {
        idn::to_ascii_2003(host.as_bytes()).unwrap_or_else(|| host.to_owned())
    };
    let host = recode(&host.to_lowercase());
    let host = canonical_ip(&host).unwrap_or(host);
    let host = &host[www_len(host.as_bytes())..];
    host.strip_suffix('.').unwrap_or(host).to_owned()
}

fn is_dotted_quad(host: &str) -> bool {
    let mut labels = 0;
    let digits = host.split('.').all(|label| {
        labels += 1;
        (1..=3).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_digit())
    });
    digits && labels == 4
}

fn canonical_ip(host: &str) -> Option<String> {
    let undotted = host.strip_prefix("0x").unwrap_or(host);
    if (1..=12).contains(&undotted.len()) && undotted.bytes().all(|b| b.is_ascii_digit()) {
        let value = match (undotted.len() < host.len(), host) {
            (true, _) => u64::from_str_radix(undotted, 16).ok(),
            (false, "0") => Some(0),
            (false, octal) if octal.starts_with('0') => u64::from_str_radix(octal, 8).ok(),
            (false, decimal) => decimal.parse().ok(),
        };
        if let Some(value) = value.and_then(|value| u32::try_from(value).ok()) {
            return Some(std::net::Ipv4Addr::from(value).to_string());
        }
    }
    let inner = host.strip_prefix('[')?.strip_suffix(']')?;
    let address: std::net::Ipv6Addr = inner.parse().ok()?;
    // Java turns a mapped address into the IPv4 address that it maps.
    Some(address.to_ipv4_mapped().map_or_else(|| format!("[{}]", signed_ipv6(address)), |v4| v4.to_string()))
}

/// OutbackCDX treats every group with a byte above 0x7f as part of the run of zeroes; its keys carry that.
fn signed_ipv6(address: std::net::Ipv6Addr) -> String {
    let groups = address.segments();
    let mut number = groups.map(|group| group & 0x8080 == 0);
    let zeroes = longest_zero_run(&groups);
    if zeroes.len() >= 2 {
        number[zeroes].fill(false);
    }
    let mut out = String::new();
    let mut last_number = false;
    for (i, group) in groups.iter().enumerate() {
        if number[i] {
            if last_number {
                out.push(':');
            }
            let _ = write!(out, "{group:x}");
        } else if i == 0 || last_number {
            out.push_str("::");
        }
        last_number = number[i];
    }
    out
}

fn longest_zero_run(groups: &[u16; 8]) -> std::ops::Range<usize> {
    let mut best = 0..0;
    let mut start = 0;
    for i in 0..=groups.len() {
        if groups.get(i) != Some(&0) {
            if i - start > best.len() {
                best = start..i;
            }
            start = i + 1;
        }
    }
    best
}

fn canonical_path(path: &str) -> String {
    let path = recode(&path.to_lowercase());
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            ".." => {
                segments.pop();
            }
            "" | "." => {}
            segment => segments.push(segment),
        }
    }
    let mut out = format!("/{}", segments.join("/"));
    strip_asp_directory(&mut out);
    strip_jsessionid(&mut out);
    out
}

/// `/(…24…)/page.aspx`, first occurrence.
fn strip_asp_directory(path: &mut String) {
    const LEN: usize = 27;
    if path.len() > session::PATH_BYTES_MAX {
        return;
    }
    let found = path.match_indices("/(").map(|(at, _)| at).find(|at| {
        let Some(text) = path.as_bytes().get(*at..) else {
            return false;
        };
        let Some((dir, rest)) = text.split_at_checked(LEN) else {
            return false;
        };
        let page = &rest[..memchr::memchr(b'?', rest).unwrap_or(rest.len())];
        dir.ends_with(b")")
            && dir[2..LEN - 1].iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && page.first() == Some(&b'/')
            // The dot of the pattern is unescaped in OutbackCDX: any character may stand there.
            && memchr::memmem::rfind(page, b"aspx").is_some_and(|at| at >= 3)
    });
    if let Some(at) = found {
        path.drain(at..at + LEN);
    }
}

fn strip_jsessionid(path: &mut String) {
    if let Some(at) = path.rfind(";jsessionid=") {
        let id = &path[at + ";jsessionid=".len()..];
        if id.len() == 32 && id.bytes().all(is_id) {
            path.truncate(at);
        }
    }
}

fn canonical_query(query: &str) -> Option<String> {
    let query = query.to_lowercase();
    let mut fields: Vec<&str> =
        query.split('&').filter(|field| !field.is_empty() && !is_session_field(field)).collect();
    // Java orders strings by UTF-16 code units.
    fields.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    let mut query = recode(&fields.join("&"));
    strip_coldfusion(&mut query);
    (!query.is_empty()).then_some(query)
}

fn is_id(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_session_field(field: &str) -> bool {
    let Some((name, value)) = field.split_once('=') else {
        return false;
    };
    let least = match name {
        "jsessionid" => 10,
        "sessionid" | "phpsessid" | "sid" => 16,
        _ => match name.strip_prefix("aspsessionid") {
            Some(tail) if tail.len() == 8 && tail.bytes().all(|b| b.is_ascii_lowercase()) => 16,
            _ => return false,
        },
    };
    value.len() >= least && value.bytes().all(is_id)
}

fn strip_coldfusion(query: &mut String) {
    let starts = std::iter::once(0).chain(query.match_indices('&').map(|(at, _)| at));
    let found = starts.into_iter().find_map(|at| {
        let text = &query[at..];
        let after = text.strip_prefix('&').unwrap_or(text).strip_prefix("cfid=")?;
        let id = after.bytes().take_while(u8::is_ascii_digit).count();
        let token = after[id..].strip_prefix("&cftoken=")?;
        let len = token.bytes().take_while(|b| is_id(*b) || *b == b'-').count();
        (id > 0 && len > 0).then(|| at..query.len() - token.len() + len)
    });
    if let Some(range) = found {
        query.drain(range);
    }
}

/// More layers of escapes than any honest URL has; each costs a pass.
const DECODE_ROUNDS_MAX: usize = 64;

/// Decodes until nothing changes, then escapes once. Escapes that are not UTF-8 stay escapes and are then
/// escaped again (`%e9` gives `%25e9`), as in OutbackCDX.
fn recode(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..DECODE_ROUNDS_MAX {
        if !text.contains('%') {
            break;
        }
        let next = decode_round(&text);
        if next == text {
            break;
        }
        text = next;
    }
    let mut out = Vec::with_capacity(text.len());
    // Decoded letters keep their case here: lower-casing came before decoding.
    for part in text.as_bytes().chunk_by(|a, b| a.is_ascii_uppercase() == b.is_ascii_uppercase()) {
        if part[0].is_ascii_uppercase() {
            out.extend_from_slice(part);
        } else {
            escape_lower(part, &mut out);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn decode_round(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut run = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let plain = memchr::memchr(b'%', &bytes[at..]).unwrap_or(bytes.len() - at);
        out.push_str(&text[at..at + plain]);
        at += plain;
        run.clear();
        while bytes.get(at) == Some(&b'%')
            && let Some(byte) = escape_at(bytes, at)
        {
            run.push(byte);
            at += 3;
        }
        for chunk in run.utf8_chunks() {
            out.push_str(chunk.valid());
            for byte in chunk.invalid() {
                let _ = write!(out, "%{byte:02x}");
            }
        }
        // After a run Java copies one character without looking at it; a lone % is copied this way too.
        if let Some(c) = text[at..].chars().next() {
            out.push(c);
            at += c.len_utf8();
        }
    }
    out
}

/// Bytes that are not UTF-8 are read as Java would read them from a file: replaced.
pub(crate) fn lossy(url: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(url)
}
