//! Ranges: a part of a capture's body, for media players that ask for one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::http::StatusCode;
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
fn asked(range: Option<&str>, len: u64) -> Part {
    let Some(spec) = range.and_then(of_bytes) else { return Part::All };
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

/// What follows the unit, which is written in any case.
fn of_bytes(range: &str) -> Option<&str> {
    let (unit, spec) = range.trim().split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(spec)
}

/// What part of a resource a capture of a part holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    from: u64,
    /// Included.
    to: u64,
    /// Of the whole resource, if the server said so.
    total: Option<u64>,
}

impl Held {
    /// Reads `Content-Range: bytes 0-1023/5000` of a body of `len` bytes; none if it cannot be about that body.
    fn read(content_range: Option<&str>, len: Option<u64>) -> Option<Self> {
        let (unit, spec) = content_range?.trim().split_once([' ', '='])?;
        let (range, total) = spec.trim().split_once('/')?;
        let (from, to) = range.split_once('-')?;
        let (from, to) = (from.trim().parse::<u64>().ok()?, to.trim().parse::<u64>().ok()?);
        let total = total.trim().parse::<u64>().ok();
        let holds = to.checked_sub(from)?.checked_add(1)?;
        let fits = unit.eq_ignore_ascii_case("bytes")
            && len.is_none_or(|len| len == holds)
            && total.is_none_or(|total| to < total);
        fits.then_some(Self { from, to, total })
    }

    /// Whether it is the whole resource.
    fn is_all(self) -> bool {
        self.from == 0 && self.total == Some(self.to + 1)
    }
}

/// Which part of a body is sent, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) status: StatusCode,
    /// Of the body as it is stored.
    pub(crate) part: Part,
    /// Where the status asks for one.
    pub(crate) content_range: Option<String>,
}

/// Chooses a part of a body that was captured with `status` 200 or 206. Media players ask for parts of captures that were made
/// whole; a capture of a part answers for what it holds, and never looks like the whole. `len`: of the body, if it is known.
pub(crate) fn choose(
    range: Option<&str>,
    status: StatusCode,
    content_range: Option<&str>,
    len: Option<u64>,
) -> Chosen {
    let held = Held::read(content_range, len).filter(|_| status == StatusCode::PARTIAL_CONTENT);
    let chosen = |status, part, content_range| Chosen { status, part, content_range };
    // Crawlers ask for `bytes=0-`, and get all of it as a part. A part that does not say which is one nevertheless.
    let is_part = status == StatusCode::PARTIAL_CONTENT && held.is_none_or(|held| !held.is_all());
    let all = || {
        let told = content_range.filter(|_| is_part).map(ToOwned::to_owned);
        chosen(if is_part { status } else { StatusCode::OK }, Part::All, told)
    };
    let outside = |total: u64| {
        chosen(StatusCode::RANGE_NOT_SATISFIABLE, Part::Outside, Some(format!("bytes */{total}")))
    };
    let (from, to, whole) = match (held, len) {
        (Some(held), _) => (held.from, held.to, held.total.unwrap_or(held.to + 1)),
        (None, Some(len)) => (0, len.saturating_sub(1), len),
        (None, None) => return all(),
    };
    match asked(range, whole) {
        Part::All => all(),
        Part::Outside => outside(whole),
        // What was asked for exists, and this capture does not have its beginning.
        Part::Bytes(first, _) if first < from || first > to => outside(whole),
        Part::Bytes(first, last) => {
            let last = last.min(to);
            let total = held.map_or(Some(whole), |held| held.total);
            let total = total.map_or_else(|| "*".to_owned(), |total| total.to_string());
            let told = format!("bytes {first}-{last}/{total}");
            chosen(StatusCode::PARTIAL_CONTENT, Part::Bytes(first - from, last - from), Some(told))
        }
    }
}

/// Whether `If-Range` still allows a part: the validator must be the one that is sent with the capture.
pub(crate) fn may_be_part(if_range: Option<&str>, etag: Option<&str>, last_modified: Option<&str>) -> bool {
    let Some(asked) = if_range.map(str::trim) else { return true };
    let is_strong = !asked.starts_with("W/");
    let is = |own: Option<&str>| own.is_some_and(|own| own.trim() == asked);
    is_strong && (is(etag) || is(last_modified))
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
            (Some("Bytes=2-4"), 10, Part::Bytes(2, 4)),
            (Some(" BYTES = 2-4 "), 10, Part::Bytes(2, 4)),
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

    #[test]
    fn a_capture_of_a_part_answers_for_what_it_holds() {
        let part = "bytes 1000-1999/5000";
        // Asked; status, part of the stored thousand bytes, what is said of it.
        for (range, status, of_body, told) in [
            (None, 206, Part::All, Some(part)),
            (Some("bytes=1000-1999"), 206, Part::Bytes(0, 999), Some("bytes 1000-1999/5000")),
            (Some("bytes=1500-1599"), 206, Part::Bytes(500, 599), Some("bytes 1500-1599/5000")),
            (Some("bytes=1500-"), 206, Part::Bytes(500, 999), Some("bytes 1500-1999/5000")),
            (Some("bytes=1999-2100"), 206, Part::Bytes(999, 999), Some("bytes 1999-1999/5000")),
            (Some("bytes=2000-"), 416, Part::Outside, Some("bytes */5000")),
            (Some("bytes=0-"), 416, Part::Outside, Some("bytes */5000")),
            (Some("bytes=-100"), 416, Part::Outside, Some("bytes */5000")),
            (Some("bytes=5000-"), 416, Part::Outside, Some("bytes */5000")),
            (Some("bytes=-4000"), 206, Part::Bytes(0, 999), Some("bytes 1000-1999/5000")),
            (Some("bytes=1-2,4-5"), 206, Part::All, Some(part)),
        ] {
            let chosen = choose(range, StatusCode::PARTIAL_CONTENT, Some(part), Some(1000));
            let expected = Chosen {
                status: StatusCode::from_u16(status).unwrap(),
                part: of_body,
                content_range: told.map(ToOwned::to_owned),
            };
            assert_eq!(chosen, expected, "{range:?}");
        }
        // A length nobody knows, and one that cannot be: then the body counts.
        let chosen = choose(Some("bytes=5-"), StatusCode::PARTIAL_CONTENT, Some("bytes 0-9/*"), Some(10));
        assert_eq!(chosen.content_range.as_deref(), Some("bytes 5-9/*"));
        for lie in [
            None,
            Some("bytes 0-1/10"),
            Some("bytes 5-4/10"),
            Some("bytes 0-9/5"),
            Some("lines 0-9/10"),
            Some("x"),
        ] {
            let chosen = choose(Some("bytes=5-"), StatusCode::PARTIAL_CONTENT, lie, Some(10));
            assert_eq!(chosen.content_range.as_deref(), Some("bytes 5-9/10"), "{lie:?}");
        }
        // All of it in one part is the whole; a part that does not say which is one.
        for (told, status) in
            [(Some("bytes 0-9/10"), 200), (Some("bytes 0-9/*"), 206), (None, 206), (Some("x"), 206)]
        {
            let chosen = choose(None, StatusCode::PARTIAL_CONTENT, told, Some(10));
            assert_eq!((chosen.status.as_u16(), chosen.part), (status, Part::All), "{told:?}");
            assert_eq!(chosen.content_range.as_deref(), told.filter(|_| status == 206), "{told:?}");
        }
        // Only what was captured as a part is one.
        let chosen = choose(Some("bytes=5-"), StatusCode::OK, Some("bytes 5-14/20"), Some(10));
        assert_eq!(chosen.content_range.as_deref(), Some("bytes 5-9/10"));
        assert_eq!(choose(Some("bytes=5-"), StatusCode::OK, None, None).status, 200);
    }

    #[test]
    fn a_part_is_sent_only_of_what_the_client_has() {
        for (if_range, may) in [
            (None, true),
            (Some("\"x\""), true),
            (Some("\"y\""), false),
            (Some("W/\"x\""), false),
            (Some("Wed, 01 Jan 2020 00:00:00 GMT"), true),
            (Some("Thu, 02 Jan 2020 00:00:00 GMT"), false),
        ] {
            let modified = Some("Wed, 01 Jan 2020 00:00:00 GMT");
            assert_eq!(may_be_part(if_range, Some("\"x\""), modified), may, "{if_range:?}");
            assert_eq!(may_be_part(if_range, None, None), if_range.is_none(), "{if_range:?}");
        }
        assert!(!may_be_part(Some("W/\"x\""), Some("W/\"x\""), None));
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
