//! No name is a file on one slice and a directory on another.
//!
//! The slice a name would be placed on as a file is the authority for that name, whatever it becomes. A directory
//! exists there, as a plain directory, before any slice has a file below it. So for every name one machine's file
//! system decides between "file" and "directory", with `linkat` and `mkdirat`, which exclude each other; there is no
//! lock service and no hidden state. An authority that is away means 503: nothing is guessed.

use std::io::ErrorKind;
use std::sync::Arc;

use md5::{Digest as _, Md5};

use crate::collection::Spot;
use crate::digest::Sum;
use crate::error::Error;
pub(crate) use crate::gate::changing;
use crate::name::LocalPath;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::serve::blocking;
use crate::tree::{Found, Tree};
use crate::verify;
use crate::view::{Home, Known};

#[derive(Debug)]
pub(crate) enum Failure {
    /// That component is something else already.
    Conflict {
        path: String,
        found: Found,
    },
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

pub(crate) fn gone() -> Error {
    Error::refused("the collection is gone")
}

/// The key under which a directory is remembered: bound to the epoch, so that every change forgets all of them.
fn remembered(known: &Known, at: u128, path: &LocalPath) -> u128 {
    let mut hasher = Md5::new();
    hasher.update(known.record.uuid.as_bytes());
    hasher.update(known.record.epoch.to_be_bytes());
    hasher.update(at.to_be_bytes());
    hasher.update(path.as_str().as_bytes());
    u128::from_be_bytes(hasher.finalize().into())
}

/// Makes the directory of a new file on its slice, after making sure that nobody knows any part of it as a file: the
/// paper's four steps.
pub(crate) async fn ensure_parent(
    node: &Arc<Node>,
    known: &Arc<Known>,
    tree: &Arc<Tree>,
    path: &LocalPath,
) -> Result<(), Failure> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let key = remembered(known, tree.partition.uuid.as_u128(), &parent);
    if node.directories.get(&key).is_some() {
        return Ok(());
    }
    // What is here was validated when it was made.
    if !has_directory(tree, &parent).await? {
        claim(node, known, &parent).await?;
        make(known, tree, &parent).await?;
    }
    node.directories.insert(key, ());
    Ok(())
}

/// Asks the authority of a directory to have it.
pub(crate) fn claim<'a>(
    node: &'a Arc<Node>,
    known: &'a Arc<Known>,
    path: &'a LocalPath,
) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>> {
    Box::pin(async move {
        let key = remembered(known, 0, path);
        if node.directories.get(&key).is_some() {
            return Ok(());
        }
        let Spot { slice, .. } = known.record.layout.spot(path.point()).ok_or_else(gone)?;
        match &known.homes[slice] {
            Home::Here(_) => claim_here(node, known, path).await?,
            Home::There { base, alive: true } => {
                let (collection, epoch) = (known.record.uuid, known.record.epoch);
                let call = Call::EnsureDirectory { collection, epoch, path: path.clone() };
                match node.link(base)?.ask(call).await? {
                    Answer::Done => {}
                    Answer::Conflict { path, found } => return Err(Failure::Conflict { path, found }),
                    _ => return Err(Error::away("an answer did not fit the question").into()),
                }
            }
            Home::There { .. } | Home::Nowhere => {
                return Err(Error::away(format!(
                    "the server of slice {slice}, which decides on \"{path}\", is away"
                ))
                .into());
            }
        }
        node.directories.insert(key, ());
        Ok(())
    })
}

/// We are the authority: those above first, then the directory itself.
pub(crate) async fn claim_here(
    node: &Arc<Node>,
    known: &Arc<Known>,
    path: &LocalPath,
) -> Result<(), Failure> {
    let Spot { slice, before } = known.record.layout.spot(path.point()).ok_or_else(gone)?;
    let Some(tree) = known.tree(slice) else { return Err(changing().into()) };
    if has_directory(tree, path).await? {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        claim(node, known, &parent).await?;
    }
    // A file of that name may still wait to be moved here.
    if let Some(before) = before
        && let found @ (Found::File { .. } | Found::Foreign) = find(node, known, before, path).await?
    {
        return Err(Failure::Conflict { path: path.to_string(), found });
    }
    make(known, tree, path).await
}

/// Whether the directory is here, and then durably.
async fn has_directory(tree: &Arc<Tree>, path: &LocalPath) -> Result<bool, Failure> {
    let (tree, path) = (Arc::clone(tree), path.clone());
    blocking(move || {
        Ok(match tree.has_durable_directory(&path) {
            Ok(there) => Ok(there),
            Err(error) if error.kind() == ErrorKind::NotADirectory => Err(in_the_way(&tree, &path)),
            Err(error) => Err(Error::io("look for", path.as_str())(error).into()),
        })
    })
    .await?
}

async fn make(known: &Arc<Known>, tree: &Arc<Tree>, path: &LocalPath) -> Result<(), Failure> {
    let (known, tree, path) = (Arc::clone(known), Arc::clone(tree), path.clone());
    blocking(move || {
        let _epoch = known.gate.for_names(known.record.standing())?;
        Ok(match tree.make_directory(&path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotADirectory => Err(in_the_way(&tree, &path)),
            Err(error) => Err(Error::io("make the folder", path.as_str())(error).into()),
        })
    })
    .await?
}

/// The component that is no directory.
fn in_the_way(tree: &Tree, path: &LocalPath) -> Failure {
    let mut part = Some(path.clone());
    while let Some(name) = part {
        if let Ok(found @ (Found::File { .. } | Found::Foreign)) = tree.find(&name) {
            return Failure::Conflict { path: name.to_string(), found };
        }
        part = name.parent();
    }
    Failure::Conflict { path: path.to_string(), found: Found::Foreign }
}

/// What a name is on a slice, here or elsewhere.
pub(crate) async fn find(
    node: &Arc<Node>,
    known: &Arc<Known>,
    slice: usize,
    path: &LocalPath,
) -> Result<Found, Error> {
    match &known.homes[slice] {
        Home::Here(_) => find_here(known, slice, path).await,
        Home::There { base, alive: true } => {
            let (collection, epoch) = (known.record.uuid, known.record.epoch);
            match node.link(base)?.ask(Call::Find { collection, epoch, slice, path: path.clone() }).await? {
                Answer::Found(found) => Ok(found),
                _ => Err(Error::away("an answer did not fit the question")),
            }
        }
        Home::There { .. } | Home::Nowhere => {
            Err(Error::away(format!("the server of slice {slice} is away")))
        }
    }
}

/// What the bytes of a file on a slice are now, here or elsewhere; `None` when it has moved on.
pub(crate) async fn sum(
    node: &Arc<Node>,
    known: &Arc<Known>,
    slice: usize,
    path: &LocalPath,
) -> Result<Option<Sum>, Error> {
    match &known.homes[slice] {
        Home::Here(_) => verify::sum_on(known, slice, path.clone()).await,
        Home::There { base, alive: true } => {
            let (collection, epoch) = (known.record.uuid, known.record.epoch);
            match node.link(base)?.ask(Call::Sum { collection, epoch, slice, path: path.clone() }).await? {
                Answer::Sum(sum) => Ok(sum),
                _ => Err(Error::away("an answer did not fit the question")),
            }
        }
        Home::There { .. } | Home::Nowhere => {
            Err(Error::away(format!("the server of slice {slice} is away")))
        }
    }
}

pub(crate) async fn find_here(known: &Known, slice: usize, path: &LocalPath) -> Result<Found, Error> {
    let tree = known.tree(slice).cloned().ok_or_else(changing)?;
    let (gate, epoch, path) = (Arc::clone(&known.gate), known.record.epoch, path.clone());
    blocking(move || {
        // Who asks relies on it that names are given by this epoch from now on.
        let _held = gate.unchanged(epoch)?;
        tree.find(&path).map_err(Error::io("look for", path.as_str()))
    })
    .await
}
