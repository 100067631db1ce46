//! What filters and normalizers share: their file format, XPath expressions, regular expressions, and the record they
//! look at.

mod document;
mod expression;
mod file;
mod lexer;
mod pattern;

pub use document::Document;
pub(crate) use document::Found;
pub(crate) use expression::Expression;
pub(crate) use file::{File, Namespaces, attributes, flag};
pub(crate) use pattern::Pattern;

/// A file of rules that cannot be used: a job with it must not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct BadRules {
    /// Which part of the file.
    pub place: String,
    /// What is wrong with it and what would be right.
    pub reason: String,
}

impl BadRules {
    pub(crate) fn new(place: impl Into<String>, reason: impl Into<String>) -> BadRules {
        BadRules { place: place.into(), reason: reason.into() }
    }
}

/// A record that rules could not be applied to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It is no XML document.
    #[error("the record is not well-formed: {0}")]
    NotWellFormed(String),
    /// The expression does not work on this record, or takes too long.
    #[error("the XPath {xpath} failed: {reason}")]
    XPath {
        /// The expression.
        xpath: String,
        /// What the engine said.
        reason: String,
    },
    /// The regular expression takes too long on this record.
    #[error("the regular expression {regexp} failed: {reason}")]
    Regexp {
        /// The expression.
        regexp: String,
        /// What the engine said.
        reason: String,
    },
}

#[cfg(test)]
mod tests;
