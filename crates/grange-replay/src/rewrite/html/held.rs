//! The texts of scripts and styles, which can only be judged as a whole.

use crate::rewrite::assets::STATIC_PREFIX;
use crate::rewrite::place::Place;
use crate::rewrite::script::{self, Mode, Source};
use crate::rewrite::{css, importmap};

/// The text of an element of XML while it comes: in pieces, escaped or in sections of data.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// As it stands in the page.
    pub(super) raw: Vec<u8>,
    /// As a parser reads it.
    pub(super) text: String,
}

/// What the text of an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holding {
    Script,
    Module,
    ImportMap,
    /// Instructions to fetch pages ahead, with addresses of the live web.
    Speculation,
    Style,
    /// That of a picture in the page: markup, with references in its text.
    SvgStyle,
}

impl Holding {
    /// By name and type (lower case) of an element whose inside is text; `None` for texts that are left alone.
    pub(super) fn of(name: &[u8], kind: &str, scripted: bool) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"style") {
            return Some(Self::Style);
        }
        if !name.eq_ignore_ascii_case(b"script") {
            return None;
        }
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind {
            "speculationrules" => Some(Self::Speculation),
            _ if !scripted => None,
            "module" => Some(Self::Module),
            "importmap" => Some(Self::ImportMap),
            "" | "text/jscript" => Some(Self::Script),
            _ if kind.contains("javascript") || kind.contains("ecmascript") => Some(Self::Script),
            _ => None,
        }
    }

    /// `None` where nothing has to change.
    pub(super) fn changed(self, text: &str, place: &Place) -> Option<String> {
        let source = Source { place, url: None };
        let changed = match self {
            Self::Style | Self::SvgStyle => css::rewrite(text, place)?,
            Self::Script => script::classic(text, source, Mode::Classic),
            Self::Module => script::module(text, source, STATIC_PREFIX),
            Self::ImportMap => importmap::rewrite(text, place)?,
            Self::Speculation => "{}".to_owned(),
        };
        (changed != text).then_some(changed)
    }
}
