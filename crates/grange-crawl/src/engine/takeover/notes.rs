//! What the metadata record of a capture says: how the crawl came to the URL, and where its answer leads.

use std::borrow::Cow;
use std::time::Duration;

use url::Url;

use crate::hops::{Hop, Hops};
use crate::link::Link;

/// The lines of a metadata record that a crawl is continued from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CaptureNotes {
    pub(super) hops: Hops,
    pub(super) via: Option<String>,
    pub(super) source: Option<String>,
    pub(super) duration: Duration,
    pub(super) annotations: String,
    pub(super) extractor: Option<String>,
    /// Of a revisit, whose record holds no body: the bytes of the body and of the whole answer.
    pub(super) size: Option<u64>,
    pub(super) content_size: Option<u64>,
    pub(super) links: Vec<Link>,
}

impl CaptureNotes {
    /// None if the lines do not say how the crawl came to the URL.
    pub(super) fn parse(block: &[u8]) -> Option<CaptureNotes> {
        let text = String::from_utf8_lossy(block);
        let (mut notes, mut hops) = (CaptureNotes::default(), None);
        for line in text.split('\n').map(|line| line.trim_end_matches('\r')) {
            let Some((name, value)) = line.split_once(": ") else { continue };
            match name {
                "seed" => hops = Some(Hops::seed()),
                "hopsFromSeed" => hops = value.parse().ok(),
                "via" => notes.via = Some(value.to_owned()),
                "sourceTag" => notes.source = Some(value.to_owned()),
                "fetchTimeMs" => notes.duration = Duration::from_millis(value.parse().unwrap_or_default()),
                "annotations" => value.clone_into(&mut notes.annotations),
                "extractor" => notes.extractor = Some(value.to_owned()),
                "size" => notes.size = value.parse().ok(),
                "contentSize" => notes.content_size = value.parse().ok(),
                "outlink" => notes.links.extend(link(value)),
                _ => {}
            }
        }
        notes.hops = hops?;
        Some(notes)
    }
}

/// `URL L a/@href`. The context is of no use any more.
fn link(text: &str) -> Option<Link> {
    let (url, rest) = text.split_once(' ')?;
    let hop = Hop::from_letter(*rest.as_bytes().first()?)?;
    Some(Link { url: Url::parse(url).ok()?, hop, context: Cow::Borrowed("") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_metadata_record_come_back() {
        let text = "via: http://e.org/\r\nhopsFromSeed: LR\r\nsourceTag: http://seed.org/\r\nfetchTimeMs: 81\r\n\
                    tls: 1.3\r\nannotations: 2t,\"a: b\"\r\nextractor: extractorHtml\r\nsize: 7\r\ncontentSize: 90\r\n\
                    outlink: http://e.org/a L a/@href\r\noutlink: http://e.org/b E img/@src x y\r\noutlink: x\r\n";
        let notes = CaptureNotes::parse(text.as_bytes()).unwrap();
        let expected = CaptureNotes {
            hops: "LR".parse().unwrap(),
            via: Some("http://e.org/".to_owned()),
            source: Some("http://seed.org/".to_owned()),
            duration: Duration::from_millis(81),
            annotations: "2t,\"a: b\"".to_owned(),
            extractor: Some("extractorHtml".to_owned()),
            size: Some(7),
            content_size: Some(90),
            links: [("http://e.org/a", Hop::Link), ("http://e.org/b", Hop::Embed)]
                .map(|(url, hop)| Link { url: Url::parse(url).unwrap(), hop, context: Cow::Borrowed("") })
                .to_vec(),
        };
        assert_eq!(notes, expected);
        assert!(CaptureNotes::parse(b"seed: \r\nfetchTimeMs: 1\r\n").unwrap().hops.is_seed());
        for unexplained in ["", "fetchTimeMs: 1\r\n", "hopsFromSeed: nonsense\r\n", "\u{0}\u{ff}"] {
            assert_eq!(CaptureNotes::parse(unexplained.as_bytes()), None, "{unexplained:?}");
        }
    }
}
