//! Errors as they cross the wire: a stable code to branch on, a sentence to read.

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Stable and kebab-case, such as `user-exists`; also the key of its translation.
    pub code: String,
    /// One sentence: what was tried, on what, why it failed, what to do.
    pub message: String,
}

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The server understood and said no.
    #[error("{}", body.message)]
    Refused { status: StatusCode, body: ErrorBody },
    #[error("cannot reach {server}; is the node running there?")]
    Unreachable {
        server: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{server} answered {status} with something that is not Grange's answer: {reason}")]
    Foreign { server: String, status: StatusCode, reason: String },
    #[error("cannot write the request")]
    Request(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ApiError {
    /// The status of a refusal, if it was one.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}
