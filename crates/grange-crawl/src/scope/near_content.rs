//! What is left of a page without what a server puts into every response anew: session ids and tokens.

use std::collections::HashSet;

use url::Position;

use super::shape::{OPAQUE_LENGTH_MIN, Shape, first_bits, is_token, pieces};
use crate::hops::Hop;
use crate::link::Link;

/// A page of a URL with opaque parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NearContent {
    /// Pages with the same digest differ only in the session ids of their links, and in tokens that are part of no link.
    pub(super) digest: u64,
    /// The shapes of links and embeds that have an opaque part of its own URL, such as the pages of a section and the image
    /// of an album: if what they lead to is new, so is the page, whatever it says itself.
    pub(super) own_links: Vec<u64>,
}

/// Shapes with a part of the page's own URL that are looked at. One that is new is enough.
const OWN_LINKS_MAX: usize = 4;

/// None if the page does not lead on: no link has another value where its own URL has an opaque part.
///
/// Only those other values are left out. What else is in a link stays (the photo of a viewer page, the next page of a
/// list), and so do the values of the page's own URL: two pages that say different things have different digests.
pub(super) fn near_content(shape: &Shape<'_>, body: &[u8], links: &[Link]) -> Option<NearContent> {
    let mut next = HashSet::new();
    let mut leads_on = false;
    let own_key = shape.key();
    let mut own_links = Vec::new();
    for link in links {
        let Some(other) = Shape::of(&link.url) else { continue };
        let before = next.len();
        next.extend(shape.replaced_by(&other));
        leads_on |=
            link.hop != Hop::Embed && (next.len() > before || shape.replaced_by(&other).next().is_some());
        if own_links.len() < OWN_LINKS_MAX && shape.shares_value(&other) {
            let key = other.key();
            if key != own_key && !own_links.contains(&key) {
                own_links.push(key);
            }
        }
    }
    if !leads_on {
        return None;
    }
    let in_links: HashSet<&str> = links
        .iter()
        .flat_map(|link| pieces(&link.url[Position::BeforeHost..Position::AfterQuery]))
        .filter(|piece| piece.is_word && !next.contains(piece.text) && is_token(piece.text))
        .map(|piece| piece.text)
        .collect();
    let text = String::from_utf8_lossy(body);
    let mut reduced = Vec::with_capacity(text.len());
    for piece in pieces(&text) {
        let is_new = piece.is_word
            && piece.text.len() >= OPAQUE_LENGTH_MIN
            && (next.contains(piece.text) || (is_token(piece.text) && !in_links.contains(piece.text)));
        reduced.extend_from_slice(if is_new { b"*" } else { piece.text.as_bytes() });
    }
    Some(NearContent { digest: first_bits(&blake3::hash(&reduced)), own_links })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use url::Url;

    use super::*;

    /// What is left of a page with these links, each an anchor or, with `!` before it, an image.
    fn near(url: &str, text: &str, links: &[&str]) -> Option<NearContent> {
        let page = Url::parse("http://h.example/").unwrap().join(url).unwrap();
        let mut body = text.to_owned();
        let mut found = Vec::new();
        for link in links {
            let (hop, reference) = match link.strip_prefix('!') {
                Some(rest) => (Hop::Embed, rest),
                None => (Hop::Link, *link),
            };
            body.extend([" <", &format!("{hop:?}"), " \"", reference, "\">"]);
            found.push(Link { url: page.join(reference).unwrap(), hop, context: Cow::Borrowed("") });
        }
        near_content(&Shape::of(&page)?, body.as_bytes(), &found)
    }

    #[test]
    fn pages_of_two_sessions_are_the_same() {
        let page = |own: &str, next: &str| {
            let links = ["home", "about", "logo.png"].map(|name| format!("/s/{next}/{name}"));
            near(&format!("/s/{own}/home"), "Welcome", &[&links[0], &links[1], &format!("!{}", links[2])])
        };
        let first = page("aaaa1111", "bbbb2222");
        assert!(first.is_some());
        assert_eq!(first, page("cccc3333", "dddd4444"));
    }

    #[test]
    fn a_token_of_the_form_changes_nothing_and_another_text_does() {
        let page = |text: &str, next: &str| near("/s/aaaa1111/", text, &[&format!("/s/{next}/")]).unwrap();
        let one = page("csrf 3f2a91bc7d5e48a0 hello", "bbbb2222");
        assert_eq!(one, page("csrf 91bc7d5e48a03f2a hello", "cccc3333"));
        assert_ne!(one, page("csrf 3f2a91bc7d5e48a0 goodbye", "bbbb2222"));
        assert_ne!(one, page("csrf 3f2a91bc7d5e48a0 hello 17", "bbbb2222"));
    }

    #[test]
    fn viewer_pages_differ_in_what_they_show() {
        let viewer = |id: &str, image: &str, next: &str| {
            near(&format!("/photo/{id}"), "", &[&format!("!/media/{image}.jpg"), &format!("/photo/{next}")])
        };
        let one = viewer("aaaa1111", "3f2a91bc7d5e48a03f2a91bc7d5e48a0", "bbbb2222");
        assert!(one.is_some());
        assert_ne!(one, viewer("bbbb2222", "7d5e48a03f2a91bc7d5e48a03f2a91bc", "cccc3333"));
        // Or in their own address, or in the folder of the image.
        let named = |own: &str, next: &str| {
            near(&format!("/p/{own}"), &format!("photo {own}"), &[&format!("/p/{next}")])
        };
        assert_ne!(named("aaaa1111", "bbbb2222"), named("bbbb2222", "cccc3333"));
    }

    #[test]
    fn what_is_below_a_page_is_named_since_it_decides() {
        let page = |own: &str, next: &str| {
            near(&format!("/album/{own}/"), "", &["!photo.jpg", &format!("../{next}/")]).unwrap()
        };
        let one = page("aaaa1111", "bbbb2222");
        assert_eq!(one.own_links.len(), 1);
        assert_eq!(one, page("bbbb2222", "cccc3333"), "only the image tells them apart");
        let section = |own: &str, next: &str| {
            let links = ["page-1.html", "page-2.html", ".", &format!("../{next}/")].map(str::to_owned);
            let links: Vec<_> = links.iter().map(String::as_str).collect();
            near(&format!("/{own}/"), "", &links).unwrap()
        };
        assert_eq!(section("section1", "section2").own_links.len(), 2);
    }

    #[test]
    fn a_page_that_leads_to_no_other_value_is_no_part_of_a_trap() {
        for links in
            [&["/about"][..], &["/s/aaaa1111/about"], &["/t/bbbb2222/"], &["!/s/bbbb2222/x.png"], &[]]
        {
            assert_eq!(near("/s/aaaa1111/home", "gone", links), None, "{links:?}");
        }
        assert_eq!(near("/home", "gone", &["/s/bbbb2222/"]), None);
    }
}
