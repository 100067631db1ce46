//! Internationalised host names, both ways, by the two standards in use.
//!
//! Keys follow IDNA 2003 because every known archive index does: `straße.de` is keyed as `strasse.de`.
//! Everything that talks to the living web follows WHATWG (UTS 46), where it is `xn--strae-oqa.de`.

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use std::borrow::Cow;

const LABEL_BYTES_MAX: usize = 63;

/// Far beyond what 63 bytes of ASCII can express; encoding costs the square of the length.
const LABEL_INPUT_BYTES_MAX: usize = 1000;

/// The ASCII form of a host name by WHATWG rules, or `None` when no resolver could know it.
///
/// ```
/// assert_eq!(urlkey::host_to_ascii("Bücher.example").as_deref(), Some("xn--bcher-kva.example"));
/// assert_eq!(urlkey::host_to_ascii("xn--a"), None);
/// ```
#[must_use]
pub fn host_to_ascii(host: &str) -> Option<String> {
    idna::domain_to_ascii(host).ok().filter(|ascii| !ascii.is_empty())
}

/// The form of a host name that people read; labels that do not decode stay as they are.
///
/// ```
/// assert_eq!(urlkey::host_to_unicode("xn--bcher-kva.example"), "bücher.example");
/// assert_eq!(urlkey::host_to_unicode("192.0.2.1"), "192.0.2.1");
/// ```
#[must_use]
pub fn host_to_unicode(host: &str) -> String {
    let mut out = String::with_capacity(host.len());
    for (i, label) in host.split('.').enumerate() {
        if i > 0 {
            out.push('.');
        }
        match idna::domain_to_unicode(label) {
            (unicode, Ok(())) => out.push_str(&unicode),
            (_, Err(_)) => out.push_str(label),
        }
    }
    out
}

/// IDNA 2003 for keys: undecodable bytes are dropped, a host that cannot be expressed gives `None`.
pub(crate) fn to_ascii_2003(host: &[u8]) -> Option<String> {
    let text: String = host.utf8_chunks().map(|chunk| chunk.valid()).collect();
    if text.is_ascii() {
        let (last, rest) =
            text.split('.').next_back().map(|last| (last, &text[..text.len() - last.len()]))?;
        let rest_whole = rest.is_empty() || rest[..rest.len() - 1].split('.').all(label_fits);
        return (rest_whole && last.len() <= LABEL_BYTES_MAX).then_some(text);
    }
    let mut labels: Vec<&str> = text.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']).collect();
    let trailing_dot = labels.last() == Some(&"");
    if trailing_dot {
        labels.pop();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (i, label) in labels.into_iter().enumerate() {
        if i > 0 {
            out.push('.');
        }
        let ascii = label_to_ascii_2003(label)?;
        out.push_str(&ascii);
    }
    if trailing_dot {
        out.push('.');
    }
    Some(out)
}

fn label_to_ascii_2003(label: &str) -> Option<Cow<'_, str>> {
    if label.is_ascii() {
        return label_fits(label).then_some(Cow::Borrowed(label));
    }
    if label.len() > LABEL_INPUT_BYTES_MAX {
        return None;
    }
    // The four characters on which the standards part ("deviations"); all else maps alike.
    let mut mapped = String::with_capacity(label.len());
    for c in label.chars() {
        match c {
            'ß' | 'ẞ' => mapped.push_str("ss"),
            'ς' => mapped.push('σ'),
            '\u{200c}' | '\u{200d}' => {}
            c => mapped.push(c),
        }
    }
    let ascii = Uts46::new()
        .to_ascii(mapped.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .map_or_else(|_| encode_as_is(&mapped), |ascii| Some(ascii.into_owned()))?;
    label_fits(&ascii).then_some(Cow::Owned(ascii))
}

/// UTS 46 refuses more than IDNA 2003 does, such as labels of Arabic digits alone: those are encoded as they are.
fn encode_as_is(label: &str) -> Option<String> {
    let label = label.to_lowercase();
    if label.starts_with("xn--") || label.chars().any(is_refused_2003) {
        return None;
    }
    Some(format!("xn--{}", idna::punycode::encode_str(&label)?))
}

/// Refused by the older standard too. Letters written from right to left stand here because a label that holds
/// them and fails has failed the same check of direction.
fn is_refused_2003(c: char) -> bool {
    let right_to_left =
        matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
    c.is_control()
        || c.is_whitespace()
        || (right_to_left && c.is_alphabetic())
        || matches!(c,
            '\u{340}' | '\u{341}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{206a}'..='\u{206f}'
            | '\u{2ff0}'..='\u{2ffb}' | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{ffff}'
            | '\u{e0001}' | '\u{e0020}'..='\u{e007f}' | '\u{f0000}'..)
}

fn label_fits(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
}
