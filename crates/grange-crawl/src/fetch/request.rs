//! What is asked, and the bytes it is asked with.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use url::{Position, Url};
use warc::HttpHead;

use super::auth::Credentials;
use super::settings::{HttpVersion, Settings, is_header_name, is_header_value};
use crate::candidate::target_uri;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    pub url: Url,
    pub method: Method,
    /// The page that named the URL.
    pub referer: Option<String>,
    /// What an earlier capture was marked with; the server may answer that nothing changed.
    pub conditional: Option<Validators>,
    /// Further headers of this request alone. Those that cannot be sent are left out.
    pub headers: Vec<(String, String)>,
    /// The value of `Authorization`, made by [`auth`](super::auth).
    pub authorization: Option<String>,
    /// Whether it holds a password elsewhere than in `authorization` and in the user name and password of the URL. Over TLS
    /// a password is sent only to a server whose certificate was verified, whatever the settings trust.
    pub is_secret: bool,
    /// Asked once the head is there: whether the body is wanted too.
    pub wants_body: Option<WantsBody>,
}

/// The method of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    #[default]
    Get,
    Head,
    /// A form that is sent, with its content type.
    Post {
        content_type: String,
        body: Vec<u8>,
    },
}

impl Method {
    pub const fn name(&self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post { .. } => "POST",
        }
    }

    /// Whether asking twice is as good as asking once.
    pub(super) const fn can_repeat(&self) -> bool {
        !matches!(self, Method::Post { .. })
    }
}

/// What marks the version of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

/// A decision made on the head of an answer.
#[derive(Clone)]
pub struct WantsBody(pub Arc<dyn Fn(&HttpHead) -> bool + Send + Sync>);

impl fmt::Debug for WantsBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WantsBody")
    }
}

impl Request {
    pub fn get(url: Url) -> Request {
        Request {
            url,
            method: Method::Get,
            referer: None,
            conditional: None,
            headers: Vec::new(),
            authorization: None,
            is_secret: false,
            wants_body: None,
        }
    }

    /// Whether only its server may see it.
    pub(super) fn holds_password(&self) -> bool {
        self.is_secret || self.authorization.is_some() || Credentials::of_url(&self.url).is_some()
    }

    /// Path and query as they are sent; what [`Session::authorization`](super::auth::Session) signs.
    pub fn target(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }
}

/// The header lines that are the same in every request.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    version: &'static str,
    lines: String,
    connection: &'static str,
}

impl Standing {
    pub(super) fn new(settings: &Settings) -> Standing {
        let mut lines = String::new();
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                push_line(&mut lines, name, value);
            }
        };
        line("User-Agent", &settings.full_user_agent());
        line("From", &settings.from);
        line("Accept", &settings.accept);
        let encodings: Vec<_> = settings.accept_encodings.iter().map(|encoding| encoding.name()).collect();
        line("Accept-Encoding", &encodings.join(", "));
        for (name, value) in &settings.headers {
            line(name, value);
        }
        Standing {
            version: match settings.http_version {
                HttpVersion::V10 => "1.0",
                HttpVersion::V11 => "1.1",
            },
            lines,
            connection: if settings.keep_alive { "keep-alive" } else { "close" },
        }
    }

    /// The request as it goes over the wire. `absolute` is for a proxy, which must be told the host.
    pub(super) fn write(&self, request: &Request, cookies: Option<&str>, absolute: bool) -> Vec<u8> {
        let url = &request.url;
        let mut out = String::with_capacity(url.as_str().len() + self.lines.len() + 256);
        out.push_str(request.method.name());
        out.push(' ');
        if absolute {
            // Without user and password, which go into a header.
            out.push_str(&url[..Position::BeforeUsername]);
            out.push_str(&url[Position::BeforeHost..Position::BeforePath]);
        }
        out.push_str(request.target());
        out.push_str(" HTTP/");
        out.push_str(self.version);
        out.push_str("\r\n");
        push_line(&mut out, "Host", &url[Position::BeforeHost..Position::AfterPort]);
        out.push_str(&self.lines);
        let mut line = |name: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| is_header_value(value.as_bytes())) {
                push_line(&mut out, name, value);
            }
        };
        line("Referer", request.referer.as_deref().map(public_referer).as_deref());
        line("Cookie", cookies);
        let of_url = || super::auth::basic_of_url(url);
        line("Authorization", request.authorization.clone().or_else(of_url).as_deref());
        if let Some(validators) = &request.conditional {
            line("If-None-Match", validators.etag.as_deref());
            line("If-Modified-Since", validators.last_modified.as_deref());
        }
        for (name, value) in request.headers.iter().filter(|(name, _)| is_header_name(name)) {
            line(name, Some(value));
        }
        if let Method::Post { content_type, body } = &request.method {
            line("Content-Type", Some(content_type));
            line("Content-Length", Some(&body.len().to_string()));
        }
        push_line(&mut out, "Connection", self.connection);
        out.push_str("\r\n");
        let mut out = out.into_bytes();
        if let Method::Post { body, .. } = &request.method {
            out.extend_from_slice(body);
        }
        out
    }
}

/// A referring page as others may know it, without credentials and fragment (RFC 9110 10.1.3).
fn public_referer(page: &str) -> Cow<'_, str> {
    if !page.contains(['@', '#']) {
        return Cow::Borrowed(page);
    }
    match Url::parse(page) {
        Ok(url) => Cow::Owned(target_uri(&url).into_owned()),
        Err(_) => Cow::Borrowed(page),
    }
}

fn push_line(out: &mut String, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        out.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing() -> Standing {
        Standing::new(&Settings {
            user_agent: "us (+http://us.example/)".to_owned(),
            from: "us@us.example".to_owned(),
            ..Settings::default()
        })
    }

    #[test]
    fn requests_on_the_wire() {
        let mut request = Request::get(Url::parse("http://Example.ORG:8080/a b?q#f").unwrap());
        let plain = "Host: example.org:8080\r\nUser-Agent: us (+http://us.example/)\r\nFrom: us@us.example\r\n\
            Accept: */*\r\nAccept-Encoding: gzip, br\r\n";
        let got = String::from_utf8(standing().write(&request, None, false)).unwrap();
        assert_eq!(got, format!("GET /a%20b?q HTTP/1.1\r\n{plain}Connection: keep-alive\r\n\r\n"));
        let got = String::from_utf8(standing().write(&request, None, true)).unwrap();
        assert!(got.starts_with("GET http://example.org:8080/a%20b?q HTTP/1.1\r\n"), "{got}");
        let named = Request::get(Url::parse("http://u%40:p@example.org/").unwrap());
        let got = String::from_utf8(standing().write(&named, None, true)).unwrap();
        assert!(got.starts_with("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n"), "{got}");
        assert!(got.contains("\r\nAuthorization: Basic dUA6cA==\r\n"), "{got}");

        request.referer = Some("http://user:pass@example.org/#part".to_owned());
        request.authorization = Some("Basic eA==".to_owned());
        request.conditional = Some(Validators {
            etag: Some("\"x\"".to_owned()),
            last_modified: Some("a\r\nEvil: b".to_owned()),
        });
        request.headers = vec![("X-A".to_owned(), "1".to_owned()), ("X B".to_owned(), "2".to_owned())];
        request.method = Method::Post { content_type: "text/plain".to_owned(), body: b"hello".to_vec() };
        let got = String::from_utf8(standing().write(&request, Some("a=b"), false)).unwrap();
        assert_eq!(
            got,
            format!(
                "POST /a%20b?q HTTP/1.1\r\n{plain}Referer: http://example.org/\r\nCookie: a=b\r\n\
                Authorization: Basic eA==\r\nIf-None-Match: \"x\"\r\nX-A: 1\r\nContent-Type: text/plain\r\n\
                Content-Length: 5\r\nConnection: keep-alive\r\n\r\nhello"
            )
        );
    }

    #[test]
    fn a_template_cannot_send_a_header_that_a_request_has_already() {
        let mut request = Request::get(Url::parse("http://example.org/").unwrap());
        request.referer = Some("http://example.org/".to_owned());
        request.authorization = Some("Basic eA==".to_owned());
        let mark = Some("x".to_owned());
        request.conditional = Some(Validators { etag: mark.clone(), last_modified: mark });
        request.method = Method::Post { content_type: "text/plain".to_owned(), body: Vec::new() };
        let sent = String::from_utf8(standing().write(&request, Some("a=b"), false)).unwrap();
        let names: Vec<_> =
            sent.lines().filter_map(|line| line.split_once(": ").map(|(name, _)| name)).collect();
        assert_eq!(names.len(), 13, "{sent}");
        for name in names {
            for name in [name.to_owned(), name.to_ascii_uppercase(), name.to_ascii_lowercase()] {
                let headers = [(name.clone(), "x".to_owned())].into();
                let settings = Settings {
                    user_agent: "us (+http://us.example/)".to_owned(),
                    headers,
                    ..Settings::default()
                };
                assert_eq!(settings.check().unwrap_err().field, "headers", "{name}");
            }
        }
    }
}
