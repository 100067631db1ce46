//! The dialects as the routes know them: how each is asked, what its answers are, and the words of its refusals.

use std::io::Write;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use grange_index::Snapshot;
use grange_index::dialect::{self, Answer, Failure, Params, Visible};

#[derive(Clone, Debug)]
pub(super) enum Dialect {
    Ia,
    /// `prefix` stands before `<time>/<url>` in the links of its answers.
    Pywb {
        prefix: String,
    },
    Outback,
    Xml,
}

impl Dialect {
    pub(super) fn run(
        &self,
        snapshot: &Snapshot,
        params: &Params,
        visible: Visible<'_>,
        out: &mut dyn Write,
    ) -> Result<Answer, Failure> {
        match self {
            Self::Ia => dialect::ia(snapshot, params, visible, out),
            Self::Pywb { prefix } => dialect::pywb(snapshot, params, prefix, visible, out),
            Self::Outback => dialect::outback(snapshot, params, visible, out),
            Self::Xml => dialect::xml(snapshot, params, visible, out),
        }
    }

    pub(super) fn content_type(&self, params: &Params) -> &'static str {
        match self {
            Self::Ia => dialect::ia_content_type(params),
            Self::Pywb { .. } => dialect::pywb_content_type(params),
            Self::Outback => dialect::outback_content_type(params),
            Self::Xml => dialect::XML,
        }
    }

    /// A refusal as clients of the dialect expect it: pywb's in JSON, OpenWayback's in XML, the others in plain text.
    pub(super) fn refuse(&self, status: StatusCode, message: &str) -> Response {
        match self {
            Self::Pywb { .. } => {
                let text = serde_json::json!({ "message": message }).to_string();
                (status, [(header::CONTENT_TYPE, "application/json; charset=utf-8")], text).into_response()
            }
            Self::Xml => {
                let text = dialect::xml_error(message);
                (status, [(header::CONTENT_TYPE, dialect::XML)], text).into_response()
            }
            Self::Ia | Self::Outback => super::text(status, format!("{message}\n")),
        }
    }
}
