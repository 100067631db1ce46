//! The end of a crawl: reports, cookies, and what came of it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tokio::sync::watch;

use super::dispatch::End;
use super::folder::Folder;
use super::login_session::LoginTrouble;
use super::meter::{Phase, Snapshot};
use super::progress::picture;
use super::shared::Shared;
use crate::frontier::{DomainResult, Frontier, QueueFilter, QueueState, QueueView, queue_host};
use crate::job::StopReason;
use crate::record::chunk::Manifest;
use crate::report::{
    Chain, CrawlSummary, ExitStatus, FrontierSummary, Processor, QueueReport, QueueSample, Statistics, Work,
    crawl_report, frontier_nonempty_report, frontier_summary_report, hosts_report, mimetype_report,
    processors_report, responsecode_report, seeds_report, source_report,
};

/// How many queues the frontier reports name.
const QUEUES: usize = 2000;
/// How many queues of a kind the summary shows, as in Heritrix.
const SAMPLE: usize = 20;

/// What came of a crawl.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: End,
    pub last: Snapshot,
    /// How every domain fared, and why it ended.
    pub domains: Vec<DomainResult>,
    /// Log-ins that did not work.
    pub login_troubles: Vec<LoginTrouble>,
    /// The manifest of the last chunk.
    pub manifest: Option<Manifest>,
}

pub(super) fn finish(
    crawl: &Shared,
    folder: &Folder,
    end: End,
    manifest: Option<Manifest>,
    snapshots: &watch::Sender<Snapshot>,
) -> io::Result<Outcome> {
    let now = crawl.clock.now();
    // Cookies are a help, not part of the harvest.
    if let Err(error) = crawl.fetcher.cookies().save(&folder.cookies()) {
        tracing::warn!(%error, "the cookies of the crawl could not be kept");
    }
    let last = picture(crawl, now, Phase::Finished);
    write_reports(crawl, &folder.reports(), end, &last)?;
    snapshots.send_replace(last.clone());
    let (domains, login_troubles) = (crawl.frontier.domains(now), crawl.logins.troubles());
    Ok(Outcome { end, last, domains, login_troubles, manifest })
}

/// Writes a report aside and gives it its name.
fn report(folder: &Path, name: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let aside = folder.join(format!("{name}.tmp"));
    let mut out = BufWriter::new(File::create(&aside)?);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(aside, folder.join(name))
}

fn write_reports(crawl: &Shared, folder: &Path, end: End, last: &Snapshot) -> io::Result<()> {
    let now = crawl.clock.now();
    let statistics = crawl.ledger.statistics();
    let status = match end {
        End::Finished => ExitStatus::Finished,
        End::Unreachable => ExitStatus::HostsUnreachable,
        End::Stopped => ExitStatus::EndedByOperator,
        End::Limit(StopReason::TimeLimit) => ExitStatus::TimeLimit,
        End::Limit(StopReason::ObjectLimit) => ExitStatus::DocumentLimit,
        End::Limit(_) => ExitStatus::DataLimit,
    };
    let elapsed = std::time::Duration::try_from_secs_f64(last.ran_seconds).unwrap_or_default();
    let summary = CrawlSummary { name: &crawl.job.name, status, elapsed };
    report(folder, "crawl-report.txt", |out| crawl_report(&summary, &statistics, out))?;
    let filter = QueueFilter::default();
    let queues = crawl.frontier.queues(&filter, QUEUES).map_err(io::Error::other)?;
    let remaining = remaining(&crawl.frontier);
    let left = |host: &str| remaining.get(host).copied().unwrap_or(0);
    report(folder, "hosts-report.txt", |out| hosts_report(&statistics, left, out))?;
    report(folder, "mimetype-report.txt", |out| mimetype_report(&statistics, out))?;
    report(folder, "responsecode-report.txt", |out| responsecode_report(&statistics, out))?;
    report(folder, "seeds-report.txt", |out| seeds_report(&statistics, out))?;
    report(folder, "source-report.txt", |out| source_report(&statistics, out))?;
    let chains = chains(crawl, last, statistics.totals());
    report(folder, "processors-report.txt", |out| processors_report(now, &chains, out))?;
    let rows: Vec<_> = queues.iter().map(|queue| queue_report(queue, &statistics, now)).collect();
    report(folder, "frontier-nonempty-report.txt", |out| frontier_nonempty_report(&rows, out))?;
    let summary = frontier_summary(crawl, last, &queues, &rows, now);
    report(folder, "frontier-summary-report.txt", |out| frontier_summary_report(now, &summary, out))
}

/// How many URLs each host has left, over all its queues.
fn remaining(frontier: &Frontier) -> HashMap<String, u64> {
    let mut remaining: HashMap<String, u64> = HashMap::new();
    frontier.for_each_queue(|name, queued| {
        *remaining.entry(queue_host(name).to_owned()).or_default() += queued;
    });
    remaining
}

/// A queue as Heritrix tells of it. What is counted by host and not by queue counts for the queue that is named after
/// the host.
fn queue_report<'a>(queue: &'a QueueView, statistics: &Statistics, now: jiff::Timestamp) -> QueueReport<'a> {
    let host = queue_host(&queue.name);
    let counted = statistics.host_tally(host).cloned().unwrap_or_default();
    let finished = counted.succeeded.urls + counted.failed + counted.disregarded;
    QueueReport {
        name: &queue.name,
        precedence: 1,
        items: queue.queued,
        enqueued: queue.enqueued,
        wakes_in: queue.wakes.and_then(|time| std::time::Duration::try_from(time.duration_since(now)).ok()),
        last_dequeued: queue.last_claimed,
        last_enqueued: None,
        last_peeked: queue.head.as_deref(),
        // Every URL costs one.
        expended: finished,
        budget: queue.budget,
        balance: if queue.budget < 0 { -1 } else { queue.budget.saturating_sub_unsigned(queue.spent).max(0) },
        last_cost: u64::from(finished > 0),
        errors: queue.errors,
        succeeded: counted.succeeded.urls,
        failed: counted.failed,
        disregarded: counted.disregarded,
        robots: counted.robots,
        success_bytes: counted.succeeded.bytes,
        last_success: queue.last_claimed.filter(|_| counted.succeeded.urls > 0),
    }
}

fn frontier_summary<'a>(
    crawl: &'a Shared,
    last: &Snapshot,
    queues: &[QueueView],
    rows: &[QueueReport<'a>],
    now: jiff::Timestamp,
) -> FrontierSummary<'a> {
    let counts = crawl.frontier.counts(now);
    let mut longest = rows.to_vec();
    longest.sort_by_key(|row| std::cmp::Reverse(row.items));
    longest.truncate(SAMPLE);
    let of = |state: QueueState, total: u64| {
        let all = queues.iter().zip(rows).filter(|(queue, _)| queue.state == state);
        QueueSample { queues: all.map(|(_, row)| row.clone()).take(SAMPLE).collect(), total }
    };
    let all = counts.queues;
    FrontierSummary {
        job: &crawl.job.name,
        discovered: last.discovered,
        queued: last.queued,
        succeeded: last.succeeded,
        failed: last.failed,
        disregarded: last.disregarded,
        included: last.discovered,
        // A link is looked up as soon as it is found.
        pending: 0,
        queues: counts.queues.all,
        in_process: all.in_process,
        ready: all.ready,
        snoozed: all.snoozed,
        // Those kept back by a limit; there is one precedence.
        inactive: vec![(1, all.blocked)],
        retired: all.retired,
        last_state: "FINISH",
        longest: QueueSample { total: rows.len() as u64, queues: longest },
        in_process_queues: of(QueueState::InProcess, all.in_process),
        ready_queues: of(QueueState::Ready, all.ready),
        snoozed_queues: of(QueueState::Snoozed, all.snoozed),
        inactive_queues: of(QueueState::Blocked, all.blocked),
        retired_queues: of(QueueState::Retired, all.retired),
    }
}

/// What each part handled, under the names that readers of Heritrix's report look for.
fn chains(crawl: &Shared, last: &Snapshot, totals: &crate::report::Totals) -> Vec<Chain> {
    let handled = |name: &'static str, function: &'static str| Processor {
        name: name.into(),
        function,
        work: Work::Handled { uris: last.finished },
    };
    let work = crawl.desk.work();
    let extractors = work.extracted.iter().map(|(name, found)| Processor {
        name: name.clone(),
        function: "Find links",
        work: Work::Extracted { links: found.links, uris: found.uris },
    });
    let mut fetch = vec![handled("robots", "Heed robots.txt"), handled("fetch", "Fetch over HTTP")];
    fetch.extend(extractors);
    vec![
        Chain { name: "CandidateChain", processors: vec![handled("scope", "Decide what is in scope")] },
        Chain { name: "FetchChain", processors: fetch },
        Chain {
            name: "DispositionChain",
            processors: vec![Processor {
                name: "warcWriter".into(),
                function: "Write WARC files",
                work: Work::Written {
                    uris: totals.succeeded,
                    revisits: totals.duplicate.urls + totals.not_modified.urls,
                    content_bytes: totals.bytes(),
                    record_bytes: work.record_bytes,
                    disk_bytes: work.disk_bytes,
                    compressed: crawl.template.write.compression != crate::record::settings::Packing::None,
                },
            }],
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use crate::frontier::Settings;
    use crate::job::Budgets;

    #[test]
    fn every_host_has_what_is_left_of_it_however_many_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let now = jiff::Timestamp::UNIX_EPOCH;
        let (frontier, _) =
            Frontier::open(folder.path(), Settings::default(), Budgets::default(), now).unwrap();
        let hosts = QUEUES + 1000;
        let mut urls: Vec<_> = (0..hosts).map(|n| format!("http://h{n}.example/")).collect();
        urls.extend(
            ["http://[2001:db8::1]/", "http://[2001:db8::1]:8080/", "https://h1.example:444/"]
                .map(str::to_owned),
        );
        let seeds: Vec<_> = urls.iter().map(|url| Candidate::seed(url.parse().unwrap())).collect();
        frontier.add(&seeds, now).unwrap();
        let left = remaining(&frontier);
        assert_eq!(left.len(), hosts + 1);
        for (host, expected) in
            [("h0.example", 1), ("h1.example", 2), ("h2999.example", 1), ("[2001:db8::1]", 2)]
        {
            assert_eq!(left.get(host), Some(&expected), "{host}");
        }
    }
}
