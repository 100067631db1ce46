//! An answer that was stored by an earlier crawl, as if it had just come.

use std::io::{self, Read};
use std::time::Duration;

use jiff::Timestamp;

use super::fetched::Fetched;
use super::fetcher::ALGORITHM;
use super::reply::{End, Reply};
use super::spool::Spool;

/// How much is read at once.
const PIECE_BYTES: u64 = 64 << 10;

impl Fetched {
    /// Reads the answer in the block of a record. One longer than `keep` is measured and digested, but its bytes are not
    /// kept. What the network did is not in a record: there are no problems of the connection.
    pub fn from_stored(block: &mut dyn Read, started: Timestamp, keep: usize) -> io::Result<Fetched> {
        let mut reply = Reply::new(false, u64::MAX, ALGORITHM);
        let (mut is_kept, mut end) = (true, End::Closed);
        while block.take(PIECE_BYTES).read_to_end(reply.buffer())? > 0 {
            if reply.advance() {
                end = End::Done;
                break;
            }
            if reply.in_body() && reply.buffer().len() > keep {
                is_kept = false;
                let bytes = reply.take_bytes();
                reply.give_back(bytes);
            }
        }
        let outcome = reply.finish(end);
        is_kept &= outcome.buffer.len() <= keep;
        Ok(Fetched {
            started,
            duration: Duration::ZERO,
            first_byte: None,
            ip: None,
            request: Vec::new(),
            response: Spool::memory(if is_kept { outcome.buffer } else { Vec::new() }),
            head_len: outcome.head_len,
            http: outcome.head,
            preamble: outcome.preamble,
            status: outcome.status,
            block_digest: outcome.block_digest,
            payload_digest: outcome.payload_digest,
            payload_length: outcome.payload_len,
            wire_length: outcome.len,
            truncated: outcome.truncated,
            problems: Vec::new(),
            tls: None,
            reused: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_answer_is_measured_as_it_was_when_it_came() {
        let body = vec![b'x'; 200_000];
        let head = format!(
            "HTTP/1.1 404 No\r\nContent-Length: {}\r\nContent-Type: Text/HTML; a=b\r\n\r\n",
            body.len()
        );
        let stored = [head.as_bytes(), &body].concat();
        for (keep, kept) in [(1 << 20, stored.len()), (1000, 0)] {
            let fetched = Fetched::from_stored(&mut &stored[..], Timestamp::UNIX_EPOCH, keep).unwrap();
            assert_eq!((fetched.status.0, fetched.mime().as_deref()), (404, Some("text/html")));
            assert_eq!((fetched.payload_length, fetched.wire_length), (200_000, stored.len() as u64));
            assert_eq!(fetched.payload_digest, warc::Digest::of(ALGORITHM, &body));
            assert_eq!(fetched.response.len() as usize, kept, "keep {keep}");
        }
    }
}
