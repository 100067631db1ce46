//! Reading `Set-Cookie` (RFC 6265 5.2 and 5.3).

use jiff::{SignedDuration, Timestamp, civil};
use url::{Host, Url};

use super::{COOKIE_BYTES_MAX, Cookie};
use crate::fetch::settings::is_header_value;

/// The cookie a server at `url` wants us to keep; none if it may not, or if it cannot be read.
pub(super) fn parse(value: &str, url: &Url, now: Timestamp) -> Option<Cookie> {
    let mut parts = value.split(';');
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty()
        || name.len() + value.len() > COOKIE_BYTES_MAX
        || !is_header_value(name.as_bytes())
        || !is_header_value(value.as_bytes())
    {
        return None;
    }
    let host = url.host_str()?.to_ascii_lowercase();
    let mut cookie = Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: host.clone(),
        host_only: true,
        path: default_path(url),
        secure: false,
        http_only: false,
        expires: None,
    };
    let mut max_age = false;
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "expires" if !max_age => cookie.expires = parse_date(value).or(cookie.expires),
            "max-age" => {
                if let Some(expires) = after(now, value) {
                    // It has precedence over Expires.
                    max_age = true;
                    cookie.expires = Some(expires);
                }
            }
            "domain" => {
                let domain = value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase();
                (cookie.domain, cookie.host_only) =
                    if domain.is_empty() { (host.clone(), true) } else { (domain, false) };
            }
            "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
            "path" => cookie.path = default_path(url),
            "secure" => cookie.secure = true,
            "httponly" => cookie.http_only = true,
            _ => {}
        }
    }
    if !cookie.host_only {
        let is_suffix = urlkey::public_suffix(&cookie.domain, urlkey::Suffixes::All) == Some(&cookie.domain);
        let address = !matches!(url.host(), Some(Host::Domain(_)));
        if cookie.domain == host {
            // A public suffix may keep cookies for itself, an address has nothing below.
            cookie.host_only = is_suffix || address;
        } else if is_suffix || address || !host.ends_with(&format!(".{}", cookie.domain)) {
            return None;
        }
    }
    // What must not travel in the open must not come from there.
    (!cookie.secure || url.scheme() == "https").then_some(cookie)
}

/// RFC 6265 5.1.4: the folder of the URL.
fn default_path(url: &Url) -> String {
    match url.path().rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(at) => url.path()[..at].to_owned(),
    }
}

fn after(now: Timestamp, seconds: &str) -> Option<Timestamp> {
    let digits = seconds.strip_prefix('-').unwrap_or(seconds);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if seconds.starts_with('-') || digits.bytes().all(|b| b == b'0') {
        return Some(Timestamp::MIN);
    }
    let seconds = digits.parse().unwrap_or(i64::MAX);
    Some(now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
}

/// A date as lenient as RFC 6265 5.1.1 asks for: tokens in any order.
fn parse_date(text: &str) -> Option<Timestamp> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let delimiter = |c: char| !(c.is_ascii_alphanumeric() || c == ':' || !c.is_ascii());
    for token in text.split(delimiter).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = parse_time(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = leading_number(token, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = parse_month(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = leading_number(token, 2, 4)
        {
            year = Some(found);
        }
    }
    let year = match year? {
        year @ 70..=99 => 1900 + year,
        year @ 0..=69 => 2000 + year,
        year => year,
    };
    let (hour, minute, second) = time?;
    let date =
        civil::Date::new(i16::try_from(year).ok().filter(|year| *year >= 1601)?, month?, day? as i8).ok()?;
    let time = civil::Time::new(hour, minute, second, 0).ok()?;
    date.to_datetime(time).to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// The digits in front of `token`, if they are so many and no more follow.
fn leading_number(token: &str, least: usize, most: usize) -> Option<u16> {
    let digits = token.bytes().take_while(u8::is_ascii_digit).count();
    if digits < least || digits > most { None } else { token[..digits].parse().ok() }
}

fn parse_time(token: &str) -> Option<(i8, i8, i8)> {
    let mut parts = token.splitn(3, ':').map(|part| leading_number(part, 1, 2).map(|n| n as i8));
    Some((parts.next()??, parts.next()??, parts.next()??))
}

fn parse_month(token: &str) -> Option<i8> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let first = token.get(..3)?;
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(first)).map(|at| at as i8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_every_form() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some("1994-11-06T08:49:37Z")),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some("1994-11-06T08:49:37Z")),
            ("Sun Nov  6 08:49:37 1994", Some("1994-11-06T08:49:37Z")),
            ("Thu, 1-Jan-2037 0:0:1", Some("2037-01-01T00:00:01Z")),
            ("06 Nov 26 08:49:37", Some("2026-11-06T08:49:37Z")),
            ("06 Nov 1500 08:49:37", None),
            ("31 Feb 2026 08:49:37", None),
            ("06 Nov 2026 25:49:37", None),
            ("06 Nov 2026", None),
            ("tomorrow", None),
            ("", None),
            ("ü ü ü", None),
        ] {
            assert_eq!(parse_date(text).map(|date| date.to_string()).as_deref(), expected, "{text}");
        }
    }
}
