//! Walks our slices of moving collections until nothing is left to move, and ends the move when nobody has anything
//! left.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use grange_base::{Chain, Shutdown};
use tokio::sync::mpsc;

use super::carry;
use super::plan::destination;
use crate::change;
use crate::collection::{Collection, Layout};
use crate::conflict;
use crate::error::Error;
use crate::node::Node;
use crate::tree::{Met, Tree};
use crate::view::Known;

/// Files on their way at a time: while one is synced there, the next is read here.
const AT_A_TIME: usize = 8;
/// How long to wait before looking again after something went wrong, or for news that may have been missed.
const PAUSE: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(5);

/// Until shutdown.
pub(crate) async fn run(node: Arc<Node>, shutdown: Shutdown) {
    while !shutdown.requested() {
        let troubled = shutdown.or(step(&node)).await.unwrap_or_default();
        let pause = tokio::time::sleep(if troubled { PAUSE } else { IDLE });
        tokio::select! {
            () = shutdown.wait() => return,
            () = node.move_now.notified(), if !troubled => {}
            () = pause => {}
        }
    }
}

/// One look at all collections; whether something went wrong that may go right later.
async fn step(node: &Arc<Node>) -> bool {
    let view = node.view();
    let moving = view.collections().filter(|known| matches!(known.record.layout, Layout::Moving { .. }));
    let mut troubled = false;
    for known in moving {
        let epoch = known.record.epoch;
        // A record that others have and we do not yet is not ours to act on.
        if *known.gate.read().unwrap_or_else(std::sync::PoisonError::into_inner) != epoch {
            troubled = true;
            continue;
        }
        for (slice, tree) in known.here() {
            let progress = node.progress(known.record.uuid, slice);
            if progress.seen().settled == Some(epoch) {
                continue;
            }
            match pass(node, known, slice, tree).await {
                Ok(0) => {
                    progress.change(|seen| (seen.settled, seen.trouble) = (Some(epoch), None));
                    node.touch();
                }
                // Only a walk that meets nothing to move proves that nothing is left.
                Ok(_) => {
                    progress.change(|seen| seen.trouble = None);
                    node.touch();
                    node.move_now.notify_one();
                }
                Err(error) => {
                    let text = Chain(&error).to_string();
                    tracing::warn!(namespace = %known.record.namespace, slice, error = text, "the move pauses");
                    progress.change(|seen| seen.trouble = Some(text));
                    node.touch();
                    troubled = true;
                }
            }
        }
        if let Some(done) = finished(node, known)
            && let Err(error) = change::install(node, &done).await
        {
            tracing::warn!(namespace = %done.namespace, error = %Chain(&error), "cannot end the move");
            troubled = true;
        }
    }
    troubled
}

/// One walk over a slice; how many names had to move. The first error ends it: what was moved stays moved.
async fn pass(node: &Arc<Node>, known: &Arc<Known>, slice: usize, tree: &Arc<Tree>) -> Result<u64, Error> {
    let layout = known.record.layout;
    let (sender, receiver) = mpsc::channel(AT_A_TIME * 4);
    let walked = Arc::clone(tree);
    let walk = tokio::task::spawn_blocking(move || {
        walked.walk(|met| {
            let (path, directory) = match met {
                Met::File(path) => (path, false),
                Met::Directory(path) => (path, true),
                Met::Foreign(_) => return true,
            };
            match destination(layout, slice, path.point()) {
                Some(to) => sender.blocking_send((path, directory, to)).is_ok(),
                None => true,
            }
        })
    });
    let progress = node.progress(known.record.uuid, slice);
    let names =
        stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|name| (name, receiver)) });
    let work = names.map(|(path, directory, to)| {
        let progress = Arc::clone(&progress);
        async move {
            if directory {
                // The new authority has to have it before the old one stops being asked.
                return match conflict::claim(node, known, &path).await {
                    Ok(()) => Ok(0),
                    Err(conflict::Failure::Other(error)) => Err(error),
                    Err(conflict::Failure::Conflict { path, .. }) => {
                        Err(Error::refused(format!("\"{path}\" is a directory here and a file elsewhere")))
                    }
                };
            }
            if let Some(bytes) = carry::carry(node, known, tree, to, &path).await? {
                progress.change(|seen| {
                    seen.files += 1;
                    seen.bytes += bytes;
                });
            }
            Ok(1)
        }
    });
    let mut moved = 0;
    let mut first = None;
    let mut work = std::pin::pin!(work.buffer_unordered(AT_A_TIME));
    while let Some(result) = work.next().await {
        match result {
            Ok(count) => moved += count,
            // One file in the way does not hold up the others; a server that is away does.
            Err(error) => {
                let away = matches!(error, Error::Away { .. } | Error::Unreachable { .. });
                first.get_or_insert(error);
                if away {
                    break;
                }
            }
        }
    }
    if let Some(error) = first {
        return Err(error);
    }
    match walk.await {
        Ok(walked) => walked.map_err(Error::io("walk", &tree.partition.root))?,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
    Ok(moved)
}

/// The record after the move, when we keep slice 0 and every slice has been walked without finding anything.
fn finished(node: &Node, known: &Known) -> Option<Collection> {
    let record = &known.record;
    let Layout::Moving { to, .. } = record.layout else { return None };
    known.tree(0)?;
    let others = node.others();
    let settled = |index: usize| {
        let here = known.tree(index).is_some();
        let told = || {
            others.iter().filter(|other| other.alive).flat_map(|other| &other.inventory.slices).any(|slice| {
                slice.collection == record.uuid
                    && slice.index as usize == index
                    && slice.settled == Some(record.epoch)
            })
        };
        if here { node.progress(record.uuid, index).seen().settled == Some(record.epoch) } else { told() }
    };
    if !(0..record.slices.len()).all(settled) {
        return None;
    }
    let mut done = record.clone();
    done.epoch += 1;
    done.layout = Layout::Stable { slices: to };
    done.slices.truncate(to.get() as usize);
    Some(done)
}
