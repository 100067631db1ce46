//! From an identifier to a path and back. Identifiers come from strangers; no path leaves its folder.
//!
//! ```text
//! oai:ilLib:alliance:1234     ilLib/alliance/1234.xml           the scheme goes, parts become folders
//! hdl:2027/x                  =hdl/2027%2Fx.xml                 other schemes stay, and are marked
//! oai:x:..                    x/%2E%2E.xml                      bytes outside A-Z a-z 0-9 . _ - become %XX
//! oai:x::1                    x/%/1.xml                         an empty part
//! oai:x:<300 letters>         x/<200 letters>%/<100>.xml        a long part goes on below a folder that ends in %
//! ```
//!
//! Other formats than `oai_dc` lie below `@prefix/`. Neither `=`, `@`, `+` nor a bare `%` can come from an identifier,
//! and the folders `starting_at_…` of [`super::place`] are escaped where an identifier has them, so every path reads
//! back as the identifier it was made from.

/// Longest part of a path: file systems allow 255 bytes, and the ending and a mark have to fit.
const PART_BYTES_MAX: usize = 200;
/// Longest path of one identifier. PATH_MAX is 4,096 bytes for all of it, with the folder of the repository.
const PATH_BYTES_MAX: usize = 2_000;
/// Every repository must offer it, so it needs no folder of its own.
const COMMON_PREFIX: &str = "oai_dc";
/// What every file ends in.
const ENDING: &str = ".xml";

/// Where a record's file belongs: the folder, relative to the repository's, and the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPath {
    /// Without a slash at the end; empty for the repository's own folder.
    pub folder: String,
    pub file: String,
}

/// The place of a record. With `parse_id` the identifier's parts become folders, else it is one file name.
pub fn of(identifier: &str, prefix: &str, parse_id: bool) -> RecordPath {
    let mut parts = Vec::new();
    if prefix != COMMON_PREFIX {
        parts.push(format!("@{}", escaped(prefix, false)));
    }
    let start = parts.len();
    match identifier.strip_prefix("oai:") {
        Some(rest) if parse_id => push_parts(&mut parts, rest),
        _ if parse_id => {
            push_parts(&mut parts, identifier);
            if let Some(first) = parts.get_mut(start) {
                first.insert(0, '=');
            }
        }
        _ => push_part(&mut parts, identifier, true),
    }
    if parts[start..].iter().map(|part| part.len() + 1).sum::<usize>() > PATH_BYTES_MAX {
        // Nobody's name is that long; the row keeps it, the file is found by its digest.
        parts.truncate(start);
        parts.push(format!("+{}", blake3::hash(identifier.as_bytes()).to_hex()));
    }
    let file = parts.pop().unwrap_or_else(|| "%".to_owned()) + ENDING;
    RecordPath { folder: parts.join("/"), file }
}

/// The identifier a path was made from; `None` for paths that are not ours, and for identifiers too long for one.
pub fn identifier_of(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').filter(|part| !is_overflow(part)).collect();
    let file = parts.pop()?.strip_suffix(ENDING)?;
    if parts.first().is_some_and(|part| part.starts_with('@')) {
        parts.remove(0);
    }
    parts.push(file);
    let foreign = parts[0].strip_prefix('=');
    if let Some(rest) = foreign {
        parts[0] = rest;
    }
    let whole_name = foreign.is_none() && parts[0].contains("%3A");
    let mut identifier = String::new();
    let mut part = Vec::new();
    let mut pieces = parts.iter().peekable();
    while let Some(piece) = pieces.next() {
        // A folder that ends in a bare % goes on in the next piece; a part that is only % is empty.
        let goes_on = piece.len() > 1 && piece.ends_with('%');
        let text = if goes_on { &piece[..piece.len() - 1] } else { piece };
        if text != "%" {
            unescape(text, &mut part)?;
        }
        if !goes_on {
            identifier.push_str(std::str::from_utf8(&part).ok()?);
            part.clear();
            if pieces.peek().is_some() {
                identifier.push(':');
            }
        }
    }
    Some(if foreign.is_some() || whole_name { identifier } else { format!("oai:{identifier}") })
}

/// Whether a folder is one of those that take what a full folder cannot.
pub fn is_overflow(part: &str) -> bool {
    part.strip_prefix("starting_at_")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn push_parts(parts: &mut Vec<String>, text: &str) {
    let mut rest = text.split(':').peekable();
    while let Some(part) = rest.next() {
        push_part(parts, part, rest.peek().is_none());
    }
}

/// Adds one part of an identifier, cut where it is longer than a name may be.
fn push_part(parts: &mut Vec<String>, text: &str, last: bool) {
    let mut name = escaped(text, last);
    while name.len() > PART_BYTES_MAX {
        let mut cut = PART_BYTES_MAX;
        // An escape is never cut in two.
        while name.as_bytes()[cut - 1] == b'%' || name.as_bytes()[cut - 2] == b'%' {
            cut -= 1;
        }
        let rest = name.split_off(cut);
        name.push('%');
        parts.push(name);
        name = rest;
    }
    parts.push(name);
}

fn escaped(text: &str, last: bool) -> String {
    if text.is_empty() {
        return "%".to_owned();
    }
    let bytes = text.as_bytes();
    let hide_first = is_device(text) || is_overflow(text);
    let hide_last = bytes.ends_with(b".") || (!last && text.to_ascii_lowercase().ends_with(ENDING));
    let mut name = String::with_capacity(bytes.len() + 8);
    for (index, byte) in bytes.iter().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let hidden = (index == 0 && (hide_first || *byte == b'.'))
            || (index + 1 == bytes.len() && hide_last)
            // Each piece of a long part begins anew, where a dot or the name of an overflow folder would mean something.
            || (index > 0 && matches!(byte, b'.' | b'_') && bytes.len() > PART_BYTES_MAX);
        if plain && !hidden {
            name.push(char::from(*byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            name.push('%');
            name.push(char::from(HEX[usize::from(byte >> 4)]));
            name.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    name
}

fn unescape(text: &str, into: &mut Vec<u8>) -> Option<()> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
            into.push((high * 16 + low) as u8);
        } else {
            into.push(byte);
        }
    }
    Some(())
}

/// Names that Windows keeps for itself, with or without an ending: archives travel.
fn is_device(text: &str) -> bool {
    let stem = text.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |name: &str| {
        stem.strip_prefix(name).is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    fn path(identifier: &str, prefix: &str, parse_id: bool) -> String {
        let RecordPath { folder, file } = of(identifier, prefix, parse_id);
        if folder.is_empty() { file } else { format!("{folder}/{file}") }
    }

    #[test]
    fn identifiers_become_paths_as_in_the_document() {
        for (identifier, expected) in [
            ("oai:ilLib:alliance:1234", "ilLib/alliance/1234.xml"),
            ("oai:arXiv.org:cs/0112017", "arXiv.org/cs%2F0112017.xml"),
            ("hdl:2027/x", "=hdl/2027%2Fx.xml"),
            ("1234", "=1234.xml"),
            ("http://x/y", "=http/%2F%2Fx%2Fy.xml"),
            ("oai:x:..", "x/%2E%2E.xml"),
            ("oai:../../etc:passwd", "%2E.%2F..%2Fetc/passwd.xml"),
            ("oai::", "%/%.xml"),
            ("", "=%.xml"),
            ("oai:x:CON", "x/%43ON.xml"),
            ("oai:com1.txt:1", "%63om1.txt/1.xml"),
            ("oai:a.xml:b.xml", "a.xm%6C/b.xml.xml"),
            ("oai:starting_at_5000:1", "%73tarting_at_5000/1.xml"),
            ("oai:x:\u{e9} \0%", "x/%C3%A9%20%00%25.xml"),
        ] {
            assert_eq!(path(identifier, "oai_dc", true), expected);
            assert_eq!(identifier_of(expected).as_deref(), Some(identifier));
        }
        assert_eq!(path("oai:x:1", "oai_dc", false), "oai%3Ax%3A1.xml");
        assert_eq!(path("oai:x:1", "marc21", true), "@marc21/x/1.xml");
        assert_eq!(identifier_of("@marc21/x/starting_at_5000/1.xml").as_deref(), Some("oai:x:1"));
        for foreign in ["x/1.txt", "x/%zz.xml", "x/%C3.xml"] {
            assert_eq!(identifier_of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_name_too_long_for_any_path_is_found_by_its_digest() {
        let path = path(&format!("oai:x:{}", "é".repeat(2_000)), "oai_dc", true);
        assert!(path.starts_with('+') && path.len() < 100, "{path}");
    }

    fn identifiers() -> impl Strategy<Value = String> {
        let hostile = prop::sample::select(vec![
            "oai:",
            ":",
            "..",
            "/",
            "\\",
            ".",
            "%",
            "CON",
            "starting_at_5000",
            ".xml",
            "=",
            "@",
            "+",
            "é",
            " ",
            "\u{0}",
            "~",
        ]);
        let piece = prop_oneof![hostile.prop_map(str::to_owned), "\\PC{0,8}", "[a-zA-Z0-9:]{0,300}"];
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_identifier_reads_back_and_stays_inside(identifier in identifiers(), parse_id: bool) {
            let path = path(&identifier, "oai_dc", parse_id);
            let inside = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
            prop_assert!(inside && !path.starts_with('/'), "{}", path);
            prop_assert!(path.split('/').all(|part| part.len() <= PART_BYTES_MAX + 5 && !part.starts_with('.')));
            if !path.starts_with('+') && (parse_id || identifier.contains(':')) {
                prop_assert_eq!(identifier_of(&path), Some(identifier), "{}", path);
            }
        }

        #[test]
        fn two_identifiers_never_share_a_path(one in identifiers(), two in identifiers()) {
            prop_assume!(one != two);
            prop_assert_ne!(path(&one, "oai_dc", true), path(&two, "oai_dc", true));
        }

        #[test]
        fn no_path_panics(text in "\\PC{0,40}") {
            let _ = identifier_of(&text);
        }
    }
}
