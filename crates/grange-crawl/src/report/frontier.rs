//! frontier-summary-report.txt and frontier-nonempty-report.txt. The numbers are the frontier's; the words are
//! Heritrix's.

use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;

use super::number::{decimal, duration_for_people};
use super::processors::twelve;
use crate::log::push_millis;

/// The frontier at one moment.
#[derive(Clone, Debug, Default)]
pub struct FrontierSummary<'a> {
    pub job: &'a str,
    pub discovered: u64,
    pub queued: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub disregarded: u64,
    /// How many URIs were ever seen.
    pub included: u64,
    /// Found, but not yet looked up.
    pub pending: u64,
    pub queues: u64,
    pub in_process: u64,
    pub ready: u64,
    pub snoozed: u64,
    /// Waiting for a turn, by precedence.
    pub inactive: Vec<(u8, u64)>,
    pub retired: u64,
    pub last_state: &'a str,
    /// Some queues of each kind.
    pub longest: QueueSample<'a>,
    pub in_process_queues: QueueSample<'a>,
    pub ready_queues: QueueSample<'a>,
    pub snoozed_queues: QueueSample<'a>,
    pub inactive_queues: QueueSample<'a>,
    pub retired_queues: QueueSample<'a>,
}

/// Some queues of a kind, and how many of the kind there are.
#[derive(Clone, Debug, Default)]
pub struct QueueSample<'a> {
    pub queues: Vec<QueueReport<'a>>,
    pub total: u64,
}

/// One queue.
#[derive(Clone, Debug, Default)]
pub struct QueueReport<'a> {
    pub name: &'a str,
    pub precedence: u8,
    pub items: u64,
    pub enqueued: u64,
    pub wakes_in: Option<Duration>,
    pub last_dequeued: Option<Timestamp>,
    pub last_enqueued: Option<&'a str>,
    pub last_peeked: Option<&'a str>,
    pub expended: u64,
    /// -1 without a budget.
    pub budget: i64,
    pub balance: i64,
    pub last_cost: u64,
    pub errors: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub disregarded: u64,
    pub robots: u64,
    pub success_bytes: u64,
    pub last_success: Option<Timestamp>,
}

/// Counts of the frontier and samples of its queues.
pub fn frontier_summary_report(
    now: Timestamp,
    summary: &FrontierSummary<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let active = summary.in_process + summary.ready + summary.snoozed;
    let inactive: u64 = summary.inactive.iter().map(|(_, queues)| queues).sum();
    let exhausted = summary.queues.saturating_sub(active + inactive + summary.retired);
    writeln!(out, "Frontier report - {}", twelve(now))?;
    writeln!(out, " Job being crawled: {}", summary.job.replace(char::is_control, " "))?;
    writeln!(out, "\n -----===== STATS =====-----")?;
    writeln!(out, " Discovered:    {}", summary.discovered)?;
    writeln!(out, " Queued:        {}", summary.queued)?;
    writeln!(out, " Finished:      {}", summary.succeeded + summary.failed + summary.disregarded)?;
    writeln!(out, "  Successfully: {}", summary.succeeded)?;
    writeln!(out, "  Failed:       {}", summary.failed)?;
    writeln!(out, "  Disregarded:  {}", summary.disregarded)?;
    writeln!(out, "\n -----===== QUEUES =====-----")?;
    writeln!(out, " Already included size:     {}", summary.included)?;
    writeln!(out, "               pending:     {}", summary.pending)?;
    writeln!(out, "\n All class queues map size: {}", summary.queues)?;
    writeln!(out, "             Active queues: {active}")?;
    writeln!(out, "                    In-process: {}", summary.in_process)?;
    writeln!(out, "                         Ready: {}", summary.ready)?;
    writeln!(out, "                       Snoozed: {}", summary.snoozed)?;
    let precedences: Vec<String> =
        summary.inactive.iter().map(|(precedence, queues)| format!("p{precedence}: {queues}")).collect();
    writeln!(out, "           Inactive queues: {inactive} ({})", precedences.join("; "))?;
    writeln!(out, "            Retired queues: {}", summary.retired)?;
    writeln!(out, "          Exhausted queues: {exhausted}")?;
    writeln!(out, "\n             Last state: {}", summary.last_state)?;
    // Heritrix shows the stack of its one scheduling thread here; there is none such.
    writeln!(out, " -----===== MANAGER THREAD =====-----")?;
    writeln!(out, "\n -----===== {} LONGEST QUEUES =====-----", summary.longest.queues.len())?;
    sample("LONGEST", &summary.longest, out)?;
    for (title, label, queues) in [
        ("IN-PROCESS", "IN-PROCESS", &summary.in_process_queues),
        ("READY", "READY", &summary.ready_queues),
        ("SNOOZED", "SNOOZED", &summary.snoozed_queues),
        ("INACTIVE", "INACTIVE", &summary.inactive_queues),
        ("RETIRED", "RETIRED", &summary.retired_queues),
    ] {
        writeln!(out, "\n -----===== {title} QUEUES =====-----")?;
        sample(label, queues, out)?;
    }
    Ok(())
}

fn sample(label: &str, sample: &QueueSample<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (index, queue) in sample.queues.iter().enumerate() {
        writeln!(out, "{label}#{index}:")?;
        queue.write(out)?;
    }
    let more = sample.total.saturating_sub(sample.queues.len() as u64);
    if more > 0 {
        writeln!(out, "...and {more} more {label}.")?;
    }
    Ok(())
}

impl QueueReport<'_> {
    fn average_cost(&self) -> String {
        decimal(self.expended as f64 / self.finished().max(1) as f64, 1)
    }

    const fn finished(&self) -> u64 {
        self.succeeded + self.failed + self.disregarded
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "Queue {} (p{})", self.name, self.precedence)?;
        writeln!(out, "  {} items", self.items)?;
        if let Some(wait) = self.wakes_in {
            writeln!(out, "   wakes in: {}", duration_for_people(wait))?;
        }
        writeln!(out, "    last enqueued: {}", self.last_enqueued.unwrap_or("null"))?;
        writeln!(out, "      last peeked: {}", self.last_peeked.unwrap_or("null"))?;
        writeln!(out, "   total expended: {} (total budget: {})", self.expended, self.budget)?;
        writeln!(out, "   active balance: {}", self.balance)?;
        writeln!(out, "   last(avg) cost: {}({})", self.last_cost, self.average_cost())?;
        writeln!(
            out,
            "   totalScheduled fetchSuccesses fetchFailures fetchDisregards fetchResponses robotsDenials \
             successBytes totalBytes fetchNonResponses lastSuccessTime"
        )?;
        writeln!(
            out,
            "   {} {} {} {} {} {} {} {} {} {}",
            self.enqueued,
            self.succeeded,
            self.failed,
            self.disregarded,
            self.succeeded,
            self.robots,
            self.success_bytes,
            self.success_bytes,
            self.failed,
            time(self.last_success),
        )?;
        writeln!(out, "   precedence\n   {}\n", self.precedence)
    }
}

/// One line for each queue that has something in it. The columns are named on the first line.
pub fn frontier_nonempty_report(queues: &[QueueReport<'_>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "queue precedence currentSize totalEnqueues sessionBalance lastCost(averageCost) lastDequeueTime wakeTime \
         totalSpend/totalBudget errorCount lastPeekUri lastQueuedUri"
    )?;
    for queue in queues {
        writeln!(
            out,
            "{} {} {} {} {} {}({}) {} {} {}/{} {} {} {}",
            queue.name,
            queue.precedence,
            queue.items,
            queue.enqueued,
            queue.balance,
            queue.last_cost,
            queue.average_cost(),
            time(queue.last_dequeued),
            queue.wakes_in.map_or_else(|| "-".to_owned(), duration_for_people),
            queue.expended,
            queue.budget,
            queue.errors,
            queue.last_peeked.unwrap_or("null"),
            queue.last_enqueued.unwrap_or("null"),
        )?;
    }
    Ok(())
}

fn time(time: Option<Timestamp>) -> String {
    let Some(time) = time else { return "-".to_owned() };
    let mut out = Vec::new();
    push_millis(&mut out, time);
    String::from_utf8_lossy(&out).into_owned()
}
