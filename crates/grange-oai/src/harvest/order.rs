//! What a harvest begins with, and how it ends.

use std::path::PathBuf;

use grange_model::oai::{HarvestSpec, OaiJobId, Repository, Slices};
use jiff::Timestamp;

use super::ledger::LedgerError;
use super::position::Asked;
use crate::fetch::FetchError;

/// Everything a harvest begins with.
#[derive(Clone, Debug)]
pub struct Order {
    pub job: OaiJobId,
    pub repository: Repository,
    pub spec: HarvestSpec,
    /// Where an earlier attempt left off, as it was kept.
    pub position: Option<String>,
    /// Where the last whole harvest says to begin.
    pub next_from: Option<Timestamp>,
    /// The repository's folder.
    pub folder: PathBuf,
}

/// How a harvest ended. What it took is kept in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Whole {
        next_from: Option<Timestamp>,
    },
    /// By whoever pulled the trigger.
    Stopped,
    Failed(String),
}

/// The end of a harvest, and what is to be tidied up behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub ended: Ended,
    /// Segments of the journal, for [`crate::store::journal::retire`]: best some time later, when the system has
    /// written most files by itself. The next harvest does it, too.
    pub segments: Vec<PathBuf>,
    /// Entries that an earlier attempt had received and not kept.
    pub replayed: u64,
}

/// Why a harvest ends early.
#[derive(Debug)]
pub(super) enum Break {
    Stopped,
    Failed(String),
    /// The side that keeps has ended, and knows why.
    Keeper,
}

impl From<FetchError> for Break {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Stopped => Self::Stopped,
            FetchError::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl From<LedgerError> for Break {
    fn from(error: LedgerError) -> Self {
        Self::Failed(error.0)
    }
}

impl Order {
    /// What "since last time" means for this job.
    pub(super) fn asked(&self) -> Asked {
        let (spec, rules) = (&self.spec, &self.repository.rules);
        let from = if spec.incremental { self.next_from.or(spec.from) } else { spec.from };
        let windows = !rules.no_windows;
        Asked {
            prefix: spec.prefix.clone(),
            set: spec.set.clone(),
            from: from.filter(|_| windows),
            until: spec.until.filter(|_| windows),
            method: spec.method,
            slices: if windows { rules.slices } else { Slices::Whole },
        }
    }
}
