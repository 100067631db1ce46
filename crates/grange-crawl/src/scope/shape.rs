//! What is left of a URL without its opaque parts: session ids, hashes, long numbers. URLs of one shape differ only
//! in those.

use url::{Position, Url};

/// Shorter parts are names and the numbers of articles.
pub(super) const OPAQUE_LENGTH_MIN: usize = 8;

/// Tokens in the text of a page are left out from this length on: 64 bits in hexadecimal digits.
const TOKEN_LENGTH_MIN: usize = 16;

/// Opaque parts of one URL that are told apart; what follows belongs to the shape. Real ones have up to four.
const VALUES_MAX: usize = 16;

/// A URL with `*` for each opaque part of its path and query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape<'a> {
    /// From the host on.
    text: String,
    values: Vec<OpaqueValue<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpaqueValue<'a> {
    text: &'a str,
    /// Where its `*` is in the text.
    at: usize,
}

impl<'a> Shape<'a> {
    /// None if nothing of the URL is opaque.
    pub(super) fn of(url: &'a Url) -> Option<Shape<'a>> {
        let rest = &url[Position::BeforePath..Position::AfterQuery];
        if !pieces(rest).any(|piece| piece.is_word && is_opaque(piece.text)) {
            return None;
        }
        let mut text = url[Position::BeforeHost..Position::BeforePath].to_owned();
        let mut values = Vec::new();
        for piece in pieces(rest) {
            if piece.is_word && values.len() < VALUES_MAX && is_opaque(piece.text) {
                values.push(OpaqueValue { text: piece.text, at: text.len() });
                text.push('*');
            } else {
                text.push_str(piece.text);
            }
        }
        Some(Shape { text, values })
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The same on every machine and in every version: it is kept over restarts.
    pub(super) fn key(&self) -> u64 {
        first_bits(&blake3::hash(self.text.as_bytes()))
    }

    /// The values of `other` that are in a place where this has another value.
    pub(super) fn replaced_by<'b>(&self, other: &Shape<'b>) -> impl Iterator<Item = &'b str> {
        let is_here = |at: usize| self.values.iter().any(|own| self.text[..own.at] == other.text[..at]);
        other
            .values
            .iter()
            .filter(move |value| is_here(value.at) && !self.has_value(value.text))
            .map(|value| value.text)
    }

    /// Whether `other` has a value of this one in the same place.
    pub(super) fn shares_value(&self, other: &Shape<'_>) -> bool {
        other.values.iter().any(|value| {
            self.values
                .iter()
                .any(|own| own.text == value.text && self.text[..own.at] == other.text[..value.at])
        })
    }

    fn has_value(&self, text: &str) -> bool {
        self.values.iter().any(|own| own.text == text)
    }
}

pub(super) fn first_bits(hash: &blake3::Hash) -> u64 {
    hash.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// A part of a text: a word, or what is between words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) is_word: bool,
}

/// A text in words and what is between them; together they are the text.
pub(super) fn pieces(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        let is_word = is_word_byte(*rest.as_bytes().first()?);
        let end = rest.bytes().position(|b| is_word_byte(b) != is_word).unwrap_or(rest.len());
        // A word ends and begins at an ASCII letter, so both are whole.
        let (text, after) = rest.split_at(end);
        rest = after;
        Some(Piece { text, is_word })
    })
}

/// Those of base64 for URLs, which has those of hexadecimal numbers and UUIDs.
const fn is_word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
}

/// Whether a word may be a session id, a hash or a number of a record. It is generous: the contents decide what comes of
/// it. Dates are not, so that the days of a calendar are not of one shape.
pub(super) fn is_opaque(word: &str) -> bool {
    let plain = || word.bytes().filter(u8::is_ascii_alphanumeric);
    let length = plain().count();
    if length < OPAQUE_LENGTH_MIN {
        return false;
    }
    let digits = plain().filter(u8::is_ascii_digit).count();
    if digits == length {
        let century: Vec<u8> = plain().take(2).collect();
        let is_date = matches!(length, 8 | 10 | 12 | 14) && matches!(&century[..], b"19" | b"20");
        return !is_date;
    }
    let has_inner_capital = plain().skip(1).any(|b| b.is_ascii_uppercase());
    digits > 0 || (has_inner_capital && plain().any(|b| b.is_ascii_lowercase()))
}

/// Whether a word of a text was made by a machine for this one response, as far as that can be seen: long, with letters
/// and digits in turn. Product codes are shorter.
pub(super) fn is_token(word: &str) -> bool {
    let length = word.len();
    if length < TOKEN_LENGTH_MIN {
        return false;
    }
    let turns = word
        .as_bytes()
        .windows(2)
        .filter(|pair| {
            (pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
                || (pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit())
        })
        .count();
    turns >= length / 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(text: &str) -> Option<String> {
        let url = Url::parse(&format!("http://h.example{text}")).unwrap();
        Shape::of(&url).map(|shape| shape.text["h.example".len()..].to_owned())
    }

    #[test]
    fn session_ids_hashes_and_long_numbers_are_opaque_and_names_and_dates_are_not() {
        for (url, expected) in [
            ("/s/8f3a9c21/page", Some("/s/*/page")),
            ("/s/8f3a9c21/", Some("/s/*/")),
            ("/8f3a9c21", Some("/*")),
            ("/(S(lit3py55t21z5v55vlm25s55))/default.aspx", Some("/(S(*))/default.aspx")),
            ("/a;jsessionid=0123456789ABCDEF0123456789ABCDEF.node1?x=1", Some("/a;jsessionid=*.node1?x=1")),
            ("/550e8400-e29b-41d4-a716-446655440000/x", Some("/*/x")),
            ("/page?token=kJhGfDsAqW&lang=da", Some("/page?token=*&lang=da")),
            ("/v/dQw4w9WgXcQ/8f3a9c21", Some("/v/*/*")),
            ("/sid/1731958839123", Some("/sid/*")),
            ("/article/12345", None),
            ("/article/1234567", None),
            ("/2026/11/18/", None),
            ("/archive/20261118/", None),
            ("/archive/2026-11-18/", None),
            ("/web/20261118123456/", None),
            ("/how-to-write-a-letter.html", None),
            ("/products/ACCESSORIES", None),
            ("/", None),
        ] {
            assert_eq!(shape(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn only_what_is_in_the_same_place_replaces_a_value() {
        let of = |text: &str| Url::parse(&format!("http://h.example{text}")).unwrap();
        let page = of("/s/aaaa1111/home");
        let page = Shape::of(&page).unwrap();
        for (link, expected, shares) in [
            ("/s/bbbb2222/about", vec!["bbbb2222"], false),
            ("/s/aaaa1111/about", vec![], true),
            ("/s/aaaa1111/item/cccc3333", vec![], true),
            ("/media/bbbb2222.jpg", vec![], false),
            ("/t/bbbb2222/about", vec![], false),
        ] {
            let link = of(link);
            let link = Shape::of(&link).unwrap();
            assert_eq!(page.replaced_by(&link).collect::<Vec<_>>(), expected, "{}", link.text);
            assert_eq!(page.shares_value(&link), shares, "{}", link.text);
        }
        let elsewhere = Url::parse("http://i.example/s/bbbb2222/home").unwrap();
        let elsewhere = Shape::of(&elsewhere).unwrap();
        assert_eq!(page.replaced_by(&elsewhere).count(), 0);
    }

    #[test]
    fn tokens_are_long_and_mixed() {
        for (word, expected) in [
            ("5d41402abc4b2a76b9719d911017c592", true),
            ("lit3py55t21z5v55vlm25s55", true),
            ("AB12345678", false),
            ("internationalisation", false),
            ("navigation-item-2", false),
            ("1234567890123456", false),
        ] {
            assert_eq!(is_token(word), expected, "{word}");
        }
    }

    proptest! {
        #[test]
        fn a_shape_and_its_values_are_the_url(text in "\\PC{0,60}") {
            let Ok(url) = Url::parse(&format!("http://h.example/{text}")) else { return Ok(()) };
            let Some(shape) = Shape::of(&url) else { return Ok(()) };
            let mut again = shape.text.clone();
            for value in shape.values.iter().rev() {
                prop_assert_eq!(&again[value.at..=value.at], "*");
                again.replace_range(value.at..=value.at, value.text);
            }
            prop_assert_eq!(again, &url[Position::BeforeHost..Position::AfterQuery]);
        }

        #[test]
        fn another_session_has_the_same_shape(
            before in "(/[a-z]{1,6}){0,3}", after in "(/[a-z]{1,6}){0,3}(\\?[a-z]{1,4}=[a-z]{1,4})?",
            one in "[0-9a-f]{6,30}[0-9][a-f][0-9]", other in "[0-9A-Za-z]{20,40}[a-z][0-9]",
        ) {
            let url = |id: &str| Url::parse(&format!("http://h.example{before}/{id}{after}")).unwrap();
            let (a, b) = (url(&one), url(&other));
            let (a, b) = (Shape::of(&a).unwrap(), Shape::of(&b).unwrap());
            prop_assert_eq!(&a.text, &b.text);
            prop_assert_eq!(a.key(), b.key());
            prop_assert_eq!(a.replaced_by(&b).collect::<Vec<_>>(), vec![other.as_str()]);
        }

        #[test]
        fn a_name_more_makes_another_shape(id in "[0-9a-f]{8,20}[0-9]", name in "[a-z]{1,7}") {
            let a = Url::parse(&format!("http://h.example/{id}1a/x")).unwrap();
            let b = Url::parse(&format!("http://h.example/{id}1a/x/{name}")).unwrap();
            prop_assert_ne!(Shape::of(&a).unwrap().key(), Shape::of(&b).unwrap().key());
        }
    }
}
