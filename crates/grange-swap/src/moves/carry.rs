//! One file from its old slice to its new one: copied, compared with what the new disk gives back, and only then
//! removed from the old.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use sha2::{Digest as _, Sha512};

use crate::conflict;
use crate::digest::{Declared, Sum};
use crate::error::Error;
use crate::http::answer::http_date;
use crate::name::{LocalPath, encode};
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::serve::blocking;
use crate::simulation;
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
    let (tree, name) = (Arc::clone(from), path.clone());
    let opened = blocking(move || match tree.open_file(name.as_str()) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("open", name.as_str())(error)),
    });
    let Some(opened) = opened.await? else { return Ok(None) };
    let (size, stored) = (opened.size, opened.sum);
    node.throttle.take(size).await;
    let Proof { read, received, proven } = match &known.homes[to] {
        Home::Here(target) => copy_here(node, known, target, opened, path).await?,
        Home::There { base, alive: true } => {
            let sent = send(node, known, (to, base), opened, path);
            simulation::on_line(&node.base, base, sent)
                .await
                .map_err(|error| Error::away(error.to_string()))??
        }
        Home::There { .. } | Home::Nowhere => {
            return Err(Error::away(format!("the server of slice {to} is away")));
        }
    };
    if received != read || proven != Some(read) {
        return Err(Error::refused(format!(
            "\"{path}\" reads back differently on slice {to}; it stays where it is too"
        )));
    }
    let (known, tree, name) = (Arc::clone(known), Arc::clone(from), path.clone());
    blocking(move || {
        // Rotten bytes move as they are, with the checksum that shows it. But only the disk can have changed them: what it
        // gives back twice.
        if stored.is_some_and(|stored| stored != read) {
            tracing::warn!(namespace = %known.record.namespace, path = %name, "moves bytes that no longer have their checksum");
            if verify::sum_again(&tree, &name)?.is_some_and(|again| again != read) {
                return Err(Error::refused(format!("\"{name}\" is read differently each time; it is not moved")));
            }
        }
        // Not by a record that no longer holds: the name may be another file's by now.
        let _epoch = known.gate.unchanged(known.record.epoch)?;
        match tree.unlink(&name, size) {
            // Removed by a person meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other.map_err(Error::io("remove", name.as_str())),
        }
    })
    .await?;
    Ok(Some(size))
}

/// Checksums of the bytes of a copy.
struct Proof {
    /// As the old place gave them.
    read: Sum,
    /// As they arrived.
    received: Sum,
    /// As the new place gives them back.
    proven: Option<Sum>,
}

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
        moved: true,
        stored: opened.sum,
    };
    blocking(move || {
        let declared = Declared::default();
        let mut incoming = Incoming::start(&tree, &declared)?;
        let (mut file, mut buffer) = (opened.file, vec![0; PIECE]);
        loop {
            match file.read(&mut buffer).map_err(Error::io("read", spot.path.as_str()))? {
                0 => break,
                read => incoming.write(&buffer[..read]).map_err(Error::io("write", spot.path.as_str()))?,
            }
        }
        match incoming.keep(&spot, &declared)? {
            Kept::New(sums) | Kept::Same(sums) => {
                let (read, received) = (sums.sha512, sums.sha512);
                Ok(Proof { read, received, proven: verify::sum_again(&tree, &spot.path)? })
            }
            _ => Err(taken(spot.path.as_str())),
        }
    })
    .await
}

fn taken(path: &str) -> Error {
    Error::refused(format!(
        "something else has the name \"{path}\" on the new slice; both stay: compare them"
    ))
}

/// Over HTTP, as any upload; the peer then reads its copy again.
async fn send(
    node: &Arc<Node>,
    known: &Arc<Known>,
    (to, base): (usize, &Arc<str>),
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
    let ticket = node.key.ticket("PUT", &url[base.len()..url.find('?').unwrap_or(url.len())], node.seconds());
    let stored = opened.sum.map(|sum| format!("&stored={sum}")).unwrap_or_default();
    let mut request = node.http.put(format!("{url}{stored}&swap-ticket={ticket}"));
    request =
        request.header("Last-Modified", http_date(opened.modified)).header("Content-Length", opened.size);
    let read = Arc::new(Mutex::new(Sha512::new()));
    let body = reqwest::Body::wrap_stream(pieces(opened.file, Arc::clone(&read)));
    let response = request.body(body).send().await.map_err(unreachable)?;
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
    let received = received.sha512.and_then(|bytes| bytes.try_into().ok()).map(Sum);
    let received = received.ok_or_else(|| foreign("no SHA-512 came"))?;
    let read = Sum(read.lock().unwrap_or_else(PoisonError::into_inner).clone().finalize().into());
    let (collection, epoch, path) = (record.uuid, record.epoch, path.clone());
    match node.link(base)?.ask(Call::Sum { collection, epoch, slice: to, path }).await? {
        Answer::Sum(proven) => Ok(Proof { read, received, proven }),
        _ => Err(foreign("no checksum came")),
    }
}

/// A file as a stream of pieces, read and summed up off the async threads.
fn pieces(
    file: File,
    read: Arc<Mutex<Sha512>>,
) -> impl futures_util::Stream<Item = std::io::Result<Vec<u8>>> + Send + 'static {
    stream::try_unfold((file, read), |(mut file, sum)| async move {
        let read = blocking(move || {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece).map_err(Error::io("read", "a file that moves"))?;
            piece.truncate(read);
            sum.lock().unwrap_or_else(PoisonError::into_inner).update(&piece);
            Ok((piece, (file, sum)))
        });
        let (piece, rest) = read.await.map_err(std::io::Error::other)?;
        Ok((!piece.is_empty()).then_some((piece, rest)))
    })
}
