//! What follows the time in a replay address and says how the capture is wanted: `20200101000000js_`.

use std::fmt;

/// pywb's modifiers, and `esm_` of wabac for ES modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Modifier {
    /// None: the page that holds the banner and, in a frame, the capture.
    Top,
    /// `mp_`: a page.
    Main,
    /// `if_`: the contents of an iframe.
    Iframe,
    /// `fr_`: the contents of a frame of a frame set.
    Frame,
    /// `js_`: a classic script, whatever its declared type.
    Script,
    /// `esm_`: an ES module. A module cannot be told from a script by its bytes alone.
    Module,
    /// `cs_`: a style sheet, whatever its declared type.
    Style,
    /// `im_`: an image.
    Image,
    /// `oe_`: an object, a medium, a font.
    Object,
    /// `wkr_`: the script of a worker.
    Worker,
    /// `wkrm_`: the script of a worker that is a module.
    ModuleWorker,
    /// `wkrf_`: fetched by a worker.
    WorkerFetch,
    /// `sw_`: the script of a service worker.
    ServiceWorker,
    /// `id_`: the body as it was captured.
    Raw,
    /// `ir_`: the body as it was captured, for a client that rewrites by itself.
    RawForClient,
    /// `bn_`: the body as it was captured, with a banner.
    Banner,
    /// `uo_`: addresses rewritten, nothing else.
    UrlsOnly,
    /// `tf_`: the page around the frame, asked for by name.
    TopFrame,
}

const NAMES: &[(Modifier, &str)] = &[
    (Modifier::Top, ""),
    (Modifier::Main, "mp_"),
    (Modifier::Iframe, "if_"),
    (Modifier::Frame, "fr_"),
    (Modifier::Script, "js_"),
    (Modifier::Module, "esm_"),
    (Modifier::Style, "cs_"),
    (Modifier::Image, "im_"),
    (Modifier::Object, "oe_"),
    (Modifier::Worker, "wkr_"),
    (Modifier::ModuleWorker, "wkrm_"),
    (Modifier::WorkerFetch, "wkrf_"),
    (Modifier::ServiceWorker, "sw_"),
    (Modifier::Raw, "id_"),
    (Modifier::RawForClient, "ir_"),
    (Modifier::Banner, "bn_"),
    (Modifier::UrlsOnly, "uo_"),
    (Modifier::TopFrame, "tf_"),
];

impl Modifier {
    /// `None` for text that is no modifier.
    pub fn parse(text: &str) -> Option<Self> {
        NAMES.iter().find(|(_, name)| *name == text).map(|(modifier, _)| *modifier)
    }

    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(modifier, _)| *modifier == self).map_or("", |(_, name)| name)
    }

    /// The body is wanted as it was captured.
    pub const fn is_raw(self) -> bool {
        matches!(self, Self::Raw | Self::RawForClient | Self::Banner)
    }

    /// The capture is shown as a document of its own, in a window or a frame.
    pub const fn is_document(self) -> bool {
        matches!(self, Self::Top | Self::Main | Self::Iframe | Self::Frame | Self::TopFrame)
    }

    pub(super) const fn is_worker(self) -> bool {
        matches!(self, Self::Worker | Self::ModuleWorker | Self::ServiceWorker)
    }
}

impl fmt::Display for Modifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The digits and the modifier at the start of a replay address, and the rest after their slash.
pub fn split_time(text: &str) -> Option<(&str, Modifier, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    // Times have at most 14 digits here; longer runs of digits are something else.
    let slash = text.bytes().take(digits + 6).position(|byte| byte == b'/')?;
    if digits > 14 || slash < digits {
        return None;
    }
    let modifier = Modifier::parse(&text[digits..slash])?;
    Some((&text[..digits], modifier, &text[slash + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_modifier_reads_back() {
        for (modifier, name) in NAMES {
            assert_eq!(Modifier::parse(name), Some(*modifier));
            assert_eq!(modifier.as_str(), *name);
        }
        assert_eq!(Modifier::parse("xx_"), None);
    }

    #[test]
    fn time_and_modifier_are_split_from_the_url() {
        let cases = [
            ("20200101000000mp_/http://a/", Some(("20200101000000", Modifier::Main, "http://a/"))),
            ("2020/http://a/", Some(("2020", Modifier::Top, "http://a/"))),
            ("esm_/http://a/", Some(("", Modifier::Module, "http://a/"))),
            ("/http://a/", Some(("", Modifier::Top, "http://a/"))),
            ("2020xx_/http://a/", None),
            ("http://a/", None),
            ("202001010000001234/http://a/", None),
            ("2020", None),
            ("2020é_/x", None),
        ];
        for (text, split) in cases {
            assert_eq!(split_time(text), split, "{text}");
        }
    }
}
