//! The three ways in which the world asks for captures, as functions from parameters to lines.
//!
//! The same parameter means different things in them (`filter` most of all), so each has its own file and nothing is
//! guessed. None knows HTTP: a server hands over the query string and a place to write, and gets a kind of content or a
//! reason why not.

mod ia;
mod line;
mod outback;
mod paged;
mod params;
mod post;
mod pywb;
mod xml;

use std::io;

pub use ia::{answer as ia, content_type as ia_content_type};
pub use outback::{answer as outback, content_type as outback_content_type};
pub use params::{BadRequest, Params};
pub use post::{PostFailure, Posted, post as outback_post};
pub use pywb::{answer as pywb, content_type as pywb_content_type};
pub use xml::{XML, answer as xml, error as xml_error};

use crate::query::Answered;
use crate::view::CaptureView;

/// Who may see what: false makes a capture invisible. Asked for every capture before anything else counts it.
pub type Visible<'v> = &'v dyn Fn(&CaptureView<'_>) -> bool;

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is wrong; nothing was written.
    #[error(transparent)]
    Request(#[from] BadRequest),
    /// The index could not be read.
    #[error("the index could not be read to the end")]
    Index(#[from] crate::Error),
    /// Whoever asked is gone.
    #[error("the answer could not be sent")]
    Send(#[from] io::Error),
}

/// An answer that was written.
#[derive(Debug)]
pub struct Answer {
    /// What the lines are, as a media type.
    pub content_type: &'static str,
    /// Captures told.
    pub captures: u64,
    /// What was noticed in the index.
    pub noticed: Answered,
}

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
pub(crate) const NDJSON: &str = "text/x-ndjson";
pub(crate) const CDXJ: &str = "text/x-cdxj";
pub(crate) const LINK: &str = "application/link-format";
