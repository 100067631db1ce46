//! Taking files in, and out of sight.

use std::io;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::conflict::{self, Failure};
use crate::digest::{Declared, Sum};
use crate::error::Error;
use crate::http::answer::{Head, read_http_date};
use crate::http::body::Body;
use crate::http::conn::{After, Conn};
use crate::http::request::{BodyLength, Request};
use crate::http::target::{Named, Target, dead_end, failed, redirect, resolve};
use crate::name::LocalPath;
use crate::node::Node;
use crate::peer::serve::blocking;
use crate::removal;
use crate::route::{Route, route};
use crate::store::{self, Incoming, Kept, Spot, Unmoved};
use crate::tree::Found;
use crate::view::Known;

/// Up to this many bytes a body is gathered before anything is written.
const SMALL_BYTES: usize = 128 << 10;
/// Larger ones flow in pieces of this size, with so many between the network and the disk.
const PIECE_BYTES: usize = 256 << 10;
const PIECES: usize = 4;

pub(crate) async fn put(
    node: &Arc<Node>,
    conn: &mut Conn,
    request: &Request,
    prefix: &str,
) -> io::Result<After> {
    let moving = prefix == "/move/";
    if !conn.permitted(node, request) {
        return conn.unauthorized(request).await;
    }
    let Target { known, named } = match resolve(node, request, prefix) {
        Ok(target) => target,
        Err((status, lines, text)) => return conn.refuse(request, status, lines, &text).await,
    };
    let Named::File(path) = named else {
        return conn
            .refuse(request, 400, "", "name the file behind the collection, without a slash at the end")
            .await;
    };
    // A move names its epoch and is never sent on.
    if moving && request.parameter("epoch") != Some(known.record.epoch.to_string().as_str()) {
        return failed(conn, request, &conflict::changing()).await;
    }
    let (slice, before) = match route(&known, path.point(), request.hops()) {
        Route::Here { slice, .. } => {
            (slice, known.record.layout.spot(path.point()).and_then(|spot| spot.before))
        }
        Route::There { base, hops } if !moving => {
            return redirect(node, conn, request, &base, hops, true).await;
        }
        Route::There { .. } | Route::HereBefore { .. } => {
            return failed(conn, request, &conflict::changing()).await;
        }
        other => return dead_end(conn, request, &other).await,
    };
    if let Some((status, text)) = unacceptable(node, &known, slice, request) {
        let lines = if status == 503 { "Retry-After: 1\r\n" } else { "" };
        return conn.refuse(request, status, lines, &text).await;
    }
    let Ok(_place) = node.uploads.try_acquire() else {
        return conn.refuse(request, 503, "Retry-After: 1\r\n", "too many uploads at the same time").await;
    };
    let before = before.filter(|_| !moving);
    let spot = match prepare(node, &known, slice, before, path, request, moving).await {
        Ok(spot) => spot,
        Err(Failure::Conflict { path, found }) => return taken(conn, request, &path, found, true).await,
        Err(Failure::Other(error)) => return failed(conn, request, &error).await,
    };
    if request.expects_continue {
        conn.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        conn.flush().await?;
    }
    let name = spot.path.clone();
    let kept = match receive(conn, request, spot.clone()).await? {
        Ok(Kept::Rotten(replacement)) => {
            let _name = node.lock_name(&name).await;
            let day = node.clock.now().strftime("%Y-%m-%d").to_string();
            blocking(move || store::replace(&spot, replacement, &day)).await
        }
        kept => kept,
    };
    match kept {
        Ok(Kept::New(sums)) => {
            let lines = format!("{}ETag: \"sha512-{}\"\r\n", sums.header_lines(), sums.sha512);
            done(conn, request, 201, &lines).await
        }
        Ok(Kept::Same(sums)) if request.if_none_match.is_none() => {
            let lines = format!("{}ETag: \"sha512-{}\"\r\n", sums.header_lines(), sums.sha512);
            done(conn, request, 200, &lines).await
        }
        Ok(Kept::Same(_)) => conn.say(request, 412, "", "the file is there already").await,
        Ok(Kept::Taken(found)) => taken(conn, request, name.as_str(), found, false).await,
        Ok(Kept::Rotten(_) | Kept::RottenElsewhere) => {
            let text = format!("\"{name}\" is damaged and waits to be moved: send it again soon");
            conn.say(request, 503, "Retry-After: 1\r\n", &text).await
        }
        Ok(Kept::Wrong(which)) => {
            let text = format!(
                "the {which} of what arrived is not the one announced: nothing was kept; send it again"
            );
            conn.say(request, 422, "", &text).await
        }
        Err(error) => {
            let answer = Request { body: BodyLength::None, ..request.clone() };
            failed(conn, &answer, &error).await
        }
    }
}

/// What is wrong with an upload before its first byte.
fn unacceptable(node: &Node, known: &Known, slice: usize, request: &Request) -> Option<(u16, String)> {
    if request.content_range {
        return Some((400, "parts of files are not taken: send the whole file".to_owned()));
    }
    let length = match request.body {
        BodyLength::None => return Some((411, "send a Content-Length, or the body in chunks".to_owned())),
        BodyLength::Known(length) => length,
        BodyLength::Chunked => 0,
    };
    // Some clients repeat a redirected PUT with an empty body.
    if length == 0
        && request.body != BodyLength::Chunked
        && request.hops().count > 0
        && request.declared.is_empty()
    {
        return Some((
            400,
            "an empty file after a redirect needs its Repr-Digest: your client may have lost the body".into(),
        ));
    }
    let tree = known.tree(slice)?;
    match tree.partition.room() {
        Ok(room) if room.free_bytes < length.saturating_add(node.settings.min_space_left.0) => {
            Some((507, format!("there is no room on partition {}", tree.partition.uuid)))
        }
        Ok(_) => None,
        Err(error) => Some((503, grange_base::Chain(&error).to_string())),
    }
}

/// The paper's check for conflicts, and whether an unmoved file has the name.
async fn prepare(
    node: &Arc<Node>,
    known: &Arc<Known>,
    slice: usize,
    before: Option<usize>,
    path: LocalPath,
    request: &Request,
    moving: bool,
) -> Result<Spot, Failure> {
    let Some(tree) = known.tree(slice) else { return Err(conflict::changing().into()) };
    conflict::ensure_parent(node, known, tree, &path).await?;
    let unmoved = match before {
        None => None,
        Some(before) => match conflict::find(node, known, before, &path).await? {
            Found::Nothing => None,
            found @ Found::File { .. } => {
                let read = conflict::sum(node, known, before, &path).await?;
                Some(Unmoved { found, read })
            }
            found => return Err(Failure::Conflict { path: path.to_string(), found }),
        },
    };
    let modified = request.last_modified.as_deref().filter(|_| moving).and_then(read_http_date);
    let stored = request.parameter("stored").filter(|_| moving).and_then(|sum| sum.parse().ok());
    let (known, tree) = (Arc::clone(known), Arc::clone(tree));
    Ok(Spot { known, tree, path, unmoved, modified, moved: moving, stored })
}

/// Reads the body and keeps it. The outer error is the client's: nothing was kept.
async fn receive(conn: &mut Conn, request: &Request, spot: Spot) -> io::Result<Result<Kept, Error>> {
    let mut body = conn.body(request);
    let declared = request.declared.clone();
    let mut first = Vec::new();
    let more = match request.body {
        BodyLength::Known(length) if length > SMALL_BYTES as u64 => true,
        BodyLength::Known(length) => {
            first.reserve_exact(length as usize);
            body.next(&conn.stream, &mut conn.input, &mut first, SMALL_BYTES + 1).await?
        }
        _ => body.next(&conn.stream, &mut conn.input, &mut first, SMALL_BYTES).await?,
    };
    if !more {
        return Ok(blocking(move || store::keep_whole(&spot, &first, &declared)).await);
    }
    flow(conn, body, first, spot, declared).await
}

/// A large body: while one piece is written and summed up, the next is read.
async fn flow(
    conn: &mut Conn,
    mut body: Body,
    first: Vec<u8>,
    spot: Spot,
    declared: Declared,
) -> io::Result<Result<Kept, Error>> {
    let (pieces, mut filled) = mpsc::channel::<Option<Vec<u8>>>(PIECES);
    let (empties, mut emptied) = mpsc::channel::<Vec<u8>>(PIECES);
    let writing = tokio::task::spawn_blocking(move || {
        let mut incoming = Incoming::start(&spot.tree, &declared)?;
        loop {
            match filled.blocking_recv() {
                Some(Some(piece)) => {
                    incoming.write(&piece).map_err(Error::io("write", spot.path.as_str()))?;
                    let _ = empties.try_send(piece);
                }
                Some(None) => return incoming.keep(&spot, &declared),
                // The client went away: what was written has no name and is gone.
                None => return Err(Error::refused("the upload was cut off")),
            }
        }
    });
    let mut more = pieces.send(Some(first)).await.is_ok();
    while more {
        let mut piece = emptied.try_recv().unwrap_or_default();
        piece.clear();
        more = body.next(&conn.stream, &mut conn.input, &mut piece, PIECE_BYTES).await?;
        if pieces.send(Some(piece)).await.is_err() {
            break;
        }
    }
    if !more {
        let _ = pieces.send(None).await;
    }
    drop(pieces);
    match writing.await {
        Ok(kept) => Ok(kept),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(io::Error::other("the process stops")),
        },
    }
}

async fn done(conn: &mut Conn, request: &Request, status: u16, lines: &str) -> io::Result<After> {
    Head::new(&mut conn.out, status, request.keep_alive).lines(lines).length(0);
    conn.flush().await?;
    Ok(if request.keep_alive { After::Keep } else { After::Close })
}

async fn taken(
    conn: &mut Conn,
    request: &Request,
    path: &str,
    found: Found,
    body_to_come: bool,
) -> io::Result<After> {
    let what = match found {
        Found::Directory => "a directory",
        Found::File { .. } => "a file with other bytes",
        _ => "something that is neither file nor directory",
    };
    let status = if request.if_none_match.is_some() { 412 } else { 409 };
    let text = format!("\"{path}\" is {what} already: nothing was changed");
    if body_to_come {
        return conn.refuse(request, status, "", &text).await;
    }
    conn.say(request, status, "", &text).await
}

/// Removes a file to the attic, for who names its checksum (`If-Match: "sha512-…"`) or says that any will do (`*`).
pub(crate) async fn delete(node: &Arc<Node>, conn: &mut Conn, request: &Request) -> io::Result<After> {
    if !conn.permitted(node, request) {
        return conn.unauthorized(request).await;
    }
    let prefix = if request.path.starts_with("/get/") { "/get/" } else { "/put/" };
    let Target { known, named } = match resolve(node, request, prefix) {
        Ok(target) => target,
        Err((status, lines, text)) => return conn.refuse(request, status, lines, &text).await,
    };
    let Named::File(path) = named else {
        return conn.refuse(request, 400, "", "only files are removed, not directories").await;
    };
    match route(&known, path.point(), request.hops()) {
        Route::Here { .. } => {}
        Route::There { base, hops } => return redirect(node, conn, request, &base, hops, true).await,
        other => return dead_end(conn, request, &other).await,
    }
    let sum = match request.if_match.as_deref().map(str::trim) {
        Some("*") => None,
        Some(tag) => match tag.trim_matches('"').strip_prefix("sha512-").map(str::parse::<Sum>) {
            Some(Ok(sum)) => Some(sum),
            _ => return conn.refuse(request, 412, "", "If-Match is no ETag of this server").await,
        },
        None => {
            let text = "say which bytes are meant: If-Match with the ETag of the file, or *";
            return conn.refuse(request, 428, "", text).await;
        }
    };
    match removal::remove(node, &known, &path, sum).await {
        Ok(true) => {
            tracing::info!(namespace = %known.record.namespace, %path, "removed a file to the attic");
            Head::new(&mut conn.out, 204, request.keep_alive).lines("\r\n");
            conn.flush().await?;
            Ok(if request.keep_alive { After::Keep } else { After::Close })
        }
        Ok(false) => conn.say(request, 404, "", "there is no such file").await,
        Err(Error::Refused { reason }) => conn.say(request, 412, "", &reason).await,
        Err(error) => failed(conn, request, &error).await,
    }
}
