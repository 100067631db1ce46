//! The workers: one plans selective harvests, one snapshots (which take longer and shall not hold up the others), one
//! watches over running jobs. Any number of schedulers may run; each run is planned once.

use std::time::Instant;

use grange_base::Retry;
use grange_base::worker::Step;
use grange_bus::Announcer;
use grange_db::{Db, Due, Planner, Policy, RunPlan};
use grange_model::harvest::{ChannelName, HarvestKind};

use crate::plan::{self, Drafts, Lease, Pieces};
use crate::settings::{DeadHarvester, Settings};

/// A scheduler. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Its clock decides what is due: a machine whose clock is wrong plans nothing early or late.
    db: Db,
    settings: std::sync::Arc<Settings>,
    /// Who plans, for the record.
    name: String,
    announcer: Option<Announcer>,
}

/// Why a harvest could not be planned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Db(#[from] grange_db::Error),
    #[error(transparent)]
    Schedule(#[from] grange_model::harvest::ScheduleError),
}

impl Scheduler {
    pub fn new(db: Db, settings: Settings, name: &str, announcer: Option<Announcer>) -> Self {
        Self { db, settings: settings.into(), name: name.to_owned(), announcer }
    }

    /// Plans the harvest of this kind that has been due for longest.
    pub async fn plan_step(&self, kind: HarvestKind) -> Result<Step, Error> {
        let served = self.served(kind).await?;
        let lease = self.settings.planning_lease.0;
        let Some(due) = self.db.planner().claim(kind, &self.name, lease, served.as_deref()).await? else {
            return Ok(Step::Idle);
        };
        match self.plan(&due).await {
            Ok(()) => {}
            // Somebody changed the harvest or another scheduler has it: it is planned anew if it still is due.
            Err(Error::Db(grange_db::Error::LeaseLost { .. })) => {
                tracing::info!(harvest = %due.harvest.name, "the plan was given up: the harvest changed meanwhile");
            }
            // The database is away: the lease ends, and somebody plans it then.
            Err(Error::Db(error)) if error.retry() == Retry::Soon => return Err(error.into()),
            Err(error) => self.give_up(&due, &error).await?,
        }
        Ok(Step::More)
    }

    async fn plan(&self, due: &Due) -> Result<(), Error> {
        let harvest = &due.harvest;
        let began = Instant::now();
        let planner = self.db.planner();
        let mut lease = Lease::new(due, self.settings.planning_lease.0);
        let duplicate_reduction_jobs = plan::duplicate_reduction_jobs(&self.db, harvest).await?;
        let Pieces { pieces, left_out } =
            plan::read(&self.db, &self.settings, harvest, Some(&mut lease)).await?;
        let configurations = pieces.len() as u64;
        let Drafts { jobs, members } = plan::drafts(plan::jobs(&self.settings, harvest, pieces));
        lease.keep(&self.db).await?;
        let ids = planner.draft(due, jobs).await?;
        for some in members.chunks(Planner::AT_ONCE) {
            lease.keep(&self.db).await?;
            planner.fill(due, some.iter().filter_map(|member| member.of(&ids)).collect()).await?;
        }
        let next = match &due.schedule {
            Some(schedule) => schedule.next(due.due_at, harvest.runs + 1, self.db.clock().now())?,
            None => grange_model::harvest::Next::default(),
        };
        let plan = RunPlan {
            configurations,
            left_out,
            skipped: next.skipped,
            next_at: next.at,
            duplicate_reduction_jobs,
        };
        let jobs = planner.commit(due, plan).await?;
        metrics::counter!("grange_runs_planned_total").increment(1);
        metrics::counter!("grange_jobs_planned_total").increment(jobs);
        let (name, run, took_ms) = (&harvest.name, harvest.runs + 1, began.elapsed().as_millis() as u64);
        tracing::info!(harvest = %name, run, jobs, configurations, took_ms, "planned a run");
        if next.skipped > 0 {
            let skipped = next.skipped;
            tracing::warn!(harvest = %name, skipped, "runs were due while nobody planned; they are left out");
        }
        if jobs == 0 {
            let word =
                format!("run {run} of the harvest {name} has no jobs: nothing is left for it to harvest");
            self.notify("harvest-empty", name.as_str(), &word).await;
        } else {
            self.wake(&due.channel, harvest.kind, name.as_str()).await;
        }
        Ok(())
    }

    /// Which channels are served, if that matters.
    async fn served(&self, kind: HarvestKind) -> Result<Option<Vec<ChannelName>>, Error> {
        if !self.settings.postpone_unserved_channels || kind == HarvestKind::Snapshot {
            return Ok(None);
        }
        let channels = self.db.channels().list(self.settings.harvester_lost_after.0).await?;
        Ok(Some(channels.into_iter().filter(|one| one.harvesters > 0).map(|one| one.name).collect()))
    }

    async fn give_up(&self, due: &Due, error: &Error) -> Result<(), Error> {
        let reason = grange_base::Chain(error).to_string();
        self.db.planner().give_up(due, &reason).await?;
        let word = format!("the harvest {} was taken out of service: {reason}", due.harvest.name);
        self.notify("harvest-deactivated", due.harvest.name.as_str(), &word).await;
        Ok(())
    }

    /// Takes jobs from dead harvesters and ends those that never do.
    pub async fn supervise_step(&self) -> Result<Step, Error> {
        let takeovers_max = match self.settings.dead_harvester {
            DeadHarvester::TakeOver => self.settings.takeovers_max,
            DeadHarvester::Fail => 0,
        };
        let policy = Policy { takeovers_max, job_timeout: self.settings.job_timeout.0 };
        let dead = self.db.jobs().supervise(policy).await?;
        for (job, channel) in &dead.taken_back {
            tracing::warn!(%job, %channel, "its harvester fell silent; another may take the job");
            let snapshot = self.db.jobs().get(*job).await?.is_some_and(|job| job.snapshot);
            let kind = if snapshot { HarvestKind::Snapshot } else { HarvestKind::Selective };
            self.wake(channel, kind, &job.to_string()).await;
        }
        for job in &dead.failed {
            // The row is a finding, which is announced once.
            tracing::warn!(%job, "the job was marked failed");
        }
        Ok(Step::Idle)
    }

    /// Wakes the harvesters of a channel.
    async fn wake(&self, channel: &ChannelName, kind: HarvestKind, about: &str) {
        let Some(announcer) = &self.announcer else { return };
        let lane = match kind {
            HarvestKind::Selective => announcer.channels().job_partial(channel.as_str()),
            HarvestKind::Snapshot => announcer.channels().job_snapshot(channel.as_str()),
        };
        if let Ok(lane) = lane {
            announcer.hint(&lane, "jobs-waiting", about).await;
        }
    }

    async fn notify(&self, what: &str, about: &str, word: &str) {
        if let Some(announcer) = &self.announcer {
            announcer.report_error(&format!("{what} {about}"), word).await;
        }
    }
}
