//! Ranges: a part of a capture's body, for media players that ask for one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::capture::{Body, BodyError};

/// What a `Range` header asks for of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// From the first byte to the last, which is included.
    Bytes(u64, u64),
    /// Nothing of it is there.
    Outside,
}

/// Reads `Range: bytes=…` for a body of `len` bytes. Several ranges at once, and what is no range, mean all of it.
pub(crate) fn asked(range: Option<&str>, len: u64) -> Part {
    let Some(spec) = range.and_then(|range| range.trim().strip_prefix("bytes=")) else { return Part::All };
    let Some((from, to)) = spec.split_once('-').filter(|_| !spec.contains(',')) else { return Part::All };
    let number = |text: &str| text.trim().parse::<u64>();
    match (from.trim().is_empty(), to.trim().is_empty()) {
        (true, true) => Part::All,
        (true, false) => match number(to) {
            Ok(0) => Part::Outside,
            Ok(_) if len == 0 => Part::Outside,
            Ok(last) => Part::Bytes(len.saturating_sub(last), len - 1),
            Err(_) => Part::All,
        },
        (false, open) => {
            let (Ok(from), Ok(to)) = (number(from), if open { Ok(u64::MAX) } else { number(to) }) else {
                return Part::All;
            };
            if from > to {
                return Part::All;
            }
            if from >= len { Part::Outside } else { Part::Bytes(from, to.min(len - 1)) }
        }
    }
}

/// The bytes of a body from `skip` on, `left` of them.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) body: Body,
    pub(crate) skip: u64,
    pub(crate) left: u64,
}

impl http_body::Body for Slice {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        while self.left > 0 {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)?) else {
                return Poll::Ready(Some(Err(BodyError::Ended)));
            };
            let Ok(mut piece) = frame.into_data() else { continue };
            let skipped = self.skip.min(piece.len() as u64);
            self.skip -= skipped;
            let mut piece = piece.split_off(skipped as usize);
            piece.truncate(self.left.min(piece.len() as u64) as usize);
            self.left -= piece.len() as u64;
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[test]
    fn ranges_are_read_as_rfc_9110_says() {
        for (range, len, part) in [
            (None, 10, Part::All),
            (Some("bytes=0-"), 10, Part::Bytes(0, 9)),
            (Some("bytes=2-4"), 10, Part::Bytes(2, 4)),
            (Some("bytes=2-400"), 10, Part::Bytes(2, 9)),
            (Some("bytes=-3"), 10, Part::Bytes(7, 9)),
            (Some("bytes=-30"), 10, Part::Bytes(0, 9)),
            (Some("bytes=-0"), 10, Part::Outside),
            (Some("bytes=10-"), 10, Part::Outside),
            (Some("bytes=0-"), 0, Part::Outside),
            (Some("bytes=4-2"), 10, Part::All),
            (Some("bytes=0-1,3-4"), 10, Part::All),
            (Some("bytes=x-"), 10, Part::All),
            (Some("items=0-1"), 10, Part::All),
            (Some("bytes=99999999999999999999-"), 10, Part::All),
        ] {
            assert_eq!(asked(range, len), part, "{range:?}");
        }
    }

    #[tokio::test]
    async fn a_slice_is_cut_at_both_ends() {
        let body = Body::Whole(Bytes::from_static(b"0123456789"));
        let slice = Slice { body, skip: 3, left: 4 };
        assert_eq!(slice.collect().await.unwrap().to_bytes(), "3456");
        let short = Slice { body: Body::Whole(Bytes::from_static(b"01")), skip: 0, left: 4 };
        assert!(short.collect().await.is_err());
    }
}
