//! Walks our slices of moving collections until nothing is left to move, and ends the move when nobody has anything
//! left.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use grange_base::{Chain, Shutdown};
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::carry;
use super::plan::destination;
use crate::change;
use crate::collection::Layout;
use crate::conflict;
use crate::error::Error;
use crate::node::Node;
use crate::peer::call::Change;
use crate::peer::serve;
use crate::simulation;
use crate::tree::{Met, Tree};
use crate::view::Known;

/// Files on their way at a time: while one is synced there, the next is read here.
const AT_A_TIME: usize = 8;
/// How long to wait before looking again for a server that is away, or for news that may have been missed.
const PAUSE: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(5);
/// Longest pause after a walk that met something which cannot be moved, usually until a person has looked at it. A walk
/// over a full slice reads all of its directories.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Until shutdown.
pub(crate) async fn run(node: Arc<Node>, shutdown: Shutdown) {
    let mut records = Retry::default();
    while !shutdown.requested() {
        let look = async {
            let behind = catch_up(&node, &mut records).await;
            step(&node).await || behind
        };
        let troubled = shutdown.or(look).await.unwrap_or_default();
        let pause = async {
            if troubled {
                // By the clock of the slices that wait.
                node.clock.sleep(PAUSE).await;
            } else {
                tokio::time::sleep(IDLE).await;
            }
        };
        tokio::select! {
            biased;
            () = shutdown.wait() => return,
            () = node.move_now.notified(), if !troubled => {}
            () = pause => {}
        }
    }
}

/// The pause after so many walks in a row that failed: doubled each time.
fn pause_after(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE)
}

/// When records that could not be taken over are tried again.
#[derive(Debug, Default)]
struct Retry {
    failures: u32,
    not_before: Option<Timestamp>,
}

/// Takes over the records that failed when they came, because of a disk for example; whether some are left.
async fn catch_up(node: &Arc<Node>, retry: &mut Retry) -> bool {
    let wanted = node.wanted();
    if wanted.is_empty() {
        *retry = Retry::default();
        return false;
    }
    let now = node.clock.now();
    if retry.not_before.is_none_or(|moment| now >= moment) {
        serve::adopt_all(Arc::clone(node), wanted).await;
        retry.not_before = now.checked_add(pause_after(retry.failures)).ok();
        retry.failures += 1;
    }
    true
}

/// One look at all collections; whether something went wrong that may go right later.
async fn step(node: &Arc<Node>) -> bool {
    let view = node.view();
    let mut troubled = false;
    let mut collections: Vec<_> = view.collections().collect();
    collections.sort_by(|one, two| one.record.namespace.cmp(&two.record.namespace));
    for known in collections {
        let epoch = known.record.epoch;
        match known.record.layout {
            Layout::Moving { .. } => {}
            // Closed by a removal that a crash cut off, unless one is under way.
            Layout::Closing { .. } if known.tree(0).is_some() && node.deciding.try_lock().is_ok() => {
                let reopen = Change::Reopen { collection: known.record.uuid };
                if let Err(error) = change::decide(node, reopen).await {
                    tracing::debug!(namespace = %known.record.namespace, error = %Chain(&error), "did not reopen");
                    troubled = true;
                }
                continue;
            }
            _ => continue,
        }
        // A record that others have and we do not yet is not ours to act on.
        if !known.is_adopted() {
            troubled = true;
            continue;
        }
        for (slice, tree) in known.here() {
            let progress = node.progress(known.record.uuid, slice);
            let seen = progress.seen();
            if seen.settled == Some(epoch) {
                continue;
            }
            if seen.not_before.is_some_and(|moment| node.clock.now() < moment) {
                troubled = true;
                continue;
            }
            progress.change(|seen| seen.walks += 1);
            match pass(node, known, slice, tree).await {
                Ok(0) => {
                    progress.change(|seen| {
                        (seen.settled, seen.trouble, seen.failures, seen.not_before) =
                            (Some(epoch), None, 0, None);
                    });
                    node.touch();
                }
                // Only a walk that meets nothing to move proves that nothing is left.
                Ok(_) => {
                    progress.change(|seen| (seen.trouble, seen.failures, seen.not_before) = (None, 0, None));
                    node.touch();
                    node.move_now.notify_one();
                }
                Err(error) => {
                    let text = Chain(&error).to_string();
                    tracing::warn!(namespace = %known.record.namespace, slice, error = text, "the move pauses");
                    // Who is away comes back by himself; anything else may last.
                    let away = matches!(error, Error::Away { .. } | Error::Unreachable { .. });
                    let now = node.clock.now();
                    progress.change(|seen| {
                        seen.failures = if away { 0 } else { seen.failures + 1 };
                        let pause = if away { PAUSE } else { pause_after(seen.failures - 1) };
                        seen.not_before = now.checked_add(pause).ok();
                        seen.trouble = Some(text);
                    });
                    node.touch();
                    troubled = true;
                }
            }
        }
        let end = Change::EndMove { collection: known.record.uuid, epoch };
        if known.tree(0).is_some()
            && all_settled(node, known)
            && let Err(error) = change::decide(node, end).await
        {
            tracing::warn!(namespace = %known.record.namespace, error = %Chain(&error), "cannot end the move");
            troubled = true;
        }
    }
    troubled
}

/// One walk over a slice; how many names had to move. The first error ends it: what was moved stays moved.
async fn pass(node: &Arc<Node>, known: &Arc<Known>, slice: usize, tree: &Arc<Tree>) -> Result<u64, Error> {
    let layout = known.record.layout;
    // A file whose removal from here was not synced is not seen, and may come back.
    tree.partition.may_change().map_err(Error::io("move files away from", &tree.partition.root))?;
    // A simulated run walks to the end before anything is moved.
    let ahead = if simulation::active() { 1024 } else { AT_A_TIME * 4 };
    let (sender, receiver) = mpsc::channel(ahead);
    let walked = Arc::clone(tree);
    let walk = simulation::spawn_blocking(move || {
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
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => {
                return Err(Error::io("walk", &tree.partition.root)(std::io::Error::other(
                    "the process stops",
                )));
            }
        },
    }
    Ok(moved)
}

/// Whether every slice has been walked by this record without finding anything to move.
pub(crate) fn all_settled(node: &Node, known: &Known) -> bool {
    let record = &known.record;
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
    (0..record.slices.len()).all(settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end_somewhere() {
        let pauses: Vec<u64> = [0, 1, 2, 9, 10, 40].map(|failures| pause_after(failures).as_secs()).to_vec();
        assert_eq!(pauses, [1, 2, 4, 512, 600, 600]);
    }
}
