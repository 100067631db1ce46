//! The annotations of a URI: short words, joined by commas, that say what was out of the ordinary.

use std::fmt::Write as _;

/// How an answer relates to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Revisit {
    /// The same bytes are archived already.
    Digest,
    /// The server said 304.
    NotModified,
}

/// Where the earlier capture of a duplicate lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Original<'a> {
    pub file: &'a str,
    pub offset: u64,
    /// 17 digits; 14 of older writers.
    pub timestamp: &'a str,
}

/// The annotations of one URI while it is worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations(String);

/// How much of one annotation is kept, in bytes: a reason, not an essay.
const ANNOTATION_BYTES_MAX: usize = 512;

impl Annotations {
    pub const fn new() -> Annotations {
        Annotations(String::new())
    }

    /// Adds a word. Blanks become `_` and quotes that do not close are dropped, so that the column stays whole.
    pub fn add(&mut self, word: &str) {
        let word = word.trim();
        if word.is_empty() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push(',');
        }
        let end = word.floor_char_boundary(ANNOTATION_BYTES_MAX);
        let word = &word[..end];
        let quotes_close = word.matches('"').count().is_multiple_of(2);
        let clean = word.chars().filter(|c| quotes_close || *c != '"');
        self.0.extend(clean.map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }));
    }

    /// `3t`: it took three tries. One try is not worth a word.
    pub fn tries(&mut self, tries: u32) {
        if tries > 1 {
            self.add_number("", u64::from(tries), "t");
        }
    }

    /// `content-size:n`: headers and body. The Danish tools add up bytes per domain from it.
    pub fn content_size(&mut self, bytes: u64) {
        self.add_number("content-size:", bytes, "");
    }

    /// `dol:n`: outlinks beyond the limit of one document, thrown away.
    pub fn discarded_outlinks(&mut self, links: u64) {
        if links > 0 {
            self.add_number("dol:", links, "");
        }
    }

    /// `duplicate:"file,offset,timestamp"` when it is known where the original lies, else `duplicate:digest`.
    pub fn duplicate(&mut self, original: Option<Original<'_>>) {
        match original {
            None => self.add("duplicate:digest"),
            Some(Original { file, offset, timestamp }) => {
                let name = file.replace(['"', ','], "_");
                self.add(&format!("duplicate:\"{name},{offset},{timestamp}\""));
            }
        }
    }

    /// `duplicate:server-not-modified`.
    pub fn not_modified(&mut self) {
        self.add("duplicate:server-not-modified");
    }

    /// The domain has its objects: readers of the log conclude the stop reason from this word.
    pub fn object_limit(&mut self) {
        self.add("Q:groupMaxFetchSuccesses");
    }

    /// The domain has its bytes: readers of the log conclude the stop reason from this word.
    pub fn size_limit(&mut self) {
        self.add("Q:groupMaxAllKb");
    }

    fn add_number(&mut self, before: &str, number: u64, after: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{before}{number}{after}");
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The column's text; empty when there is none.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this word is among them.
    pub fn has(&self, word: &str) -> bool {
        split(&self.0).any(|annotation| annotation == word)
    }
}

/// The annotations of a column: parted at commas, but not at those inside quotes.
pub fn split(column: &str) -> impl Iterator<Item = &str> {
    let mut rest = if column == "-" { "" } else { column };
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let mut quoted = false;
            let end = rest.bytes().position(|b| {
                quoted ^= b == b'"';
                b == b',' && !quoted
            });
            // A quote that never closes would swallow the rest of the column.
            let end = if quoted && end.is_none() { rest.find(',') } else { end };
            let (word, after) =
                end.map_or((rest, ""), |at| (&rest[..at], rest.get(at + 1..).unwrap_or_default()));
            rest = after;
            if !word.is_empty() {
                return Some(word);
            }
        }
        None
    })
}

/// Whether one of the annotations makes its line a revisit. Reads the words of Heritrix 1 and 3 and of its
/// deduplicators.
pub(crate) fn revisit(column: &str) -> Option<Revisit> {
    split(column).find_map(|word| match word {
        "duplicate:server-not-modified" | "warcRevisit:notModified" | "server-not-modified" => {
            Some(Revisit::NotModified)
        }
        "duplicate" | "warcRevisit:digest" | "warcRevisit:uriAgnosticDigest" => Some(Revisit::Digest),
        _ if word.starts_with("duplicate:") || word.starts_with("deduplicate:") => Some(Revisit::Digest),
        _ => None,
    })
}

/// Where the original of a duplicate lies: of `duplicate:"file,offset,timestamp"`. Heritrix's deduplicator may leave
/// the timestamp out; then it is empty.
pub(crate) fn original(column: &str) -> Option<Original<'_>> {
    split(column).find_map(|word| {
        let origin = word.strip_prefix("duplicate:\"")?.strip_suffix('"')?;
        let (file, rest) = origin.split_once(',')?;
        let (offset, timestamp) = rest.split_once(',').unwrap_or((rest, ""));
        Some(Original { file, offset: offset.parse().ok()?, timestamp })
    })
}

/// The number of `content-size:n`.
pub(crate) fn content_size(column: &str) -> Option<u64> {
    split(column).find_map(|word| word.strip_prefix("content-size:")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_by_commas() {
        let mut words = Annotations::new();
        assert!(words.is_empty());
        words.tries(1);
        words.tries(3);
        words.add("lenTrunc");
        words.add("err=no route to host\n");
        words.add(" ");
        words.content_size(1234);
        words.discarded_outlinks(0);
        words.discarded_outlinks(7);
        words.add("a\"b");
        assert_eq!(words.as_str(), "3t,lenTrunc,err=no_route_to_host,content-size:1234,dol:7,ab");
        assert!(words.has("lenTrunc") && !words.has("len"));
        assert_eq!(content_size(words.as_str()), Some(1234));
    }

    #[test]
    fn commas_in_quotes_do_not_part() {
        let mut words = Annotations::new();
        words.duplicate(Some(Original { file: "1-2.warc.gz", offset: 77, timestamp: "20260101000000123" }));
        words.add("2t");
        assert_eq!(words.as_str(), "duplicate:\"1-2.warc.gz,77,20260101000000123\",2t");
        let parts: Vec<_> = split(words.as_str()).collect();
        assert_eq!(parts, ["duplicate:\"1-2.warc.gz,77,20260101000000123\"", "2t"]);
        assert_eq!(split("a,\"b,c").collect::<Vec<_>>(), ["a", "\"b", "c"]);
        assert_eq!(split("-").count(), 0);
        assert_eq!(split(",,a,").collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn revisits_are_known_by_their_words() {
        for (column, expected) in [
            ("-", None),
            ("2t,lenTrunc", None),
            ("duplicate:digest", Some(Revisit::Digest)),
            ("2t,duplicate:\"a.arc,12,2003\"", Some(Revisit::Digest)),
            ("deduplicate:a.arc,12", Some(Revisit::Digest)),
            ("duplicate:server-not-modified", Some(Revisit::NotModified)),
            ("unduplicate:x", None),
        ] {
            assert_eq!(revisit(column), expected, "{column}");
        }
    }

    #[test]
    fn the_original_of_a_duplicate_is_read_back() {
        let original = |file, offset, timestamp| Some(Original { file, offset, timestamp });
        for (column, expected) in [
            (
                "2t,duplicate:\"a.warc.gz,12,20030102030405678\",x",
                original("a.warc.gz", 12, "20030102030405678"),
            ),
            ("duplicate:\"a.arc,12\"", original("a.arc", 12, "")),
            ("duplicate:\"a.arc,x,2003\"", None),
            ("duplicate:digest", None),
            ("-", None),
        ] {
            assert_eq!(super::original(column), expected, "{column}");
        }
    }

    #[test]
    fn long_words_are_cut() {
        let mut words = Annotations::new();
        words.add(&"æ".repeat(1000));
        assert!(words.as_str().len() <= ANNOTATION_BYTES_MAX);
    }
}
