//! Making, re-slicing and removing collections. One server decides each change: for a new collection the first of all
//! servers by name, for an existing one the server of its slice 0. So no two changes contradict each other, and there
//! is nothing to vote on. The decision is a record with the next epoch, durable on the partition of slice 0 before anybody
//! else hears of it; every server with a partition in it takes it over, told directly or, when it missed that, from the
//! inventory of any other. Which record follows which is decided in [`crate::lifecycle`].

pub(crate) mod create;
mod placing;
pub(crate) mod remove;
mod reslice;

use std::num::NonZeroU32;
use std::sync::Arc;

use futures_util::future::join_all;
use uuid::Uuid;

use crate::collection::{Collection, MAX_SLICES};
use crate::error::Error;
use crate::lifecycle::{self, Standing, Step, StepRefused};
use crate::moves;
use crate::name::Namespace;
use crate::node::Node;
use crate::peer::call::{Answer, Call, Change};
use crate::peer::serve::blocking;
use crate::view::{Home, Inventory, Known};

/// Has a change decided by whom it takes.
pub(crate) async fn request(node: &Arc<Node>, change: Change) -> Result<Collection, Error> {
    let decider = match &change {
        Change::Create { namespace, .. } => {
            Namespace::new(namespace.as_str())?;
            node.all_here()?;
            let others = node.others().into_iter().map(|other| other.base);
            others.chain([Arc::clone(&node.base)]).min().filter(|first| *first != node.base)
        }
        Change::Reslice { collection, .. }
        | Change::Remove { collection, .. }
        | Change::EndMove { collection, .. }
        | Change::Reopen { collection } => match node.known(*collection)?.homes.first() {
            Some(Home::Here(_)) => None,
            Some(Home::There { base, .. }) => Some(Arc::clone(base)),
            _ => {
                return Err(Error::away("the server of slice 0, which decides on this collection, is away"));
            }
        },
    };
    match decider {
        None => decide(node, change).await,
        Some(base) => match node.link(&base)?.ask(Call::Change { change }).await? {
            Answer::Changed(record) => Ok(*record),
            _ => Err(Error::Foreign { place: base.to_string(), reason: "no record came".to_owned() }),
        },
    }
}

/// Decides a change here.
pub(crate) async fn decide(node: &Arc<Node>, change: Change) -> Result<Collection, Error> {
    let _one = node.deciding.lock().await;
    match change {
        Change::Create { namespace, slices, public, mixed_disks } => {
            create::create(node, Namespace::new(namespace)?, slices, public, mixed_disks).await
        }
        Change::Reslice { collection, slices, mixed_disks } => {
            let decision = Decision::on(node, collection)?;
            let record = reslice::reslice(node, &decision, slices, mixed_disks).await?;
            install(node, record).await
        }
        Change::Remove { collection, with_files } => {
            let decision = Decision::on(node, collection)?;
            if with_files {
                remove::with_files(node, &decision).await
            } else {
                remove::if_empty(node, &decision).await
            }
        }
        Change::EndMove { collection, epoch } => {
            let decision = Decision::on(node, collection)?;
            let next = decision.next(Step::EndMove { epoch })?;
            if !moves::all_settled(node, &decision.known) {
                return Err(Error::refused("files are still to be moved"));
            }
            install(node, decision.own.at(next)).await
        }
        Change::Reopen { collection } => {
            let decision = Decision::on(node, collection)?;
            let next = decision.next(Step::Reopen)?;
            install(node, decision.own.at(next)).await
        }
    }
}

/// What a decision starts from: the record on our own partition of slice 0, which no other server can have a newer one of.
struct Decision {
    own: Collection,
    known: Arc<Known>,
    spent: u64,
}

impl Decision {
    fn on(node: &Node, collection: Uuid) -> Result<Self, Error> {
        let gone = || Error::NoCollection { namespace: collection.to_string() };
        let (own, spent) = node.own(collection).ok_or_else(gone)?;
        // One of our disks may hold the removal already, and it is final.
        if node.removal_is_unfinished(collection) {
            return Err(Error::away(format!("{} is being removed", own.namespace)));
        }
        let known = node.known(collection)?;
        if known.tree(0).is_none() || known.record != own {
            return Err(Error::away("this server does not keep slice 0, or is just learning of a change"));
        }
        Ok(Self { own, known, spent })
    }

    fn next(&self, step: Step) -> Result<Standing, Error> {
        lifecycle::next(self.own.standing(), self.spent, step).map_err(|refused| {
            let namespace = &self.own.namespace;
            match refused {
                StepRefused::Gone => Error::NoCollection { namespace: namespace.to_string() },
                StepRefused::Moving => {
                    Error::refused(format!("{namespace} is moving: wait until that is done"))
                }
                StepRefused::Closing => Error::away(format!("{namespace} is just being removed")),
                StepRefused::SameNumber => {
                    Error::refused(format!("{namespace} has {} slices already", self.own.slices.len()))
                }
                StepRefused::Overtaken => {
                    Error::refused(format!("{namespace} was changed meanwhile: look at it again"))
                }
            }
        })
    }
}

/// What every living server has just now.
pub(crate) async fn inventories(node: &Arc<Node>) -> Result<Vec<Inventory>, Error> {
    let own = Arc::clone(node);
    let mut all = vec![blocking(move || Ok(own.inventory())).await?];
    let asked = node.others().into_iter().filter(|other| other.alive).map(|other| async move {
        match node.link(&other.base)?.ask(Call::Watch { since: None }).await? {
            Answer::Inventory(inventory) => Ok(*inventory),
            _ => Err(Error::away(format!("the server {} is away", other.base))),
        }
    });
    for inventory in join_all(asked).await {
        all.push(inventory?);
    }
    Ok(all)
}

fn count(slices: u32) -> Result<NonZeroU32, Error> {
    let fits = NonZeroU32::new(slices).filter(|slices| slices.get() <= MAX_SLICES);
    fits.ok_or_else(|| Error::refused(format!("a collection has 1 to {MAX_SLICES} slices, not {slices}")))
}

/// All servers of a collection are here; the first that is away is named.
fn hosts_here(known: &Known) -> Result<(), Error> {
    for (slice, home) in known.homes.iter().enumerate() {
        if let Home::Nowhere | Home::There { alive: false, .. } = home {
            return Err(Error::away(format!("the server of slice {slice} is away")));
        }
    }
    Ok(())
}

/// All servers, as inventories, provided that none of the collection's is away.
async fn hosts(node: &Arc<Node>, known: &Known) -> Result<Vec<Inventory>, Error> {
    hosts_here(known)?;
    inventories(node).await
}

/// Makes a decision durable on our partitions, then tells everybody. Servers that miss it learn it from the inventories.
async fn install(node: &Arc<Node>, record: Collection) -> Result<Collection, Error> {
    install_confirmed(node, &record).await?;
    Ok(record)
}

/// The servers that confirmed to have taken the record over.
async fn install_confirmed(node: &Arc<Node>, record: &Collection) -> Result<Vec<Arc<str>>, Error> {
    node.spend(record.uuid, record.epoch);
    let (own, ours) = (Arc::clone(node), record.clone());
    if !blocking(move || own.adopt(&ours)).await? {
        return Err(Error::refused(format!("{} was changed meanwhile: look at it again", record.namespace)));
    }
    Ok(tell(node, record).await)
}

/// Tells every server that is here; those that answered.
async fn tell(node: &Arc<Node>, record: &Collection) -> Vec<Arc<str>> {
    let told = node.others().into_iter().filter(|other| other.alive).map(|other| async move {
        let call = Call::Adopt { record: record.clone() };
        let answer = async { node.link(&other.base)?.ask(call).await }.await;
        answer.is_ok().then_some(other.base)
    });
    join_all(told).await.into_iter().flatten().collect()
}
