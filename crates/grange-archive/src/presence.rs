//! Whether a replica is where it should be. Each of its disks, buckets and collections bears a marker with the id of the
//! archive and the name of the replica. Where the marker is gone, the disk is not mounted, was emptied or is another one:
//! then the replica is away. Nothing is judged by what such a place lists, and nothing is written to it.
//!
//! A marker is written when a place is declared for the first time, and once more on archives that are older than markers
//! when the files known from the replica are really there. A database that was restored or made again does not know which
//! places are new, until a rebuild has read every replica: then nothing is marked. Everything else is for people: `grange replicas adopt`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grange_base::Chain;
use grange_blob::{Blob, MarkedPart};
use grange_db::Db;
use grange_model::{Actor, ReplicaName};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, Places};
use crate::error::Error;
use crate::replica::{Keeps, Replica};

/// Copies that are looked for where a marker is missing.
const SAMPLE: u32 = 100;

/// How long a start waits for the places to answer; those that do not are asked again when they are needed.
const START_WITHIN: Duration = Duration::from_secs(2);

/// What a marker says, in lines of JSON that people can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// `grange-replica 1`.
    pub format: String,
    /// The id of the archive.
    pub archive: String,
    pub replica: ReplicaName,
}

impl Marker {
    pub(crate) fn new(archive: &str, replica: &ReplicaName) -> Self {
        let format = "grange-replica 1".to_owned();
        Self { format, archive: archive.to_owned(), replica: replica.clone() }
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// What is known of a replica when the marker of one of its places is missing.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// This place has borne the marker.
    place: bool,
    /// Some place of the replica has.
    any_place: bool,
    /// A place that has is not in the settings any more.
    place_left_out: bool,
    /// Copies that the replica should hold, of those that were looked for; and how many were there.
    looked_for: usize,
    there: usize,
    /// The database was restored or made again: that it knows no file of the place says nothing.
    recovering: bool,
}

/// How one place stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Present,
    /// It is the replica's, and gets its marker.
    ToMark,
    /// The reason, with what to do.
    Away(String),
}

fn judge(part: &MarkedPart, own: &Marker, known: Known) -> Standing {
    let adopt = format!("`grange replicas adopt {}`", own.replica);
    if let Some(text) = &part.marker {
        return match serde_json::from_str::<Marker>(text) {
            Ok(found) if found == *own => match &part.lost {
                None => Standing::Present,
                // Nothing was ever stored there.
                Some(_) if known.looked_for == 0 && !known.recovering => Standing::ToMark,
                Some(lost) => Standing::Away(format!(
                    "its marker is there and {lost} is gone: put it back, or mount the disk that holds it; if it is lost for \
                     good, run {adopt}, then `grange audit run` and `grange repair --all`"
                )),
            },
            Ok(found) => Standing::Away(format!(
                "the marker there is that of replica {} of archive {}: mount the right disk, or correct the settings; \
                 to take this one for {} anyway, run {adopt}",
                found.replica, found.archive, own.replica
            )),
            Err(_) => Standing::Away(format!(
                "the marker there cannot be read: look at that disk, then run {adopt}"
            )),
        };
    }
    if known.looked_for == 0 {
        // Nothing was ever stored there.
        if !known.place && !known.recovering {
            return Standing::ToMark;
        }
        if !known.place {
            return Standing::Away(format!(
                "there is no marker, and the database was restored or made again, so that it may not know the files of this \
                 replica: mount the disk, then run `grange archive rebuild`; if the replica is new or was emptied on purpose, \
                 run {adopt}"
            ));
        }
        return Standing::Away(format!(
            "its marker is gone: mount the disk; if the place was emptied on purpose, run {adopt}"
        ));
    }
    if !part.empty {
        if known.there * 2 >= known.looked_for {
            return Standing::ToMark;
        }
        return Standing::Away(format!(
            "there is no marker, and the files there are not those of the replica: mount the right disk, or run {adopt}"
        ));
    }
    let one_more = known.any_place && !known.place && !known.place_left_out && !known.recovering;
    let older_than_markers = !known.any_place && known.there == known.looked_for;
    if one_more || older_than_markers {
        return Standing::ToMark;
    }
    Standing::Away(format!(
        "the place is empty and has no marker: mount the disk; if it was emptied on purpose, run {adopt}, then \
         `grange audit run` and `grange repair --all`"
    ))
}

/// One part of a replica: the number of its node, and its place among all.
struct PlacedPart {
    node: usize,
    place: String,
    part: MarkedPart,
}

/// What a replica needs to know whether it is there.
#[derive(Clone, Debug)]
pub(crate) struct Watch(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    db: Db,
    archive: String,
    /// Why the replica is away, as it was last told.
    away: Mutex<Option<String>>,
}

impl Watch {
    pub(crate) fn new(db: Db, archive: String, away: Option<String>) -> Self {
        Self(Arc::new(Watched { db, archive, away: Mutex::new(away) }))
    }
}

/// The place of a part among all places. A disk names its folders by themselves: one more must not rename the others.
fn place_of(store: &str, part: &str) -> String {
    match (part, store.starts_with('/')) {
        ("", _) => store.to_owned(),
        (part, true) => part.to_owned(),
        (part, false) => format!("{store} {part}"),
    }
}

impl Replica {
    /// Whether the whole replica is there; the error says why not. Told loudly when that changes.
    pub(crate) async fn verify(&self) -> Result<(), Error> {
        let looked = self.look(None).await;
        self.heard(looked.as_ref().err()).await;
        looked
    }

    /// Looks again and keeps the answer in the row, whatever this process kept there before: another may have written it.
    pub(crate) async fn report_presence(&self) {
        let looked = self.look(None).await;
        self.heard(looked.as_ref().err()).await;
        let away = self.watch.0.away.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(error) = self.watch.0.db.places().set_away(self.row.id, away.as_deref()).await {
            tracing::warn!(replica = self.name(), error = %Chain(&error), "cannot keep whether the replica is away");
        }
    }

    /// The same of the one node that a copy goes to.
    pub(crate) async fn verify_node(&self, node: &Arc<dyn Blob>) -> Result<(), Error> {
        let looked = self.look(Some(node)).await;
        if looked.is_err() {
            self.heard(looked.as_ref().err()).await;
        }
        looked
    }

    /// The parts with their markers.
    async fn parts(&self, only: Option<&Arc<dyn Blob>>) -> Result<Vec<PlacedPart>, Error> {
        let mut parts = Vec::new();
        match &self.keeps {
            Keeps::Bytes(nodes) => {
                for (number, node) in nodes.iter().enumerate() {
                    if only.is_some_and(|only| !Arc::ptr_eq(only, node)) {
                        continue;
                    }
                    for part in node.markers().await? {
                        parts.push(PlacedPart {
                            node: number,
                            place: place_of(node.place(), &part.part),
                            part,
                        });
                    }
                }
            }
            Keeps::Sums(sums) => {
                let part = sums.marker().await?;
                parts.push(PlacedPart { node: 0, place: part.part.clone(), part });
            }
        }
        Ok(parts)
    }

    fn marker(&self) -> Marker {
        Marker::new(&self.watch.0.archive, &self.row.name)
    }

    async fn look(&self, only: Option<&Arc<dyn Blob>>) -> Result<(), Error> {
        let parts = self.parts(only).await?;
        let own = self.marker();
        let is_own = |part: &MarkedPart| judge(part, &own, Known::default()) == Standing::Present;
        if parts.iter().all(|one| one.part.marker.is_some() && is_own(&one.part)) {
            return Ok(());
        }
        // Something is not as it should be: now all places count, and the files known from them.
        let parts = if only.is_some() { self.parts(None).await? } else { parts };
        let db = &self.watch.0.db;
        let places = db.places().known(self.row.id).await?;
        let recovering = db.places().recovery_pending().await?;
        let (looked_for, there) = self.sample().await?;
        let mut marked = Vec::new();
        for one in &parts {
            let place = &one.place;
            let known = Known {
                place: places.contains(place),
                any_place: !places.is_empty(),
                place_left_out: places.iter().any(|known| parts.iter().all(|one| one.place != *known)),
                looked_for,
                there,
                recovering,
            };
            match judge(&one.part, &own, known) {
                Standing::Present => marked.push(place.clone()),
                Standing::ToMark => match self.mark(one).await {
                    Ok(()) => marked.push(place.clone()),
                    // Nothing is written there anyway; its files have proven it.
                    Err(Error::Blob(grange_blob::Error::ReadOnly { .. })) => {}
                    Err(error) => return Err(error),
                },
                Standing::Away(reason) => {
                    let reason = format!("{place}: {reason}");
                    return Err(Error::Away { replica: self.name().to_owned(), reason });
                }
            }
        }
        Ok(db.places().enter(self.row.id, marked).await?)
    }

    async fn mark(&self, one: &PlacedPart) -> Result<(), Error> {
        let text = self.marker().to_text();
        tracing::info!(replica = self.name(), place = one.place, "the place gets the marker of its replica");
        match &self.keeps {
            Keeps::Sums(sums) => sums.mark(&text).await,
            Keeps::Bytes(nodes) => Ok(nodes[one.node].mark(&one.part.part, &text).await?),
        }
    }

    /// How many of some copies that the replica should hold are there.
    async fn sample(&self) -> Result<(usize, usize), Error> {
        // The oldest ones, so that some are found wherever any are; and others by chance.
        let seed = rand::rng().random_range(0..1_000_000);
        let files = self.watch.0.db.files();
        let mut sample = files.sample(self.row.id, 0, SAMPLE / 2).await?;
        sample.extend(files.sample(self.row.id, seed, SAMPLE / 2).await?);
        let mut there = 0;
        for status in &sample {
            there += usize::from(match &self.keeps {
                Keeps::Sums(sums) => sums.get(&status.file.name).await?.is_some(),
                Keeps::Bytes(nodes) => {
                    let mut found = false;
                    for node in nodes {
                        found = found || node.stat(&status.file.name).await?.is_some();
                    }
                    found
                }
            });
        }
        Ok((sample.len(), there))
    }

    /// Keeps in the row when the replica goes away, and when it is back.
    async fn heard(&self, error: Option<&Error>) {
        let now = error.map(|error| match error {
            Error::Away { reason, .. } => reason.clone(),
            error => Chain(error).to_string(),
        });
        {
            let mut away = self.watch.0.away.lock().unwrap_or_else(PoisonError::into_inner);
            if *away == now {
                return;
            }
            away.clone_from(&now);
        }
        if let Some(reason) = &now {
            // The row is a finding, which one node announces.
            tracing::warn!(replica = self.name(), reason, "the replica is away");
        } else {
            tracing::info!(replica = self.name(), "the replica is back");
        }
        if let Err(error) = self.watch.0.db.places().set_away(self.row.id, now.as_deref()).await {
            tracing::warn!(replica = self.name(), error = %Chain(&error), "cannot keep whether the replica is away");
        }
    }
}

impl Archive {
    /// Looks at every replica, as long as a start may wait.
    pub(crate) async fn verify_replicas(&self) {
        let look = |replica: &Replica| {
            let replica = replica.clone();
            async move {
                let _ = tokio::time::timeout(START_WITHIN, replica.verify()).await;
            }
        };
        futures_util::future::join_all(self.0.replicas.iter().map(look)).await;
    }

    /// A person takes the replica as it is now, emptied or replaced: all its places get its marker. Gives the places.
    /// What it lacks is then found by a check and made again by repairs.
    pub async fn adopt_replica(&self, name: &str, actor: &Actor) -> Result<Vec<String>, Error> {
        let replica = self.replica(name)?;
        let own = replica.marker();
        let mut places = Vec::new();
        for one in replica.parts(None).await? {
            if one.part.marker.is_none() || judge(&one.part, &own, Known::default()) != Standing::Present {
                replica.mark(&one).await?;
            }
            places.push(one.place);
        }
        self.0.db.places().adopt(replica.row.id, places.clone(), actor).await?;
        replica.verify().await?;
        Ok(places)
    }
}

/// The id of the archive: the one in the database, else the one that the markers bear, else a new one. A database that was
/// lost or is older than the markers thus finds its replicas again.
pub(crate) async fn archive_id(db: &Db, places: &Places) -> Result<String, Error> {
    if let Some(id) = db.places().archive_id().await? {
        return Ok(id);
    }
    let mut texts = Vec::new();
    for (name, nodes) in &places.bytes {
        for node in nodes {
            if let Ok(Ok(parts)) = tokio::time::timeout(START_WITHIN, node.markers()).await {
                texts.extend(parts.into_iter().filter_map(|part| Some((name, part.marker?))));
            }
        }
    }
    for (name, sums) in &places.sums {
        if let Ok(Ok(part)) = tokio::time::timeout(START_WITHIN, sums.marker()).await {
            texts.extend(part.marker.map(|text| (name, text)));
        }
    }
    let mut ids: Vec<String> = texts
        .iter()
        .filter_map(|(name, text)| {
            let marker: Marker = serde_json::from_str(text).ok()?;
            (marker.replica == **name).then_some(marker.archive)
        })
        .collect();
    ids.sort();
    ids.dedup();
    let id = match &ids[..] {
        [] => uuid::Uuid::new_v4().to_string(),
        [only] => only.clone(),
        many => {
            let reason = format!(
                "the replicas bear the markers of several archives ({}): correct archive.replicas",
                many.join(", ")
            );
            return Err(Error::Settings { reason });
        }
    };
    Ok(db.places().identify(&id, !ids.is_empty()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_marked_when_it_is_new_or_proven_and_away_when_its_marker_is_gone() {
        let own = Marker::new("archive-a", &"one".parse().unwrap());
        let other = Marker::new("archive-a", &"two".parse().unwrap());
        let (mark, present, away) = ("mark", "present", "away");
        let fresh = Known::default();
        let stored = Known { looked_for: 100, ..fresh };
        let marked = Known { place: true, any_place: true, ..stored };
        let beside = Known { any_place: true, ..stored };
        let lost = |known| {
            let lost = Some("filedir".to_owned());
            let part = MarkedPart { part: String::new(), marker: Some(own.to_text()), empty: false, lost };
            judge(&part, &own, known)
        };
        assert_eq!(lost(fresh), Standing::ToMark, "nothing was stored there");
        let recovering = Known { recovering: true, ..fresh };
        assert!(matches!(lost(recovering), Standing::Away(reason) if reason.contains("filedir")));
        assert!(matches!(lost(marked), Standing::Away(reason) if reason.contains("filedir")));
        for (marker, empty, known, expected) in [
            (Some(own.to_text()), false, marked, present),
            (Some(other.to_text()), false, marked, away),
            (Some(Marker::new("archive-b", &own.replica).to_text()), true, fresh, away),
            (Some("torn".to_owned()), false, fresh, away),
            // Never seen before, nothing stored on the replica.
            (None, true, fresh, mark),
            (None, false, fresh, mark),
            // Marked once and never used.
            (None, true, Known { place: true, any_place: true, ..fresh }, away),
            // Not mounted: an empty folder, or one with other files.
            (None, true, marked, away),
            (None, false, marked, away),
            (None, false, Known { there: 49, ..marked }, away),
            // The files are there, the marker is not.
            (None, false, Known { there: 95, ..marked }, mark),
            // A folder more; not when the settings name it in the place of another.
            (None, true, Known { there: 100, ..beside }, mark),
            (None, true, Known { there: 10, ..beside }, mark),
            (None, true, Known { place_left_out: true, ..beside }, away),
            // An archive older than markers.
            (None, false, Known { there: 100, ..stored }, mark),
            (None, true, Known { there: 100, ..stored }, mark),
            (None, true, Known { there: 99, ..stored }, away),
            (None, true, stored, away),
            // The database was restored or made again: an unknown place may be a disk that is not mounted.
            (None, true, Known { recovering: true, ..fresh }, away),
            (None, false, Known { recovering: true, ..fresh }, away),
            (None, true, Known { there: 100, recovering: true, ..beside }, away),
            (None, false, Known { there: 95, recovering: true, ..stored }, mark),
            (Some(own.to_text()), false, Known { recovering: true, ..fresh }, present),
        ] {
            let part = MarkedPart { part: String::new(), marker, empty, lost: None };
            let found = match judge(&part, &own, known) {
                Standing::Present => present,
                Standing::ToMark => mark,
                Standing::Away(reason) => {
                    assert!(reason.contains("grange replicas adopt one"), "{reason}");
                    away
                }
            };
            assert_eq!(found, expected, "{part:?} {known:?}");
        }
    }
}
