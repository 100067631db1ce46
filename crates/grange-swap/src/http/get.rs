//! Reading files.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::error::Error;
use crate::http::conn::{After, Conn};
use crate::http::page;
use crate::http::request::Request;
use crate::http::send;
use crate::http::target::{Named, Target, dead_end, failed, redirect, resolve};
use crate::name::LocalPath;
use crate::node::Node;
use crate::peer::serve::blocking;
use crate::route::{Route, moved_on, route, to_before};
use crate::simulation;
use crate::tree::{Opened, Tree};
use crate::view::Known;

/// What was found for a name.
#[derive(Debug)]
pub(crate) enum Lookup {
    File(Opened),
    Directory,
    Missing,
    Elsewhere(Route),
}

pub(crate) async fn get(node: &Arc<Node>, conn: &mut Conn, request: &Request) -> io::Result<After> {
    let Target { known, named } = match resolve(node, request, "/get/") {
        Ok(target) => target,
        Err((status, lines, text)) => return conn.say(request, status, lines, &text).await,
    };
    let private = !known.record.public;
    if private && !conn.permitted(node, request) {
        return conn.unauthorized(request).await;
    }
    let path = match named {
        Named::File(path) => path,
        Named::Directory(path) => return Box::pin(page::directory(node, conn, request, &known, path)).await,
    };
    match lookup(&known, &path, request).await {
        Ok(Lookup::File(opened)) => send::file(conn, request, path.file_name(), opened).await,
        Ok(Lookup::Missing) => conn.say(request, 404, "", "there is no such file").await,
        // As every web server does: below it relative links work.
        Ok(Lookup::Directory) => {
            let location = format!("Location: {}/\r\n", request.path);
            conn.say(request, 302, &location, "this is a directory").await
        }
        Ok(Lookup::Elsewhere(Route::There { base, hops })) => {
            redirect(node, conn, request, &base, hops, private).await
        }
        Ok(Lookup::Elsewhere(other)) => dead_end(conn, request, &other).await,
        Err(error) => failed(conn, request, &Error::io("read", path.as_str())(error)).await,
    }
}

/// Looks where the file belongs, and while the collection moves, where it was before.
pub(crate) async fn lookup(known: &Arc<Known>, path: &LocalPath, request: &Request) -> io::Result<Lookup> {
    match look(known, path, request).await? {
        // By a newer record the file may have been moved away before it was looked for.
        Lookup::Missing if !known.is_adopted() => Ok(Lookup::Elsewhere(Route::Behind)),
        found => Ok(found),
    }
}

async fn look(known: &Arc<Known>, path: &LocalPath, request: &Request) -> io::Result<Lookup> {
    let hops = request.hops();
    let (slice, next) = match route(known, path.point(), hops) {
        Route::Here { slice, before } => (slice, before.map(|before| to_before(known, before, hops))),
        Route::HereBefore { slice, moved_on_to } => (slice, Some(moved_on(known, moved_on_to, hops))),
        other => return Ok(Lookup::Elsewhere(other)),
    };
    let first = open_on(known, slice, path).await?;
    let (Lookup::Missing, Some(next)) = (&first, next) else { return Ok(first) };
    let Route::Here { slice: second, .. } = next else { return Ok(Lookup::Elsewhere(next)) };
    match open_on(known, second, path).await? {
        // It may have been moved from the second to the first between our two looks.
        Lookup::Missing => open_on(known, slice, path).await,
        found => Ok(found),
    }
}

async fn open_on(known: &Known, slice: usize, path: &LocalPath) -> io::Result<Lookup> {
    let Some(tree) = known.tree(slice) else { return Ok(Lookup::Missing) };
    match open(tree, path).await {
        Ok(opened) => Ok(Lookup::File(opened)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::InvalidInput => Ok(Lookup::Missing),
            ErrorKind::IsADirectory => Ok(Lookup::Directory),
            _ => Err(error),
        },
    }
}

/// At once when the kernel knows the name, else off the async threads.
async fn open(tree: &Arc<Tree>, path: &LocalPath) -> io::Result<Opened> {
    let cached = if simulation::active() {
        // As on a busy server, whose memory does not hold every name.
        Err(ErrorKind::WouldBlock.into())
    } else {
        tree.open_cached(path.as_str())
    };
    match cached {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let (tree, path) = (Arc::clone(tree), path.clone());
            match Box::pin(blocking(move || Ok(tree.open_file(path.as_str())))).await {
                Ok(opened) => opened,
                Err(error) => Err(io::Error::other(error)),
            }
        }
        other => other,
    }
}
