//! Taking files out of sight. The bytes go to the attic of their partition, for people.

use std::sync::{Arc, PoisonError};

use crate::collection::Spot;
use crate::conflict::{changing, gone};
use crate::digest::Sum;
use crate::error::Error;
use crate::name::LocalPath;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::serve::blocking;
use crate::tree::Found;
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
    // First where it may still wait to be moved: afterwards nothing brings it back here.
    if let Some(before) = before {
        removed = match &known.homes[before] {
            Home::Here(_) => remove_here(node, known, before, path, sum).await?,
            Home::There { base, alive: true } => {
                let (collection, epoch) = (known.record.uuid, known.record.epoch);
                let call = Call::Find { collection, epoch, slice: before, path: path.clone() };
                let link = node.link(base)?;
                let there = matches!(link.ask(call).await?, Answer::Found(Found::File { .. }));
                link.ask(Call::Remove { collection, epoch, slice: before, path: path.clone(), sum }).await?;
                there
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
    // Not while it is being moved.
    let _name = node.lock_name(path).await;
    let tree = known.tree(slice).cloned().ok_or_else(changing)?;
    let (known, path) = (Arc::clone(known), path.clone());
    let day = node.clock.now().strftime("%Y-%m-%d").to_string();
    blocking(move || {
        let Found::File { size, sum: kept } =
            tree.find(&path).map_err(Error::io("look for", path.as_str()))?
        else {
            return Ok(false);
        };
        if let Some(expected) = sum {
            let found = match kept {
                Some(kept) => Some(kept),
                None => verify::sum_again(&tree, &path)?,
            };
            if found != Some(expected) {
                return Err(Error::refused(format!(
                    "the file \"{path}\" has another checksum; it was left where it is"
                )));
            }
        }
        let epoch = known.gate.read().unwrap_or_else(PoisonError::into_inner);
        if *epoch != known.record.epoch {
            return Err(changing());
        }
        tree.to_attic(&path, &day, size).map_err(Error::io("move to the attic", path.as_str()))?;
        Ok(true)
    })
    .await
}
