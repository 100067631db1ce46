//! Reading a request: only what the answers depend on.

/// The head of a request in bytes: more than any crawler sends, and a bound on what a connection may hold.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The body of a request in bytes: a log-in form is far shorter.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 128;

/// A request head, borrowed from the connection's buffer.
#[derive(Debug, Default)]
pub(crate) struct Head<'a> {
    pub method: &'a str,
    pub host: &'a str,
    /// Path and query.
    pub target: &'a str,
    pub http10: bool,
    pub close: bool,
    pub accept_encoding: &'a str,
    pub cookie: &'a str,
    pub authorization: &'a str,
    pub if_none_match: &'a str,
    pub if_modified_since: &'a str,
    /// Bytes of the body, and whether the client waits for leave to send them.
    pub body_bytes: usize,
    pub expects_continue: bool,
    /// Bytes of the head itself.
    pub own_bytes: usize,
}

#[derive(Debug)]
pub(crate) enum Parsed<'a> {
    Partial,
    Whole(Head<'a>),
    /// Not HTTP, or a body of unknown length.
    Wrong,
}

pub(crate) fn parse(bytes: &[u8]) -> Parsed<'_> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let own_bytes = match request.parse(bytes) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Wrong,
    };
    let mut head = Head {
        method: request.method.unwrap_or_default(),
        target: request.path.unwrap_or_default(),
        http10: request.version == Some(0),
        own_bytes,
        ..Head::default()
    };
    head.close = head.http10;
    for header in request.headers.iter() {
        let Ok(value) = std::str::from_utf8(header.value) else { continue };
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("host") {
            head.host = value;
        } else if is("connection") {
            if value.eq_ignore_ascii_case("close") {
                head.close = true;
            } else if value.eq_ignore_ascii_case("keep-alive") {
                head.close = false;
            }
        } else if is("accept-encoding") {
            head.accept_encoding = value;
        } else if is("cookie") {
            head.cookie = value;
        } else if is("authorization") {
            head.authorization = value;
        } else if is("if-none-match") {
            head.if_none_match = value;
        } else if is("if-modified-since") {
            head.if_modified_since = value;
        } else if is("expect") {
            head.expects_continue = value.eq_ignore_ascii_case("100-continue");
        } else if is("transfer-encoding") {
            return Parsed::Wrong;
        } else if is("content-length") {
            match value.trim().parse() {
                Ok(bytes) if bytes <= BODY_BYTES_MAX => head.body_bytes = bytes,
                _ => return Parsed::Wrong,
            }
        }
    }
    // A client that takes us for its proxy names the whole URL; it wins over the Host header.
    if let Some(rest) = head.target.strip_prefix("http://").or_else(|| head.target.strip_prefix("https://")) {
        let slash = rest.find('/').unwrap_or(rest.len());
        head.host = &rest[..slash];
        head.target = if slash == rest.len() { "/" } else { &rest[slash..] };
    }
    Parsed::Whole(head)
}
