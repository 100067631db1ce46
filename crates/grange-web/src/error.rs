//! Errors become answers here and nowhere else: a status, a stable code, a sentence.

use std::any::Any;

use axum::Json;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use grange_api::ErrorBody;
use grange_app::Error as ActError;
use grange_base::Chain;

/// An act that was not done, on its way to the client.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    body: ErrorBody,
}

impl Refusal {
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, body: ErrorBody { code: code.to_owned(), message: message.into() } }
    }
}

impl From<ActError> for Refusal {
    fn from(error: ActError) -> Self {
        let status = status_of(&error);
        let message = Chain(&error).to_string();
        if status.is_server_error() {
            tracing::error!(code = error.code(), error = message, "an act failed");
        }
        Self::new(status, error.code(), message)
    }
}

fn status_of(error: &ActError) -> StatusCode {
    match error {
        ActError::Forbidden { .. } | ActError::NotLocal { .. } => StatusCode::FORBIDDEN,
        ActError::Unknown | ActError::WrongPassword => StatusCode::UNAUTHORIZED,
        ActError::NotFound { .. } | ActError::NoRecord { .. } => StatusCode::NOT_FOUND,
        ActError::UserName(_)
        | ActError::FileName(_)
        | ActError::PasswordTooShort { .. }
        | ActError::PasswordTooLong { .. }
        | ActError::TokenName
        | ActError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        ActError::Hashing | ActError::NoVault | ActError::Vault(_) => StatusCode::INTERNAL_SERVER_ERROR,
        ActError::Archive(error) => archive_status(error),
        ActError::Db(error) => match error.code() {
            "not-found" => StatusCode::NOT_FOUND,
            "bad-text" => StatusCode::UNPROCESSABLE_ENTITY,
            "exists" | "stale" | "last-admin" | "in-use" | "refused" | "backup-exists"
            | "backup-elsewhere" => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

fn archive_status(error: &grange_app::ArchiveError) -> StatusCode {
    use grange_app::ArchiveError as E;
    match error {
        E::NotFound { .. } | E::NoReplica { .. } => StatusCode::NOT_FOUND,
        E::OtherBytes { .. }
        | E::OtherDeposit { .. }
        | E::NotWithdrawable { .. }
        | E::NotWaiting { .. }
        | E::NoPeer { .. }
        | E::Reserved { .. }
        | E::WrongChecksum { .. }
        | E::NotThatBad { .. }
        | E::IsGood { .. }
        | E::NotOutvoted { .. }
        | E::NotUndecided { .. }
        | E::Credential { .. }
        | E::SamePerson { .. }
        | E::Unidentified { .. }
        | E::NoBytes { .. } => StatusCode::CONFLICT,
        E::TooMuch { .. } | E::NotRegularFile { .. } | E::NamedDatabase { .. } => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        E::Db(error) if error.code() == "not-found" => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

/// The answer to an address that does not exist.
pub(crate) async fn no_such_page(uri: Uri) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "no-such-page", format!("there is nothing at {}", uri.path()))
}

/// The answer when a handler panicked: the request fails, the node goes on.
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let message = grange_base::worker::panic_message(panic.as_ref());
    tracing::error!(message, "a request panicked");
    let text = "the node failed on this request; its log says why";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "panic", text).into_response()
}
