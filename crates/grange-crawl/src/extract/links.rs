//! The links of one document while it is read: resolved, without fragments, each URL once.

use std::borrow::Cow;

use encoding_rs::Encoding;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use url::Url;

use crate::candidate::{bare, without_user_info};
use crate::hops::Hop;
use crate::link::Link;

/// Texts of one document that are kept because they are no URLs: enough to see what is wrong with a page, not so many
/// that a page of rubbish fills a log.
const BAD_MAX: usize = 50;

/// How much of such a text is kept, in bytes: enough to know it again.
const BAD_BYTES_MAX: usize = 200;

/// A text that stands where a URL should and is not taken as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadUrl {
    /// Its beginning, without user name and password.
    pub text: String,
    pub reason: BadUrlReason,
}

/// Why a text is not taken as a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrlReason {
    #[error(transparent)]
    NoUrl(#[from] url::ParseError),
    #[error("{bytes} bytes are longer than extract.max_url_length ({max})")]
    TooLong { bytes: usize, max: usize },
}

/// Collects links in the order in which they stand in the document.
pub(super) struct Links {
    found: Vec<Link>,
    /// Indexes into `found`, by URL.
    seen: HashTable<usize>,
    hasher: DefaultHashBuilder,
    base: Url,
    /// The document's own encoding, in which browsers write the query of a URL. None means UTF-8.
    encoding: Option<&'static Encoding>,
    limit: usize,
    max_url_length: usize,
    dropped: usize,
    too_long: usize,
    bad: Vec<BadUrl>,
}

/// What was found when the document is read.
pub(super) struct FoundLinks {
    pub(super) links: Vec<Link>,
    /// How many more there were.
    pub(super) dropped: usize,
    /// How many are longer than allowed, guesses not counted.
    pub(super) too_long: usize,
    pub(super) bad: Vec<BadUrl>,
}

impl Links {
    pub(super) fn new(base: &Url, limit: usize, max_url_length: usize) -> Links {
        Links {
            found: Vec::new(),
            seen: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            base: bare(base.clone()),
            encoding: None,
            limit,
            max_url_length,
            dropped: 0,
            too_long: 0,
            bad: Vec::new(),
        }
    }

    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    pub(super) fn set_base(&mut self, base: Url) {
        self.base = bare(base);
    }

    pub(super) fn set_encoding(&mut self, encoding: &'static Encoding) {
        let encoding = encoding.output_encoding();
        self.encoding = (encoding != encoding_rs::UTF_8).then_some(encoding);
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// A reference as it stands in the document, charset and entities decoded.
    pub(super) fn add(&mut self, reference: &str, hop: Hop, context: impl Into<Cow<'static, str>>) {
        let parsed = self.parse(reference, None);
        self.take(parsed, reference, hop, context.into());
    }

    /// As [`Links::add`], relative to another base than the document's.
    pub(super) fn add_to(
        &mut self,
        base: &Url,
        reference: &str,
        hop: Hop,
        context: impl Into<Cow<'static, str>>,
    ) {
        let parsed = self.parse(reference, Some(&bare(base.clone())));
        self.take(parsed, reference, hop, context.into());
    }

    fn take(
        &mut self,
        parsed: Result<Option<Url>, BadUrlReason>,
        reference: &str,
        hop: Hop,
        context: Cow<'static, str>,
    ) {
        match parsed {
            Ok(Some(url)) => self.push(url, hop, context),
            // A guess that is no URL was a wrong guess, not a fault of the page.
            Err(reason) if hop != Hop::Speculative => {
                self.too_long += usize::from(matches!(reason, BadUrlReason::TooLong { .. }));
                if self.bad.len() < BAD_MAX {
                    let mut text = without_user_info(reference).into_owned();
                    text.truncate(text.floor_char_boundary(BAD_BYTES_MAX));
                    self.bad.push(BadUrl { text, reason });
                }
            }
            Ok(None) | Err(_) => {}
        }
    }

    /// What a reference leads to, if it is something that can be fetched.
    pub(super) fn resolve(&self, reference: &str, base: Option<&Url>) -> Option<Url> {
        self.parse(reference, base).ok().flatten()
    }

    /// The same, telling what is no URL from what is not to be fetched.
    fn parse(&self, reference: &str, base: Option<&Url>) -> Result<Option<Url>, BadUrlReason> {
        // Browsers cut control characters and spaces at both ends and ignore tabs and line ends within.
        let reference = reference.trim_matches(|c: char| c <= ' ');
        if reference.is_empty() || reference.starts_with('#') || !may_be_http(reference) {
            return Ok(None);
        }
        // A reference does not become shorter by being resolved, or hardly.
        let max = self.max_url_length;
        if reference.len() > max {
            return Err(BadUrlReason::TooLong { bytes: reference.len(), max });
        }
        let options = Url::options().base_url(Some(base.unwrap_or(&self.base)));
        let parsed = match self.encoding {
            Some(encoding) if !reference.is_ascii() => {
                let encode =
                    |text: &str| -> Cow<'static, [u8]> { Cow::Owned(encoding.encode(text).0.into_owned()) };
                options.encoding_override(Some(&|text| encode(text))).parse(reference)
            }
            _ => options.parse(reference),
        };
        let mut url = parsed?;
        if !matches!(url.scheme(), "http" | "https") {
            return Ok(None);
        }
        if url.as_str().len() > max {
            return Err(BadUrlReason::TooLong { bytes: url.as_str().len(), max });
        }
        url.set_fragment(None);
        Ok(Some(url))
    }

    fn push(&mut self, url: Url, hop: Hop, context: Cow<'static, str>) {
        let hash = self.hasher.hash_one(url.as_str());
        if let Some(&index) = self.seen.find(hash, |&index| self.found[index].url == url) {
            let first = &mut self.found[index];
            // A part of the page must come with it, however else the page names it.
            if weight(hop) > weight(first.hop) {
                first.hop = hop;
                first.context = context;
            }
            return;
        }
        if self.found.len() >= self.limit {
            self.dropped += 1;
            return;
        }
        let (found, hasher) = (&self.found, &self.hasher);
        self.seen.insert_unique(hash, found.len(), |&index| hasher.hash_one(found[index].url.as_str()));
        self.found.push(Link { url, hop, context });
    }

    pub(super) fn finish(self) -> FoundLinks {
        let Links { found, dropped, too_long, bad, .. } = self;
        FoundLinks { links: found, dropped, too_long, bad }
    }

    /// Takes out links by hop (nofollow).
    pub(super) fn without(&mut self, hop: Hop) {
        self.found.retain(|link| link.hop != hop);
        self.seen.clear();
        let (found, hasher) = (&self.found, &self.hasher);
        for (index, link) in found.iter().enumerate() {
            let hash = hasher.hash_one(link.url.as_str());
            self.seen.insert_unique(hash, index, |&index| hasher.hash_one(found[index].url.as_str()));
        }
    }
}

/// Which of two findings of the same URL is kept: the surer and more urgent one.
fn weight(hop: Hop) -> u8 {
    match hop {
        Hop::Redirect => 4,
        Hop::Embed => 3,
        Hop::Link | Hop::Manifest | Hop::Submit => 2,
        Hop::Prerequisite | Hop::Inferred => 1,
        Hop::Speculative => 0,
    }
}

/// Not of another scheme. A text without a scheme is relative, and then as good as its base.
fn may_be_http(reference: &str) -> bool {
    let bytes = reference.as_bytes();
    if !bytes[0].is_ascii_alphabetic() {
        return true;
    }
    let scheme =
        bytes.iter().position(|b| !matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.'));
    match scheme {
        Some(end) if bytes[end] == b':' => {
            let scheme = &bytes[..end];
            scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
        }
        _ => true,
    }
}
