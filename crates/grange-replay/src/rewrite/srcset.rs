//! `srcset`: a list of addresses, each with a width or a density.

use super::modifier::Modifier;
use super::place::Place;
use super::work;

/// The list with its addresses rewritten; `None` when there is nothing to change. Split as the HTML standard does:
/// an address ends at white space, and commas at its end belong to the list.
pub(super) fn rewrite(text: &str, place: &Place) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let from = at;
        while bytes.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b',') {
            at += 1;
        }
        let start = at;
        while bytes.get(at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
            at += 1;
        }
        let mut end = at;
        let had_comma = end > start && bytes[end - 1] == b',';
        while end > start && bytes[end - 1] == b',' {
            end -= 1;
        }
        if let Some(link) = place.changed(&text[start..end], Modifier::Image) {
            out.push_str(&text[copied..start]);
            // A comma inside an address would be fine, but wombat splits at it.
            out.push_str(&link);
            copied = end;
        }
        if !had_comma {
            let mut depth = 0_u32;
            while let Some(&byte) = bytes.get(at) {
                match byte {
                    b'(' => depth += 1,
                    b')' => depth = depth.saturating_sub(1),
                    b',' if depth == 0 => break,
                    _ => {}
                }
                at += 1;
            }
        }
        work::spend(at - from);
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
    fn every_address_of_a_list_is_rewritten() {
        let place = Place::new("", "/c/", "20200102030405", Modifier::Main, "https://example.org/a/");
        let p = "/c/20200102030405im_/https://example.org";
        let cases = [
            ("/a.png", Some(format!("{p}/a.png"))),
            ("/a.png 1x, /b.png 2x", Some(format!("{p}/a.png 1x, {p}/b.png 2x"))),
            ("/a.png 100w,/b.png 200w", Some(format!("{p}/a.png 100w,{p}/b.png 200w"))),
            ("/a,b.png 1x, c.png", Some(format!("{p}/a,b.png 1x, c.png"))),
            ("/a.png, /b.png", Some(format!("{p}/a.png, {p}/b.png"))),
            (
                "data:image/png;base64,AA== 1x, /b.png 2x",
                Some(format!("data:image/png;base64,AA== 1x, {p}/b.png 2x")),
            ),
            ("a.png 1x, b.png 2x", None),
            (" , ", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(rewrite(text, &place), expected, "{text}");
        }
    }
}
