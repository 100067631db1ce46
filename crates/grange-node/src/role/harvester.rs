//! The role `harvester`: takes jobs and brings them home.

use std::path::Path;
use std::sync::Arc;

use grange_archive::ArchiveClient;
use grange_base::worker::Hint;
use grange_base::{Clock, Worker};
use grange_bus::{Announcer, Bus, Waker};
use grange_db::Db;
use grange_harvest::crawl_job::Defaults;
use grange_harvest::{Harvester, Native};
use grange_model::harvest::Name;

use crate::settings::{Settings, below};
use crate::supervise::Parts;

/// What the role works with.
#[derive(Debug)]
pub struct Tools<'a> {
    pub settings: &'a Settings,
    pub data: &'a Path,
    pub db: &'a Db,
    /// The archive, or the way to the one that can prove every replica.
    pub archive: Arc<dyn ArchiveClient>,
    pub clock: &'a Clock,
    pub bus: &'a dyn Bus,
    pub announcer: &'a Announcer,
    /// The node's name and id: no other harvester is called so.
    pub name: String,
    pub host: String,
}

/// Starts the harvester. Hints from the channels it serves wake it.
pub async fn start(parts: &mut Parts, tools: Tools<'_>) -> Result<Vec<Waker>, grange_bus::Error> {
    let Tools { settings, data, db, archive, clock, bus, announcer, name, host } = tools;
    let hint = Hint::new();
    let mut wakers = Vec::new();
    for channel in &settings.harvest.channels {
        let lanes = [
            announcer.channels().job_partial(channel.as_str())?,
            announcer.channels().job_snapshot(channel.as_str())?,
        ];
        for lane in lanes {
            wakers.push(grange_bus::wake(bus, &lane, &hint).await?);
        }
    }
    let harvest = settings.harvest.clone();
    if harvest.contact_url.is_empty() {
        tracing::warn!("harvest.contact_url is not set: web masters do not learn who crawls and why");
    }
    let defaults = Defaults { chunk_size: harvest.chunk_size, chunk_age: harvest.chunk_age };
    let native = Native { clock: clock.clone(), defaults, network: harvest.network.clone() };
    let made = grange_harvest::Parts {
        db: db.clone(),
        archive,
        clock: clock.clone(),
        engines: vec![Arc::new(native)],
        announcer: Some(announcer.clone()),
        folder: below(data, &harvest.folder),
        dedup_cache: data.join("cache/dedup"),
        vault: data.join("secrets/vault.key"),
        name,
        host,
        software: format!("grange/{}", crate::VERSION),
        alias_lifetime: settings.schedule.alias_lifetime.0,
        hint: hint.clone(),
        settings: harvest,
    };
    let (clock, interval) = (clock.clone(), made.settings.look_every.0);
    parts.start("harvester", move |shutdown| async move {
        let harvester = Harvester::new(made, shutdown.clone());
        let worker = Worker { name: "harvester".to_owned(), interval, clock, shutdown, hint };
        let ended = worker.run(|| harvester.step()).await;
        harvester.leave().await;
        ended
    });
    Ok(wakers)
}

/// The templates that come with the crawler.
pub fn templates() -> Vec<(Name, String)> {
    let named = |(name, text): (&str, &str)| Some((name.parse().ok()?, text.to_owned()));
    grange_harvest::shipped_templates().into_iter().filter_map(named).collect()
}
