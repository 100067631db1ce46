//! From the path of a request to a collection and a path within it, and from a route to an answer.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use crate::error::Error;
use crate::http::answer::Head;
use crate::http::conn::{After, Conn};
use crate::http::request::{BodyLength, Method, Request};
use crate::name::{LocalPath, decode};
use crate::node::Node;
use crate::route::{Hops, Route};
use crate::view::Known;

/// What a path names.
#[derive(Debug)]
pub(crate) struct Target {
    pub known: Arc<Known>,
    pub named: Named,
}

#[derive(Debug)]
pub(crate) enum Named {
    File(LocalPath),
    /// Written with a slash at the end, or nothing after the namespace.
    Directory(Option<LocalPath>),
}

/// A refusal: status, further lines, sentence.
pub(crate) type Refusal = (u16, &'static str, String);

pub(crate) fn resolve(node: &Node, request: &Request, prefix: &str) -> Result<Target, Refusal> {
    let bad = |error: crate::name::BadName| (400, "", error.to_string());
    let raw = request.path.strip_prefix(prefix).unwrap_or_default();
    let path = decode(raw).map_err(bad)?;
    let view = node.view();
    let Some((known, local)) = view.resolve(path.trim_end_matches('/')) else {
        // Names are checked first, so that what is never allowed is never looked for.
        LocalPath::new(path.trim_end_matches('/')).map_err(bad)?;
        return Err(match node.unseen().first() {
            Some(peer) => {
                (503, "Retry-After: 2\r\n", format!("{peer} is away, and might know this collection"))
            }
            None => (404, "", "there is no such collection".to_owned()),
        });
    };
    let named = match (local, path.ends_with('/')) {
        ("", _) => Named::Directory(None),
        (local, true) => {
            // One slash marks a directory; more are empty names.
            LocalPath::new(&path[..path.len() - 1]).map_err(bad)?;
            Named::Directory(Some(LocalPath::new(local).map_err(bad)?))
        }
        (local, false) => Named::File(LocalPath::new(local).map_err(bad)?),
    };
    Ok(Target { known: Arc::clone(known), named })
}

/// A redirect to the server of a slice, with the marks that bound it, and the permission that was proven here.
pub(crate) async fn redirect(
    node: &Node,
    conn: &mut Conn,
    request: &Request,
    base: &str,
    hops: Hops,
    private: bool,
) -> io::Result<After> {
    let mut location = String::with_capacity(base.len() + request.path.len() + request.query.len() + 128);
    location.push_str(base);
    location.push_str(&request.path);
    location.push('?');
    if !request.query.is_empty() {
        let own = request.own_query();
        location.push_str(&own);
        location.push_str(if own.is_empty() { "" } else { "&" });
    }
    let _ = write!(location, "swap-hop={}&swap-epoch={}", hops.count, hops.epoch.unwrap_or_default());
    if hops.before {
        location.push_str("&swap-before=1");
    }
    if private {
        let ticket = node.key.ticket(request.method.ticket_verb(), &request.path, node.seconds());
        let _ = write!(location, "&swap-ticket={ticket}");
    }
    // Some clients turn a PUT that is answered with 302 into a GET and lose the upload; those that wait with the
    // body do not.
    let status = match request.method {
        Method::Get | Method::Head => 302,
        _ if request.expects_continue => 302,
        _ => 307,
    };
    if request.body != BodyLength::None {
        return conn
            .refuse(request, status, &format!("Location: {location}\r\n"), "this is kept elsewhere")
            .await;
    }
    Head::new(&mut conn.out, status, request.keep_alive).line("Location", &location).length(0);
    conn.flush().await?;
    Ok(if request.keep_alive { After::Keep } else { After::Close })
}

/// The answer to a route that leads neither here nor to another server.
pub(crate) async fn dead_end(conn: &mut Conn, request: &Request, route: &Route) -> io::Result<After> {
    match route {
        Route::Down { slice } => {
            let text = format!("the server of slice {slice} is away");
            conn.refuse(request, 503, "Retry-After: 5\r\n", &text).await
        }
        Route::Behind => {
            let text = "this server is just learning of a change";
            conn.refuse(request, 503, "Retry-After: 1\r\n", text).await
        }
        Route::Disagreement => {
            let text = format!(
                "the servers disagree on who keeps this: it was sent here after {} redirects by epoch {:?}, and is not \
                 kept here; compare grange swap status of both",
                request.hops().count,
                request.hops().epoch
            );
            conn.refuse(request, 508, "", &text).await
        }
        _ => conn.refuse(request, 404, "", "there is no such file").await,
    }
}

/// The answer to an error.
pub(crate) async fn failed(conn: &mut Conn, request: &Request, error: &Error) -> io::Result<After> {
    let text = grange_base::Chain(error).to_string();
    let status = error.status();
    if status >= 500 && status != 503 {
        tracing::error!(path = request.path, error = text, "a request failed");
    }
    let lines = if status == 503 { "Retry-After: 1\r\n" } else { "" };
    conn.refuse(request, status, lines, &text).await
}
