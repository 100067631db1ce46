//! What extractors do, and how far. The doc comments are the reference page.

use grange_base::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which links are looked for in what a server sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Links taken from one document; the rest are counted and noted as `dol:n` in the log. 6000 is Heritrix's
    /// number: a page with more is a trap or a dump.
    pub max_links: usize,

    /// Entries taken from one sitemap. The sitemap protocol allows 50000.
    pub max_sitemap_links: usize,

    /// A longer URL is not followed: uri-errors.log names it, and crawl.log counts them as `tooLongLinks:n`. In bytes;
    /// 2083 is what old browsers bore, and therefore what sites keep to.
    pub max_url_length: usize,

    /// Strings in scripts, event handlers and JSON that look like URLs: `off`, `cautious` (only what looks very
    /// much like one) or `eager` (finds more, and asks servers for some nonsense).
    pub javascript: Guess,

    /// Look into JSON documents, as boldly as `javascript` says.
    pub json: bool,

    /// Look into style sheets, style blocks and style attributes.
    pub css: bool,

    /// Look into XML documents and feeds.
    pub xml: bool,

    /// Look into PDF documents for their links.
    pub pdf: bool,

    /// Follow sitemaps: entries, nested sitemaps, and the sitemaps that robots.txt names.
    pub sitemaps: bool,

    /// Look into playlists (m3u8).
    pub playlists: bool,

    /// Look for URLs in plain text. Off: such text is often a list that was never meant to be followed.
    pub text: bool,

    /// Follow the address of forms that are sent with GET. Others are never followed.
    pub forms: bool,

    /// A frame's page is a part of the page around it, and not a link to another.
    pub frames_as_embeds: bool,

    /// Follow the links of pages that ask robots not to (meta robots or X-Robots-Tag with `nofollow`). Parts of
    /// the page itself, such as images, are taken in any case.
    pub follow_meta_nofollow: bool,

    /// Guess `/favicon.ico` for each site from its front page.
    pub favicon: bool,

    /// How much of one document is looked at.
    pub max_document: MaxDocument,
}

/// How boldly strings are taken for URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Guess {
    Off,
    #[default]
    Cautious,
    Eager,
}

/// Bytes of a document that are looked at, by format; links behind them are not found. HTML, XML, sitemaps and
/// playlists are read through a window, so that their numbers cost time; the others are held in memory whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MaxDocument {
    /// HTML and SVG.
    pub html: Size,
    /// XML and feeds.
    pub xml: Size,
    /// Sitemaps, unpacked. The protocol allows 50 MB, and sites exceed it.
    pub sitemap: Size,
    /// Scripts and JSON.
    pub script: Size,
    pub css: Size,
    pub pdf: Size,
    /// Plain text and playlists.
    pub text: Size,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_links: 6_000,
            max_sitemap_links: 50_000,
            max_url_length: 2_083,
            javascript: Guess::Cautious,
            json: true,
            css: true,
            xml: true,
            pdf: true,
            sitemaps: true,
            playlists: true,
            text: false,
            forms: true,
            frames_as_embeds: true,
            follow_meta_nofollow: false,
            favicon: true,
            max_document: MaxDocument::default(),
        }
    }
}

impl Default for MaxDocument {
    fn default() -> MaxDocument {
        MaxDocument {
            html: Size::mib(64),
            xml: Size::mib(64),
            sitemap: Size::mib(256),
            script: Size::mib(8),
            css: Size::mib(8),
            pdf: Size::mib(32),
            text: Size::mib(8),
        }
    }
}
