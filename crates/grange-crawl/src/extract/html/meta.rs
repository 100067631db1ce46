//! `<meta>`: refresh, robots, and what it says about images.

use htmlscan::Attribute;

use crate::extract::html::Page;
use crate::extract::likely::{Need, is_likely};
use crate::extract::settings::Guess;
use crate::hops::Hop;

/// What a page asks of robots, by meta element or `X-Robots-Tag`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    pub nofollow: bool,
    pub noarchive: bool,
}

impl Directives {
    /// Adds the directives of a comma-separated list.
    pub(crate) fn read(&mut self, list: &str) {
        for directive in list.split(',') {
            let directive = directive.trim();
            let is = |word| directive.eq_ignore_ascii_case(word);
            self.nofollow |= is("nofollow") || is("none");
            self.noarchive |= is("noarchive");
        }
    }
}

impl Page<'_> {
    pub(super) fn meta(&mut self, attributes: &[Attribute<'_>]) {
        let Some(content) = self.attribute(attributes, b"content") else { return };
        if let Some(equiv) = self.attribute(attributes, b"http-equiv") {
            if equiv.trim().eq_ignore_ascii_case("refresh")
                && let Some(target) = refresh_target(&content)
            {
                self.links.add(target, Hop::Redirect, "meta/@content");
            }
            return;
        }
        let name =
            [&b"name"[..], b"property", b"itemprop"].iter().find_map(|key| self.attribute(attributes, key));
        let name = name.unwrap_or_default().trim().to_ascii_lowercase();
        if name == "robots" {
            self.said.directives.read(&content);
            return;
        }
        let content = content.trim();
        if is_media(&name) && is_likely(content.as_bytes(), Need::Page) {
            self.links.add(content, Hop::Embed, "meta/@content");
        } else if self.settings.javascript != Guess::Off && is_likely(content.as_bytes(), Need::Cautious) {
            self.links.add(content, Hop::Speculative, "meta/@content");
        }
    }
}

/// Names whose content is shown with the page or with a link to it.
fn is_media(name: &str) -> bool {
    const MEDIA: [&str; 14] = [
        "image",
        "msapplication-square150x150logo",
        "msapplication-square310x310logo",
        "msapplication-square70x70logo",
        "msapplication-tileimage",
        "msapplication-wide310x150logo",
        "og:audio",
        "og:image",
        "og:image:secure_url",
        "og:image:url",
        "thumbnail",
        "thumbnailurl",
        "twitter:image",
        "twitter:image:src",
    ];
    MEDIA.binary_search(&name).is_ok()
}

/// Where a refresh leads: `5; url='next.html'` in all the spellings browsers bear. None if it only repeats.
pub(in crate::extract) fn refresh_target(refresh: &str) -> Option<&str> {
    let rest = refresh.trim_ascii_start();
    let time = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let after = &rest[time..];
    // Some write no time at all.
    let separated = after.trim_start_matches(|c: char| c.is_ascii_whitespace() || matches!(c, ';' | ','));
    if time > 0 && separated.len() == after.len() {
        return None;
    }
    let mut target = separated;
    if target.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("url"))
        && let Some(value) = target[3..].trim_ascii_start().strip_prefix('=')
    {
        target = value.trim_ascii_start();
    } else if time == 0 {
        return None;
    }
    let target = match target.chars().next() {
        Some(quote @ ('"' | '\'')) => target[1..].split(quote).next().unwrap_or(""),
        _ => target,
    };
    let target = target.trim_ascii();
    (!target.is_empty()).then_some(target)
}
