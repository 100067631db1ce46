//! Whether a capture was made before: asked of whoever runs the crawl.

use jiff::Timestamp;
use regex::RegexSet;
use warc::Digest;
use warc::write::RecordId;

use super::settings::{Dedup, DedupBy};

/// An earlier capture with the same payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    pub url: String,
    pub date: Timestamp,
    pub file: String,
    pub offset: u64,
    pub record: Option<RecordId>,
}

/// What a server said of an earlier capture of a URL, to be asked "has it changed?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// Its `Content-Type`. Where there may be links the question is not asked: "no" would come without them, and
    /// the crawl would end there.
    pub content_type: String,
    pub digest: Digest,
    pub original: Original,
}

/// Knows earlier captures. Asked from many tasks at once; must not block for long.
pub trait DuplicateOracle: Send + Sync {
    /// The capture of `url` with this payload.
    fn same_url(&self, url: &str, payload: &Digest) -> Option<Original>;
    /// Any capture with this payload.
    fn same_payload(&self, payload: &Digest) -> Option<Original>;
    /// The newest capture of `url`, if its validators are known.
    fn history(&self, url: &str) -> Option<History> {
        let _ = url;
        None
    }
}

/// Knows nothing: every capture is new.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOracle;

impl DuplicateOracle for NoOracle {
    fn same_url(&self, _: &str, _: &Digest) -> Option<Original> {
        None
    }

    fn same_payload(&self, _: &Digest) -> Option<Original> {
        None
    }
}

/// When the oracle is asked.
#[derive(Debug)]
pub struct DedupRules {
    by: DedupBy,
    skip_types: RegexSet,
    min_size: u64,
}

impl DedupRules {
    pub fn new(settings: &Dedup) -> Result<DedupRules, regex::Error> {
        let whole = settings.skip_types.iter().map(|pattern| format!("(?i)^(?:{pattern})$"));
        Ok(DedupRules { by: settings.by, skip_types: RegexSet::new(whole)?, min_size: settings.min_size.0 })
    }

    /// The earlier capture that this one may be written as a revisit of.
    pub fn find(
        &self,
        oracle: &dyn DuplicateOracle,
        url: &str,
        mime: &str,
        payload: &Digest,
        size: u64,
    ) -> Option<Original> {
        if self.by == DedupBy::Off || size == 0 || size < self.min_size || self.skip_types.is_match(mime) {
            return None;
        }
        let same_url = oracle.same_url(url, payload);
        match self.by {
            DedupBy::Digest => same_url.or_else(|| oracle.same_payload(payload)),
            DedupBy::Url | DedupBy::Off => same_url,
        }
    }
}

#[cfg(test)]
mod tests {
    use warc::Algorithm;

    use super::*;

    struct Knows(Original);

    impl DuplicateOracle for Knows {
        fn same_url(&self, url: &str, _: &Digest) -> Option<Original> {
            (url == self.0.url).then(|| self.0.clone())
        }

        fn same_payload(&self, _: &Digest) -> Option<Original> {
            Some(self.0.clone())
        }
    }

    #[test]
    fn rules_decide_when_the_oracle_is_believed() {
        let original = Original {
            url: "http://e.org/a.png".to_owned(),
            date: Timestamp::UNIX_EPOCH,
            file: "x.warc.gz".to_owned(),
            offset: 7,
            record: None,
        };
        let oracle = Knows(original);
        let digest = Digest::of(Algorithm::Sha1, b"x");
        let (a, b) = ("http://e.org/a.png", "http://e.org/b.png");
        for (by, url, mime, size, found) in [
            (DedupBy::Url, a, "image/png", 1, true),
            (DedupBy::Url, b, "image/png", 1, false),
            (DedupBy::Digest, b, "image/png", 1, true),
            (DedupBy::Off, a, "image/png", 1, false),
            (DedupBy::Url, a, "text/html", 1, false),
            (DedupBy::Url, a, "TEXT/CSS", 1, false),
            (DedupBy::Url, a, "x-text/html", 1, true),
            (DedupBy::Url, a, "image/png", 0, false),
        ] {
            let rules = DedupRules::new(&Dedup { by, ..Dedup::default() }).unwrap();
            let answer = rules.find(&oracle, url, mime, &digest, size);
            assert_eq!(answer.is_some(), found, "{by:?} {url} {mime} {size}");
        }
    }
}
