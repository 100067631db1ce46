//! Links in what a server sent.
//!
//! [`extract`] looks at the head of an answer and at its body, as the format of the body demands, and gives the
//! links in the order in which they stand there. It is a pure function of the document and the settings.
//!
//! # Invariants
//!
//! * Whatever comes, nothing panics, and memory is bounded by the window (`source.rs`), the limits of
//!   [`MaxDocument`] and the number of links.
//! * Links are absolute http(s) URLs without fragments, each once, with the strongest of its hops.
//! * Bytes are searched as they are; only what becomes a link is decoded.

mod charset;
mod css;
mod format;
mod headers;
mod html;
mod likely;
mod links;
mod pdf;
mod playlist;
mod rel;
mod script;
mod settings;
mod sitemap;
mod source;
mod text;
mod xml;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Read;

use encoding_rs::{Encoding, UTF_8};
use flate2::read::MultiGzDecoder;
use htmlscan::Dialect;
use url::Url;

pub use format::{Format, never_has_links};
pub use html::Directives;
pub use links::{BadUrl, BadUrlReason};
pub use settings::{Guess, MaxDocument, Settings};

use crate::hops::Hop;
use crate::link::Link;
use crate::robots::sitemaps_in;
use links::{FoundLinks, Links};
use source::Source;

/// Read in advance to know format and charset.
const HEAD_BYTES: usize = 64 * 1024;

/// Documents in encodings in which markup cannot be found byte by byte (UTF-16, ISO-2022-JP) are turned into UTF-8 in
/// memory, up to this size. They are rare and small.
const TRANSCODED_BYTES_MAX: u64 = 16 << 20;

/// What was fetched.
pub struct Document<'a> {
    /// Its own URL, against which its links are resolved.
    pub url: &'a Url,
    /// The `Content-Type` field as it came.
    pub content_type: Option<&'a str>,
    /// The header fields as they came, names and values.
    pub headers: &'a [(&'a [u8], &'a [u8])],
    pub role: Role,
    /// Transfer and content encodings undone.
    pub body: Body<'a>,
}

/// Why a document was fetched, where that says what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Any,
    Robots,
    /// Declared as a sitemap, by robots.txt or another sitemap.
    Sitemap,
}

/// The bytes, in memory or from a file.
pub enum Body<'a> {
    Bytes(&'a [u8]),
    Read(&'a mut dyn Read),
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extraction {
    pub links: Vec<Link>,
    pub format: Format,
    /// The encoding by which the text was read, where that was a question.
    pub charset: Option<&'static str>,
    /// For the log, in Heritrix's words where it has any: `dol:n`, `tooLongLinks:n`, `isSitemap`, charset notes.
    pub annotations: Vec<String>,
    /// Links over the limit.
    pub dropped: usize,
    /// Texts that stand where a URL should and are none, or too long; the first of them.
    pub bad: Vec<BadUrl>,
    /// What the page asks of robots. The links it does not want followed are gone already, if the settings obey.
    pub directives: Directives,
}

/// The links of a document.
pub fn extract(document: Document<'_>, settings: &Settings) -> Extraction {
    let mut links = Links::new(document.url, settings.max_links, settings.max_url_length);
    let mut directives = headers::headers(document.headers, &mut links);
    // Outlives the source that may be made of it.
    let decoded: Vec<u8>;
    let mut source = match document.body {
        Body::Bytes(bytes) => Source::Bytes(bytes),
        Body::Read(reader) => Source::stream(Box::new(reader), HEAD_BYTES),
    };
    let path = document.url.path();
    let mut content_type = document.content_type;
    let packed = settings.sitemaps
        && may_be_packed_sitemap(document.role, path)
        && source.head().starts_with(b"\x1f\x8b");
    if packed {
        // The type is that of the packing.
        content_type = None;
        source = Source::stream(Box::new(MultiGzDecoder::new(source.into_read())), HEAD_BYTES);
    }
    let format = match document.role {
        Role::Robots => Format::Robots,
        Role::Any if path == "/robots.txt" => Format::Robots,
        role => match format::format(content_type, path, source.head()) {
            Format::Text | Format::Other if packed || role == Role::Sitemap => Format::SitemapText,
            Format::Xml if role == Role::Sitemap => Format::Sitemap,
            other => other,
        },
    };
    let mut annotations = Vec::new();
    let mut charset = None;
    if looked_into(format, settings) {
        let found = charset::charset(content_type, source.head());
        charset = Some(found.encoding.name());
        annotations.extend(found.annotation);
        let limits = &settings.max_document;
        let mut encoding = found.encoding;
        links.set_encoding(encoding);
        if format != Format::Pdf && !charset::is_ascii_safe(encoding) {
            decoded = transcoded(source, encoding);
            source = Source::Bytes(&decoded);
            encoding = UTF_8;
        }
        match format {
            Format::Html | Format::Svg => {
                let is_xml = format == Format::Svg || format::is_xml(content_type, source.head());
                let dialect = if is_xml { Dialect::Xhtml } else { Dialect::Html };
                let said = html::html(source, dialect, encoding, settings, &mut links);
                directives.nofollow |= said.directives.nofollow;
                directives.noarchive |= said.directives.noarchive;
                if settings.favicon && !said.icon && format == Format::Html {
                    links.add_to(document.url, "/favicon.ico", Hop::Inferred, "=INFERRED_MISC");
                }
            }
            Format::Css => css::css(&source.bytes(limits.css.0), encoding, &mut links),
            Format::Script => {
                script::script(&source.bytes(limits.script.0), settings.javascript, encoding, &mut links);
            }
            Format::Json => {
                script::json(&source.bytes(limits.script.0), settings.javascript, encoding, &mut links);
            }
            Format::Xml => xml::xml(source, encoding, limits.xml.0, &mut links),
            Format::Feed => xml::feed(source, encoding, limits.xml.0, &mut links),
            Format::Sitemap | Format::SitemapText => {
                annotations.push("isSitemap".to_owned());
                links.set_limit(settings.max_sitemap_links);
                if format == Format::Sitemap {
                    sitemap::sitemap(source, encoding, limits.sitemap.0, &mut links);
                } else {
                    sitemap::lines(source, encoding, limits.sitemap.0, &mut links);
                }
            }
            Format::Pdf => pdf::pdf(&source.bytes(limits.pdf.0), &mut links),
            Format::Playlist => playlist::playlist(source, encoding, limits.text.0, &mut links),
            Format::Text => text::text(&source.bytes(limits.text.0), encoding, &mut links),
            Format::Robots => {
                for sitemap in sitemaps_in(&source.bytes(limits.text.0)) {
                    links.add(&sitemap, Hop::Manifest, "=MANIFEST_MISC");
                }
            }
            Format::Other => {}
        }
    }
    if directives.nofollow && !settings.follow_meta_nofollow {
        links.without(Hop::Link);
    }
    let FoundLinks { links, dropped, too_long, bad } = links.finish();
    if dropped > 0 {
        annotations.push(format!("dol:{dropped}"));
    }
    if too_long > 0 {
        annotations.push(format!("tooLongLinks:{too_long}"));
    }
    Extraction { links, format, charset, annotations, dropped, bad, directives }
}

/// Whether the settings want links from documents like this.
fn looked_into(format: Format, settings: &Settings) -> bool {
    match format {
        Format::Html | Format::Svg => true,
        Format::Css => settings.css,
        Format::Script => settings.javascript != Guess::Off,
        Format::Json => settings.json && settings.javascript != Guess::Off,
        Format::Xml | Format::Feed => settings.xml,
        Format::Sitemap | Format::SitemapText | Format::Robots => settings.sitemaps,
        Format::Pdf => settings.pdf,
        Format::Playlist => settings.playlists,
        Format::Text => settings.text,
        Format::Other => false,
    }
}

/// Archives are not looked into, sitemaps are, and many come packed.
fn may_be_packed_sitemap(role: Role, path: &str) -> bool {
    role == Role::Sitemap
        || path.ends_with(".xml.gz")
        || path.ends_with(".txt.gz") && path.contains("sitemap")
}

fn transcoded(source: Source<'_>, encoding: &'static Encoding) -> Vec<u8> {
    let bytes = source.bytes(TRANSCODED_BYTES_MAX);
    encoding.decode_with_bom_removal(&bytes).0.into_owned().into_bytes()
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Body::Read(_) => f.write_str("Read"),
        }
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("url", &self.url.as_str())
            .field("content_type", &self.content_type)
            .field("role", &self.role)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}
