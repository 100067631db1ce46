//! Directories, for people and for programs.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use serde_json::json;

use crate::http::answer::{Head, http_date};
use crate::http::conn::{After, Conn};
use crate::http::request::{Method, Request};
use crate::http::target::failed;
use crate::listing::{self, Listing};
use crate::name::{LocalPath, decode, encode};
use crate::node::Node;
use crate::view::Known;

fn wants_json(request: &Request) -> bool {
    match request.parameter("format") {
        Some(format) => format == "json",
        None => request.accept.as_deref().is_some_and(|accept| accept.contains("application/json")),
    }
}

/// The merged listing of a directory of a collection.
pub(crate) async fn directory(
    node: &Arc<Node>,
    conn: &mut Conn,
    request: &Request,
    known: &Arc<Known>,
    path: Option<LocalPath>,
) -> io::Result<After> {
    let after = match request.parameter("after").map(decode).transpose() {
        Ok(after) => after,
        Err(error) => return conn.say(request, 400, "", &error.to_string()).await,
    };
    let listing = match listing::list(node, known, path.as_ref(), after.as_deref()).await {
        Ok(listing) => listing,
        Err(error) => return failed(conn, request, &error).await,
    };
    // A directory that is nowhere looks like an empty one; the root of a collection always is one.
    let nothing = listing.entries.is_empty() && after.is_none() && path.is_some();
    if nothing && listing.missing_slices.is_empty() && !exists(node, known, path.as_ref()).await {
        return conn.say(request, 404, "", "there is no such directory").await;
    }
    let title = match &path {
        Some(path) => format!("{}/{path}", known.record.namespace),
        None => known.record.namespace.to_string(),
    };
    if wants_json(request) {
        let value = json!({
            "collection": known.record.namespace,
            "path": path.as_ref().map_or("", LocalPath::as_str),
            "entries": listing.entries,
            "next": listing.next,
            "missing_slices": listing.missing_slices,
        });
        return document(conn, request, "application/json", &format!("{value}\n")).await;
    }
    document(conn, request, "text/html; charset=utf-8", &html(&title, &listing)).await
}

/// Whether the authority for the name has it as a directory.
async fn exists(node: &Arc<Node>, known: &Arc<Known>, path: Option<&LocalPath>) -> bool {
    let Some(path) = path else { return true };
    let Some(spot) = known.record.layout.spot(path.point()) else { return false };
    let mut slices = vec![spot.slice];
    slices.extend(spot.before);
    for slice in slices {
        let found = crate::conflict::find(node, known, slice, path).await;
        if matches!(found, Ok(crate::tree::Found::Directory)) {
            return true;
        }
    }
    false
}

/// The collections that may be read by who asks.
pub(crate) async fn root(node: &Arc<Node>, conn: &mut Conn, request: &Request) -> io::Result<After> {
    let all = conn.permitted(node, request);
    let view = node.view();
    let mut names: Vec<_> = view
        .collections()
        .filter(|known| all || known.record.public)
        .map(|known| known.record.namespace.to_string())
        .collect();
    names.sort();
    if wants_json(request) {
        return document(
            conn,
            request,
            "application/json",
            &format!("{}\n", json!({ "collections": names })),
        )
        .await;
    }
    let mut text = top("Collections");
    for name in names {
        let _ = writeln!(text, "<li><a href=\"/get/{}/\">{}</a></li>", encode(&name), escape(&name));
    }
    text.push_str("</ul>\n");
    document(conn, request, "text/html; charset=utf-8", &text).await
}

async fn document(conn: &mut Conn, request: &Request, kind: &str, text: &str) -> io::Result<After> {
    let head = Head::new(&mut conn.out, 200, request.keep_alive).line("Content-Type", kind);
    head.lines("Cache-Control: no-store\r\n").safe().length(text.len() as u64);
    if request.method != Method::Head {
        conn.out.extend_from_slice(text.as_bytes());
    }
    conn.flush().await?;
    Ok(if request.keep_alive { After::Keep } else { After::Close })
}

fn top(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<h1>{title}</h1>\n<ul>\n"
    )
}

fn html(title: &str, listing: &Listing) -> String {
    let mut text = top(title);
    for entry in &listing.entries {
        let slash = if entry.directory { "/" } else { "" };
        let _ = write!(
            text,
            "<li><a href=\"./{0}{slash}\">{1}{slash}</a>",
            encode(&entry.name),
            escape(&entry.name)
        );
        if !entry.directory {
            let _ = write!(text, " {} bytes, {}", entry.size, http_date(entry.modified));
        }
        text.push_str("</li>\n");
    }
    text.push_str("</ul>\n");
    if let Some(next) = &listing.next {
        let _ = writeln!(text, "<p><a href=\"?after={}\">more</a></p>", encode(next));
    }
    if !listing.missing_slices.is_empty() {
        let _ = writeln!(
            text,
            "<p>Not complete: the servers of slices {:?} are away.</p>",
            listing.missing_slices
        );
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Entry;

    #[test]
    fn names_cannot_break_the_page() {
        let entry = Entry { name: "<b>\"&#\" é.txt".to_owned(), directory: false, size: 3, modified: 0 };
        let listing = Listing { entries: vec![entry], next: Some("<".to_owned()), missing_slices: vec![1] };
        let page = html("a/<i>", &listing);
        assert!(page.contains("<h1>a/&lt;i&gt;</h1>"), "{page}");
        assert!(
            page.contains(
                "href=\"./%3Cb%3E%22%26%23%22%20%C3%A9.txt\">&lt;b&gt;&quot;&amp;#&quot; é.txt</a>"
            ),
            "{page}"
        );
        assert!(page.contains("?after=%3C") && page.contains("slices [1]"), "{page}");
    }
}
