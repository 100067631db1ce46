//! What can be wrong with an answer, each with a stable code.
//!
//! A problem never stops the reader: a record that had to be repaired is better than a harvest that fails at its
//! last page. How much a problem weighs is its [`Level`]; what to do about it is the harvester's policy.

use std::fmt;

/// How much a [`Problem`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Against the protocol, but the XML is sound.
    Advice,
    /// Not well-formed or not in the stated encoding; repaired, and nothing was lost.
    Repaired,
    /// Something was lost, left out or guessed.
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

impl Kind {
    /// Whether it means that the answer was not well-formed XML in its own encoding. The others are against the
    /// protocol only.
    pub const fn is_ill_formed(self) -> bool {
        // The protocol's own kinds stand last in the table.
        (self as u8) < (Kind::NotOaiPmh as u8)
    }
}

kinds! {
    // The bytes.
    LeadingBytes "leading-bytes" Repaired "Something stands before the XML; it was skipped.";
    WrongEncoding "wrong-encoding" Repaired "The answer is not in the encoding it states; it was read in the one it is in.";
    UnknownEncoding "unknown-encoding" Damage "The stated encoding is not known; the answer was read as UTF-8.";
    BadUtf8 "bad-utf8" Damage "Bytes are not UTF-8; they were read as windows-1252.";
    UndecodableBytes "undecodable-bytes" Damage "Bytes are not in the stated encoding; each became U+FFFD.";
    IllegalCharacter "illegal-character" Damage "A character that XML does not allow became a blank.";
    // The XML.
    UnescapedAmpersand "unescaped-ampersand" Repaired "An ampersand stands for itself; it was escaped.";
    UnescapedLess "unescaped-less" Repaired "A less-than sign stands for itself; it was escaped.";
    UnescapedSectionEnd "unescaped-section-end" Repaired "The end of a CDATA section stands in text; it was escaped.";
    UndefinedEntity "undefined-entity" Repaired "An entity of HTML that XML does not know was replaced by what it stands for.";
    InnerProlog "inner-prolog" Repaired "An XML declaration or DOCTYPE inside the answer was left out.";
    BadAttribute "bad-attribute" Repaired "An attribute has no quotes, no value or no space before it; it was written properly.";
    TooManyAttributes "too-many-attributes" Damage "An element has more attributes than this library reads; the rest were left out.";
    DuplicateAttribute "duplicate-attribute" Damage "An attribute is repeated; the first one counts.";
    BadComment "bad-comment" Repaired "A comment holds two hyphens or a processing instruction is malformed; it was left out.";
    MismatchedTag "mismatched-tag" Damage "A start tag has no end tag, or an end tag no start tag; the nesting was guessed.";
    SeveralRoots "several-roots" Damage "A container that holds one element holds more; only the first was kept.";
    StrayText "stray-text" Damage "Text stands where only an element may; it was left out.";
    KnownNamespace "known-namespace" Repaired "A prefix is not declared; it was given the namespace it usually stands for.";
    UnboundPrefix "unbound-prefix" Damage "A prefix is not declared and not known; a namespace was made up for it.";
    TooDeep "too-deep" Damage "Elements are nested deeper than this library reads; the content was left out.";
    TooLarge "too-large" Damage "A record is larger than the limit; its content was left out.";
    TooDamaged "too-damaged" Damage "A record needs more repairs than the limit; its content was left out.";
    Truncated "truncated" Damage "The answer ends before it is complete.";
    TrailingBytes "trailing-bytes" Repaired "Something stands after the end of the XML; it was ignored.";
    // The protocol.
    NotOaiPmh "not-oai-pmh" Damage "The answer is not OAI-PMH.";
    HtmlPage "html-page" Damage "The answer is an HTML page.";
    Empty "empty" Damage "The answer is empty.";
    MissingNamespace "missing-namespace" Advice "The elements of the answer are not in the namespace of OAI-PMH 2.0.";
    MissingIdentifier "missing-identifier" Damage "A header has no identifier.";
    MissingDatestamp "missing-datestamp" Advice "A header has no datestamp.";
    BadDatestamp "bad-datestamp" Advice "A date is not of the form the protocol demands.";
    MissingMetadata "missing-metadata" Damage "A record that is not deleted has no metadata.";
    MisspeltElement "misspelt-element" Advice "An element's name is written in other letters than the protocol's.";
    MissingField "missing-field" Advice "A field that the protocol demands is missing.";
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: bytes from the start of the answer once it is in UTF-8, which in a sound UTF-8 answer is the
    /// offset in the body.
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

/// Problems kept per record or page. A hostile answer could name a new one every byte; the first tell the story.
pub(crate) const KEPT_MAX: usize = 64;

/// The problems found since the list was last taken.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, offset: u64, kind: Kind) {
        self.add_with(offset, kind, || "");
    }

    pub(crate) fn add_with<D: AsRef<str>>(&mut self, offset: u64, kind: Kind, detail: impl FnOnce() -> D) {
        if self.0.len() >= KEPT_MAX {
            return;
        }
        let detail = detail();
        let detail = (!detail.as_ref().is_empty()).then(|| quote(detail.as_ref()));
        self.0.push(Problem { offset, kind, detail });
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        if self.0.len() < KEPT_MAX {
            self.0.push(problem);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.0)
    }
}

/// A piece of foreign text, short and printable enough for a message.
fn quote(text: &str) -> Box<str> {
    /// Characters; enough to recognise the place.
    const QUOTED_MAX: usize = 60;
    let mut quoted: String =
        text.chars().take(QUOTED_MAX).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    if text.chars().nth(QUOTED_MAX).is_some() {
        quoted.push('…');
    }
    quoted.into()
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn codes_are_kebab_case_and_unique() {
        let mut codes: Vec<_> = Kind::ALL.iter().map(|kind| kind.code()).collect();
        assert!(codes.iter().all(|code| code.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Kind::ALL.len());
    }
}
