//! The bytes of a capture on their way out.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::piece_channel::{BrokenOff, PieceReceiver};

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the file could not be read on")]
    Read(#[source] std::io::Error),
    #[error("the content unpacks to more than {bytes_max} bytes; ask for it as it was sent, with id_")]
    TooLarge { bytes_max: u64 },
    #[error(
        "the record breaks off in its file after {sent} bytes of the body; restore the file, or index another copy of it"
    )]
    Short { sent: u64 },
    #[error("the reader of the file ended early")]
    Ended,
    #[error("the server stops; ask again when it is back")]
    Stopping,
}

impl BrokenOff for BodyError {
    fn broken_off() -> Self {
        Self::Ended
    }
}

/// A body: in hand, or read piece by piece.
#[derive(Debug)]
pub enum Body {
    Whole(Bytes),
    Stream(Pieces),
}

/// Pieces that a thread reads ahead.
#[derive(Debug)]
pub struct Pieces {
    pub(super) receiver: PieceReceiver<BodyError>,
    /// The length of all pieces, where it can be known beforehand.
    pub(super) len: Option<u64>,
    /// A piece that was looked at and not yet given out.
    pub(super) looked: Option<Bytes>,
}

impl Body {
    pub const fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    pub fn len(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Stream(pieces) => pieces.len,
        }
    }

    /// Promises no length any more: what was announced may not be what comes.
    pub(super) fn forget_len(&mut self) {
        if let Self::Stream(pieces) = self {
            pieces.len = None;
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    /// The next piece; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Self::Stream(pieces) => match pieces.looked.take() {
                Some(piece) => Poll::Ready(Some(Ok(piece))),
                None => pieces.receiver.poll_next(context),
            },
        }
    }

    /// Looks at the beginning without taking it.
    pub async fn first(&mut self) -> Result<Bytes, BodyError> {
        if let Self::Whole(bytes) = self {
            return Ok(bytes.clone());
        }
        let piece = self.next().await.transpose()?.unwrap_or_default();
        if let Self::Stream(pieces) = self {
            pieces.looked = Some(piece.clone()).filter(|piece| !piece.is_empty());
        }
        Ok(piece)
    }

    /// All of it, if it is no longer than `bytes_max`.
    pub async fn collect(mut self, bytes_max: usize) -> Result<Bytes, BodyError> {
        if let Self::Whole(bytes) = self {
            return if bytes.len() > bytes_max {
                Err(BodyError::TooLarge { bytes_max: bytes_max as u64 })
            } else {
                Ok(bytes)
            };
        }
        let mut all = Vec::new();
        while let Some(piece) = self.next().await {
            all.extend_from_slice(&piece?);
            if all.len() > bytes_max {
                return Err(BodyError::TooLarge { bytes_max: bytes_max as u64 });
            }
        }
        Ok(all.into())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.poll_next(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.len().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
