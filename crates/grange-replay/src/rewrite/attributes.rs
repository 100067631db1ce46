//! What becomes of one attribute of one element.

use super::headers::refresh_value;
use super::modifier::Modifier;
use super::place::Place;
use super::script::{self, Source};
use super::{animated, css, head, srcset};

/// The element an attribute stands on, as far as it matters.
#[derive(Debug, Default)]
pub(super) struct Around<'a> {
    pub(super) tag: &'a str,
    /// `rel` of a link, lower case.
    pub(super) rel: String,
    /// `as` of a link, lower case.
    pub(super) purpose: String,
    /// `http-equiv` or `name` of a meta element, lower case.
    pub(super) meta: String,
    /// A script of type `module`.
    pub(super) is_module: bool,
    /// An animation that changes a link.
    pub(super) moves_link: bool,
    /// The page is shown in a frame of ours.
    pub(super) framed: bool,
    /// Wombat is there, so that scripts can be changed to meet it.
    pub(super) scripted: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Keep,
    Value(String),
    /// The value, and the old one under the name where wombat looks for it.
    ValueKeepingSource(String),
    /// Kept for people to see, under a name without effect.
    Disarm,
    /// `base`: the value, and everything relative counts from the old one from now on.
    Base(Option<String>),
    /// `srcdoc`: a page of its own.
    Page,
}

/// Decides by name (as [`known`] gives it) and value (entities decoded).
pub(super) fn change(around: &Around<'_>, name: &str, value: &str, place: &Place) -> Change {
    let link = |modifier| place.changed(value, modifier).map_or(Change::Keep, Change::Value);
    match name {
        "href" | "xlink:href" => href(around, value, place),
        "src" => match around.tag {
            "script" => script_source(around, value, place),
            "iframe" => script_or(around, value, place, Modifier::Iframe),
            "frame" => script_or(around, value, place, Modifier::Frame),
            "img" | "input" | "image" => link(Modifier::Image),
            _ => link(Modifier::Object),
        },
        "srcset" | "imagesrcset" => srcset::rewrite(value, place).map_or(Change::Keep, Change::Value),
        "style" => css::rewrite(value, place).map_or(Change::Keep, Change::Value),
        "srcdoc" => Change::Page,
        "action" | "formaction" => script_or(around, value, place, Modifier::Main),
        "cite" | "longdesc" | "manifest" | "usemap" => link(Modifier::Main),
        "poster" | "background" | "lowsrc" | "dynsrc" | "icon" => link(Modifier::Image),
        "data" | "codebase" | "archive" | "classid"
            if matches!(around.tag, "object" | "applet" | "embed") =>
        {
            link(Modifier::Object)
        }
        "to" | "from" | "by" if around.moves_link => script_or(around, value, place, Modifier::Main),
        "values" if around.moves_link => animated::rewrite(value, place).map_or(Change::Keep, Change::Value),
        "value" if around.tag == "param" && is_address(value) => link(Modifier::Object),
        "content" if around.tag == "meta" => meta(around, value, place),
        // They check or ask for what only the live site could give.
        "integrity" | "nonce" | "crossorigin" | "ping" | "attributionsrc" => Change::Disarm,
        "target" if around.framed && matches!(value, "_blank" | "_parent" | "_top") => {
            Change::Value(head::TARGET_FRAME.to_owned())
        }
        EVENT if around.scripted => {
            let source = Source { place, url: None };
            script::inline(value, source).map_or(Change::Keep, Change::Value)
        }
        _ => Change::Keep,
    }
}

/// What [`known`] calls every attribute that holds a script: `onclick` and all its like.
const EVENT: &str = "on…";

/// The name by which [`change`] may act on an attribute; most are none of these, and their values need not be looked at.
pub(super) fn known(name: &[u8]) -> Option<&'static str> {
    let names: &[&'static str] = match name {
        [b'o' | b'O', b'n' | b'N', _, ..] => return Some(EVENT),
        _ => match name.len() {
            2 => &["to", "by"],
            3 => &["src"],
            4 => &["href", "data", "from", "ping", "icon", "cite"],
            5 => &["style", "value", "nonce"],
            6 => &["srcset", "target", "values", "action", "srcdoc", "poster", "usemap", "lowsrc", "dynsrc"],
            7 => &["content", "archive", "classid"],
            8 => &["manifest", "longdesc", "codebase"],
            9 => &["integrity"],
            10 => &["xlink:href", "formaction", "background"],
            11 => &["crossorigin", "imagesrcset"],
            14 => &["attributionsrc"],
            _ => return None,
        },
    };
    let first = name[0].to_ascii_lowercase();
    names
        .iter()
        .copied()
        .find(|known| known.as_bytes()[0] == first && name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The same in XML, where any prefix can stand for the namespace of links.
pub(super) fn known_in_xml(name: &[u8]) -> Option<&'static str> {
    let is_link = || {
        let (prefix, local) = name.split_at(memchr::memrchr(b':', name)?);
        (local == b":href" && !prefix.is_empty() && prefix != b"xmlns").then_some("xlink:href")
    };
    known(name).or_else(is_link)
}

fn href(around: &Around<'_>, value: &str, place: &Place) -> Change {
    let link = |modifier| place.changed(value, modifier).map_or(Change::Keep, Change::Value);
    match around.tag {
        "base" => Change::Base(place.changed(value, Modifier::Main)),
        "link" => link_href(around, value, place),
        "image" | "feimage" | "use" => link(Modifier::Image),
        // Only in SVG: of other scripts `src` counts, and wombat asks for that one.
        "script" => place.changed_fully(value, script_modifier(around)).map_or(Change::Keep, Change::Value),
        _ => script_or(around, value, place, Modifier::Main),
    }
}

fn link_href(around: &Around<'_>, value: &str, place: &Place) -> Change {
    let rel = |word: &str| around.rel.split_ascii_whitespace().any(|found| found == word);
    let fully = |modifier| place.changed_fully(value, modifier).map_or(Change::Keep, Change::Value);
    let link = |modifier| place.changed(value, modifier).map_or(Change::Keep, Change::Value);
    // Both would look up or connect to the live host.
    if rel("preconnect") || rel("dns-prefetch") {
        return Change::Disarm;
    }
    if rel("stylesheet") {
        return link(Modifier::Style);
    }
    if rel("modulepreload") {
        return fully(Modifier::Module);
    }
    if rel("preload") || rel("prefetch") || rel("import") {
        return match around.purpose.as_str() {
            "script" | "worker" => fully(Modifier::Script),
            "style" => link(Modifier::Style),
            "image" => link(Modifier::Image),
            "document" => link(Modifier::Iframe),
            "" | "fetch" => link(Modifier::Main),
            _ => link(Modifier::Object),
        };
    }
    if rel("canonical") {
        // Says where the page was, to people and machines; nothing is fetched.
        return Change::Keep;
    }
    if around.rel.contains("icon") {
        return link(Modifier::Image);
    }
    link(Modifier::Main)
}

fn script_modifier(around: &Around<'_>) -> Modifier {
    if around.is_module { Modifier::Module } else { Modifier::Script }
}

/// A script's address must carry its modifier: servers call scripts all sorts of things.
fn script_source(around: &Around<'_>, value: &str, place: &Place) -> Change {
    let modifier = script_modifier(around);
    let Some(link) = place.changed_fully(value, modifier) else { return Change::Keep };
    if place.changed(value, modifier).is_none() {
        Change::ValueKeepingSource(link)
    } else {
        Change::Value(link)
    }
}

/// An address that may be a `javascript:` one.
fn script_or(around: &Around<'_>, value: &str, place: &Place, modifier: Modifier) -> Change {
    const SCHEME: &str = "javascript:";
    let trimmed = value.trim_start();
    let is_script = trimmed.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    if !is_script {
        return place.changed(value, modifier).map_or(Change::Keep, Change::Value);
    }
    let code = &trimmed[SCHEME.len()..];
    // Percent signs are decoded before the code runs, and would have to be encoded again.
    if !around.scripted || code.contains('%') {
        return Change::Keep;
    }
    let source = Source { place, url: None };
    match script::inline(code, source) {
        Some(code) => Change::Value(format!("{SCHEME}{code}")),
        None => Change::Keep,
    }
}

fn meta(around: &Around<'_>, value: &str, place: &Place) -> Change {
    match around.meta.as_str() {
        "refresh" => refresh_value(value, place).map_or(Change::Keep, Change::Value),
        "content-security-policy" | "content-security-policy-report-only" | "x-content-security-policy" => {
            Change::Disarm
        }
        // Requests that escape rewriting are brought home by their referrer.
        "referrer" => Change::Value("no-referrer-when-downgrade".to_owned()),
        _ => Change::Keep,
    }
}

fn is_address(value: &str) -> bool {
    ["http://", "https://", "//"].iter().any(|start| value.trim_start().starts_with(start))
}
