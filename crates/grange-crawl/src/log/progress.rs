//! progress-statistics.log: how the crawl goes, every few seconds, and what happened to it as a whole.

use std::io::Write as _;

use jiff::Timestamp;

use super::column;
use super::time;
use crate::report::decimal;

/// The first line of the log.
pub const LEGEND: &str = concat!(
    "           timestamp  discovered      queued   downloaded       doc/s(avg)  KB/s(avg)   dl-failures   ",
    "busy-thread   mem-use-KB  heap-size-KB   congestion   max-depth   avg-depth"
);

/// The crawl at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    pub discovered: u64,
    pub queued: u64,
    pub downloaded: u64,
    /// Since the last line.
    pub docs_per_second: f64,
    /// Since the start, without pauses.
    pub docs_per_second_average: f64,
    /// KiB, since the last line.
    pub kib_per_second: u64,
    pub kib_per_second_average: u64,
    pub failures: u64,
    pub busy_workers: u64,
    /// Resident memory, in KiB.
    pub memory_used_kib: u64,
    /// What the process may use, in KiB; the same as used where there is no such bound.
    pub memory_limit_kib: u64,
    /// How many times today's capacity it would take to serve all queues at the speed politeness allows.
    pub congestion: f64,
    pub deepest_queue: u64,
    pub average_depth: u64,
}

impl Progress {
    /// Appends the line and its line end. Every column ends where the legend's does.
    pub fn write(&self, now: Timestamp, out: &mut Vec<u8>) {
        let start = out.len();
        time::push_seconds(out, now);
        let rate = |now: f64, average: f64| format!("{}({})", decimal(now, 2), decimal(average, 2));
        let columns: [(usize, String); 12] = [
            (32, self.discovered.to_string()),
            (44, self.queued.to_string()),
            (57, self.downloaded.to_string()),
            (74, rate(self.docs_per_second, self.docs_per_second_average)),
            (85, format!("{}({})", self.kib_per_second, self.kib_per_second_average)),
            (99, self.failures.to_string()),
            (113, self.busy_workers.to_string()),
            (126, self.memory_used_kib.to_string()),
            (140, self.memory_limit_kib.to_string()),
            (153, decimal(self.congestion, 2)),
            (165, self.deepest_queue.to_string()),
            (177, self.average_depth.to_string()),
        ];
        for (end, text) in columns {
            // A number too wide for its column pushes the next; a blank always stands between them.
            let width = end.saturating_sub(out.len() - start).max(text.len() + 1);
            column::push_padded(out, text.as_bytes(), width);
        }
        out.push(b'\n');
    }
}

/// What happened to the crawl as a whole. Readers learn from the last one how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    Running(&'a str),
    /// Waiting for what is in flight.
    Pausing(&'a str),
    Paused(&'a str),
    Empty(&'a str),
    Ending(&'a str),
    Ended(&'a str),
    /// Logs and WARC files were rotated; the name of the chunk.
    Rotated(&'a str),
    /// A change made while running; who and what.
    Changed(&'a str),
}

impl Note<'_> {
    /// Appends the line and its line end.
    pub fn write(&self, now: Timestamp, out: &mut Vec<u8>) {
        time::push_seconds(out, now);
        let (word, text) = match self {
            Note::Running(text) => ("RUNNING -", text),
            Note::Pausing(text) => ("WAITING -", text),
            Note::Paused(text) => ("PAUSED -", text),
            Note::Empty(text) => ("EMPTY -", text),
            Note::Ending(text) => ("ENDING -", text),
            Note::Ended(text) => ("ENDED -", text),
            Note::Rotated(text) => ("CHECKPOINTING TO", text),
            Note::Changed(text) => ("CHANGED -", text),
        };
        let text = text.replace(|c: char| c.is_control(), " ");
        let _ = writeln!(out, " CRAWL {word} {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_end_under_the_legend() {
        let progress = Progress {
            discovered: 12_345,
            queued: 345,
            downloaded: 12_000,
            docs_per_second: 1.5,
            docs_per_second_average: 1_234.567,
            kib_per_second: 12,
            kib_per_second_average: 34,
            failures: 7,
            busy_workers: 25,
            memory_used_kib: 65_536,
            memory_limit_kib: 262_144,
            congestion: 2.25,
            deepest_queue: 99,
            average_depth: 3,
        };
        let mut out = Vec::new();
        progress.write("2026-11-16T00:51:01.9Z".parse().unwrap(), &mut out);
        let line = String::from_utf8(out).unwrap();
        assert_eq!(
            line,
            "2026-11-16T00:51:01Z       12345         345        12000    1.5(1,234.57)     12(34)             7            25        65536        262144         2.25          99           3\n"
        );
        assert_eq!(line.trim_end().len(), LEGEND.len());
        assert_eq!(line.split_whitespace().count(), LEGEND.split_whitespace().count());
    }

    #[test]
    fn wide_numbers_push_but_never_touch() {
        let progress = Progress { discovered: u64::MAX, queued: u64::MAX, ..Progress::default() };
        let mut out = Vec::new();
        progress.write(Timestamp::UNIX_EPOCH, &mut out);
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line.split_whitespace().count(), 13);
    }

    #[test]
    fn the_last_note_tells_how_it_ended() {
        let mut out = Vec::new();
        Note::Ended("Finished - Timelimit hit").write(Timestamp::UNIX_EPOCH, &mut out);
        Note::Changed("anna: delay\n2s").write(Timestamp::UNIX_EPOCH, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "1970-01-01T00:00:00Z CRAWL ENDED - Finished - Timelimit hit\n1970-01-01T00:00:00Z CRAWL CHANGED - anna: delay 2s\n"
        );
    }
}
