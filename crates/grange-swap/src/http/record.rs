//! One record out of a stored ARC or WARC file: `/arc/…?offset=N&contentonly=true`.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::error::Error;
use crate::http::answer::Head;
use crate::http::conn::{After, Conn};
use crate::http::get::{Lookup, lookup};
use crate::http::request::{Method, Request};
use crate::http::target::{Named, Target, dead_end, failed, redirect, resolve};
use crate::node::Node;
use crate::route::Route;

/// Bytes read at a time.
const PIECE_BYTES: usize = 64 << 10;

enum Part {
    /// The type, and the length where it is known before the end.
    Start(String),
    Bytes(Vec<u8>),
    /// There is no record at that place.
    None,
}

pub(crate) async fn get(node: &Arc<Node>, conn: &mut Conn, request: &Request) -> io::Result<After> {
    let prefix = if request.path.starts_with("/arc/") { "/arc/" } else { "/warc/" };
    let Target { known, named } = match resolve(node, request, prefix) {
        Ok(target) => target,
        Err((status, lines, text)) => return conn.say(request, status, lines, &text).await,
    };
    let private = !known.record.public;
    if private && !conn.permitted(node, request) {
        return conn.unauthorized(request).await;
    }
    let Named::File(path) = named else {
        return conn.say(request, 400, "", "name an ARC or WARC file").await;
    };
    let Ok(offset) = request.parameter("offset").map_or(Ok(0), str::parse::<u64>) else {
        return conn.say(request, 400, "", "offset is the place of a record in the file, in bytes").await;
    };
    let content_only = match request.parameter("contentonly") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return conn.say(request, 400, "", "contentonly is true or false").await,
    };
    let opened = match lookup(&known, &path, request).await {
        Ok(Lookup::File(opened)) => opened,
        Ok(Lookup::Elsewhere(Route::There { base, hops })) => {
            return redirect(node, conn, request, &base, hops, private).await;
        }
        Ok(Lookup::Elsewhere(other)) => return dead_end(conn, request, &other).await,
        Ok(Lookup::Missing | Lookup::Directory) => {
            return conn.say(request, 404, "", "there is no such file").await;
        }
        Err(error) => return failed(conn, request, &Error::io("read", path.as_str())(error)).await,
    };
    if offset >= opened.size {
        return conn.say(request, 404, "", "the file ends before that offset").await;
    }
    let (parts, mut coming) = mpsc::channel(4);
    let reading = tokio::task::spawn_blocking(move || read(opened.file, offset, content_only, &parts));
    match coming.recv().await {
        Some(Part::Start(kind)) => {
            // Chunked, since a record's end is only known when it is unpacked; old clients get it to the end.
            let head = Head::new(&mut conn.out, 200, false).line("Content-Type", &kind).safe();
            head.lines("Transfer-Encoding: chunked\r\n\r\n");
        }
        Some(_) => return conn.say(request, 404, "", "there is no record at that offset").await,
        None => {
            let error =
                reading.await.ok().and_then(Result::err).unwrap_or_else(|| io::ErrorKind::Other.into());
            return failed(conn, request, &Error::io("read", path.as_str())(error)).await;
        }
    }
    if request.method == Method::Head {
        conn.flush().await?;
        return Ok(After::Close);
    }
    while let Some(part) = coming.recv().await {
        if let Part::Bytes(bytes) = part {
            conn.out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
            conn.out.extend_from_slice(&bytes);
            conn.out.extend_from_slice(b"\r\n");
            conn.flush().await?;
        }
    }
    // Only a record that was read to its end gets an end.
    if matches!(reading.await, Ok(Ok(()))) {
        conn.out.extend_from_slice(b"0\r\n\r\n");
    }
    conn.flush().await?;
    Ok(After::Close)
}

/// Reads the record and sends it on. Blocks.
fn read(
    mut file: std::fs::File,
    offset: u64,
    content_only: bool,
    parts: &mpsc::Sender<Part>,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = warc::Reader::seekable(file)?;
    reader.seek(offset)?;
    let Some(mut record) = reader.next()? else {
        let _ = parts.blocking_send(Part::None);
        return Ok(());
    };
    if record.place().offset != offset {
        let _ = parts.blocking_send(Part::None);
        return Ok(());
    }
    if content_only {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let plain = record.content_type().map(text);
        let kind = match record.http()? {
            Some(http) => http.mime().map(text),
            None => plain,
        };
        let kind = kind.filter(|kind| kind.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
        let kind = kind.unwrap_or_else(|| "application/octet-stream".to_owned());
        if parts.blocking_send(Part::Start(kind)).is_ok() {
            pump(record.content()?, parts)?;
        }
        return record.finish();
    }
    let kind = if record.is_arc() { "application/x-internet-archive" } else { "application/warc" };
    if parts.blocking_send(Part::Start(kind.to_owned())).is_ok() {
        let head = record.header().raw().to_vec();
        let _ = parts.blocking_send(Part::Bytes(head));
        pump(record.block(), parts)?;
    }
    record.finish()
}

fn pump(mut from: impl io::Read, parts: &mpsc::Sender<Part>) -> io::Result<()> {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        from.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        // Whoever asked may have gone.
        if piece.is_empty() || parts.blocking_send(Part::Bytes(piece)).is_err() {
            return Ok(());
        }
    }
}
