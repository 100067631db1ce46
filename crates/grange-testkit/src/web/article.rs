//! The bulk of a site: articles of about 10 KB in a tree with cross links, and their pictures.
//!
//! Everything follows from numbers, nothing is kept per page, and the filler is rendered once: this is what the
//! benches crawl, so an answer costs two small writes into a buffer and one copy.

use std::io::Write as _;

use super::dice;
use super::name::{Names, Sub};

/// Children of a page in the tree; with the cross links below, ten links a page.
const CHILDREN: usize = 8;
const LINKS: usize = 10;
/// Filler of an article in bytes: with head and links about 10 KB, the usual size of a page in crawler benches.
const FILLER_BYTES: usize = 9_300;
/// Different fillers of one web: enough that neighbours differ, few enough to stay in the cache.
const FILLERS: usize = 16;
/// A picture in bytes.
const PICTURE_BYTES: usize = 2_000;
const PICTURES: usize = 8;
/// One picture for so many pages.
const PAGES_PER_PICTURE: usize = 10;

/// Something with a number on a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Item {
    Page(usize),
    Picture(usize),
}

#[derive(Debug)]
pub(crate) struct Articles {
    pub seed: u64,
    pub pages: usize,
    pub generation: u32,
    /// One page in so many changes from one generation to the next.
    pub change_every: usize,
    /// Page 0 is the front page itself (profile plain), not `/p/0.html`.
    pub front: bool,
    pub names: Names,
    fillers: Vec<String>,
    pictures: Vec<Vec<u8>>,
}

impl Articles {
    pub(crate) fn new(
        names: Names,
        seed: u64,
        pages: usize,
        generation: u32,
        change_every: usize,
        front: bool,
    ) -> Self {
        let fillers = (0..FILLERS)
            .map(|index| dice::prose(dice::mix(&[seed, 1, index as u64]), FILLER_BYTES))
            .collect();
        let pictures = (0..PICTURES)
            .map(|index| {
                let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
                bytes.resize(PICTURE_BYTES, 0);
                dice::fill(dice::mix(&[seed, 2, index as u64]), 0, &mut bytes[8..]);
                bytes
            })
            .collect();
        Self { seed, pages, generation, change_every: change_every.max(1), front, names, fillers, pictures }
    }

    pub(crate) fn find(&self, path: &str) -> Option<Item> {
        if path == "/" {
            return (self.front && self.pages > 0).then_some(Item::Page(0));
        }
        let number = |prefix: &str, suffix: &str| -> Option<usize> {
            let digits = path.strip_prefix(prefix)?.strip_suffix(suffix)?;
            // One spelling per page: no sign, no leading zero.
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits == "0" || !digits.starts_with('0'));
            plain.then(|| digits.parse().ok()).flatten()
        };
        if let Some(page) = number("/p/", ".html") {
            return (page < self.pages && !(self.front && page == 0)).then_some(Item::Page(page));
        }
        number("/i/", ".png").filter(|picture| *picture < self.pictures_of_site()).map(Item::Picture)
    }

    pub(crate) fn path(&self, item: Item) -> String {
        match item {
            Item::Page(0) if self.front => "/".to_owned(),
            Item::Page(page) => format!("/p/{page}.html"),
            Item::Picture(picture) => format!("/i/{picture}.png"),
        }
    }

    pub(crate) fn pictures_of_site(&self) -> usize {
        self.pages.div_ceil(PAGES_PER_PICTURE)
    }

    /// The pages that a page links to: its children in the tree, then pages anywhere on the site.
    pub(crate) fn links(&self, site: usize, page: usize) -> impl Iterator<Item = usize> + use<'_> {
        let first = page.saturating_mul(CHILDREN) + 1;
        let children = (first..first + CHILDREN).take_while(|child| *child < self.pages);
        let count = children.clone().count();
        let cross = (count..LINKS).map(move |index| {
            (dice::mix(&[self.seed, site as u64, page as u64, index as u64]) % self.pages as u64) as usize
        });
        children.chain(cross)
    }

    pub(crate) fn picture_on(page: usize) -> usize {
        page / PAGES_PER_PICTURE
    }

    /// The site whose front page this page links to, if any: front pages form a ring.
    pub(crate) fn next_site(&self, site: usize, page: usize) -> Option<usize> {
        (page == 0 && self.names.hosts > 1).then(|| (site + 1) % self.names.hosts)
    }

    /// The last generation up to now in which the page changed.
    pub(crate) fn edition(&self, site: usize, page: usize) -> u32 {
        (1..=self.generation).rev().find(|generation| self.changes(site, page, *generation)).unwrap_or(0)
    }

    /// In each generation every `change_every`-th page changes, counted from a place that the generation decides.
    pub(crate) fn changes(&self, site: usize, page: usize, generation: u32) -> bool {
        let start = dice::mix(&[self.seed, site as u64, u64::from(generation), 3]) % self.change_every as u64;
        (page as u64 + start).is_multiple_of(self.change_every as u64)
    }

    pub(crate) fn mime(item: Item) -> &'static str {
        match item {
            Item::Page(_) => "text/html; charset=utf-8",
            Item::Picture(_) => "image/png",
        }
    }

    /// Appends the body.
    pub(crate) fn write(&self, site: usize, item: Item, out: &mut Vec<u8>) {
        match item {
            Item::Page(page) => self.write_page(site, page, out),
            Item::Picture(picture) => {
                let which = dice::mix(&[self.seed, site as u64, picture as u64, 4]);
                out.extend_from_slice(&self.pictures[(which % PICTURES as u64) as usize]);
                // Makes the picture this site's own.
                out.extend_from_slice(&which.to_le_bytes());
                out.extend_from_slice(&(site as u64).to_le_bytes());
                out.extend_from_slice(&(picture as u64).to_le_bytes());
            }
        }
    }

    fn write_page(&self, site: usize, page: usize, out: &mut Vec<u8>) {
        let edition = self.edition(site, page);
        // A Vec takes every write.
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page {page} of site {site}</title>\
             </head>\n<body><h1>Page {page} of site {site}, edition {edition}</h1>\n<img src=\"/i/{}.png\" alt=\"\">\n<ul>\n",
            Self::picture_on(page),
        );
        for target in self.links(site, page) {
            if target == 0 && self.front {
                out.extend_from_slice(b"<li><a href=\"/\">The front page</a></li>\n");
            } else {
                let _ = writeln!(out, "<li><a href=\"/p/{target}.html\">On page {target}</a></li>");
            }
        }
        if let Some(next) = self.next_site(site, page) {
            let _ =
                writeln!(out, "<li><a href=\"{}/\">A neighbour</a></li>", self.names.origin(next, Sub::Bare));
        }
        out.extend_from_slice(b"</ul>\n");
        let which = dice::mix(&[self.seed, site as u64, page as u64, 5]) % FILLERS as u64;
        out.extend_from_slice(self.fillers[which as usize].as_bytes());
        out.extend_from_slice(b"</body></html>\n");
    }

    /// Entity tag and date of the last change, as header values.
    pub(crate) fn validators(&self, site: usize, item: Item) -> (String, String) {
        let edition = match item {
            Item::Page(page) => self.edition(site, page),
            Item::Picture(_) => 0,
        };
        let tag = match item {
            Item::Page(page) => format!("\"p{page}-{edition}\""),
            Item::Picture(picture) => format!("\"i{picture}\""),
        };
        (tag, day(edition))
    }
}

/// Whether a path is one that articles and their pictures use.
pub(crate) fn looks_like(path: &str) -> bool {
    path.starts_with("/p/") || path.starts_with("/i/")
}

/// The date of an edition: a day later each, four weeks long and over again. 1 January 2024 was a Monday.
fn day(edition: u32) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let day = edition % 28;
    format!("{}, {:02} Jan 2024 12:00:00 GMT", DAYS[(day % 7) as usize], day + 1)
}
