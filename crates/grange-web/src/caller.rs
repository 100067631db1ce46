//! Who is asking: a bearer token, a browser session, or someone on the node's own machine.

use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use grange_api::client::LOCAL_USER;
use grange_app::{Error, Who};
use subtle::ConstantTimeEq;

use crate::Web;
use crate::error::Refusal;

/// The cookie that carries a session's secret.
pub const SESSION_COOKIE: &str = "grange_session";
/// The header that repeats a session's CSRF secret on everything that changes something.
pub const CSRF_HEADER: &str = "x-csrf-token";

/// The key that a node leaves in its data folder for people who can read it. It lives as long as the process.
pub struct LocalToken(String);

impl LocalToken {
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    fn fits(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl fmt::Debug for LocalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalToken(…)")
    }
}

/// Someone who was let in. As an argument of a handler it makes the route need a log-in.
#[derive(Clone, Debug)]
pub struct Caller(pub Who);

impl FromRequestParts<Web> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Refusal> {
        // Put there by a transport inside this process, which already knows whom it serves.
        if let Some(who) = parts.extensions.get::<Who>() {
            return Ok(Self(who.clone()));
        }
        if let Some(token) = bearer(&parts.headers) {
            if web.local.as_ref().is_some_and(|local| local.fits(token)) {
                let user =
                    parts.headers.get(LOCAL_USER).and_then(|user| user.to_str().ok()).unwrap_or("local");
                return Ok(Self(Who::local(user)));
            }
            return Ok(Self(web.app.who_has_token(token).await?));
        }
        let Some(secret) = cookie(&parts.headers, SESSION_COOKIE) else { return Err(Error::Unknown.into()) };
        let session = web.app.who_has_session(secret).await?;
        if changes(&parts.method) {
            let given =
                parts.headers.get(CSRF_HEADER).and_then(|given| given.to_str().ok()).unwrap_or_default();
            if !session.csrf_fits(given) {
                let text =
                    "this request did not come from a page of this log-in; reload the page and try again";
                return Err(Refusal::new(StatusCode::FORBIDDEN, "csrf", text));
            }
        }
        Ok(Self(session.who))
    }
}

fn changes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::trim)
}

/// One cookie's value among all that were sent.
///
/// Another site on this host name, such as replay on another port, can set cookies of the same name for another path, and
/// browsers do not say which is whose. So two of them are none.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut values = lines.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    });
    values.next().filter(|_| values.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_that_comes_twice_is_nobodys() {
        for (lines, found) in [
            (&["a=1; grange_session=x"][..], Some("x")),
            (&["grange_session=x", "b=2"], Some("x")),
            (&["grange_session=x; grange_session=y"], None),
            (&["grange_session=x", "grange_session=x"], None),
            (&["grange_session2=x"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, line.parse().unwrap());
            }
            assert_eq!(cookie(&headers, "grange_session"), found, "{lines:?}");
        }
    }
}
