//! The demo's story, step by step. It grows with Grange: each issue adds the steps of what it brought.

use std::fmt::Display;
use std::time::Instant;

use serde::Serialize;

/// Steps told as they happen; kept for the summary.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    #[serde(skip)]
    silent: bool,
    #[serde(skip)]
    start: Instant,
    pub steps: Vec<Step>,
}

/// One thing that was shown to work.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    pub what: String,
    pub result: String,
    pub ms: u64,
}

impl Story {
    /// With `silent` nothing is printed as it happens (for `--json`).
    pub(crate) fn begin(silent: bool) -> Self {
        Self { silent, start: Instant::now(), steps: Vec::new() }
    }

    /// Tells that a step is done.
    pub(crate) fn told(&mut self, what: &str, result: impl Display) {
        let ms = self.start.elapsed().as_millis() as u64;
        if !self.silent {
            outln!("  {ms:>6} ms  {what:<24} {result}");
        }
        self.steps.push(Step { what: what.to_owned(), result: result.to_string(), ms });
    }

    pub(crate) fn ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}
