//! What a document is: by what the server says, and by its first bytes, since servers are often wrong.

use htmlscan::is_space;

/// What a document is, as far as links are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Html,
    Css,
    Script,
    Json,
    Xml,
    /// RSS or Atom.
    Feed,
    Svg,
    Sitemap,
    /// A sitemap that is a list of lines.
    SitemapText,
    Pdf,
    /// m3u8
    Playlist,
    Text,
    Robots,
    /// Nothing in which we look for links.
    Other,
}

impl Format {
    /// Who looks into it, by Heritrix's names where it has them.
    pub fn extractor(self) -> Option<&'static str> {
        Some(match self {
            Format::Html => "extractorHtml",
            Format::Css => "extractorCss",
            Format::Script => "extractorJs",
            Format::Json => "extractorJson",
            Format::Xml | Format::Feed | Format::Svg => "extractorXml",
            Format::Sitemap | Format::SitemapText => "extractorSitemap",
            Format::Pdf => "extractorPdf",
            Format::Playlist => "extractorPlaylist",
            Format::Robots => "extractorRobotsTxt",
            Format::Text | Format::Other => return None,
        })
    }

    /// The name of an extractor as [`Format::extractor`] has it.
    pub fn extractor_named(name: &str) -> Option<&'static str> {
        use Format::{Css, Html, Json, Pdf, Playlist, Robots, Script, Sitemap, Xml};
        let all = [Html, Css, Script, Json, Xml, Sitemap, Pdf, Playlist, Robots];
        all.into_iter().filter_map(Format::extractor).find(|known| *known == name)
    }
}

/// How far the root element is looked for, behind comments and declarations.
const ROOT_WITHIN: usize = 4096;

/// The format of a document that is not known to be a robots.txt or a sitemap.
pub(super) fn format(content_type: Option<&str>, path: &str, head: &[u8]) -> Format {
    let told = content_type.map_or(Told::Nothing, told);
    let head = &head[..head.len().min(ROOT_WITHIN)];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    // Formats that say what they are in their first bytes.
    if head.starts_with(b"%PDF-") {
        return Format::Pdf;
    }
    if head.starts_with(b"#EXTM3U") {
        return Format::Playlist;
    }
    match told {
        // Pages are served as feeds and feeds as pages; their root tells.
        Told::Is(Format::Html | Format::Xml | Format::Feed | Format::Svg) | Told::Nothing => {
            if let Some(format) = by_root(head) {
                return format;
            }
            match told {
                Told::Is(format) => format,
                _ => by_extension(path, head),
            }
        }
        // A page of errors in the place of a script is the commonest lie.
        Told::Is(told @ (Format::Css | Format::Script | Format::Json)) => match by_root(head) {
            Some(Format::Html) if is_page(head) => Format::Html,
            _ => told,
        },
        Told::Is(Format::Text) => match by_root(head) {
            Some(format) => format,
            None => match by_extension(path, head) {
                format @ (Format::Css | Format::Script | Format::Json | Format::Playlist) => format,
                _ => Format::Text,
            },
        },
        // Served as PDF or a playlist, but without their first bytes: look anyway.
        Told::Is(told) => match by_root(head) {
            Some(Format::Html) if is_page(head) => Format::Html,
            _ => told,
        },
        Told::Binary => Format::Other,
    }
}

/// Whether documents of this type are never looked into, whatever they hold.
pub fn never_has_links(content_type: &str) -> bool {
    told(content_type) == Told::Binary
}

/// Whether browsers read a page of this type by the rules of XML, in which `/>` ends any element.
pub(super) fn is_xml(content_type: Option<&str>, head: &[u8]) -> bool {
    let essence = content_type.map(essence).unwrap_or_default();
    match essence.as_str() {
        "text/xml" | "application/xml" => true,
        "" => head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).starts_with(b"<?xml"),
        other => other.ends_with("+xml"),
    }
}

/// A content type without its parameters, in lower case.
fn essence(content_type: &str) -> String {
    content_type.split([';', ',']).next().unwrap_or("").trim().to_ascii_lowercase()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Is(Format),
    /// Images, sound, archives: never looked into.
    Binary,
    /// No type, or one that means nothing.
    Nothing,
}

fn told(content_type: &str) -> Told {
    Told::Is(match essence(content_type).as_str() {
        "text/html" | "application/xhtml+xml" | "application/vnd.wap.xhtml+xml" | "text/vnd.wap.wml" => {
            Format::Html
        }
        "text/css" => Format::Css,
        "text/javascript"
        | "application/javascript"
        | "application/x-javascript"
        | "application/ecmascript"
        | "text/ecmascript"
        | "text/x-javascript"
        | "text/jscript"
        | "module" => Format::Script,
        "application/rss+xml" | "application/atom+xml" | "application/rdf+xml" => Format::Feed,
        "image/svg+xml" => Format::Svg,
        "text/xml" | "application/xml" | "text/xsl" => Format::Xml,
        "application/json" | "text/json" | "application/manifest+json" => Format::Json,
        "application/pdf" | "application/x-pdf" => Format::Pdf,
        "application/vnd.apple.mpegurl" | "application/x-mpegurl" | "audio/mpegurl" | "audio/x-mpegurl" => {
            Format::Playlist
        }
        "text/plain" => Format::Text,
        ""
        | "application/octet-stream"
        | "application/unknown"
        | "unknown/unknown"
        | "content/unknown"
        | "*/*" => {
            return Told::Nothing;
        }
        other if other.ends_with("+json") => Format::Json,
        other if other.ends_with("+xml") => Format::Xml,
        _ => return Told::Binary,
    })
}

/// By the first element, or by a doctype.
fn by_root(head: &[u8]) -> Option<Format> {
    // Zeros of UTF-16 make way.
    let narrow: Vec<u8>;
    let head = if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") || head.get(1) == Some(&0) {
        narrow = head.iter().copied().filter(|b| (1..0x80).contains(b)).collect();
        &narrow[..]
    } else {
        head
    };
    let mut rest = head.trim_ascii_start();
    if !rest.starts_with(b"<") {
        return None;
    }
    let xml = rest.starts_with(b"<?xml");
    loop {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"<!--") {
            rest = &rest[memchr::memmem::find(rest, b"-->")? + 3..];
        } else if rest.len() > 9 && rest[..9].eq_ignore_ascii_case(b"<!doctype") {
            if rest[9..].trim_ascii_start().get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"html")) {
                return Some(Format::Html);
            }
            rest = &rest[memchr::memchr(b'>', rest)? + 1..];
        } else if rest.starts_with(b"<?") || rest.starts_with(b"<!") {
            rest = &rest[memchr::memchr(b'>', rest)? + 1..];
        } else {
            break;
        }
    }
    let name = rest.strip_prefix(b"<")?;
    let name =
        &name[..name.iter().position(|b| is_space(*b) || matches!(b, b'>' | b'/')).unwrap_or(name.len())];
    let local = name.rsplit(|b| *b == b':').next().unwrap_or(name);
    let is = |word: &[u8]| local.eq_ignore_ascii_case(word);
    if is(b"urlset") || is(b"sitemapindex") {
        Some(Format::Sitemap)
    } else if is(b"rss") || is(b"feed") || is(b"rdf") {
        Some(Format::Feed)
    } else if is(b"svg") {
        Some(Format::Svg)
    } else if is_html_element(local) {
        Some(Format::Html)
    } else if xml {
        Some(Format::Xml)
    } else {
        None
    }
}

/// Elements that begin a page or a piece of one.
fn is_html_element(name: &[u8]) -> bool {
    const NAMES: [&str; 26] = [
        "html", "head", "body", "title", "meta", "link", "script", "style", "base", "div", "p", "a", "table",
        "h1", "h2", "span", "center", "font", "br", "b", "img", "ul", "form", "frameset", "iframe",
        "noscript",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// A whole page, and not a template that a script file begins with.
fn is_page(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    let begins = |word: &[u8]| start.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
    begins(b"<!doctype") || begins(b"<html") || begins(b"<head") || begins(b"<?xml")
}

fn by_extension(path: &str, head: &[u8]) -> Format {
    if head.contains(&0) {
        return Format::Other;
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "html" | "htm" | "xhtml" | "shtml" => Format::Html,
        "css" => Format::Css,
        "js" | "mjs" => Format::Script,
        "json" | "webmanifest" => Format::Json,
        "m3u8" | "m3u" => Format::Playlist,
        _ => Format::Other,
    }
}
