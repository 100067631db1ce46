//! A body on its way through a rewriter.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::capture::{Body, BodyError};
use crate::rewrite::Transform;

/// Small bodies are rewritten at once, so that they go out with their length.
pub(super) fn rewritten(body: Body, mut transform: Box<dyn Transform + Send>) -> axum::body::Body {
    let Body::Whole(bytes) = body else {
        return axum::body::Body::new(Rewriting { body, transform: Some(transform) });
    };
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 4 + 4096);
    transform.push(&bytes, &mut out);
    transform.finish(&mut out);
    out.into()
}

/// A long body, rewritten piece by piece.
struct Rewriting {
    body: Body,
    transform: Option<Box<dyn Transform + Send>>,
}

impl http_body::Body for Rewriting {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let Some(mut transform) = self.transform.take() else { return Poll::Ready(None) };
            let frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(frame) => frame.transpose()?,
                Poll::Pending => {
                    self.transform = Some(transform);
                    return Poll::Pending;
                }
            };
            let mut out = Vec::new();
            match frame.map(Frame::into_data) {
                Some(Ok(piece)) => {
                    transform.push(&piece, &mut out);
                    self.transform = Some(transform);
                }
                Some(Err(_)) => self.transform = Some(transform),
                None => transform.finish(&mut out),
            }
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.transform.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
