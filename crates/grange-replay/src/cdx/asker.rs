//! Who asks: the address of the connection, and the user that a front server names.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;

use super::Served;
use crate::access_check::Person;
use crate::reader::now;

/// Whoever sent a request, as access rules see them.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    pub person: Person,
    pub takes_gzip: bool,
}

impl FromRequestParts<Served> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, served: &Served) -> Result<Self, Infallible> {
        let address = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let user = served.options.user_header.as_ref().and_then(|name| header(name.as_str()));
        let person = Person::new(address, user, now(&served.options), &served.collections);
        Ok(Self { person, takes_gzip: header("accept-encoding").is_some_and(accepts_gzip) })
    }
}

/// Whether `Accept-Encoding` names gzip without forbidding it.
fn accepts_gzip(value: &str) -> bool {
    value.split(',').any(|part| {
        let mut pieces = part.split(';').map(str::trim);
        pieces.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"))
            && !pieces.any(|piece| matches!(piece.strip_prefix("q="), Some("0" | "0.0" | "0.00" | "0.000")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_it_is_named_and_not_forbidden() {
        for (value, taken) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("br", false),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(value), taken, "{value}");
        }
    }
}
