use proptest::prelude::*;

use super::*;

const NO_LIMIT: u64 = u64::MAX;

fn sha1(text: &str) -> Digest {
    Digest::of(Algorithm::Sha1, text.as_bytes())
}

/// One answer and what is made of it.
struct Case {
    wire: &'static str,
    end: End,
    status: i32,
    /// The bytes before the head.
    preamble: &'static str,
    head: usize,
    payload: &'static str,
    cut: Option<Truncated>,
    annotations: &'static [&'static str],
}

const fn case(wire: &'static str, end: End, status: i32, head: usize, payload: &'static str) -> Case {
    Case { wire, end, status, preamble: "", head, payload, cut: None, annotations: &[] }
}

impl Case {
    const fn cut(mut self, why: Truncated) -> Case {
        self.cut = Some(why);
        self
    }

    const fn notes(mut self, annotations: &'static [&'static str]) -> Case {
        self.annotations = annotations;
        self
    }

    const fn after(mut self, preamble: &'static str) -> Case {
        self.preamble = preamble;
        self
    }
}

fn cases() -> Vec<Case> {
    use End::{Closed, Done, Lost, TimedOut};
    let disconnect = Truncated::Disconnect;
    vec![
        // As it should be.
        case("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Done, 200, 38, "abc"),
        case("HTTP/1.1 200 OK\r\n\r\nabc", Closed, 200, 19, "abc"),
        case("HTTP/1.1 204 No\r\n\r\n", Done, 204, 19, ""),
        case("HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", Done, 304, 38, ""),
        case("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Done, 200, 38, ""),
        case(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: u\r\n\r\n",
            Done,
            200,
            47,
            "abc",
        ),
        // Interim answers are no answer.
        case("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx", Done, 404, 38, "x")
            .after("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"),
        case("HTTP/1.1 101 Switching\r\n\r\n", Done, 101, 26, ""),
        case("HTTP/1.1 100 Continue\r\n\r\n", Closed, -3, 0, "")
            .after("HTTP/1.1 100 Continue\r\n\r\n")
            .notes(&["disconnected"]),
        // Cut off.
        case("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", Closed, 200, 38, "abc")
            .cut(disconnect)
            .notes(&["disconnected"]),
        case("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", Lost, 200, 38, "abc")
            .cut(disconnect)
            .notes(&["disconnected"]),
        case("HTTP/1.1 200 OK\r\n\r\nabc", Lost, 200, 19, "abc").cut(disconnect).notes(&["disconnected"]),
        case("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", TimedOut, 200, 38, "abc")
            .cut(Truncated::Time)
            .notes(&["timeTrunc"]),
        case("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", End::NotWanted, 200, 38, "")
            .cut(Truncated::Unspecified)
            .notes(&["midFetchAbort"]),
        case("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", Closed, 200, 47, "abc")
            .cut(disconnect)
            .notes(&["brokenChunk", "disconnected"]),
        case("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Closed, 200, 47, "abc")
            .cut(disconnect)
            .notes(&["noLastChunk", "disconnected"]),
        case("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Closed, 200, 47, "")
            .cut(disconnect)
            .notes(&["noLastChunk", "disconnected"]),
        case("HTTP/1.1 200 OK\r\nA: b", Closed, 200, 21, "")
            .cut(disconnect)
            .notes(&["unterminatedHead", "disconnected"]),
        case("HTTP/1.1 200 OK\r\nA: b", Lost, -3, 0, "").notes(&["disconnected"]),
        case("HTTP/1.1 200 OK\r\nA: b", TimedOut, -4, 0, "").notes(&["answerTimeout"]),
        case("HTT", Lost, -3, 0, "").notes(&["disconnected"]),
        case("", Closed, -3, 0, "").notes(&["disconnected"]),
        case("", TimedOut, -4, 0, "").notes(&["answerTimeout"]),
        // Against the rules.
        case("HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", Done, 200, 35, "abc").notes(&["http-bare-lf"]),
        case("HTTP/1.1 200 OK\r\r\nContent-Length: 3\r\r\n\r\r\nabc", Done, 200, 41, "abc"),
        case("HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length : 3\r\n\r\nabc", Done, 200, 49, "abc")
            .notes(&["http-line-without-colon", "http-space-before-colon"]),
        case("http/1.1 200 OK\r\n\r\nabc", Closed, 200, 19, "abc").notes(&["http-bad-status-line"]),
        case("HTTP/1.1 OK\r\n\r\nabc", Closed, 200, 15, "abc").notes(&["http-bad-status-line", "noStatusCode"]),
        case("HTTP/1.1 99 x\r\n\r\nabc", Closed, 200, 17, "abc").notes(&["http-bad-status-line", "noStatusCode"]),
        case("HTTP 200 OK\r\n\r\nabc", Closed, 200, 15, "abc").notes(&["http-bad-status-line"]),
        case("ICY 200 OK\r\n\r\nabc", Closed, 200, 14, "abc").notes(&["http-bad-status-line"]),
        case("HTTP/1.1 999 Go away\r\n\r\n", Closed, 999, 24, ""),
        case("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabc", TimedOut, 200, 57, "abc")
            .notes(&["conflictingLength"]),
        case("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 3\r\n\r\nabc", Closed, 200, 57, "abc")
            .notes(&["conflictingLength"]),
        case("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", Done, 200, 57, "abcde")
            .notes(&["conflictingLength"]),
        case("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcd", Closed, 200, 57, "abcd")
            .cut(disconnect)
            .notes(&["conflictingLength", "disconnected"]),
        case("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc", Closed, 200, 38, "abc").notes(&["badLength"]),
        case(
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            Done,
            200,
            66,
            "abc",
        )
        .notes(&["lengthAndChunked"]),
        case("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n<html>", Closed, 200, 47, "<html>")
            .notes(&["notChunked"]),
        case("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", Closed, 200, 44, "abc")
            .notes(&["unknownTransferCoding"]),
        // Not at its place, or not there.
        case("\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabc", Closed, 200, 19, "abc").after("\r\n\r\n"),
        case("rest</html>HTTP/1.1 200 OK\r\n\r\nabc", Closed, 200, 19, "abc")
            .after("rest</html>")
            .notes(&["garbageBeforeHead"]),
        case("<html>HTTP/1.1 is a protocol", Closed, 200, 0, "<html>HTTP/1.1 is a protocol").notes(&["noStatusLine"]),
        case("<html>hello", Closed, 200, 0, "<html>hello").notes(&["noStatusLine"]),
        case("SSH-2.0-OpenSSH\r\n", Closed, 200, 0, "SSH-2.0-OpenSSH\r\n").notes(&["noStatusLine"]),
        case("H", Closed, 200, 0, "H").notes(&["noStatusLine"]),
        case("GET / HTTP/1.1\r\n\r\n", Closed, 200, 0, "GET / HTTP/1.1\r\n\r\n").notes(&["noStatusLine"]),
    ]
}

#[test]
fn something_is_made_of_every_answer() {
    for case in cases() {
        let wire = case.wire;
        for piece in [usize::MAX, 1, 2, 7] {
            let got = read_reply(wire.as_bytes(), std::iter::repeat(piece), NO_LIMIT, case.end);
            let annotations: Vec<_> = got.problems.iter().map(|problem| problem.kind.annotation()).collect();
            assert_eq!(annotations, case.annotations, "{wire:?} in pieces of {piece}");
            assert_eq!(got.status.0, case.status, "{wire:?} in pieces of {piece}");
            assert_eq!(String::from_utf8_lossy(&got.preamble), case.preamble, "{wire:?}");
            assert_eq!(got.head_len, case.head, "{wire:?}");
            assert_eq!(got.truncated, case.cut, "{wire:?}");
            // Nothing is lost: what came before the head, and all the rest.
            let kept = [&got.preamble[..], &got.buffer].concat();
            assert_eq!(String::from_utf8_lossy(&kept), wire, "in pieces of {piece}");
            assert_eq!(
                (got.payload_digest, got.payload_len),
                (sha1(case.payload), case.payload.len() as u64)
            );
            assert_eq!(got.block_digest, Digest::of(Algorithm::Sha1, &got.buffer), "{wire:?}");
            assert_eq!(got.len, got.buffer.len() as u64);
        }
    }
}

#[test]
fn what_follows_the_answer_is_cut_off_and_named() {
    for wire in [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef",
        "HTTP/1.1 204 OK\r\n\r\ndef",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\ndef",
    ] {
        let got = read_reply(wire.as_bytes(), [usize::MAX], NO_LIMIT, End::Closed);
        assert_eq!(String::from_utf8_lossy(&got.buffer), wire.strip_suffix("def").unwrap());
        assert_eq!(got.problems.len(), 1, "{:?}", got.problems);
        assert_eq!(got.problems[0].kind, ProblemKind::SurplusBytes);
        assert!(!got.clean, "the connection is out of step");
    }
}

#[test]
fn answers_are_cut_at_their_limits() {
    let wire = "HTTP/1.1 200 OK\r\n\r\n0123456789";
    for (max, payload, cut) in [
        (29, "0123456789", false),
        (28, "012345678", true),
        (19, "", true),
        (0, "", true),
        (30, "0123456789", false),
    ] {
        for piece in [usize::MAX, 1] {
            let got = read_reply(wire.as_bytes(), std::iter::repeat(piece), max, End::Closed);
            assert_eq!((got.payload_digest, got.truncated.is_some()), (sha1(payload), cut), "{max}");
            assert_eq!(got.len as usize, 19 + payload.len());
        }
    }
    // A length that fits exactly is no cut.
    let exact = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(read_reply(exact.as_bytes(), [9], exact.len() as u64, End::Closed).truncated, None);

    let long = format!("HTTP/1.1 200 OK\r\n{}\r\nbody", "A: b\r\n".repeat(HEAD_BYTES_MAX / 6));
    for piece in [usize::MAX, 1000] {
        let got = read_reply(long.as_bytes(), std::iter::repeat(piece), NO_LIMIT, End::Closed);
        assert_eq!(got.problems[0].kind, ProblemKind::HeadTruncated);
        assert_eq!((got.status.0, got.buffer.len(), got.head_len), (200, HEAD_BYTES_MAX, HEAD_BYTES_MAX));
        assert_eq!(got.block_digest, Digest::of(Algorithm::Sha1, &got.buffer));
        assert_eq!(got.truncated, Some(Truncated::Length));
    }
    let interim = "HTTP/1.1 100 x\r\n\r\n".repeat(HEAD_BYTES_MAX / 10);
    let got = read_reply(interim.as_bytes(), std::iter::repeat(1000), NO_LIMIT, End::TimedOut);
    assert!(got.preamble.len() + got.buffer.len() <= HEAD_BYTES_MAX);
    assert!(
        got.problems.iter().any(|problem| problem.kind == ProblemKind::HeadTruncated),
        "{:?}",
        got.problems
    );
}

#[test]
fn connections_stay_open_when_both_sides_say_so() {
    for (head, open) in [
        ("HTTP/1.1 200 OK\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nConnection: x, close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", true),
    ] {
        assert_eq!(stays_open(&HttpHead::from_bytes(head.as_bytes()).unwrap().0), open, "{head:?}");
    }
}

/// A body cut into chunks at any places.
fn chunked(body: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let mut rest = body;
    for cut in cuts {
        let (chunk, after) = rest.split_at((*cut).min(rest.len()));
        if !chunk.is_empty() {
            out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        rest = after;
    }
    if !rest.is_empty() {
        out.extend_from_slice(format!("{:X};ext\r\n", rest.len()).as_bytes());
        out.extend_from_slice(rest);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

proptest! {
    #[test]
    fn the_payload_digest_does_not_depend_on_chunks_or_packets(
        body in prop::collection::vec(any::<u8>(), 0..3000),
        cuts in prop::collection::vec(1usize..700, 0..8),
        pieces in prop::collection::vec(1usize..900, 1..60),
    ) {
        let wire = chunked(&body, &cuts);
        let got = read_reply(&wire, pieces, NO_LIMIT, End::Closed);
        prop_assert_eq!(got.payload_digest, Digest::of(Algorithm::Sha1, &body));
        prop_assert_eq!(got.block_digest, Digest::of(Algorithm::Sha1, &wire));
        prop_assert_eq!(got.buffer, wire);
        prop_assert!(got.clean && got.truncated.is_none() && got.problems.is_empty());
    }

    #[test]
    fn any_bytes_in_any_pieces_give_the_same(
        start in prop::sample::select(vec!["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 x\r\n\r\nHTTP/1.0 ", "\r\nxHTTP/1.1 404 N\r\n"]),
        middle in prop::sample::select(vec!["", "Transfer-Encoding: chunked\r\n\r\n", "Content-Length: 7\r\n\r\n", "\r\n"]),
        rest in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'1'), any::<u8>()], 0..200),
        pieces in prop::collection::vec(1usize..40, 1..60),
        max in 0u64..300,
    ) {
        let wire = [start.as_bytes(), middle.as_bytes(), &rest].concat();
        let whole = read_reply(&wire, [usize::MAX], max, End::Closed);
        let pieced = read_reply(&wire, pieces, max, End::Closed);
        prop_assert_eq!(whole.status, pieced.status);
        prop_assert_eq!(&whole.preamble, &pieced.preamble);
        prop_assert_eq!(&whole.buffer, &pieced.buffer);
        prop_assert_eq!(whole.head_len, pieced.head_len);
        prop_assert_eq!(whole.payload_digest, pieced.payload_digest);
        prop_assert_eq!(whole.block_digest, Digest::of(Algorithm::Sha1, &whole.buffer));
        prop_assert_eq!(whole.truncated, pieced.truncated);
        // What is kept is the start of what came.
        let kept = [&whole.preamble[..], &whole.buffer].concat();
        prop_assert!(wire.starts_with(&kept));
    }
}
