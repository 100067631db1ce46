//! Characters and names that XML 1.0 and its namespaces allow.

/// A character that may stand in a document.
pub(crate) fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fn is_name_start(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '_'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
        | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}'
        | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

fn is_ncname(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(is_name_start) && chars.all(is_name_char)
}

/// Prefix and local name, if both are sound and the prefix is not one of those that XML keeps for itself.
pub(crate) fn split(name: &str) -> Option<(&str, &str)> {
    match memchr::memchr(b':', name.as_bytes()) {
        None => is_ncname(name).then_some(("", name)),
        Some(colon) => {
            let (prefix, local) = (&name[..colon], &name[colon + 1..]);
            (is_ncname(prefix) && is_ncname(local) && prefix != "xmlns").then_some((prefix, local))
        }
    }
}

/// A target a processing instruction may have.
pub(crate) fn is_target(name: &str) -> bool {
    is_ncname(name) && !name.eq_ignore_ascii_case("xml")
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn names_have_at_most_one_prefix() {
        for (name, parts) in [
            ("dc", Some(("", "dc"))),
            ("oai_dc:dc", Some(("oai_dc", "dc"))),
            ("é:ü-1.2", Some(("é", "ü-1.2"))),
            ("a:b:c", None),
            (":a", None),
            ("a:", None),
            ("", None),
            ("1a", None),
            ("a:1", None),
            ("a b", None),
            ("xmlns:a", None),
            ("a\u{D7}", None),
        ] {
            assert_eq!(split(name), parts, "{name}");
        }
    }
}
