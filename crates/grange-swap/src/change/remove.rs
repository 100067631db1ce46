//! Removing a collection, with all its files or only if it has none.
//!
//! To be found empty it is closed first, on every server: then nothing is acknowledged any more that a walk did not meet.

use std::sync::Arc;

use futures_util::future::join_all;
use uuid::Uuid;

use super::{Decision, hosts_here, install_confirmed};
use crate::collection::Collection;
use crate::error::Error;
use crate::gate::changing;
use crate::lifecycle::Step;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::serve::blocking;
use crate::tree::Met;
use crate::view::Known;

pub(super) async fn with_files(node: &Arc<Node>, decision: &Decision) -> Result<Collection, Error> {
    hosts_here(&decision.known)?;
    let gone = decision.own.at(decision.next(Step::RemoveWithFiles)?);
    end(node, &decision.known, gone).await
}

/// Removed for good once the record is durable; only when all servers have taken it over is that said, because until then
/// one of them might still acknowledge uploads.
async fn end(node: &Arc<Node>, known: &Known, gone: Collection) -> Result<Collection, Error> {
    let confirmed = install_confirmed(node, &gone).await?;
    match missing(known, &confirmed) {
        None => Ok(gone),
        Some(base) => Err(Error::away(format!(
            "{} is removed, but {base} has not confirmed it and follows when it is back",
            gone.namespace
        ))),
    }
}

/// A server of the collection that did not confirm.
fn missing(known: &Known, confirmed: &[Arc<str>]) -> Option<Arc<str>> {
    known.others().into_iter().map(|(base, _)| base).find(|base| !confirmed.contains(base))
}

pub(super) async fn if_empty(node: &Arc<Node>, decision: &Decision) -> Result<Collection, Error> {
    let Decision { own, known, .. } = decision;
    hosts_here(known)?;
    // A mistake disturbs nobody.
    refuse_full(own, first_file(node, known, own.epoch).await?)?;
    let closing = own.at(decision.next(Step::Close)?);
    let confirmed = install_confirmed(node, &closing).await?;
    let empty = async {
        if let Some(base) = missing(known, &confirmed) {
            return Err(Error::away(format!("the server {base} is away")));
        }
        refuse_full(own, first_file(node, known, closing.epoch).await?)
    };
    let empty = empty.await;
    let closed = Decision::on(node, own.uuid)?;
    match empty {
        Ok(()) => {
            let gone = closed.own.at(closed.next(Step::RemoveEmpty { epoch: closing.epoch })?);
            end(node, known, gone).await
        }
        Err(error) => {
            let open = closed.own.at(closed.next(Step::Reopen)?);
            install_confirmed(node, &open).await?;
            Err(error)
        }
    }
}

fn refuse_full(record: &Collection, first: Option<String>) -> Result<(), Error> {
    match first {
        None => Ok(()),
        Some(path) => Err(Error::refused(format!(
            "cannot remove {}: it holds files, for example \"{path}\"; remove them first, or ask for all of it",
            record.namespace
        ))),
    }
}

/// The first thing that is on any slice, by that epoch on all servers.
async fn first_file(node: &Arc<Node>, known: &Known, epoch: u64) -> Result<Option<String>, Error> {
    let collection = known.record.uuid;
    let asked = known.others().into_iter().map(|(base, _)| async move {
        match node.link(&base)?.ask(Call::FirstFile { collection, epoch }).await? {
            Answer::First(first) => Ok(first),
            _ => Err(Error::away(format!("the server {base} is away"))),
        }
    });
    let (here, there) = tokio::join!(first_file_here(node, collection, epoch), join_all(asked));
    let mut first = here?;
    for other in there {
        first = first.or(other?);
    }
    Ok(first)
}

/// The first thing on our slices. What is no file of ours counts too: a removal would take it out of sight.
pub(crate) async fn first_file_here(
    node: &Arc<Node>,
    collection: Uuid,
    epoch: u64,
) -> Result<Option<String>, Error> {
    let known = node.known(collection)?;
    if known.record.epoch != epoch {
        return Err(changing());
    }
    blocking(move || {
        let mut first = None;
        for (_, tree) in known.here() {
            let walked = tree.walk(|met| {
                first = match met {
                    Met::Directory(_) => None,
                    Met::File(path) => Some(path.to_string()),
                    Met::Foreign(path) => Some(path),
                };
                first.is_none()
            });
            walked.map_err(Error::io("walk", tree.partition.root.join(tree.namespace.as_str())))?;
            if first.is_some() {
                break;
            }
        }
        drop(known.gate.unchanged(epoch)?);
        Ok(first)
    })
    .await
}
