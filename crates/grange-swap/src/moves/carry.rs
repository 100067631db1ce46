//! One file from its old slice to its new one: copied, compared with what the new disk gives back, and only then
//! removed from the old.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use futures_util::stream;

use crate::conflict;
use crate::digest::{Declared, Sum};
use crate::error::Error;
use crate::http::answer::http_date;
use crate::name::{LocalPath, encode};
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::serve::blocking;
use crate::store::{Incoming, Kept, Spot};
use crate::tree::{Opened, Tree};
use crate::verify;
use crate::view::{Home, Known};

/// Bytes read at a time.
const PIECE: usize = 256 << 10;

/// Moves a file; the number of its bytes, or `None` when it is no longer there.
pub(crate) async fn carry(
    node: &Arc<Node>,
    known: &Arc<Known>,
    from: &Arc<Tree>,
    to: usize,
    path: &LocalPath,
) -> Result<Option<u64>, Error> {
    // Nobody removes it meanwhile.
    let _name = node.lock_name(path).await;
    let (tree, name) = (Arc::clone(from), path.clone());
    let opened = blocking(move || match tree.open_file(name.as_str()) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("open", name.as_str())(error)),
    });
    let Some(opened) = opened.await? else { return Ok(None) };
    let size = opened.size;
    node.throttle.take(size).await;
    let (sent, proven) = match &known.homes[to] {
        Home::Here(target) => copy_here(node, known, target, opened, path).await?,
        Home::There { base, alive: true } => send(node, known, base, opened, path).await?,
        Home::There { .. } | Home::Nowhere => {
            return Err(Error::away(format!("the server of slice {to} is away")));
        }
    };
    if proven != Some(sent) {
        return Err(Error::refused(format!(
            "\"{path}\" reads back differently on slice {to}; it stays where it is too"
        )));
    }
    let (tree, name) = (Arc::clone(from), path.clone());
    blocking(move || tree.unlink(&name, size).map_err(Error::io("remove", name.as_str()))).await?;
    Ok(Some(size))
}

/// The checksum of what was sent, and of what the new place gives back.
type Proof = (Sum, Option<Sum>);

async fn copy_here(
    node: &Arc<Node>,
    known: &Arc<Known>,
    target: &Arc<Tree>,
    opened: Opened,
    path: &LocalPath,
) -> Result<Proof, Error> {
    match conflict::ensure_parent(node, known, target, path).await {
        Ok(()) => {}
        Err(conflict::Failure::Other(error)) => return Err(error),
        Err(conflict::Failure::Conflict { path, .. }) => return Err(taken(&path)),
    }
    let tree = Arc::clone(target);
    let spot = Spot {
        known: Arc::clone(known),
        tree: Arc::clone(&tree),
        path: path.clone(),
        unmoved: None,
        modified: Some(opened.modified),
    };
    blocking(move || {
        let declared = declared(opened.sum);
        let mut incoming = Incoming::start(&tree, &declared)?;
        let (mut file, mut buffer) = (opened.file, vec![0; PIECE]);
        loop {
            match file.read(&mut buffer).map_err(Error::io("read", spot.path.as_str()))? {
                0 => break,
                read => incoming.write(&buffer[..read]).map_err(Error::io("write", spot.path.as_str()))?,
            }
        }
        match incoming.keep(&spot, &declared)? {
            Kept::New(sums) | Kept::Same(sums) => Ok((sums.sha512, verify::sum_again(&tree, &spot.path)?)),
            Kept::Taken(_) => Err(taken(spot.path.as_str())),
            Kept::Wrong(which) => Err(wrong(spot.path.as_str(), which)),
        }
    })
    .await
}

fn declared(sum: Option<Sum>) -> Declared {
    Declared { sha512: sum.map(|sum| sum.0.to_vec()), ..Declared::default() }
}

fn taken(path: &str) -> Error {
    Error::refused(format!(
        "something else has the name \"{path}\" on the new slice; both stay: compare them"
    ))
}

fn wrong(path: &str, which: &str) -> Error {
    Error::refused(format!(
        "\"{path}\" no longer has the {which} it was stored with; it is not moved: verify the slice"
    ))
}

/// Over HTTP, as any upload; the peer then reads its copy again.
async fn send(
    node: &Arc<Node>,
    known: &Arc<Known>,
    base: &Arc<str>,
    opened: Opened,
    path: &LocalPath,
) -> Result<Proof, Error> {
    let record = &known.record;
    let url = format!(
        "{base}/move/{}/{}?epoch={}",
        encode(record.namespace.as_str()),
        encode(path.as_str()),
        record.epoch
    );
    let unreachable =
        |source: reqwest::Error| Error::Unreachable { place: base.to_string(), source: source.into() };
    let ticket = node.key.ticket(
        "PUT",
        &url[base.len()..url.find('?').unwrap_or(url.len())],
        crate::http::answer::now(),
    );
    let mut request = node.http.put(format!("{url}&swap-ticket={ticket}"));
    request =
        request.header("Last-Modified", http_date(opened.modified)).header("Content-Length", opened.size);
    if let Some(sum) = &opened.sum {
        request = request.header("Repr-Digest", format!("sha-512=:{}:", sum.base64()));
    }
    let response =
        request.body(reqwest::Body::wrap_stream(pieces(opened.file))).send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let digest =
        response.headers().get("repr-digest").and_then(|value| value.to_str().ok()).map(str::to_owned);
    if status != 200 && status != 201 {
        let reason = response.text().await.unwrap_or_default().trim().to_owned();
        return Err(match status {
            503 => Error::Away { reason },
            409 | 422 => Error::Refused { reason },
            _ => Error::Answered { place: base.to_string(), status, reason },
        });
    }
    let foreign = |reason: &str| Error::Foreign { place: base.to_string(), reason: reason.to_owned() };
    let mut received = Declared::default();
    received.header("Repr-Digest", &digest.unwrap_or_default()).map_err(|reason| foreign(&reason))?;
    let sent = received.sha512.and_then(|bytes| bytes.try_into().ok()).map(Sum);
    let sent = sent.ok_or_else(|| foreign("no SHA-512 came"))?;
    match node.link(base)?.ask(Call::Sum { collection: record.uuid, path: path.clone() }).await? {
        Answer::Sum(proven) => Ok((sent, proven)),
        _ => Err(foreign("no checksum came")),
    }
}

/// A file as a stream of pieces, read off the async threads.
fn pieces(file: File) -> impl futures_util::Stream<Item = std::io::Result<Vec<u8>>> + Send + 'static {
    stream::try_unfold(file, |mut file| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece)?;
            piece.truncate(read);
            Ok::<_, std::io::Error>((piece, file))
        });
        let (piece, file) = read.await.map_err(std::io::Error::other)??;
        Ok((!piece.is_empty()).then_some((piece, file)))
    })
}
