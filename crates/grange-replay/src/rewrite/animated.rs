//! Animated links of SVG: `<set attributeName="href" to="…">` makes a link lead elsewhere after it was read.

use super::modifier::Modifier;
use super::place::Place;
use super::work;

/// Whether an element of this name, without its prefix, changes an attribute of another one.
pub(super) fn is_animation(tag: &str) -> bool {
    matches!(tag, "animate" | "set")
}

/// Whether the attribute that is changed holds a link, under whatever prefix.
pub(super) fn is_link(attribute: &str) -> bool {
    attribute.trim().rsplit(':').next().is_some_and(|name| name.eq_ignore_ascii_case("href"))
}

/// The attributes of an animation that hold values of the changed one.
pub(super) fn holds_values(name: &str) -> bool {
    matches!(name, "to" | "from" | "by" | "values")
}

/// A list of links, or one of them; `None` when there is nothing to change.
pub(super) fn rewrite(text: &str, place: &Place) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    for part in text.split(';') {
        work::spend(part.len() + 1);
        if let Some(link) = place.changed(part, Modifier::Main) {
            out.push_str(&text[copied..at]);
            out.push_str(&link);
            copied = at + part.len();
        }
        at += part.len() + 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_a_list_is_rewritten() {
        let place = Place::new("", "/c/", "2020", Modifier::Main, "https://e.org/a/b");
        for (text, expected) in [
            ("http://o.org/", Some("/c/2020mp_/http://o.org/")),
            ("#a;http://o.org/;/x", Some("#a;/c/2020mp_/http://o.org/;/c/2020mp_/https://e.org/x")),
            (" http://o.org/ ; #b", Some("/c/2020mp_/http://o.org/; #b")),
            ("#a;#b", None),
            ("10;20", None),
            ("", None),
            (";", None),
        ] {
            assert_eq!(rewrite(text, &place).as_deref(), expected, "{text}");
        }
    }
}
