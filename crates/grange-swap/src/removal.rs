//! Taking files out of sight. The bytes go to the attic of their partition, for people.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::collection::{Layout, Spot};
use crate::conflict::{changing, gone};
use crate::digest::Sum;
use crate::error::Error;
use crate::name::LocalPath;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::serve::blocking;
use crate::tree::{Found, Tree};
use crate::verify;
use crate::view::{Home, Known};

/// Removes a file whose slice is here, provided it has the checksum; false when there is none.
pub(crate) async fn remove(
    node: &Arc<Node>,
    known: &Arc<Known>,
    path: &LocalPath,
    sum: Option<Sum>,
) -> Result<bool, Error> {
    let Spot { slice, before } = known.record.layout.spot(path.point()).ok_or_else(gone)?;
    let mut removed = false;
    // First where it may still wait to be moved: afterwards only a copy under way could bring it back, and the gate of
    // its new slice does not let it.
    if let Some(before) = before {
        removed = match &known.homes[before] {
            Home::Here(_) => remove_here(node, known, before, path, sum).await?,
            Home::There { base, alive: true } => {
                let (collection, epoch) = (known.record.uuid, known.record.epoch);
                let call = Call::Remove { collection, epoch, slice: before, path: path.clone(), sum };
                match node.link(base)?.ask(call).await? {
                    Answer::Removed(removed) => removed,
                    _ => return Err(Error::away("an answer did not fit the question")),
                }
            }
            Home::There { .. } | Home::Nowhere => {
                return Err(Error::away(format!("the server of slice {before} is away")));
            }
        };
    }
    Ok(remove_here(node, known, slice, path, sum).await? || removed)
}

/// Removes a file from one of our slices; false when it is not there.
pub(crate) async fn remove_here(
    node: &Arc<Node>,
    known: &Arc<Known>,
    slice: usize,
    path: &LocalPath,
    sum: Option<Sum>,
) -> Result<bool, Error> {
    // Not while its bytes are replaced.
    let _name = node.lock_name(path).await;
    let tree = known.tree(slice).cloned().ok_or_else(changing)?;
    let (known, path) = (Arc::clone(known), path.clone());
    let day = node.clock.now().strftime("%Y-%m-%d").to_string();
    blocking(move || {
        let layout = known.record.layout;
        let last = matches!(layout, Layout::Moving { .. })
            && layout.spot(path.point()).is_some_and(|spot| spot.slice == slice);
        if last {
            known.gate.note_removal(known.record.epoch, path.point())?;
        }
        remove_now(&known, &tree, &path, sum, &day)
    })
    .await
}

fn remove_now(
    known: &Known,
    tree: &Tree,
    path: &LocalPath,
    sum: Option<Sum>,
    day: &str,
) -> Result<bool, Error> {
    // A removal whose sync failed shows no file, and may not be on the disk.
    tree.partition.may_change().map_err(Error::io("remove", path.as_str()))?;
    // By a newer record the file may have been moved away before it was looked for.
    let absent = || known.gate.unchanged(known.record.epoch).map(|_| false);
    let Found::File { size, sum: kept } = tree.find(path).map_err(Error::io("look for", path.as_str()))?
    else {
        return absent();
    };
    if let Some(expected) = sum {
        // What it was stored with may not be what it holds.
        let Some(found) = verify::sum_again(tree, path)? else { return absent() };
        if found != expected {
            let rotten = if kept == Some(expected) { "no longer has" } else { "does not have" };
            return Err(Error::refused(format!(
                "cannot remove \"{path}\": it {rotten} that checksum; its bytes now have the SHA-512 {found}"
            )));
        }
    }
    let _epoch = known.gate.unchanged(known.record.epoch)?;
    match tree.to_attic(path, day, size) {
        Ok(()) => Ok(true),
        // Moved on since it was found.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("move to the attic", path.as_str())(error)),
    }
}
