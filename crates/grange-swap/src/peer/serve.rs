//! The answering side of a peer connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use uuid::Uuid;

use crate::collection::{Collection, Layout};
use crate::error::Error;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::handshake;
use crate::peer::link::Numbered;
use crate::server::Callers;
use crate::view::Known;
use crate::{change, conflict, listing, removal, simulation, verify};

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
            let (node, answers, shutdown) = (Arc::clone(&node), answers.clone(), callers.shutdown().clone());
            tokio::spawn(async move {
                let work = async {
                    let body = answer(&node, body).await.unwrap_or_else(|error| refusal(&error));
                    drop(permit);
                    let _ = answers.send(Numbered { id, body }).await;
                };
                shutdown.or(work).await
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
        biased;
        () = read => {}
        () = write => {}
    }
}

/// An error as an answer. [`Link`](crate::peer::link::Link) makes it an error with the same status again.
pub(crate) fn refusal(error: &Error) -> Answer {
    let text = grange_base::Chain(error).to_string();
    match error {
        Error::Away { reason } => Answer::Away(reason.clone()),
        Error::Refused { reason } => Answer::Refused(reason.clone()),
        Error::NoCollection { namespace } => Answer::NoCollection(namespace.clone()),
        other => match other.status() {
            503 => Answer::Away(text),
            409 => Answer::Refused(text),
            status => Answer::Failed { status, reason: text },
        },
    }
}

/// A collection by the epoch that the asking server works by; else our epoch, 0 when we do not know the collection. It was
/// just created and we have not heard of it yet, or it is gone and the other server has not.
fn known_by(node: &Node, collection: Uuid, epoch: u64) -> Result<Arc<Known>, u64> {
    match node.known(collection) {
        Ok(known) if known.record.epoch == epoch => Ok(known),
        Ok(known) => Err(known.record.epoch),
        Err(_) => Err(0),
    }
}

pub(crate) async fn answer(node: &Arc<Node>, call: Call) -> Result<Answer, Error> {
    match call {
        Call::Watch { since } => Ok(watch(node, since).await),
        Call::Find { collection, epoch, slice, path } => {
            let known = match known_by(node, collection, epoch) {
                Ok(known) => known,
                Err(other) => return Ok(Answer::OtherEpoch(other)),
            };
            conflict::find_here(&known, slice, &path).await.map(Answer::Found)
        }
        Call::EnsureDirectory { collection, epoch, path } => {
            let known = match known_by(node, collection, epoch) {
                Ok(known) => known,
                Err(other) => return Ok(Answer::OtherEpoch(other)),
            };
            Ok(match conflict::claim_here(node, &known, &path).await {
                Ok(()) => Answer::Done,
                Err(conflict::Failure::Conflict { path, found }) => Answer::Conflict { path, found },
                Err(conflict::Failure::Other(error)) => return Err(error),
            })
        }
        Call::List { collection, epoch, path, after, limit } => {
            let known = match known_by(node, collection, epoch) {
                Ok(known) => known,
                Err(other) => return Ok(Answer::OtherEpoch(other)),
            };
            match listing::list_here(&known, path.as_ref(), after.as_deref(), limit).await {
                Ok((entries, more)) => Ok(Answer::Entries(entries, more)),
                Err(Error::Away { .. }) => Ok(Answer::OtherEpoch(known.gate.epoch())),
                Err(error) => Err(error),
            }
        }
        Call::Sum { collection, epoch, slice, path } => {
            let known = match known_by(node, collection, epoch) {
                Ok(known) => known,
                Err(other) => return Ok(Answer::OtherEpoch(other)),
            };
            verify::sum_on(&known, slice, path).await.map(Answer::Sum)
        }
        Call::Remove { collection, epoch, slice, path, sum } => {
            let known = match known_by(node, collection, epoch) {
                Ok(known) => known,
                Err(other) => return Ok(Answer::OtherEpoch(other)),
            };
            removal::remove_here(node, &known, slice, &path, sum).await.map(Answer::Removed)
        }
        Call::NameFree { collection, namespace, servers } => {
            match node.name_is_free(collection, &namespace, &servers) {
                Ok(()) => Ok(watch(node, None).await),
                Err(Error::Overlap { other, .. }) => Ok(Answer::Overlap(other)),
                Err(error) => Err(error),
            }
        }
        Call::Establish { record } => match change::create::establish_here(node, &record).await {
            Ok(()) => Ok(Answer::Done),
            Err(Error::Overlap { other, .. }) => Ok(Answer::Overlap(other)),
            Err(error) => Err(error),
        },
        Call::FirstFile { collection, epoch } => {
            if let Err(other) = known_by(node, collection, epoch) {
                return Ok(Answer::OtherEpoch(other));
            }
            change::remove::first_file_here(node, collection, epoch).await.map(Answer::First)
        }
        Call::Adopt { record } => {
            let (own, gone) = (Arc::clone(node), record.layout == Layout::Gone);
            blocking(move || own.adopt(&record)).await?;
            // A name that became free may be waited for.
            let wanted = if gone { node.wanted() } else { Vec::new() };
            if !wanted.is_empty() {
                adopt_all(Arc::clone(node), wanted).await;
            }
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
    let own = Arc::clone(node);
    match blocking(move || Ok(own.inventory())).await {
        Ok(inventory) => Answer::Inventory(Box::new(inventory)),
        Err(error) => refusal(&error),
    }
}

/// Takes over records, and says in the log what could not be. One that has to wait for a removal is tried again after it.
pub(crate) async fn adopt_all(node: Arc<Node>, records: Vec<Collection>) {
    let mut left = records;
    loop {
        let (mut waiting, mut progress) = (Vec::new(), false);
        for record in left {
            let (own, offered) = (Arc::clone(&node), record.clone());
            match blocking(move || own.adopt(&offered)).await {
                Ok(adopted) => progress |= adopted,
                Err(error) => waiting.push((record, error)),
            }
        }
        if !progress || waiting.is_empty() {
            for (record, error) in waiting {
                let (namespace, error) = (&record.namespace, grange_base::Chain(&error).to_string());
                tracing::error!(%namespace, error, "cannot take over a record");
            }
            return;
        }
        left = waiting.into_iter().map(|(record, _)| record).collect();
    }
}

/// Off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    if simulation::active() {
        simulation::pause().await;
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => {
                Err(Error::io("work on files of", "this server")(std::io::Error::other("the process stops")))
            }
        },
    }
}
