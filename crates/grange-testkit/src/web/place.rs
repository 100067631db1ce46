//! The places in which a link can stand, and what following it is called.

use serde::Serialize;

/// How one capture leads to the next, in the letters of Heritrix's crawl log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hop {
    /// `L`: a link that a person follows.
    Link,
    /// `E`: something that a page needs in order to look right.
    Embed,
    /// `X`: a text that looks like a URL.
    Speculative,
    /// `R`: a redirect.
    Redirect,
    /// `M`: an entry of a site map.
    Manifest,
    /// `I`: follows from something else.
    Inferred,
    /// `P`: must be known first.
    Prerequisite,
}

impl Hop {
    pub fn letter(self) -> char {
        match self {
            Self::Link => 'L',
            Self::Embed => 'E',
            Self::Speculative => 'X',
            Self::Redirect => 'R',
            Self::Manifest => 'M',
            Self::Inferred => 'I',
            Self::Prerequisite => 'P',
        }
    }
}

macro_rules! places {
    ($($place:ident $hop:ident,)*) => {
        /// Where a link was planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Place { $($place,)* }

        impl Place {
            pub const ALL: &[Self] = &[$(Self::$place,)*];

            pub fn hop(self) -> Hop {
                match self { $(Self::$place => Hop::$hop,)* }
            }
        }
    };
}

places! {
    Seed Link,
    Robots Prerequisite,
    Favicon Inferred,
    LogIn Prerequisite,
    // HTML, followed by people.
    AHref Link,
    AreaHref Link,
    Alternate Link,
    Canonical Link,
    Cite Link,
    FormGet Link,
    // `rel=nofollow` is advice to search engines: followed unless the rules say otherwise.
    NoFollow Link,
    // On a page whose `<meta name=robots>` says nofollow: not followed when robots are obeyed.
    MetaNoFollow Link,
    // HTML, part of the page.
    ImgSrc Embed,
    Srcset Embed,
    SourceSrc Embed,
    LazySrc Embed,
    LazySrcset Embed,
    VideoSrc Embed,
    AudioSrc Embed,
    TrackSrc Embed,
    Poster Embed,
    Iframe Embed,
    Frame Embed,
    ScriptSrc Embed,
    Stylesheet Embed,
    Preload Embed,
    Icon Embed,
    ObjectData Embed,
    EmbedSrc Embed,
    AppletArchive Embed,
    SvgImage Embed,
    SvgUse Embed,
    InputSrc Embed,
    Background Embed,
    Noscript Embed,
    StyleAttribute Embed,
    StyleBlock Embed,
    // Style sheets.
    CssImport Embed,
    CssUrl Embed,
    // Texts that look like URLs.
    InlineScript Speculative,
    Handler Speculative,
    ScriptString Speculative,
    JsonString Speculative,
    MetaContent Speculative,
    // Other formats.
    FeedLink Link,
    FeedEnclosure Link,
    PdfLink Link,
    Playlist Embed,
    Segment Embed,
    RobotsSitemap Manifest,
    SitemapIndex Manifest,
    SitemapPage Manifest,
    // Headers and what stands for them.
    Location Redirect,
    RefreshHeader Redirect,
    MetaRefresh Redirect,
    ContentLocation Inferred,
    LinkHeader Link,
    LinkPreload Embed,
}
