//! From a harvest's configurations to its jobs, in bounded memory.
//!
//! Configurations are read a page at a time and kept as [`Piece`]s of some fifty bytes; seeds never pass through here.
//! A million domains take about 100 MB.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use grange_db::{Candidate, Db, Due, Member, NewJob};
use grange_model::harvest::history::still_wanted;
use grange_model::harvest::{HarvestDefinition, HarvestId, HarvestKind, JobId, Limits};

use crate::dedup::{Snapshot, continued_by};
use crate::expect::expected_objects;
use crate::settings::Settings;
use crate::split::{self, Jobs, Piece, Planned};

/// Configurations read at once: some megabytes of rows.
const PAGE: u32 = 10_000;

/// The configurations of a run, sorted, and what was left out and why.
#[derive(Debug, Default)]
pub struct Pieces {
    pub pieces: Vec<Piece>,
    pub left_out: BTreeMap<String, u64>,
}

/// A plan under way: keeps the harvest while it is made.
#[derive(Debug)]
pub struct Lease<'d> {
    due: &'d Due,
    length: Duration,
    renewed: Instant,
}

impl<'d> Lease<'d> {
    pub fn new(due: &'d Due, length: Duration) -> Self {
        Self { due, length, renewed: Instant::now() }
    }

    /// Renews the lease when a quarter of it has gone.
    pub async fn keep(&mut self, db: &Db) -> Result<(), grange_db::Error> {
        if self.renewed.elapsed() >= self.length / 4 {
            db.planner().renew(self.due, self.length).await?;
            self.renewed = Instant::now();
        }
        Ok(())
    }
}

/// What a run would amount to.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Preview {
    pub domains: u64,
    pub configurations: u64,
    pub jobs: u64,
    pub expected_objects: u64,
    pub expected_bytes: u64,
    /// Configurations that would be left out, by reason.
    pub left_out: BTreeMap<String, u64>,
}

/// Decides about one configuration: a piece of a job, or the reason why it is left out.
pub fn piece(
    settings: &Settings,
    harvest: Limits,
    continued: bool,
    candidate: &Candidate,
) -> Result<Piece, &'static str> {
    if !candidate.seeded {
        return Err("no-seeds");
    }
    if continued && !still_wanted(candidate.last, candidate.limits) {
        return Err("completed-before");
    }
    if settings.exclude_zero_budget && candidate.limits.tighter(harvest).forbid_everything() {
        return Err("zero-budget");
    }
    Ok(Piece {
        configuration: candidate.configuration,
        domain: candidate.domain,
        template: candidate.template,
        bytes: candidate.limits.bytes,
        objects: candidate.limits.objects,
        expected: expected_objects(&settings.expectation, harvest, candidate.limits, candidate.best),
    })
}

/// Reads the configurations of a harvest. Whoever plans it keeps its lease alive meanwhile.
pub async fn read(
    db: &Db,
    settings: &Settings,
    harvest: &HarvestDefinition,
    mut planning: Option<&mut Lease<'_>>,
) -> Result<Pieces, grange_db::Error> {
    let taken_up = chain(db, harvest).await?;
    let lifetime = settings.alias_lifetime.0;
    let mut read = Pieces::default();
    let mut after = 0;
    loop {
        let candidates = db.planner().candidates(harvest, &taken_up, lifetime, after, PAGE).await?;
        let Some(last) = candidates.last() else { break };
        after = last.place;
        for candidate in &candidates {
            match piece(settings, harvest.limits, !taken_up.is_empty(), candidate) {
                Ok(piece) => read.pieces.push(piece),
                Err(reason) => *read.left_out.entry(reason.to_owned()).or_default() += 1,
            }
        }
        if let Some(lease) = &mut planning {
            lease.keep(db).await?;
        }
    }
    split::sort(&mut read.pieces, harvest.limits, &settings.splitting);
    Ok(read)
}

/// The jobs of these pieces.
pub fn jobs(settings: &Settings, harvest: &HarvestDefinition, pieces: Vec<Piece>) -> Jobs {
    let snapshot = harvest.kind == HarvestKind::Snapshot;
    split::split(pieces, harvest.limits, snapshot, &settings.splitting)
}

/// Jobs to be drafted, and the configurations that go into them.
#[derive(Debug, Default)]
pub struct Drafts {
    pub jobs: Vec<NewJob>,
    pub members: Vec<Drafted>,
}

/// A configuration, and which of the drafts it goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drafted {
    configuration: i64,
    draft: u32,
    expected: u64,
}

impl Drafted {
    /// The same once the drafts have these numbers.
    pub fn of(&self, jobs: &[JobId]) -> Option<Member> {
        let job = *jobs.get(self.draft as usize)?;
        Some(Member { configuration: self.configuration, job, expected_objects: self.expected })
    }
}

/// How many configurations in a row are written before the next ones: what is read of them fits into the database's cache
/// (a few megabytes), and one act touches few pages of either index, that by job and that by domain. Job by job, a million
/// configurations with a history made SQLite write 14 GB, by their numbers alone as much.
const WINDOW: i64 = 25_000;

/// Takes jobs apart into what is written first and what is written then, in an order that is easy on the database.
pub fn drafts(jobs: impl Iterator<Item = Planned>) -> Drafts {
    let mut drafts = Drafts::default();
    for (job, draft) in jobs.zip(0_u32..) {
        let Planned { template, limits, expected_objects, configurations } = job;
        let count = configurations.len() as u64;
        drafts.jobs.push(NewJob { template, limits, expected_objects, configurations: count });
        let drafted = |(configuration, expected)| Drafted { configuration, draft, expected };
        drafts.members.extend(configurations.into_iter().map(drafted));
    }
    drafts.members.sort_unstable_by_key(|one| (one.configuration / WINDOW, one.draft, one.configuration));
    drafts
}

/// What the next run of a harvest would amount to, without making it.
pub async fn preview(
    db: &Db,
    settings: &Settings,
    harvest: &HarvestDefinition,
) -> Result<Preview, grange_db::Error> {
    let Pieces { pieces, left_out } = read(db, settings, harvest, None).await?;
    let domains: std::collections::HashSet<i64> = pieces.iter().map(|piece| piece.domain).collect();
    let (domains, configurations) = (domains.len() as u64, pieces.len() as u64);
    let average = settings.expectation.expected_average_bytes_per_object;
    let expected = |piece: &Piece| {
        let bytes = piece.expected.saturating_mul(average);
        let limit = piece.bytes.tighter(harvest.limits.bytes);
        (piece.expected, limit.get().map_or(bytes, |limit| bytes.min(limit.unsigned_abs())))
    };
    let (mut expected_objects, mut expected_bytes) = (0u64, 0u64);
    for (objects, bytes) in pieces.iter().map(expected) {
        expected_objects = expected_objects.saturating_add(objects);
        expected_bytes = expected_bytes.saturating_add(bytes);
    }
    let jobs = jobs(settings, harvest, pieces).count() as u64;
    Ok(Preview { domains, configurations, jobs, expected_objects, expected_bytes, left_out })
}

/// The earlier snapshots whose work this one takes up.
async fn chain(db: &Db, harvest: &HarvestDefinition) -> Result<Vec<HarvestId>, grange_db::Error> {
    if harvest.continues.is_none() {
        return Ok(Vec::new());
    }
    let all = db.planner().snapshots().await?;
    let mut found: Vec<HarvestId> = Vec::new();
    let mut at = all.iter().find(|one| one.id == harvest.id).and_then(|one| one.continues);
    while let Some(id) = at.filter(|id| !found.contains(id)) {
        found.push(id);
        at = all.iter().find(|one| one.id == id).and_then(|one| one.continues);
    }
    Ok(found)
}

/// The jobs that the next run of a harvest continues from.
pub async fn duplicate_reduction_jobs(
    db: &Db,
    harvest: &HarvestDefinition,
) -> Result<Vec<JobId>, grange_db::Error> {
    let planner = db.planner();
    if harvest.kind == HarvestKind::Selective {
        return match harvest.runs {
            0 => Ok(Vec::new()),
            // The run to come has the number after this one.
            previous => planner.jobs_of(harvest.id, Some(previous)).await,
        };
    }
    let all = planner.snapshots().await?;
    let one = |row: &grange_db::SnapshotRow| Snapshot {
        id: row.id,
        created_at: row.created_at,
        continues: row.continues,
    };
    let all: Vec<_> = all.iter().map(one).collect();
    let mut jobs = Vec::new();
    for id in continued_by(harvest.id, &all) {
        jobs.extend(planner.jobs_of(id, None).await?);
    }
    jobs.sort_unstable();
    Ok(jobs)
}
