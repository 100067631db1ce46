//! The kinds of robots.txt. Each site has one, by its number; the sub-hosts have none (404).
//!
//! What a kind excludes is not worked out from its text: the chapter plants some addresses as excluded, and two kinds
//! exclude everything.

use super::Profile;
use super::answer::{Answer, Framing};

/// Where every kind that has rules keeps what robots may not have.
pub(crate) const PRIVATE: &str = "/private/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Robots {
    /// All may be had, said in so many words.
    AllowAll,
    /// 404: all may be had.
    Missing,
    /// `/private/` is excluded, `/private/open/` is not (the longer rule wins).
    Some,
    /// The same with `*` and `$`.
    Wildcards,
    /// As `Some`, behind a byte order mark.
    ByteOrderMark,
    /// As `Some`, with a Crawl-delay.
    CrawlDelay,
    /// As `Some`, reached by a redirect.
    Redirecting,
    /// As `Some` for everyone; a group for another robot excludes all.
    OtherAgent,
    /// As `Some`, then a megabyte of comment: rules in the first 500 KiB count (RFC 9309, 2.5).
    Long,
    /// An HTML page with status 200, as servers send that answer anything with their front page: no rule, all allowed.
    Html,
    /// Everything is excluded.
    DisallowAll,
    /// 503: everything is excluded for now (RFC 9309, 2.3.1.4).
    Unavailable,
}

impl Robots {
    pub const ALL: [Self; 12] = [
        Self::AllowAll,
        Self::Missing,
        Self::Some,
        Self::Wildcards,
        Self::ByteOrderMark,
        Self::CrawlDelay,
        Self::Redirecting,
        Self::OtherAgent,
        Self::Long,
        Self::Html,
        Self::DisallowAll,
        Self::Unavailable,
    ];

    pub(crate) fn of(profile: Profile, site: usize) -> Self {
        if profile == Profile::Plain { Self::AllowAll } else { Self::ALL[site % Self::ALL.len()] }
    }

    /// Nothing of the site may be had.
    pub(crate) fn excludes_all(self) -> bool {
        matches!(self, Self::DisallowAll | Self::Unavailable)
    }

    /// Has rules about `/private/`.
    pub(crate) fn has_rules(self) -> bool {
        !matches!(self, Self::AllowAll | Self::Missing | Self::Html | Self::DisallowAll | Self::Unavailable)
    }

    /// Names the site map. The others have no file to name it in, or want nobody.
    pub(crate) fn names_sitemap(self) -> bool {
        self.has_rules() || self == Self::AllowAll
    }

    /// The answer for `/robots.txt`; `origin` is where the site map is.
    pub(crate) fn answer(self, origin: &str, crawl_delay: f32) -> Answer {
        let text = |text: String| Answer::new(200, "text/plain", text);
        let rules = format!("User-agent: *\nDisallow: {PRIVATE}\nAllow: {PRIVATE}open/\n");
        let sitemap = format!("\nSitemap: {origin}/sitemap.xml\n");
        match self {
            Self::AllowAll => text(format!("User-agent: *\nDisallow:\n{sitemap}")),
            Self::Missing => Answer::new(404, "text/html", "<html><body>Not found</body></html>\n"),
            Self::Some => text(format!("# Some of it.\r\n{}{sitemap}", rules.replace('\n', "\r\n"))),
            Self::Wildcards => text(format!(
                "user-agent: *\ndisallow: /private/*.pdf$\ndisallow: /private/*/deep/  # anywhere below\n\
                 disallow: /private/*?secret=\n{sitemap}"
            )),
            Self::ByteOrderMark => text(format!("\u{FEFF}{rules}{sitemap}")),
            Self::CrawlDelay => text(format!("{rules}Crawl-delay: {crawl_delay}\n{sitemap}")),
            Self::Redirecting => Answer::redirect(301, "/robots-moved.txt"),
            Self::OtherAgent => text(format!("User-agent: othercrawler\nDisallow: /\n\n{rules}{sitemap}")),
            Self::Long => {
                let line = "# A comment that says nothing, at some length, again and again and again.\n";
                text(format!("{rules}{sitemap}{}", line.repeat(1_048_576 / line.len())))
                    .framed(Framing::Chunked { trailers: false })
            }
            Self::Html => Answer::html("<!DOCTYPE html>\n<html><body><p>Welcome!</p></body></html>\n"),
            Self::DisallowAll => text("User-agent: *\nDisallow: /\n".to_owned()),
            Self::Unavailable => Answer::new(503, "text/plain", "Later.\n"),
        }
    }
}
