//! Playlists of films and sounds (M3U, and M3U8 of HTTP Live Streaming, RFC 8216): a line that is not a comment is an address, and
//! tags name others in `URI="…"`.
//!
//! Players that browsers bring along ask for these addresses themselves, where no script of ours could change them.

use std::ops::Range;

use super::place::Place;
use super::work;

/// The playlist with its addresses rewritten; `None` when there is nothing to change.
pub(super) fn rewrite(text: &str, place: &Place) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        let line = &text[at..];
        let line = &line[..memchr::memchr(b'\n', line.as_bytes()).map_or(line.len(), |end| end + 1)];
        if line.starts_with('#') {
            let mut from = 0;
            while let Some(value) = uri(line, from) {
                from = value.end;
                replace(text, place, at + value.start..at + value.end, &mut out, &mut copied);
            }
        } else {
            let start = at + line.len() - line.trim_start().len();
            replace(text, place, start..start + line.trim().len(), &mut out, &mut copied);
        }
        at += line.len();
        work::spend(line.len());
        if work::is_over() || work::is_outgrown(text.len(), out.len()) {
            return None;
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

fn replace(text: &str, place: &Place, address: Range<usize>, out: &mut String, copied: &mut usize) {
    if let Some(link) = place.changed(&text[address.clone()], place.modifier()) {
        out.push_str(&text[*copied..address.start]);
        out.push_str(&link);
        *copied = address.end;
    }
}

/// Where the next address stands in a tag, from `from` on.
fn uri(line: &str, from: usize) -> Option<Range<usize>> {
    const NAME: &str = "URI=\"";
    let start = memchr::memmem::find(&line.as_bytes()[from..], NAME.as_bytes())? + from + NAME.len();
    let len = memchr::memchr(b'"', &line.as_bytes()[start..])?;
    Some(start..start + len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::Modifier;

    #[test]
    fn addresses_of_a_playlist_stay_in_the_archive() {
        let place = Place::new("http://r", "/c/", "2020", Modifier::Object, "https://v.org/films/a.m3u8");
        for (playlist, expected) in [
            (
                "#EXTM3U\n#EXTINF:9,\nhttp://cdn.org/1.ts\n",
                Some("#EXTM3U\n#EXTINF:9,\n/c/2020oe_/http://cdn.org/1.ts\n"),
            ),
            (
                "#EXTM3U\r\nhttps://cdn.org/1.ts?a=b,c\r\n",
                Some("#EXTM3U\r\n/c/2020oe_/https://cdn.org/1.ts?a=b,c\r\n"),
            ),
            ("  http://cdn.org/1.ts  ", Some("  /c/2020oe_/http://cdn.org/1.ts  ")),
            ("//cdn.org/1.ts", Some("/c/2020oe_/https://cdn.org/1.ts")),
            ("/1.ts\n/2.ts", Some("/c/2020oe_/https://v.org/1.ts\n/c/2020oe_/https://v.org/2.ts")),
            (
                "#EXT-X-KEY:METHOD=AES-128,URI=\"https://k.org/key\",IV=0x1\n#EXT-X-MAP:URI=\"init.mp4\"\n",
                Some(
                    "#EXT-X-KEY:METHOD=AES-128,URI=\"/c/2020oe_/https://k.org/key\",IV=0x1\n#EXT-X-MAP:URI=\"init.mp4\"\n",
                ),
            ),
            (
                "#EXT-X-A:URI=\"http://a/\",X-ASSET-URI=\"http://b/\"",
                Some("#EXT-X-A:URI=\"/c/2020oe_/http://a/\",X-ASSET-URI=\"/c/2020oe_/http://b/\""),
            ),
            ("#EXTM3U\n1.ts\nsub/2.ts\n", None),
            ("# http://cdn.org/ is a comment\n", None),
            ("#EXT-X-KEY:URI=\"https://k.org/key", None),
            ("#EXT-X-KEY:METHOD=NONE\n\n", None),
            ("", None),
        ] {
            assert_eq!(rewrite(playlist, &place).as_deref(), expected, "{playlist}");
        }
    }
}
