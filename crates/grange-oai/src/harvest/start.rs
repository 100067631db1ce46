//! How a harvest begins: rules read, the folder opened, and what an earlier attempt received brought to its place.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use grange_base::{Clock, Shutdown};
use oaipmh::TokenStyle;

use super::entry::Entry;
use super::judge::Judge;
use super::keep::{Keeper, blocking};
use super::ledger::Ledger;
use super::order::{Break, Order};
use super::position::Position;
use super::queue::{Group, Waiting};
use super::work::Rules;
use crate::fetch::Fetcher;
use crate::responses::Responses;
use crate::settings::Settings;
use crate::store::files::Folder;
use crate::store::journal::{Journal, Leftover};
use crate::store::place::Places;

/// What a harvest needs to go on.
pub(super) struct Started {
    pub keeper: Keeper,
    pub journal: Journal,
    pub fetcher: Fetcher,
    pub judge: Arc<Judge>,
    pub position: Position,
    pub resumed: bool,
    pub replayed: u64,
}

pub(super) async fn start(
    order: &Order,
    settings: &Settings,
    ledger: &Arc<dyn Ledger>,
    clock: &Clock,
    stop: &Shutdown,
) -> Result<Started, Break> {
    let formats = &order.repository.said.formats;
    let format = formats.iter().find(|format| format.prefix == order.spec.prefix);
    let namespace = format.map(|format| format.namespace.as_str());
    let judge = Judge::new(&order.spec, namespace, Some(&settings.schemas));
    let judge = judge.map_err(|error| Break::Failed(error.to_string()))?;
    let rules = &order.repository.rules;
    let style = if rules.verbatim_tokens { TokenStyle::Verbatim } else { TokenStyle::Encoded };
    let delay = Duration::from_millis(rules.delay_ms);
    let base_url = &order.repository.base_url;
    let mut fetcher = Fetcher::new(base_url, settings, style, delay, clock.clone(), stop.clone())?;
    if rules.keep_responses {
        let (root, job, now) = (order.folder.clone(), order.job.0, clock.now());
        let responses = blocking(move || Ok(Responses::new(&root, job, now)));
        fetcher.keep(responses.await.map_err(Break::Failed)?);
    }
    let (root, deleted) = (order.folder.clone(), rules.deleted);
    let opened = blocking(move || Ok((Folder::open(&root, deleted)?, Journal::open(&root)?)));
    let (folder, (journal, leftover)) = opened.await.map_err(Break::Failed)?;
    let places = Places::new(rules.files_per_folder);
    let place_rules = Rules { prefix: &order.spec.prefix, parse_id: rules.parse_id };
    let root: PathBuf = order.folder.clone();
    let mut keeper = Keeper::new(Arc::clone(ledger), root, folder, places, place_rules);

    let asked = order.asked();
    let kept = order.position.as_deref().and_then(|text| serde_json::from_str::<Position>(text).ok());
    let mut kept = kept.filter(|kept| kept.asked == asked);
    let replayed = replay(leftover, &mut keeper, kept.as_mut()).await.map_err(Break::Failed)?;
    let resumed = kept.is_some();
    let position = if let Some(mut kept) = kept {
        // An attempt that ended because its list was begun too often must not end the next one at once.
        kept.restarts = 0;
        keeper.go_on_from(&kept);
        kept
    } else {
        let list = ledger.begin_list().await?;
        let position = Position::start(asked, order.repository.said.earliest, list, clock.now());
        // So that what the journal holds has a place to go on from.
        keeper.keep_position(&position).await.map_err(Break::Failed)?;
        position
    };
    Ok(Started { keeper, journal, fetcher, judge: Arc::new(judge), position, resumed, replayed })
}

/// Keeps what was received and not kept, from the position on, and mends files that another start of the machine may
/// have cost. Gives how many entries were kept.
async fn replay(
    mut leftover: Leftover,
    keeper: &mut Keeper,
    mut kept: Option<&mut Position>,
) -> Result<u64, String> {
    if let Some(kept) = &kept {
        keeper.go_on_from(kept);
    }
    let mut replayed = 0;
    if kept.is_some() || leftover.rebooted() {
        loop {
            let (rest, frame) = blocking(move || {
                let frame = leftover.next()?;
                Ok((leftover, frame))
            })
            .await?;
            leftover = rest;
            let Some((bytes, rebooted)) = frame else { break };
            let Some(entry) = Entry::decode(&bytes) else { continue };
            if let Some(kept) = kept.as_deref_mut().filter(|kept| kept.is_followed_by(&entry.position)) {
                *kept = entry.position.clone();
                keeper.keep(Group::of(Waiting::alone(entry))).await?;
                replayed += 1;
            } else if rebooted {
                keeper.mend(entry).await?;
            }
        }
        keeper.settle().await?;
        if let Some(kept) = kept {
            (kept.counts, kept.repeats) = (keeper.counts(), keeper.repeats());
        }
    }
    keeper.may_retire(std::mem::take(&mut leftover.paths));
    Ok(replayed)
}
