//! How a crawl looks in a terminal while it runs, and what is said when it is over.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use grange_base::{Period, Size};
use grange_crawl::engine::{End, Outcome, Phase, Snapshot};
use tokio::sync::watch;

use super::end_word;

/// Hosts shown in a terminal.
const HOSTS: usize = 8;
/// Where no terminal looks, a line this often is enough.
const LINE_EVERY: u32 = 10;

/// Shows pictures until the crawl is finished or the task is aborted.
pub(super) async fn show(mut snapshots: watch::Receiver<Snapshot>, terminal: bool) {
    let mut drawn = 0;
    let mut count: u32 = 0;
    while snapshots.changed().await.is_ok() {
        let snapshot = snapshots.borrow_and_update().clone();
        if terminal {
            drawn = redraw(&picture(&snapshot), drawn);
        } else if count.is_multiple_of(LINE_EVERY) {
            errln!("{}", line(&snapshot));
        }
        count = count.wrapping_add(1);
        if snapshot.phase == Phase::Finished {
            return;
        }
    }
}

/// Draws over what was drawn before; answers how many lines there are now.
fn redraw(text: &str, before: usize) -> usize {
    let mut out = String::new();
    if before > 0 {
        let _ = write!(out, "\x1b[{before}A");
    }
    for line in text.lines() {
        let _ = writeln!(out, "\x1b[2K{line}");
    }
    // A shorter picture leaves nothing of a longer one.
    out.push_str("\x1b[0J");
    crate::output::print_error(format_args!("{out}"));
    text.lines().count()
}

fn line(snapshot: &Snapshot) -> String {
    format!(
        "{} {}: {} done, {} queued, {} in flight, {} failed, {}, {:.1} URL/s, {}/s",
        period(snapshot.ran_seconds),
        phase(snapshot),
        snapshot.succeeded,
        snapshot.queued,
        snapshot.in_flight,
        snapshot.failed,
        Size(snapshot.bytes),
        snapshot.urls_per_second,
        Size(snapshot.bytes_per_second as u64),
    )
}

fn picture(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let left = snapshot.seconds_left().map(|seconds| format!(", about {} left", period(seconds)));
    let _ = writeln!(
        text,
        "{} {} {}{}",
        phase(snapshot),
        if snapshot.phase == Phase::Finished { "after" } else { "for" },
        period(snapshot.ran_seconds),
        left.filter(|_| snapshot.phase == Phase::Running).unwrap_or_default()
    );
    let _ = writeln!(
        text,
        "  {:>9} done    {:>9} queued   {:>6} in flight   {:>6} failed   {:>6} left alone",
        snapshot.succeeded, snapshot.queued, snapshot.in_flight, snapshot.failed, snapshot.disregarded
    );
    let _ = writeln!(
        text,
        "  {:>9} taken   {:>7.1}/s URLs     {:>9}/s   {:>6} hosts   {:>6} duplicates",
        Size(snapshot.bytes).to_string(),
        snapshot.urls_per_second,
        Size(snapshot.bytes_per_second as u64).to_string(),
        snapshot.hosts_total,
        snapshot.duplicates
    );
    if let Some(bar) = limit_bar(snapshot) {
        let _ = writeln!(text, "  {bar}");
    }
    if !snapshot.hosts.is_empty() {
        let _ = writeln!(
            text,
            "\n  {:<40} {:>8} {:>10} {:>7} {:>7}",
            "HOST", "URLS", "BYTES", "FAILED", "ROBOTS"
        );
    }
    for host in snapshot.hosts.iter().take(HOSTS) {
        let name: String = host.host.chars().take(40).collect();
        let _ = writeln!(
            text,
            "  {name:<40} {:>8} {:>10} {:>7} {:>7}",
            host.urls,
            Size(host.bytes).to_string(),
            host.failed,
            host.robots
        );
    }
    text
}

/// How near the nearest limit is.
fn limit_bar(snapshot: &Snapshot) -> Option<String> {
    const WIDTH: usize = 40;
    let limits = &snapshot.limits;
    let share = |limit: i64, done: f64| (limit > 0).then(|| (done / limit as f64).min(1.0));
    let (share, what) = [
        (share(limits.max_objects, snapshot.succeeded as f64), "of the object limit"),
        (share(limits.max_bytes, snapshot.bytes as f64), "of the size limit"),
        (share(limits.max_seconds, snapshot.ran_seconds), "of the time limit"),
    ]
    .into_iter()
    .filter_map(|(share, what)| share.map(|share| (share, what)))
    .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    let full = (share * WIDTH as f64) as usize;
    Some(format!("[{}{}] {:.0} % {what}", "#".repeat(full), "-".repeat(WIDTH - full), share * 100.0))
}

fn phase(snapshot: &Snapshot) -> String {
    match (snapshot.phase, &snapshot.waits_for) {
        (Phase::Waiting, Some(reason)) => format!("waiting: {reason}"),
        (Phase::Preparing, _) => "preparing".to_owned(),
        (Phase::Running, Some(reason)) => format!("crawling: {reason}"),
        (Phase::Running, None) => "crawling".to_owned(),
        (Phase::Paused, _) => "paused".to_owned(),
        (Phase::Waiting, None) => "waiting".to_owned(),
        (Phase::Stopping, _) => "stopping".to_owned(),
        (Phase::Finished, _) => "finished".to_owned(),
    }
}

fn period(seconds: f64) -> String {
    Period(Duration::from_secs(seconds.max(0.0) as u64)).to_string()
}

/// What is said when a crawl is over.
pub(super) fn tell(folder: &Path, outcome: &Outcome) {
    let last = &outcome.last;
    outln!(
        "{}: {} documents, {} in {}, {} failed, {} left alone, {} still queued",
        end_word(outcome.end),
        last.succeeded,
        Size(last.bytes),
        period(last.ran_seconds),
        last.failed,
        last.disregarded,
        last.queued,
    );
    let folder = folder.display();
    if let Some(manifest) = &outcome.manifest {
        let files = manifest.files.len();
        let noun = if files == 1 { "file" } else { "files" };
        outln!("  {files} WARC {noun}, {}, in {folder}/warcs", Size(manifest.bytes));
    }
    outln!("  reports in {folder}/reports, logs in {folder}/logs, manifests in {folder}/manifests");
    if outcome.end == End::Unreachable {
        outln!("  {} URLs are left because their hosts could not be reached", last.queued);
    }
    if last.queued > 0 {
        outln!("  go on with: grange crawl --resume {folder}");
    }
}
