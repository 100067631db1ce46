//! Which characters the bytes of a document stand for.

use std::borrow::Cow;

use encoding_rs::{Encoding, ISO_2022_JP, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};
use htmlscan::{CharsetSource, charset_labels};

/// How much is shown to the detector. More changes its mind rarely and costs time always.
const DETECTION_SAMPLE: usize = 32 * 1024;

/// What is known of a document's encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Charset {
    pub(super) encoding: &'static Encoding,
    /// For the log, in Heritrix's words.
    pub(super) annotation: Option<String>,
}

/// By byte order mark, header, declaration in the document, or a look at the bytes; in this order, as browsers do.
pub(super) fn charset(content_type: Option<&str>, head: &[u8]) -> Charset {
    let mut annotation = None;
    for label in charset_labels(content_type, head) {
        let kind = match label.source {
            CharsetSource::Mark | CharsetSource::Letters => "",
            CharsetSource::Header => "Header",
            CharsetSource::Xml => "XML",
            CharsetSource::Css => "CSS",
            CharsetSource::Html => "HTML",
        };
        let declared = !matches!(kind, "" | "Header");
        match Encoding::for_label(label.meant()) {
            Some(encoding) if declared && label.meant() == label.label => {
                let annotation =
                    annotation.or_else(|| Some(format!("usingCharsetIn{kind}:{}", encoding.name())));
                return Charset { encoding, annotation };
            }
            Some(encoding) => {
                let annotation = annotation.filter(|_| label.source == CharsetSource::Letters);
                return Charset { encoding, annotation };
            }
            None => annotation = Some(format!("unsatisfiableCharsetIn{kind}:{}", printable(label.label))),
        }
    }
    Charset { encoding: detect(&head[..head.len().min(DETECTION_SAMPLE)]), annotation }
}

fn detect(sample: &[u8]) -> &'static Encoding {
    // The sample may end within a character.
    let whole = match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    if whole && !sample.contains(&0x1b) {
        return UTF_8;
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(sample, false);
    detector.guess(None, chardetng::Utf8Detection::Allow)
}

/// A label from outside, fit for a log line.
fn printable(label: &[u8]) -> String {
    label
        .iter()
        .take(40)
        .map(|b| if b.is_ascii_graphic() && *b != b',' { char::from(*b) } else { '?' })
        .collect()
}

/// Whether markup can be found in the bytes as they are: ASCII characters stand for themselves, and `<`, `>`,
/// quotes, `=`, `/` and blanks never are a part of another character.
pub(super) fn is_ascii_safe(encoding: &'static Encoding) -> bool {
    encoding != UTF_16LE && encoding != UTF_16BE && encoding != ISO_2022_JP && encoding != REPLACEMENT
}

/// A piece of a document as text. Bytes that mean nothing become U+FFFD.
pub(super) fn decode<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> Cow<'a, str> {
    if encoding == UTF_8 || bytes.is_ascii() {
        return String::from_utf8_lossy(bytes);
    }
    encoding.decode_without_bom_handling(bytes).0
}
