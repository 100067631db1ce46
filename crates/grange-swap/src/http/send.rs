//! Sending a file: whole or in parts, small ones in the same write as the head, large ones by the kernel.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IoSliceMut};
use std::sync::Arc;

use rustix::io::ReadWriteFlags;
use tokio::io::Interest;

use crate::http::answer::{Head, read_http_date};
use crate::http::conn::{After, Conn};
use crate::http::range::{self, Span, Wanted};
use crate::http::request::{Method, Request};
use crate::http::types;
use crate::peer::serve::blocking;
use crate::tree::Opened;

/// Up to this size a file is read into the buffer of the head: one write, and the file is closed before it.
const SMALL_BYTES: u64 = 64 << 10;
/// Bytes handed to the kernel at a time, so that others get their turn.
const STRIDE: u64 = 1 << 20;
/// Between parts; no file is likely to hold it.
const BOUNDARY: &str = "swap-part-5c1f0a7be2d94c36";

pub(crate) async fn file(
    conn: &mut Conn,
    request: &Request,
    name: &str,
    opened: Opened,
) -> io::Result<After> {
    let keep = request.keep_alive;
    let after = if keep { After::Keep } else { After::Close };
    if unchanged(request, &opened) {
        let tag = tag(&opened);
        Head::new(&mut conn.out, 304, keep).line("ETag", &tag).modified(opened.modified).lines("\r\n");
        conn.flush().await?;
        return Ok(after);
    }
    let wanted = match &request.range {
        Some(header) if request.method == Method::Get && still_the_same(request, &opened) => {
            range::wanted(header, opened.size)
        }
        _ => Wanted::Whole,
    };
    let kind = types::of_name(name);
    let status = match wanted {
        Wanted::Whole => 200,
        Wanted::Parts(_) => 206,
        Wanted::Beyond => {
            let lines = format!("Content-Range: bytes */{}\r\n", opened.size);
            return conn.say(request, 416, &lines, "the file ends before that").await;
        }
    };
    let mut head = Head::new(&mut conn.out, status, keep);
    head = match &opened.sum {
        Some(sum) => head.sum(sum),
        None => head.line("ETag", &tag(&opened)),
    };
    head = head.modified(opened.modified).lines("Accept-Ranges: bytes\r\n").safe();
    match wanted {
        Wanted::Parts(spans) if spans.len() > 1 => {
            let parts = parts(&spans, kind, opened.size);
            let end = format!("\r\n--{BOUNDARY}--\r\n");
            let heads: usize = parts.iter().map(|(text, _)| text.len()).sum();
            let bytes: u64 = spans.iter().map(|span| span.len()).sum();
            let length = (heads + end.len()) as u64 + bytes;
            head.line("Content-Type", &format!("multipart/byteranges; boundary={BOUNDARY}")).length(length);
            for (text, span) in parts {
                conn.out.extend_from_slice(text.as_bytes());
                span_of(conn, &opened, span).await?;
            }
            conn.out.extend_from_slice(end.as_bytes());
            conn.flush().await?;
        }
        Wanted::Parts(spans) => {
            let span = spans[0];
            let range = format!("bytes {}-{}/{}", span.start, span.end - 1, opened.size);
            head.line("Content-Type", kind).line("Content-Range", &range).length(span.len());
            span_of(conn, &opened, span).await?;
        }
        _ => {
            head.line("Content-Type", kind).length(opened.size);
            if request.method == Method::Get {
                span_of(conn, &opened, Span { start: 0, end: opened.size }).await?;
            } else {
                conn.flush().await?;
            }
        }
    }
    Ok(after)
}

/// The strong tag is the checksum; without one, size and time.
fn tag(opened: &Opened) -> String {
    match &opened.sum {
        Some(sum) => format!("\"sha512-{sum}\""),
        None => format!("W/\"{}-{}\"", opened.size, opened.modified),
    }
}

fn unchanged(request: &Request, opened: &Opened) -> bool {
    if let Some(tags) = &request.if_none_match {
        let tag = tag(opened);
        // Weak comparison.
        let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        return tags.trim() == "*" || tags.split(',').any(|other| bare(other) == bare(&tag));
    }
    let since = request.if_modified_since.as_deref().and_then(read_http_date);
    since.is_some_and(|since| opened.modified <= since)
}

/// Whether the parts asked for are of what is here now.
fn still_the_same(request: &Request, opened: &Opened) -> bool {
    match request.if_range.as_deref() {
        None => true,
        Some(value) if value.starts_with('"') => value == tag(opened),
        Some(value) => read_http_date(value) == Some(opened.modified),
    }
}

fn parts(spans: &[Span], kind: &str, size: u64) -> Vec<(String, Span)> {
    let mut parts = Vec::new();
    for span in spans {
        let mut text = String::new();
        let _ = write!(
            text,
            "\r\n--{BOUNDARY}\r\nContent-Type: {kind}\r\nContent-Range: bytes {}-{}/{size}\r\n\r\n",
            span.start,
            span.end - 1
        );
        parts.push((text, *span));
    }
    parts
}

thread_local! {
    /// Where a worker reads small files; made once, so that no answer has to clear it first.
    static PAGE: RefCell<Vec<u8>> = RefCell::new(vec![0; SMALL_BYTES as usize]);
}

/// Sends what is in the buffer and then a span of the file.
async fn span_of(conn: &mut Conn, opened: &Opened, span: Span) -> io::Result<()> {
    if span.len() <= SMALL_BYTES {
        let sent = PAGE.with_borrow_mut(|page| {
            let body = &mut page[..span.len() as usize];
            if !read_cached(opened, body, span.start)? {
                return Ok::<_, io::Error>(false);
            }
            conn.write_now(body)?;
            Ok(true)
        })?;
        if !sent {
            let piece = Box::pin(read_blocking(opened, span)).await?;
            conn.out.extend_from_slice(&piece);
        }
        return conn.flush().await;
    }
    conn.flush().await?;
    Box::pin(by_kernel(conn, opened, span)).await
}

/// Fills the buffer from memory; false when that needs the disk.
fn read_cached(opened: &Opened, into: &mut [u8], offset: u64) -> io::Result<bool> {
    let want = into.len();
    match rustix::io::preadv2(&opened.file, &mut [IoSliceMut::new(into)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(read == want),
        Err(error) if error == rustix::io::Errno::AGAIN || error == rustix::io::Errno::OPNOTSUPP => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn read_blocking(opened: &Opened, span: Span) -> io::Result<Vec<u8>> {
    let file = opened.file.try_clone()?;
    let read = blocking(move || {
        let mut piece = vec![0; span.len() as usize];
        let read = std::os::unix::fs::FileExt::read_exact_at(&file, &mut piece, span.start);
        Ok(read.map(|()| piece))
    });
    read.await.map_err(io::Error::other)?
}

/// The kernel copies from the page cache to the socket. Before each stride its last page is looked for in memory; when
/// it is not there, the stride is read in off the async threads, so that a slow disk holds up nobody else.
async fn by_kernel(conn: &mut Conn, opened: &Opened, span: Span) -> io::Result<()> {
    let file = Arc::new(opened.file.try_clone()?);
    let mut at = span.start;
    let mut warm = span.start;
    while at < span.end {
        if at >= warm {
            let end = (at + STRIDE).min(span.end);
            let mut probe = [0];
            if !read_cached(opened, &mut probe, end - 1)? || !read_cached(opened, &mut probe, at)? {
                let file = Arc::clone(&file);
                blocking(move || Ok(read_in(&file, at, end))).await.map_err(io::Error::other)??;
            }
            warm = end;
        }
        let count = (warm - at) as usize;
        let sent = {
            let stream = &conn.stream;
            stream.try_io(Interest::WRITABLE, || {
                let mut offset = at;
                Ok(rustix::fs::sendfile(stream, &opened.file, Some(&mut offset), count)?)
            })
        };
        match sent {
            // The file was cut short under our hands; the client sees that bytes are missing.
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(sent) => at += sent as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => conn.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_in(file: &std::fs::File, start: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    let mut at = start;
    while at < end {
        match std::os::unix::fs::FileExt::read_at(file, &mut buffer, at)? {
            0 => break,
            read => at += read as u64,
        }
    }
    Ok(())
}
