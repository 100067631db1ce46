//! The head of a request, as far as SWAP cares: read once, within limits.

use std::mem::MaybeUninit;

use crate::digest::Declared;
use crate::route::Hops;

/// Longest head of a request, bytes: a path of 3,000 bytes, percent-encoded, and a dozen headers.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
/// Most headers in it.
const MAX_HEADERS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Put,
    Post,
    Delete,
    Other,
}

impl Method {
    /// The verb a ticket is made out for: whoever may GET may HEAD.
    pub(crate) fn ticket_verb(self) -> &'static str {
        match self {
            Self::Get | Self::Head => "GET",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Post | Self::Other => "POST",
        }
    }
}

/// How long the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    None,
    Known(u64),
    Chunked,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub method: Method,
    /// As it came, before the question mark.
    pub path: String,
    /// As it came, after it.
    pub query: String,
    pub keep_alive: bool,
    pub body: BodyLength,
    pub expects_continue: bool,
    pub authorization: Option<String>,
    pub range: Option<String>,
    pub if_range: Option<String>,
    pub if_none_match: Option<String>,
    pub if_modified_since: Option<String>,
    pub if_match: Option<String>,
    pub accept: Option<String>,
    pub upgrade: Option<String>,
    pub last_modified: Option<String>,
    pub declared: Declared,
    pub content_range: bool,
    /// It came from a web page or through a proxy.
    pub roundabout: bool,
}

/// Why a head is none: the status, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub u16, pub String);

fn malformed<T>(reason: impl Into<String>) -> Result<T, Malformed> {
    Err(Malformed(400, reason.into()))
}

/// Reads a head from the start of `bytes`: `None` when it is not whole yet, else the request and the head's length.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Request, usize)>, Malformed> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    let length = match parsed.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD_BYTES => {
            return Err(Malformed(
                431,
                format!("the head of the request is longer than {MAX_HEAD_BYTES} bytes"),
            ));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Malformed(431, format!("the request has more than {MAX_HEADERS} headers")));
        }
        Err(error) => return malformed(format!("the request cannot be read: {error}")),
    };
    let target = parsed.path.unwrap_or_default();
    // The absolute form, as sent to proxies, is for servers too.
    let target = match target.strip_prefix("http://").or_else(|| target.strip_prefix("https://")) {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let method = match parsed.method.unwrap_or_default() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "PUT" => Method::Put,
        "POST" => Method::Post,
        "DELETE" => Method::Delete,
        _ => Method::Other,
    };
    let mut request = Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        keep_alive: parsed.version == Some(1),
        body: BodyLength::None,
        expects_continue: false,
        authorization: None,
        range: None,
        if_range: None,
        if_none_match: None,
        if_modified_since: None,
        if_match: None,
        accept: None,
        upgrade: None,
        last_modified: None,
        declared: Declared::default(),
        content_range: false,
        roundabout: false,
    };
    let mut coding = false;
    for header in parsed.headers.iter() {
        take_header(&mut request, header.name, header.value, &mut coding)?;
    }
    Ok(Some((request, length)))
}

fn take_header(request: &mut Request, name: &str, value: &[u8], coding: &mut bool) -> Result<(), Malformed> {
    // Most headers of most requests are none of ours: look at the length before comparing letters.
    let is = |known: &str| name.len() == known.len() && name.eq_ignore_ascii_case(known);
    let text = || match std::str::from_utf8(value) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(_) => malformed(format!("the header {name} is not text")),
    };
    match name.len() {
        3 if is("via") => request.roundabout = true,
        5 if is("range") => request.range = Some(text()?),
        6 if is("accept") => request.accept = Some(text()?),
        6 if is("expect") => {
            if !text()?.eq_ignore_ascii_case("100-continue") {
                return Err(Malformed(417, "only Expect: 100-continue is understood".to_owned()));
            }
            request.expects_continue = true;
        }
        6 if is("origin") || is("cookie") => request.roundabout = true,
        6 if is("digest") => declared(request, name, &text()?)?,
        7 if is("upgrade") => request.upgrade = Some(text()?),
        7 if is("referer") => request.roundabout = true,
        8 if is("if-range") => request.if_range = Some(text()?),
        8 if is("if-match") => request.if_match = Some(text()?),
        9 if is("forwarded") => request.roundabout = true,
        10 if is("connection") => {
            for token in text()?.split(',') {
                if token.trim().eq_ignore_ascii_case("close") {
                    request.keep_alive = false;
                } else if token.trim().eq_ignore_ascii_case("keep-alive") {
                    request.keep_alive = true;
                }
            }
        }
        11 if is("repr-digest") || is("content-md5") => declared(request, name, &text()?)?,
        13 if is("authorization") => request.authorization = Some(text()?),
        13 if is("if-none-match") => request.if_none_match = Some(text()?),
        13 if is("last-modified") => request.last_modified = Some(text()?),
        13 if is("content-range") => request.content_range = true,
        14 if is("content-length") => {
            let text = text()?;
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let Some(length) = text.parse().ok().filter(|_| plain) else {
                return malformed("Content-Length is no number");
            };
            // Two lengths, or a length beside a coding, are how requests are smuggled past proxies.
            if *coding || !matches!(request.body, BodyLength::None) {
                return malformed("the length of the body is given twice");
            }
            request.body = BodyLength::Known(length);
        }
        14 if is("content-digest") => declared(request, name, &text()?)?,
        14 if is("sec-fetch-site") => request.roundabout = true,
        15 if is("x-forwarded-for") => request.roundabout = true,
        17 if is("if-modified-since") => request.if_modified_since = Some(text()?),
        17 if is("transfer-encoding") => {
            if *coding || !matches!(request.body, BodyLength::None) {
                return malformed("the length of the body is given twice");
            }
            if !text()?.eq_ignore_ascii_case("chunked") {
                return Err(Malformed(501, "only Transfer-Encoding: chunked is understood".to_owned()));
            }
            *coding = true;
            request.body = BodyLength::Chunked;
        }
        _ => {}
    }
    Ok(())
}

fn declared(request: &mut Request, name: &str, value: &str) -> Result<(), Malformed> {
    request.declared.header(name, value).or_else(malformed)
}

impl Request {
    /// A parameter of the query, as it came.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
    }

    pub(crate) fn hops(&self) -> Hops {
        if !self.query.contains("swap-") {
            return Hops::default();
        }
        Hops {
            count: self.parameter("swap-hop").map_or(0, |text| text.parse().unwrap_or(u8::MAX)),
            epoch: self.parameter("swap-epoch").and_then(|text| text.parse().ok()),
            before: self.parameter("swap-before").is_some(),
        }
    }

    /// The query without the marks of redirects.
    pub(crate) fn own_query(&self) -> String {
        if !self.query.contains("swap-") {
            return self.query.clone();
        }
        let kept: Vec<_> = self.query.split('&').filter(|pair| !pair.starts_with("swap-")).collect();
        kept.join("&")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(text: &str) -> Result<Request, Malformed> {
        read(text.as_bytes()).map(|read| read.unwrap().0)
    }

    #[test]
    fn a_put_of_curl_is_understood() {
        let text = "PUT /put/c/a%20b?x=1&swap-hop=1&swap-epoch=7 HTTP/1.1\r\nHost: h\r\nUser-Agent: curl\r\n\
            Accept: */*\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\nhello world";
        let (request, length) = read(text.as_bytes()).unwrap().unwrap();
        assert_eq!(&text[length..], "hello world");
        assert_eq!((request.method, request.path.as_str()), (Method::Put, "/put/c/a%20b"));
        assert_eq!(
            (request.body, request.expects_continue, request.keep_alive),
            (BodyLength::Known(11), true, true)
        );
        assert_eq!(request.hops(), Hops { count: 1, epoch: Some(7), before: false });
        assert_eq!(request.own_query(), "x=1");
        assert!(!request.roundabout);
        assert_eq!(read(&text.as_bytes()[..40]).unwrap().map(|_| ()), None);
    }

    #[test]
    fn doubtful_heads_are_refused() {
        let many = "x: y\r\n".repeat(70);
        for (lines, status) in [
            ("Content-Length: 1\r\nContent-Length: 1\r\n", 400),
            ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
            ("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", 400),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
            ("Transfer-Encoding: gzip, chunked\r\n", 501),
            ("Content-Length: +1\r\n", 400),
            ("Content-Length: 99999999999999999999999\r\n", 400),
            ("Expect: cake\r\n", 417),
            ("Content-MD5: nonsense\r\n", 400),
            ("no colon\r\n", 400),
            (many.as_str(), 431),
        ] {
            let found = head(&format!("PUT /put/c/x HTTP/1.1\r\n{lines}\r\n")).map(|_| ()).unwrap_err();
            assert_eq!(found.0, status, "{lines}: {}", found.1);
        }
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(read(long.as_bytes()).unwrap_err().0, 431);
    }

    #[test]
    fn web_pages_and_proxies_are_noticed() {
        for line in
            ["Origin: http://x", "X-Forwarded-For: 1.2.3.4", "Via: 1.1 x", "Sec-Fetch-Site: cross-site"]
        {
            assert!(head(&format!("GET / HTTP/1.1\r\n{line}\r\n\r\n")).unwrap().roundabout, "{line}");
        }
        assert!(!head("GET http://h/x HTTP/1.0\r\n\r\n").unwrap().keep_alive);
        assert_eq!(head("GET http://h/x?y HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap().path, "/x");
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
