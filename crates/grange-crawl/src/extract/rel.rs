//! What kind of step a `rel` makes, in `<link>` elements and `Link` headers.

use crate::hops::Hop;

/// The step to the target, or none where there is nothing to fetch. Of several words the strongest counts.
pub(super) fn hop(rel: &str) -> Option<Hop> {
    let mut hop = None;
    let mut any = false;
    for word in rel.split_ascii_whitespace() {
        any = true;
        let this = match word.to_ascii_lowercase().as_str() {
            "stylesheet"
            | "icon"
            | "apple-touch-icon"
            | "apple-touch-icon-precomposed"
            | "apple-touch-startup-image"
            | "mask-icon"
            | "fluid-icon"
            | "image_src"
            | "manifest"
            | "modulepreload"
            | "preload"
            | "prefetch"
            | "prerender"
            | "import" => Some(Hop::Embed),
            "sitemap" => Some(Hop::Manifest),
            // Hosts to be ready for, interfaces for programs, names of vocabularies.
            "preconnect" | "dns-prefetch" | "pingback" | "profile" | "edituri" | "wlwmanifest" => None,
            _ => Some(Hop::Link),
        };
        hop = match (hop, this) {
            (Some(Hop::Embed), _) | (_, Some(Hop::Embed)) => Some(Hop::Embed),
            (Some(Hop::Manifest), _) | (_, Some(Hop::Manifest)) => Some(Hop::Manifest),
            (found, this) => found.or(this),
        };
    }
    if any { hop } else { Some(Hop::Link) }
}
