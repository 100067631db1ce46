//! What a harvest begins with, and how it ends.

use std::path::PathBuf;

use grange_model::oai::{HarvestSpec, OaiJobId, Repository, Slices, Validation};
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
    /// Where the last whole harvest by the same rules says to begin.
    pub next_from: Option<Timestamp>,
    /// Whether the lists of the last whole harvest lacked records, so that the next start stayed where it was.
    pub lacking: bool,
    /// The repository's folder.
    pub folder: PathBuf,
}

/// How a harvest ended. What it took is kept in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The lists of a `lacking` one lacked records that exist, or may have; the first such harvest gives no next start, so
    /// that the next one asks for the same again.
    Whole {
        next_from: Option<Timestamp>,
        lacking: bool,
    },
    /// Every list was read, and records are known to be missing, by this reason. The next harvest begins where this one
    /// began.
    Incomplete(String),
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
            rules: rules_of(spec),
        }
    }
}

/// What identifies the rules by which a harvest judges records: filter, normalizer and validation. Empty where all is
/// taken as it comes.
pub fn rules_of(spec: &HarvestSpec) -> String {
    let HarvestSpec { validation, filter, normalize, .. } = spec;
    if (*validation, filter, normalize) == (Validation::Loose, &None, &None) {
        return String::new();
    }
    let mut hasher = blake3::Hasher::new();
    for text in [Some(validation.as_str()), filter.as_deref(), normalize.as_deref()] {
        // The length first, so that no two triples are the same bytes; one of nothing differs from an empty one.
        hasher.update(&text.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
        hasher.update(text.unwrap_or_default().as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_the_same_only_where_all_three_are() {
        let all = HarvestSpec::all("oai_dc");
        let text = |text: &str| Some(text.to_owned());
        let different = [
            all.clone(),
            HarvestSpec { validation: Validation::Strict, ..all.clone() },
            HarvestSpec { filter: text("a"), ..all.clone() },
            HarvestSpec { filter: text("b"), ..all.clone() },
            HarvestSpec { normalize: text("a"), ..all.clone() },
            HarvestSpec { filter: text("a"), normalize: text("a"), ..all.clone() },
            HarvestSpec { filter: text("aa"), normalize: text(""), ..all.clone() },
            HarvestSpec { filter: text(""), ..all.clone() },
        ];
        let names: std::collections::BTreeSet<_> = different.iter().map(rules_of).collect();
        assert_eq!(names.len(), different.len());
        let elsewhere = HarvestSpec { set: text("s"), incremental: true, ..different[2].clone() };
        assert_eq!(rules_of(&elsewhere), rules_of(&different[2]));
    }
}
