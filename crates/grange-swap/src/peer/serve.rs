//! The answering side of a peer connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};

use crate::collection::Collection;
use crate::digest::Sum;
use crate::error::Error;
use crate::name::LocalPath;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::handshake;
use crate::peer::link::Numbered;
use crate::server::Callers;
use crate::{change, conflict, listing, removal, verify};

/// Longest wait of a watch: the sign of life of an idle server.
pub(crate) const WATCH: Duration = Duration::from_secs(2);
/// Questions of one peer worked on at a time.
const AT_A_TIME: usize = 64;

/// Answers a peer until it hangs up.
pub(crate) async fn serve(node: Arc<Node>, callers: Callers, stream: TcpStream, read_ahead: Vec<u8>) {
    // A caller speaks only after the answer to its request for this protocol.
    if !read_ahead.is_empty() {
        return;
    }
    let proven = match handshake::answer(BufReader::new(stream), &node.key, &node.base).await {
        Ok(proven) => proven,
        Err(error) => {
            tracing::warn!(%error, "refused a peer");
            return;
        }
    };
    // It knows the key: call it back, so that one side's list of peers is enough.
    callers.call_back(&proven.base);
    let handshake::Proven { stream, mut inbound, mut outbound, .. } = proven;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (answers, mut ready) = mpsc::channel::<Numbered<Answer>>(AT_A_TIME);
    let limit = Arc::new(Semaphore::new(AT_A_TIME));
    let read = async {
        while let Ok(Numbered { id, body }) = inbound.read::<Numbered<Call>>(&mut reader).await {
            let Ok(permit) = Arc::clone(&limit).acquire_owned().await else { break };
            let (node, answers) = (Arc::clone(&node), answers.clone());
            tokio::spawn(async move {
                let body = answer(&node, body).await.unwrap_or_else(|error| refusal(&error));
                drop(permit);
                let _ = answers.send(Numbered { id, body }).await;
            });
        }
    };
    let write = async {
        while let Some(answer) = ready.recv().await {
            if outbound.write(&mut writer, &answer).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = write => {}
    }
}

fn refusal(error: &Error) -> Answer {
    let text = grange_base::Chain(error).to_string();
    match error {
        Error::Away { reason } => Answer::Away(reason.clone()),
        Error::Refused { reason } => Answer::Refused(reason.clone()),
        Error::Unreachable { .. } => Answer::Away(text),
        _ => Answer::Refused(text),
    }
}

async fn answer(node: &Arc<Node>, call: Call) -> Result<Answer, Error> {
    match call {
        Call::Watch { since } => Ok(watch(node, since).await),
        Call::Find { collection, epoch, slice, path } => {
            let known = node.known(collection)?;
            if known.record.epoch != epoch {
                return Ok(Answer::OtherEpoch(known.record.epoch));
            }
            conflict::find_here(&known, slice, &path).await.map(Answer::Found)
        }
        Call::EnsureDirectory { collection, epoch, path } => {
            let known = node.known(collection)?;
            if known.record.epoch != epoch {
                return Ok(Answer::OtherEpoch(known.record.epoch));
            }
            Ok(match conflict::claim_here(node, &known, &path).await {
                Ok(()) => Answer::Done,
                Err(conflict::Failure::Conflict { path, found }) => Answer::Conflict { path, found },
                Err(conflict::Failure::Other(error)) => return Err(error),
            })
        }
        Call::List { collection, path, after, limit } => {
            let known = node.known(collection)?;
            let (entries, more) = listing::list_here(&known, path.as_ref(), after.as_deref(), limit).await?;
            Ok(Answer::Entries(entries, more))
        }
        Call::Sum { collection, path } => sum(node, collection, path).await.map(Answer::Sum),
        Call::Remove { collection, epoch, slice, path, sum } => {
            let known = node.known(collection)?;
            if known.record.epoch != epoch {
                return Ok(Answer::OtherEpoch(known.record.epoch));
            }
            removal::remove_here(node, &known, slice, &path, sum).await?;
            Ok(Answer::Done)
        }
        Call::Adopt { record } => {
            let own = Arc::clone(node);
            blocking(move || own.adopt(&record)).await?;
            Ok(Answer::Done)
        }
        Call::Change { change } => {
            let record = change::decide(node, change).await?;
            Ok(Answer::Changed(Box::new(record)))
        }
        Call::Verify { collection, start } => {
            verify::here(node, collection, start).map(|report| Answer::Report(Box::new(report)))
        }
    }
}

async fn watch(node: &Arc<Node>, since: Option<u64>) -> Answer {
    let mut version = node.watch_version();
    let changed = version.wait_for(|version| since != Some(*version));
    if since.is_some() && tokio::time::timeout(WATCH, changed).await.is_err() {
        return Answer::Same;
    }
    let node = Arc::clone(node);
    match tokio::task::spawn_blocking(move || node.inventory()).await {
        Ok(inventory) => Answer::Inventory(Box::new(inventory)),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

async fn sum(node: &Arc<Node>, collection: uuid::Uuid, path: LocalPath) -> Result<Option<Sum>, Error> {
    let known = node.known(collection)?;
    let spot = known.record.layout.spot(path.point());
    let Some(tree) = spot.and_then(|spot| known.tree(spot.slice).cloned()) else {
        return Err(Error::refused("that slice is not here"));
    };
    blocking(move || verify::sum_again(&tree, &path)).await
}

/// Takes over records, and says in the log what could not be.
pub(crate) async fn adopt_all(node: Arc<Node>, records: Vec<Collection>) {
    for record in records {
        let (own, namespace) = (Arc::clone(&node), record.namespace.clone());
        if let Err(error) = blocking(move || own.adopt(&record)).await {
            tracing::error!(%namespace, error = %grange_base::Chain(&error), "cannot take over a record");
        }
    }
}

/// Off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
