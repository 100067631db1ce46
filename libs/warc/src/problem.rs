//! What can be wrong with an archive file, each with a stable code.
//!
//! A problem never stops a reader: the file is foreign, old and paid for, and the records around the
//! damage are still good. Only the disk failing is an error.

use std::fmt;

/// How much a [`Problem`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Legal or harmless, but a weaker reader may stumble over it.
    Comment,
    /// Against the standard; nothing was lost.
    Advice,
    /// Bytes were lost, doubted or guessed.
    Damage,
}

macro_rules! kinds {
    ($($name:ident $code:literal $level:ident $text:literal;)*) => {
        /// What is wrong. The code of a kind never changes once released.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $(#[doc = $text] $name,)*
        }

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// The stable kebab-case code.
            pub const fn code(self) -> &'static str {
                match self { $(Kind::$name => $code,)* }
            }

            /// How much it matters.
            pub const fn level(self) -> Level {
                match self { $(Kind::$name => Level::$level,)* }
            }

            /// What it means, as a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Kind::$name => $text,)* }
            }
        }
    };
}

kinds! {
    // The container.
    NotAnArchive "not-an-archive" Damage "The file holds neither WARC nor ARC records.";
    UnsupportedContainer "unsupported-container" Damage "The file is packed in a way this library does not read.";
    JunkBetweenMembers "junk-between-members" Damage "Bytes that belong to no gzip member or zstd frame were skipped.";
    ZeroPadding "zero-padding" Advice "Zero bytes after a gzip member or zstd frame were skipped.";
    EmptyMember "empty-member" Advice "A gzip member or zstd frame holds nothing; some readers take it for the end of the file.";
    BadChecksum "bad-checksum" Damage "The checksum of a gzip member or zstd frame does not match its content.";
    CorruptData "corrupt-data" Damage "The compressed data is corrupt; what decoded before that point was kept.";
    TruncatedMember "truncated-member" Damage "The file ends inside a gzip member or zstd frame.";
    SeveralRecordsInMember "several-records-in-member" Advice "A gzip member or zstd frame holds more than one record; the later ones cannot be reached by offset.";
    RecordSpansMembers "record-spans-members" Advice "A record runs over several gzip members or zstd frames.";
    BadDictionary "bad-dictionary" Damage "The zstd dictionary at the start of the file cannot be used.";
    // The record.
    UnknownVersion "unknown-version" Advice "The version line names a WARC version this library does not know; it was read like 1.1.";
    BareLf "bare-lf" Advice "Header lines end in LF instead of CRLF.";
    FoldedHeader "folded-header" Comment "A header value is folded over several lines.";
    LineWithoutColon "line-without-colon" Advice "A header line has no colon and was left out.";
    HeaderTooLong "header-too-long" Damage "The header is longer than this library reads; the rest of it was skipped.";
    UnterminatedHeader "unterminated-header" Damage "The header ends without a blank line.";
    DuplicateField "duplicate-field" Advice "A header field that must be single is repeated; the first one counts.";
    MissingContentLength "missing-content-length" Damage "There is no Content-Length; the block was taken to end where the next record starts.";
    BadContentLength "bad-content-length" Damage "Content-Length is not a believable number; the block was taken to end where the next record starts.";
    ContentLengthTooLong "content-length-too-long" Damage "The block is shorter than its Content-Length says.";
    ContentLengthTooShort "content-length-too-short" Damage "The block goes on after its Content-Length; the rest was skipped.";
    TruncatedRecord "truncated-record" Damage "The file ends inside the record.";
    GarbageBetweenRecords "garbage-between-records" Damage "Bytes that belong to no record were skipped.";
    WrongRecordEnd "wrong-record-end" Advice "The block is not followed by exactly two line ends.";
    MissingType "missing-type" Advice "There is no WARC-Type.";
    UnknownType "unknown-type" Comment "The WARC-Type is not one of the standard.";
    MissingRecordId "missing-record-id" Advice "There is no WARC-Record-ID.";
    MissingDate "missing-date" Advice "There is no WARC-Date.";
    BadDate "bad-date" Advice "The date cannot be read, or not all of it.";
    MissingTargetUri "missing-target-uri" Advice "The record needs a WARC-Target-URI and has none.";
    BracketedTargetUri "bracketed-target-uri" Comment "The WARC-Target-URI stands in angle brackets.";
    OddTargetUri "odd-target-uri" Comment "The target URI holds bytes that no URI may hold; they were kept.";
    BadSegment "bad-segment" Advice "The segment fields contradict each other.";
    // ARC.
    ArcWithoutFiledesc "arc-without-filedesc" Comment "The ARC file does not start with a filedesc record.";
    ArcShortHeader "arc-short-header" Advice "The ARC header line has too few or empty fields.";
    ArcExtraFields "arc-extra-fields" Comment "The ARC header line has more fields than its version; spaces were taken as part of the URL or MIME type.";
    ArcTransposedHeader "arc-transposed-header" Advice "The fields of the ARC header line stand in the wrong order.";
    // HTTP.
    HttpNoHead "http-no-head" Advice "The record should hold an HTTP message, but no head was found.";
    HttpBadStatusLine "http-bad-status-line" Advice "The HTTP start line is not of the usual form.";
    HttpBareLf "http-bare-lf" Comment "HTTP header lines end in LF instead of CRLF.";
    HttpUnterminatedHead "http-unterminated-head" Advice "The HTTP head ends without a blank line.";
    HttpLineWithoutColon "http-line-without-colon" Comment "An HTTP header line has no colon.";
    HttpSpaceBeforeColon "http-space-before-colon" Comment "An HTTP header name is followed by space before its colon.";
    HttpHeadTooLong "http-head-too-long" Damage "The HTTP head is longer than this library reads; its last fields were left out.";
    NotChunked "not-chunked" Advice "The HTTP head says chunked, but the body is not; it was taken as it stands.";
    BrokenChunk "broken-chunk" Damage "The chunked body breaks off in the middle; the rest was taken as it stands.";
    MissingLastChunk "missing-last-chunk" Advice "The chunked body has no last chunk.";
    EncodingLie "encoding-lie" Advice "The body is not in the content encoding the HTTP head names; it was taken as it stands.";
    EncodingBroken "encoding-broken" Damage "The encoded body breaks off or is corrupt; what decoded was kept.";
    UnknownEncoding "unknown-encoding" Advice "The content encoding is not known; the body was left encoded.";
    // Digests.
    BadDigestField "bad-digest-field" Advice "A digest field cannot be read.";
    UnknownDigest "unknown-digest" Comment "A digest field names an algorithm this library does not compute.";
    BlockDigestMismatch "block-digest-mismatch" Damage "The block does not have the digest its header states.";
    PayloadDigestMismatch "payload-digest-mismatch" Damage "The payload does not have the digest the header states.";
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: the offset in the file of the record, or of the gzip member or zstd frame it lies in.
    pub offset: u64,
    /// What.
    pub kind: Kind,
    /// The particular case, where there is more to say than the kind does. Never longer than a line.
    pub detail: Option<Box<str>>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.meaning())?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

/// Problems kept per record. A hostile file could name a new one every byte; the first ones tell the story.
const KEPT_MAX: usize = 64;

/// The problems found since the list was last cleared.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, offset: u64, kind: Kind) {
        self.add_with(offset, kind, String::new);
    }

    pub(crate) fn add_with<D: Into<Box<str>>>(
        &mut self,
        offset: u64,
        kind: Kind,
        detail: impl FnOnce() -> D,
    ) {
        if self.0.len() >= KEPT_MAX {
            return;
        }
        let detail: Box<str> = detail().into();
        self.0.push(Problem { offset, kind, detail: (!detail.is_empty()).then_some(detail) });
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn list(&self) -> &[Problem] {
        &self.0
    }
}

/// A piece of foreign bytes, short and printable enough for a message.
pub(crate) fn quote(bytes: &[u8]) -> String {
    const QUOTED_MAX: usize = 60;
    let mut text: String = bytes[..bytes.len().min(QUOTED_MAX)].escape_ascii().to_string();
    if bytes.len() > QUOTED_MAX {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn codes_are_kebab_case_and_unique() {
        let mut codes: Vec<_> = Kind::ALL.iter().map(|kind| kind.code()).collect();
        assert!(codes.iter().all(|code| code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Kind::ALL.len());
    }
}
