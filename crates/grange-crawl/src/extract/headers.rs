//! Links in the head of an answer.

use encoding_rs::WINDOWS_1252;

use super::html::{Directives, refresh_target};
use super::links::Links;
use super::rel;
use crate::hops::Hop;

/// Adds the links of the header fields; tells what they ask of robots.
pub(super) fn headers(headers: &[(&[u8], &[u8])], links: &mut Links) -> Directives {
    let mut directives = Directives::default();
    for (name, value) in headers {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        if is("location") {
            links.add(&text(value), Hop::Redirect, "Location:");
        } else if is("refresh") {
            if let Some(target) = refresh_target(&text(value)) {
                links.add(target, Hop::Redirect, "Refresh:");
            }
        } else if is("content-location") {
            links.add(&text(value), Hop::Inferred, "Content-Location:");
        } else if is("link") {
            link_header(&text(value), links);
        } else if is("x-robots-tag") {
            // `agent: directives` speaks to others.
            let value = text(value);
            if !value.contains(':') || value.trim_start().starts_with("unavailable_after") {
                directives.read(&value);
            }
        }
    }
    directives
}

/// Header fields should be ASCII. Those that are not are UTF-8 by now, or old.
fn text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(value).0.into_owned(),
    }
}

/// `Link: <url>; rel=next, <url>; rel="preload"; as=font` (RFC 8288).
fn link_header(value: &str, links: &mut Links) {
    let mut rest = value;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((target, after)) = after.split_once('>') else { return };
        let end = parameters_end(after);
        let (parameters, next) = after.split_at(end);
        rest = next;
        let rel = parameters
            .split(';')
            .filter_map(|parameter| parameter.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("rel"))
            .map_or("", |(_, value)| value.trim().trim_matches('"'));
        if let Some(hop) = rel::hop(rel) {
            links.add(target, hop, "Link:");
        }
    }
}

/// The comma that ends the parameters of one link: not one within quotes.
fn parameters_end(text: &str) -> usize {
    let mut quoted = false;
    text.find(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .unwrap_or(text.len())
}
