//! The virus gate: what a scanner says of an answer before it is written.

use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::shared::{Shared, VisitError};
use crate::fetch::Fetched;
use crate::log::Annotations;
use crate::virus::{Place, Verdict};

/// How much of an answer is unpacked for the scanner; it has a smaller limit of its own. Against bombs.
const SCANNED_BYTES_MAX: u64 = 4 << 30;

/// Asks the scanner, if there is one. The name of what was found, or why it is not known, if the answer must not
/// be written as it is.
pub(super) async fn scan(
    crawl: &Shared,
    fetched: &mut Fetched,
    annotations: &mut Annotations,
) -> Result<Option<String>, VisitError> {
    let Some(scanner) = &crawl.scanner else { return Ok(None) };
    if !(200..300).contains(&fetched.status.0) || fetched.payload_length == 0 {
        return Ok(None);
    }
    // As a reader would get it: packed contents are unpacked.
    let verdict = scanner.scan(Blocking(fetched.content(SCANNED_BYTES_MAX)?)).await;
    if let Some(word) = verdict.annotation() {
        annotations.add(&word);
    }
    Ok(match verdict.place(scanner.on_unscanned()) {
        Place::Archive => None,
        Place::Quarantine => Some(match verdict {
            Verdict::Infected(name) => name.into(),
            Verdict::Unscanned(why) => format!("not scanned: {why}"),
            Verdict::Clean => String::new(),
        }),
    })
}

/// Reads and decompresses beside the threads that serve connections: compressed, a few kilobytes may be gigabytes. The
/// runtime of a crawl has several threads.
struct Blocking<R>(R);

impl<R: Read + Unpin> AsyncRead for Blocking<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let n = tokio::task::block_in_place(|| self.0.read(buf.initialize_unfilled()))?;
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}
