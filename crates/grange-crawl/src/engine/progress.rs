//! Tells how the crawl goes: a picture every second, a line of statistics every so often; and sees to it that the
//! crawl waits when its disk is nearly full.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use grange_base::Size;
use jiff::Timestamp;
use tokio::sync::watch;

use super::commit::Message;
use super::dispatch::End;
use super::holds::Hold;
use super::meter::{HostRow, Phase, Snapshot};
use super::shared::{Shared, Wish};
use super::stragglers;
use super::waits::{WaitLog, describe_end, waits_for};
use crate::log::{LEGEND, Note, Progress};
use crate::report::Statistics;

/// How often the picture is renewed.
const EVERY: Duration = Duration::from_secs(1);
/// Workers go on when the scratch folder takes this much: as much as a response that does not fit into memory.
const TRIAL_BYTES: usize = 4 << 20;
/// How many hosts a picture shows.
const HOSTS: usize = 20;

/// Renews the picture until it is aborted.
pub(super) async fn watch(crawl: Arc<Shared>, disk: PathBuf, snapshots: watch::Sender<Snapshot>) {
    let mut legend = LEGEND.as_bytes().to_vec();
    if !legend.ends_with(b"\n") {
        legend.push(b'\n');
    }
    let _ = crawl.outbox.send(Message::Line("progress-statistics.log", legend)).await;
    let mut told = crawl.clock.now();
    let mut phase = Phase::Preparing;
    let mut waits = WaitLog::default();
    let mut ends = None;
    loop {
        check_free_space(&crawl, &disk);
        let now = crawl.clock.now();
        let snapshot = picture(&crawl, now, phase_of(&crawl));
        if snapshot.phase != phase {
            let note = match snapshot.phase {
                Phase::Paused => Some(Note::Paused("by an order")),
                Phase::Waiting => Some(Note::Paused(snapshot.waits_for.as_deref().unwrap_or_default())),
                Phase::Running => {
                    Some(Note::Running(if phase == Phase::Preparing { "started" } else { "goes on" }))
                }
                _ => None,
            };
            phase = snapshot.phase;
            if let Some(note) = note {
                let mut line = Vec::new();
                note.write(now, &mut line);
                let _ = crawl.outbox.send(Message::Line("progress-statistics.log", line)).await;
            }
        }
        let waiting = crawl.frontier.waiting_queues();
        let end = stragglers::ends_at(&crawl, &waiting).filter(|at| *at > now);
        let is_new = end.is_some() && end != ends;
        ends = end;
        let texts = waits.changes(&waiting, now).into_iter().chain(end.filter(|_| is_new).map(describe_end));
        for text in texts {
            tracing::info!("{text}");
            let mut line = Vec::new();
            Note::Running(&text).write(now, &mut line);
            let _ = crawl.outbox.send(Message::Line("progress-statistics.log", line)).await;
        }
        let due = crawl.template.engine.statistics_every.0;
        if Duration::try_from(now.duration_since(told)).is_ok_and(|since| since >= due) {
            told = now;
            let _ = crawl.outbox.send(statistics_line(&crawl, &snapshot, now)).await;
        }
        snapshots.send_replace(snapshot);
        crawl.clock.sleep(EVERY).await;
    }
}

/// The last picture and the last lines.
pub(super) async fn last(crawl: &Shared, snapshots: &watch::Sender<Snapshot>, end: End) {
    let now = crawl.clock.now();
    let snapshot = picture(crawl, now, Phase::Stopping);
    let _ = crawl.outbox.send(statistics_line(crawl, &snapshot, now)).await;
    let mut line = Vec::new();
    let reason = match end {
        End::Finished => "Finished",
        End::Unreachable => "Finished - URLs left, their hosts could not be reached",
        End::Limit(_) => "Finished - limit hit",
        End::Stopped => "Finished - Ended by operator",
    };
    Note::Ended(reason).write(now, &mut line);
    let _ = crawl.outbox.send(Message::Line("progress-statistics.log", line)).await;
    let mut tally = Vec::new();
    crawl.scope_log.lock().unwrap_or_else(std::sync::PoisonError::into_inner).close(now, &mut tally);
    let _ = crawl.outbox.send(Message::Line("scope.log", tally)).await;
    snapshots.send_replace(snapshot);
}

fn phase_of(crawl: &Shared) -> Phase {
    match *crawl.wish.borrow() {
        Wish::Stop => Phase::Stopping,
        Wish::Pause => Phase::Paused,
        Wish::Run if crawl.ledger.holds.now().first().is_some() => Phase::Waiting,
        Wish::Run => Phase::Running,
    }
}

/// Stops handing out URLs while less space is left than the template asks for. The committer says so itself when
/// it cannot write at all; this is meant to come before.
pub(super) fn check_free_space(crawl: &Shared, disk: &Path) {
    let holds = &crawl.ledger.holds;
    let lacks_space = holds.now().has(Hold::Scratch) || holds.now().has(Hold::Committer);
    let is_low = || free_bytes(disk).is_some_and(|free| free < crawl.template.engine.min_free.0);
    if lacks_space || is_low() {
        let parts = crawl.cut_responses.drop_on_disk();
        if parts > 0 {
            tracing::info!(
                parts,
                "parts of long responses dropped to free disk space; their URLs are tried again"
            );
        }
    }
    if holds.now().has(Hold::Scratch) && crawl.scratch.takes(TRIAL_BYTES).is_ok() {
        holds.clear(Hold::Scratch);
    }
    let Some(free) = free_bytes(disk) else { return };
    if free >= crawl.template.engine.min_free.0 {
        holds.clear(Hold::LowSpace);
        return;
    }
    let (free, wanted) = (Size(free), crawl.template.engine.min_free);
    let disk = disk.display();
    let reason = format!("{free} are left on the disk of {disk}, less than engine.min_free ({wanted})");
    if holds.set(Hold::LowSpace, reason.clone()) {
        tracing::warn!("crawl paused: {reason}");
    }
}

/// What people without privileges may still write to the disk of a folder.
pub(super) fn free_bytes(disk: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(disk).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// How the crawl stands.
pub(super) fn picture(crawl: &Shared, now: Timestamp, phase: Phase) -> Snapshot {
    let counts = crawl.frontier.counts(now);
    let (urls_per_second, bytes_per_second) = crawl.meter.rates(now, counts.finished, counts.bytes);
    let statistics = crawl.ledger.statistics();
    let totals = statistics.totals();
    let waiting = crawl.frontier.waiting_queues();
    let hold = crawl.ledger.holds.now().first().map(str::to_owned);
    Snapshot {
        job: crawl.job.name.clone(),
        phase,
        waits_for: hold.or_else(|| waits_for(&waiting, stragglers::ends_at(crawl, &waiting), now)),
        at: Some(now),
        ran_seconds: counts.ran.as_secs_f64(),
        discovered: counts.discovered,
        queued: counts.queued,
        in_flight: counts.in_flight,
        finished: counts.finished,
        succeeded: counts.succeeded,
        failed: counts.failed,
        disregarded: counts.disregarded,
        bytes: counts.bytes,
        novel_bytes: totals.novel.bytes,
        duplicates: totals.duplicate.urls + totals.not_modified.urls,
        urls_per_second,
        bytes_per_second,
        queues: counts.queues.all,
        active_queues: counts.queues.ready + counts.queues.in_process + counts.queues.snoozed,
        retired_queues: counts.queues.retired,
        exhausted_queues: counts.queues.exhausted,
        limits: crawl.limits(),
        hosts: busiest(&statistics),
        hosts_total: statistics.hosts().count() as u64,
    }
}

fn busiest(statistics: &Statistics) -> Vec<HostRow> {
    let mut hosts: Vec<_> = statistics.hosts().filter(|(name, _)| !name.ends_with(':')).collect();
    let most = |(a, x): &(&str, &crate::report::HostTally), (b, y): &(&str, &crate::report::HostTally)| {
        y.succeeded.urls.cmp(&x.succeeded.urls).then_with(|| a.cmp(b))
    };
    if hosts.len() > HOSTS {
        hosts.select_nth_unstable_by(HOSTS, most);
        hosts.truncate(HOSTS);
    }
    hosts.sort_by(most);
    let row = |(name, tally): (&str, &crate::report::HostTally)| HostRow {
        host: name.to_owned(),
        urls: tally.succeeded.urls,
        bytes: tally.succeeded.bytes,
        failed: tally.failed,
        robots: tally.robots,
    };
    hosts.into_iter().map(row).collect()
}

fn statistics_line(crawl: &Shared, snapshot: &Snapshot, now: Timestamp) -> Message {
    let counts = crawl.frontier.counts(now);
    let per_second = |total: u64| {
        if snapshot.ran_seconds > 0.0 { total as f64 / snapshot.ran_seconds } else { 0.0 }
    };
    let progress = Progress {
        discovered: snapshot.discovered,
        queued: snapshot.queued,
        downloaded: snapshot.succeeded,
        docs_per_second: snapshot.urls_per_second,
        docs_per_second_average: per_second(snapshot.finished),
        kib_per_second: (snapshot.bytes_per_second / 1024.0) as u64,
        kib_per_second_average: (per_second(snapshot.bytes) / 1024.0) as u64,
        failures: snapshot.failed,
        busy_workers: u64::from(crawl.meter.busy()),
        memory_used_kib: resident_kib(),
        memory_limit_kib: 0,
        congestion: counts.congestion,
        deepest_queue: counts.deepest,
        average_depth: counts.average_depth as u64,
    };
    let mut line = Vec::new();
    progress.write(now, &mut line);
    Message::Line("progress-statistics.log", line)
}

/// The memory this process holds, where the system tells.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
