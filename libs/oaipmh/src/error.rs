//! Errors of the protocol. They come with HTTP status 200, and not all of them are failures.

use std::fmt;

/// The code of an [`OaiError`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The request has illegal, missing or repeated arguments.
    BadArgument,
    /// The token is invalid or expired.
    BadResumptionToken,
    /// The verb is missing, repeated or illegal.
    BadVerb,
    /// The format is not offered for this item or at all.
    CannotDisseminateFormat,
    /// There is no such item.
    IdDoesNotExist,
    /// An empty list: a success.
    NoRecordsMatch,
    /// The item has no formats.
    NoMetadataFormats,
    /// The repository has no sets.
    NoSetHierarchy,
    /// A code the protocol does not know.
    Other(String),
}

impl ErrorCode {
    const KNOWN: [ErrorCode; 8] = [
        ErrorCode::BadArgument,
        ErrorCode::BadResumptionToken,
        ErrorCode::BadVerb,
        ErrorCode::CannotDisseminateFormat,
        ErrorCode::IdDoesNotExist,
        ErrorCode::NoRecordsMatch,
        ErrorCode::NoMetadataFormats,
        ErrorCode::NoSetHierarchy,
    ];

    /// Reads the attribute `code`, in any case.
    pub fn parse(text: &str) -> ErrorCode {
        let text = text.trim();
        let known = ErrorCode::KNOWN.into_iter().find(|code| code.as_str().eq_ignore_ascii_case(text));
        known.unwrap_or_else(|| ErrorCode::Other(text.to_owned()))
    }

    /// As the protocol writes it.
    pub fn as_str(&self) -> &str {
        match self {
            ErrorCode::BadArgument => "badArgument",
            ErrorCode::BadResumptionToken => "badResumptionToken",
            ErrorCode::BadVerb => "badVerb",
            ErrorCode::CannotDisseminateFormat => "cannotDisseminateFormat",
            ErrorCode::IdDoesNotExist => "idDoesNotExist",
            ErrorCode::NoRecordsMatch => "noRecordsMatch",
            ErrorCode::NoMetadataFormats => "noMetadataFormats",
            ErrorCode::NoSetHierarchy => "noSetHierarchy",
            ErrorCode::Other(code) => code,
        }
    }

    /// Whether it only says that a list is empty.
    pub fn is_empty_list(&self) -> bool {
        matches!(self, ErrorCode::NoRecordsMatch | ErrorCode::NoSetHierarchy | ErrorCode::NoMetadataFormats)
    }
}

/// An error a repository gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OaiError {
    /// Which.
    pub code: ErrorCode,
    /// Its words; may be empty.
    pub message: String,
}

impl OaiError {
    /// An error with these words.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> OaiError {
        OaiError { code, message: message.into() }
    }
}

impl fmt::Display for OaiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => f.write_str(self.code.as_str()),
            message => write!(f, "{}: {message}", self.code.as_str()),
        }
    }
}

impl std::error::Error for OaiError {}
