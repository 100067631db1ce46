//! `cookies.txt`: one cookie per line, seven columns with tabs between.
//!
//! ```text
//! domain  TRUE if it holds below the domain  path  TRUE if secure  expiry in seconds, 0 for none  name  value
//! ```
//! A line that starts with `#HttpOnly_` is a cookie that scripts may not see; other `#` lines are comments.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::{COOKIE_BYTES_MAX, Cookie};
use crate::fetch::settings::is_header_value;

const HTTP_ONLY: &str = "#HttpOnly_";

pub(super) fn parse(text: &str) -> Vec<Cookie> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Cookie> {
    let (line, http_only) = match line.strip_prefix(HTTP_ONLY) {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    if line.starts_with('#') {
        return None;
    }
    let mut columns = line.splitn(7, '\t');
    let domain = columns.next()?;
    let below = columns.next()? == "TRUE";
    let path = columns.next()?;
    let secure = columns.next()? == "TRUE";
    let expires: f64 = columns.next()?.parse().ok()?;
    let name = columns.next()?;
    let value = columns.next().unwrap_or_default();
    let domain = domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase();
    let sound = !domain.is_empty()
        && path.starts_with('/')
        && !name.is_empty()
        && name.len() + value.len() <= COOKIE_BYTES_MAX
        && is_header_value(name.as_bytes())
        && is_header_value(value.as_bytes());
    sound.then(|| Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain,
        host_only: !below,
        path: path.to_owned(),
        secure,
        http_only,
        // Some browsers write fractions.
        expires: (expires > 0.0).then(|| Timestamp::from_second(expires as i64).unwrap_or(Timestamp::MAX)),
    })
}

pub(super) fn write<'a>(cookies: impl IntoIterator<Item = &'a Cookie>) -> String {
    let mut text = "# Netscape HTTP Cookie File\n".to_owned();
    let truth = |is: bool| if is { "TRUE" } else { "FALSE" };
    for cookie in cookies {
        let marks = if cookie.http_only { HTTP_ONLY } else { "" };
        let dot = if cookie.host_only { "" } else { "." };
        let expires = cookie.expires.map_or(0, |expires| expires.as_second().max(1));
        let _ = writeln!(
            text,
            "{marks}{dot}{}\t{}\t{}\t{}\t{expires}\t{}\t{}",
            cookie.domain,
            truth(!cookie.host_only),
            cookie.path,
            truth(cookie.secure),
            cookie.name,
            cookie.value,
        );
    }
    text
}
