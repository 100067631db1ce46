//! Playlists (m3u8): segments, variants, keys, subtitles.

use encoding_rs::Encoding;

use super::charset::decode;
use super::links::Links;
use super::sitemap::each_line;
use super::source::Source;
use crate::hops::Hop;

const CONTEXT: &str = "=EMBED_MISC";

/// Adds what a playlist plays.
pub(super) fn playlist(source: Source<'_>, encoding: &'static Encoding, limit: u64, links: &mut Links) {
    each_line(source, limit, |line| {
        if !line.starts_with(b"#") {
            links.add(&decode(encoding, line), Hop::Embed, CONTEXT);
            return;
        }
        let mut rest = line;
        while let Some(at) = memchr::memmem::find(rest, b"URI=\"") {
            rest = &rest[at + 5..];
            let Some(end) = memchr::memchr(b'"', rest) else { return };
            links.add(&decode(encoding, &rest[..end]), Hop::Embed, CONTEXT);
            rest = &rest[end..];
        }
    });
}
