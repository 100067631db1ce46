//! Asks servers, and keeps what they answer exactly as it came over the wire.
//!
//! An HTTP/1 client of our own: libraries give a tidy answer or an error, an archive wants the bytes, above all of
//! the untidy answers. Whatever a server or a network does is a [`Fetched`] with a status and [`Problem`]s; an
//! error is a fault of our own. Nothing is tried twice, except once when a connection that was kept open turns out
//! to be closed or out of step.
//!
//! From the bottom up: `body` finds the end of a body, `reply` makes an answer of bytes without any IO, `connect`
//! (with `dns`, `proxy` and `tls`) opens connections, `pool` keeps them, `fetcher` joins them; `content` undoes the
//! codings for extractors. [`auth`], [`login`] and [`cookies`](CookieJar) decide what is sent, without sending it.

pub mod auth;
mod body;
mod connect;
mod content;
mod cookies;
mod dns;
mod error;
mod fetched;
mod fetcher;
pub mod login;

mod overrides;
mod pool;
mod problem;
mod proxy;
mod reply;
mod request;
mod scratch;
mod settings;
mod spool;
mod stored;
mod tls;

pub use content::Content;
#[cfg(test)]
pub(crate) use cookies::DOMAINS_MAX;
pub use cookies::{Cookie, CookieJar};
pub use dns::{DnsAnswer, DnsFailure, DnsSource};
pub use error::FetchError;
pub use fetched::Fetched;
pub use fetcher::Fetcher;
pub use problem::{Problem, ProblemKind};
pub use reply::{End, HEAD_BYTES_MAX, Outcome, read_reply};
pub use request::{Method, Request, Validators, WantsBody};
pub use scratch::CopyRoom;
pub use settings::{AddressChoice, BadSetting, ContentEncoding, DnsSettings, HttpVersion, Settings, Trust};
pub use spool::{Spool, SpoolReader};
pub use tls::{Tls, Verdict};
