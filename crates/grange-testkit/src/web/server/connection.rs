//! One connection: requests in, answers out, until somebody has enough.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Shared;
use super::request::{HEAD_BYTES_MAX, Parsed, parse};
use super::respond::{After, respond};
use crate::web::answer::Ending;

/// Serves until the connection ends, and says how to end it.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, shared: &Shared) -> Ending {
    let mut input = Vec::with_capacity(4 * 1024);
    let mut output = Vec::with_capacity(16 * 1024);
    loop {
        let head = match parse(&input) {
            Parsed::Whole(head) => head,
            Parsed::Partial => {
                if input.len() >= HEAD_BYTES_MAX {
                    let _ = stream.write_all(b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
                    return Ending::Close;
                }
                if !read_more(stream, &mut input, shared).await {
                    return Ending::Close;
                }
                continue;
            }
            Parsed::Wrong => {
                let _ = stream
                    .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .await;
                return Ending::Close;
            }
        };
        let end = head.own_bytes + head.body_bytes;
        if input.len() < end {
            if head.expects_continue && input.len() == head.own_bytes {
                let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
            }
            if !read_more(stream, &mut input, shared).await {
                return Ending::Close;
            }
            continue;
        }
        let body = &input[head.own_bytes..end];
        // Names of this web only: a client can invent others without end.
        let log = shared.log.as_ref().filter(|_| shared.web.names().find(head.host).is_some());
        let under_way = log.map(|log| log.begin(head.host, head.target));
        let after = respond(stream, shared, &head, body, &mut output).await;
        drop(under_way);
        match after {
            After::Next => {
                input.drain(..end);
            }
            After::End(Ending::Silence) => {
                // Until the client closes; what it still says is not listened to.
                let mut ignored = [0; 1024];
                while matches!(stream.read(&mut ignored).await, Ok(count) if count > 0) {}
                return Ending::Close;
            }
            After::End(ending) => return ending,
        }
    }
}

/// Reads some more; `false` when nothing comes any more.
async fn read_more<S: AsyncRead + Unpin>(stream: &mut S, input: &mut Vec<u8>, shared: &Shared) -> bool {
    matches!(timeout(shared.idle, stream.read_buf(input)).await, Ok(Ok(count)) if count > 0)
}
