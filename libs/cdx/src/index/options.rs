//! What to index and how to write it.

use crate::legend::Legend;
use crate::post::Spelling;
use urlkey::Dialect;
use warc::RecordType;

/// The lines to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Format {
    /// `key timestamp {json}`
    #[default]
    Cdxj,
    /// Columns. The legend line itself is for the caller to write.
    Cdx(Legend),
}

/// The records that get a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Records {
    /// response, revisit, resource and metadata, the latter two unless they hold `application/warc-fields`.
    #[default]
    Captures,
    /// The same without metadata about addresses of the web: under their key it would stand for a capture that it only
    /// describes. Metadata under an address of its own (`metadata:`, `urn:`) stays.
    Replayable,
    /// Every record.
    All,
    /// Records of these types.
    Only(Vec<RecordType>),
}

impl Records {
    pub(super) fn wants(&self, kind: RecordType, content_type: Option<&[u8]>, uri: Option<&[u8]>) -> bool {
        match self {
            Self::Replayable => {
                let describes = kind == RecordType::Metadata && uri.is_some_and(is_web);
                !describes && Self::Captures.wants(kind, content_type, uri)
            }
            Self::Captures => match kind {
                RecordType::Response | RecordType::Revisit => true,
                RecordType::Resource | RecordType::Metadata => {
                    content_type != Some(b"application/warc-fields")
                }
                _ => false,
            },
            Self::All => true,
            Self::Only(kinds) => kinds.contains(&kind),
        }
    }
}

fn is_web(uri: &[u8]) -> bool {
    let starts = |with: &[u8]| uri.get(..with.len()).is_some_and(|first| first.eq_ignore_ascii_case(with));
    [&b"http:"[..], b"https:", b"ftp:", b"dns:", b"whois:"].iter().any(|scheme| starts(scheme))
}

/// A field beyond the usual ones, written into JSON under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtraField {
    /// A header of the HTTP message in the record (`http:…`).
    Http(String),
    /// A header of the request that belongs to the record (`req.http:…`).
    Request(String),
    /// The method of that request.
    Method,
    /// A field of the record's own header.
    Record(String),
}

impl ExtraField {
    /// Reads a name as cdxj-indexer's `-f` takes it.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name {
            "method" | "req.http:method" => Self::Method,
            "referrer" => Self::Request("referer".to_owned()),
            name => match (name.strip_prefix("req.http:"), name.strip_prefix("http:")) {
                (Some(header), _) => Self::Request(header.to_owned()),
                (None, Some(header)) => Self::Http(header.to_owned()),
                (None, None) => Self::Record(name.to_owned()),
            },
        }
    }

    /// The name in the line.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Http(header) => format!("http:{header}"),
            Self::Request(header) if header.eq_ignore_ascii_case("referer") => "referrer".to_owned(),
            Self::Request(header) => format!("req.http:{header}"),
            Self::Method => "method".to_owned(),
            Self::Record(name) => name.clone(),
        }
    }
}

/// How a file is indexed.
#[derive(Debug, Clone, Default)]
pub struct IndexOptions {
    /// The lines to write.
    pub format: Format,
    /// Whose keys.
    pub dialect: Dialect,
    /// The name that goes into the lines.
    pub filename: String,
    /// The records that get a line.
    pub records: Records,
    /// Whether POST and PUT bodies go into the key.
    pub post_append: bool,
    /// How values of JSON bodies are spelled.
    pub spelling: Spelling,
    /// Whether the SHA-256 of the stored bytes is written. Only [`index_file`](super::index_file) can.
    pub record_digests: bool,
    /// Fields beyond the usual ones.
    pub extra: Vec<ExtraField>,
}

impl IndexOptions {
    /// Whether a record has to be seen together with its neighbour.
    pub(super) fn pairs(&self) -> bool {
        let of_request = |field: &ExtraField| matches!(field, ExtraField::Request(_) | ExtraField::Method);
        self.post_append || self.extra.iter().any(of_request)
    }
}
