//! Who answers a request of the proxy: one resolver after another, until one does.

use axum::body::Body;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use bytes::Bytes;

use super::{Proxy, archive, control, data};
use crate::reader::Who;

/// A request as resolvers see it.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) method: Method,
    /// The whole URL, as it was captured if it was.
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The name under which the reader's choices are kept.
    pub(super) reader: String,
    pub(super) who: Who,
}

/// One link of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolver {
    /// Commands that change what a reader sees: index, time, recording.
    Control,
    /// Commands that hand out files, records and metadata.
    Data,
    /// Refuses what is on the command host and no command, so that it is never looked for in the archive.
    Unknown,
    /// The archive; what it does not have is written down for readers who record.
    Archive,
}

/// In this order. The last one always answers.
pub(super) const CHAIN: [Resolver; 4] =
    [Resolver::Control, Resolver::Data, Resolver::Unknown, Resolver::Archive];

impl Resolver {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Control => "control commands",
            Self::Data => "data commands",
            Self::Unknown => "unknown commands",
            Self::Archive => "archive, watched by the observer of missing URLs",
        }
    }

    async fn resolve(self, proxy: &Proxy, ask: &Ask) -> Option<Response<Body>> {
        match self {
            Self::Control => control::resolve(proxy, ask),
            Self::Data => data::resolve(proxy, ask).await,
            Self::Unknown => control::unknown(ask),
            Self::Archive => {
                let (found, response) = archive::resolve(proxy, ask).await;
                if !found {
                    proxy.sessions.with(&ask.reader, |session| session.miss(&ask.url));
                }
                Some(response)
            }
        }
    }
}

/// Asks one after another.
pub(super) async fn resolve(proxy: &Proxy, ask: &Ask) -> Response<Body> {
    for resolver in CHAIN {
        if let Some(response) = resolver.resolve(proxy, ask).await {
            return response;
        }
    }
    Response::new(Body::empty())
}
