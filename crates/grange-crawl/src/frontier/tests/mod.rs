//! The frontier as its users see it.

mod behaviour;
mod crash;
mod model;

use std::time::Duration;

use grange_base::Size;
use jiff::Timestamp;
use tempfile::TempDir;
use url::Url;

use super::{Claim, Finished, Frontier, Next, Outcome, Settings};
use crate::candidate::Candidate;
use crate::hops::{Hop, Hops};
use crate::job::Budgets;
use crate::politeness::{Pace, Visit};
use crate::status::FetchStatus;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap()
}

fn impolite() -> Settings {
    // A small filter is soon made, and sometimes wrong, as it may be.
    Settings { pace: Pace::none(), seen_filter: Size(1 << 16), ..Settings::default() }
}

fn seed(url: &str) -> Candidate {
    Candidate::seed(Url::parse(url).unwrap())
}

fn found(url: &str, hops: &str) -> Candidate {
    let hops: Hops = hops.parse().unwrap();
    Candidate { via: Some("http://via.example/".into()), hops, ..seed(url) }
}

fn prerequisite(url: &str) -> Candidate {
    Candidate { hops: Hops::seed().and(Hop::Prerequisite), ..seed(url) }
}

fn visit(status: i32, bytes: u64) -> Visit {
    Visit::new(FetchStatus(status), bytes, Duration::from_millis(10))
}

fn done(claim: Claim, status: i32, bytes: u64) -> Finished {
    Finished { claim, outcome: Outcome::Done(visit(status, bytes)), discovered: Vec::new() }
}

/// A frontier in a folder of its own, with a hand for the usual steps.
struct Bench {
    folder: TempDir,
    settings: Settings,
    budgets: Budgets,
    frontier: Option<Frontier>,
}

impl Bench {
    fn new(settings: Settings, budgets: Budgets) -> Bench {
        let mut bench = Bench { folder: tempfile::tempdir().unwrap(), settings, budgets, frontier: None };
        bench.reopen(at(0));
        bench
    }

    fn reopen(&mut self, now: Timestamp) -> super::Resumed {
        self.frontier = None;
        let (frontier, resumed) =
            Frontier::open(self.folder.path(), self.settings.clone(), self.budgets.clone(), now).unwrap();
        self.frontier = Some(frontier);
        resumed
    }

    fn frontier(&self) -> &Frontier {
        self.frontier.as_ref().unwrap()
    }

    fn add(&self, candidates: &[Candidate]) {
        self.frontier().add(candidates, at(0)).unwrap();
    }

    fn next(&self, millis: i64) -> Next {
        self.frontier().next(at(millis)).unwrap()
    }

    fn claim(&self, millis: i64) -> Claim {
        match self.next(millis) {
            Next::Uri(claim) => *claim,
            other => panic!("no URL but {other:?}"),
        }
    }

    fn finish(&self, finished: Finished, millis: i64) {
        self.frontier().finish(&[finished], &[], at(millis)).unwrap();
    }

    /// Finishes everything that can be had at one time with 200 and `bytes`; the URLs in their order.
    fn drain(&self, millis: i64, bytes: u64) -> Vec<String> {
        let mut urls = Vec::new();
        while let Next::Uri(claim) = self.next(millis) {
            urls.push(claim.candidate.url.to_string());
            self.finish(done(*claim, 200, bytes), millis);
        }
        urls
    }
}
