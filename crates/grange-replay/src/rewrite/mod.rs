//! From the captured body and headers to those a browser can show under the address of the archive.
//!
//! [`Kind::of`] says what a body is, [`headers`] what is sent ahead of it, [`transform`] gives the rewriter that the
//! body is pushed through. All of it is synchronous and knows neither clock nor network; memory is bounded whatever
//! the body holds, the work is that of walking over it a few times ([`work`]), and damaged text goes through as far
//! as it can be read.

mod animated;
mod assets;
mod attributes;
mod charset;
mod cookies;
mod css;
mod head;
mod headers;
mod html;
mod importmap;
mod json;
mod kind;
#[cfg(test)]
mod linear_tests;
mod modifier;
mod place;
mod playlist;
mod script;
mod shape;
mod srcset;
#[cfg(test)]
mod tests;
mod transform;
pub(crate) mod work;
mod xml;

pub use assets::{Asset, NoAsset, STATIC_PREFIX, asset, has_wombat};
pub(crate) use charset::charset_of;
pub(crate) use cookies::of_session as cookie_of_session;
pub use head::TARGET_FRAME;
pub(crate) use headers::encoded_address;
pub use headers::{ARCHIVED_PREFIX, POLICY, headers};
pub use kind::{Clues, Kind};
pub use modifier::{Modifier, split_time};
pub use place::Place;
pub(crate) use place::with_path;
pub use transform::{Options, Transform};

use charset::Decoded;
use html::Html;
use htmlscan::Dialect;
use script::{Mode, Source};
use transform::{Untouched, Whole};

/// The rewriter of one body. `charset`: label from the archived `Content-Type`, if it has one.
pub fn transform(
    kind: Kind,
    place: &Place,
    charset: Option<&str>,
    options: &Options,
) -> Box<dyn Transform + Send> {
    let whole = |rewrite: fn(&str, &Place, &Options) -> Option<String>| -> Box<dyn Transform + Send> {
        let (charset, options) = (charset.map(ToOwned::to_owned), options.clone());
        Box::new(Whole::new(place.clone(), move |bytes, place: &Place| {
            let decoded = Decoded::new(bytes, charset.as_deref());
            let changed = rewrite(&decoded.text, place, &options);
            decoded.encode(changed.as_deref().unwrap_or(&decoded.text))
        }))
    };
    match kind {
        Kind::Html => html(place, Dialect::Browser, charset, options),
        // Without a label XML is UTF-8, and what a meta element says does not count.
        Kind::Xhtml => html(place, Dialect::Xml, charset.or(Some("utf-8")), options),
        Kind::Css => whole(|text, place, _| css::rewrite(text, place)),
        Kind::Js => whole(javascript),
        Kind::Module => whole(|text, place, _| module(text, place)),
        Kind::Json => whole(|text, _, options| json::with_callback(text, options.callback.as_deref())),
        Kind::Xml => whole(|text, place, _| xml::rewrite(text, place)),
        Kind::Playlist => whole(|text, place, _| playlist::rewrite(text, place)),
        Kind::Plain | Kind::Binary => Box::new(Untouched),
    }
}

fn html(
    place: &Place,
    dialect: Dialect,
    charset: Option<&str>,
    options: &Options,
) -> Box<dyn Transform + Send> {
    let named = charset::of_label(charset);
    match named {
        // The parser reads only charsets in which ASCII is ASCII.
        Some(encoding) if !encoding.is_ascii_compatible() => {
            let (charset, options) = (charset.map(ToOwned::to_owned), options.clone());
            Box::new(Whole::new(place.clone(), move |bytes, place: &Place| {
                let decoded = Decoded::new(bytes, charset.as_deref());
                let mut html = Box::new(Html::new(place, dialect, encoding_rs::UTF_8, true, &options));
                let mut out = Vec::new();
                html.push(decoded.text.as_bytes(), &mut out);
                html.finish(&mut out);
                decoded.encode(std::str::from_utf8(&out).unwrap_or(&decoded.text))
            }))
        }
        Some(encoding) => Box::new(Html::new(place, dialect, encoding, true, options)),
        // Every byte is a letter of windows-1252 and comes back as it was, whatever it means.
        None => Box::new(Html::new(place, dialect, encoding_rs::WINDOWS_1252, false, options)),
    }
}

fn javascript(text: &str, place: &Place, options: &Options) -> Option<String> {
    if let Some(called) = json::with_callback(text, options.callback.as_deref()) {
        return Some(called);
    }
    if !has_wombat() || place.modifier() == Modifier::UrlsOnly {
        return None;
    }
    let source = Source { place, url: Some(place.url()) };
    if place.modifier().is_worker() {
        let rewritten = script::classic(text, source, Mode::Worker);
        return Some(script::behind(head::worker(place, false), &rewritten));
    }
    // Asked for as a module by a page that named it in a way we did not see.
    if !matches!(place.modifier(), Modifier::Script) && script::is_module(text) {
        return module(text, place);
    }
    Some(script::classic(text, source, Mode::Classic))
}

fn module(text: &str, place: &Place) -> Option<String> {
    if !has_wombat() {
        return None;
    }
    let source = Source { place, url: Some(place.url()) };
    let rewritten = script::module(text, source, STATIC_PREFIX);
    let is_worker = place.modifier().is_worker();
    Some(if is_worker { script::behind(head::worker(place, true), &rewritten) } else { rewritten })
}
