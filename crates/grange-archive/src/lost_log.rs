//! Witnesses of another log than this one: of a database that was lost, or that was replaced by an older copy of itself. A
//! rebuild records them, so that they are not taken for proof of a rewriting, and nobody can pretend that there was no other
//! log.

use std::collections::{HashMap, HashSet};

use grange_base::Chain;
use grange_db::Checkpoint;
use grange_model::{LogEvent, LogRecord};
use jiff::Timestamp;
use serde_json::json;

use crate::archive::Archive;
use crate::error::Error;
use crate::tree::Tree;
use crate::verify::{LEAVES_AT_ONCE, holds};
use crate::witness::{self, Witness};

/// Whether the witness saw another log, and not this one before somebody rewrote it. `leaf_at` is when the last leaf that it
/// saw was added to this log, if it has so many. A leaf that is younger than the witness was not there when it was written,
/// so this log was shorter then: the order of commands since does not matter.
pub(crate) fn saw_another_log(mark: &Checkpoint, leaf_at: Option<Timestamp>) -> bool {
    leaf_at.is_none_or(|at| at > mark.at)
}

/// The roots of other logs that a record names.
pub(crate) fn lost_roots(record: &LogRecord) -> impl Iterator<Item = String> + '_ {
    let named = record.event == LogEvent::Rebuilt && record.name.is_none();
    let roots = record.detail["lost_roots"].as_array().filter(|_| named).into_iter().flatten();
    roots.filter_map(|root| root.as_str()).map(str::to_owned)
}

impl Archive {
    /// Records the witnesses of other logs that are not recorded yet. A witness that this log contradicts otherwise is left
    /// for `audit verify-log` to report.
    pub(crate) async fn acknowledge_lost_log(&self, by: &str) -> Result<(), Error> {
        let mut marks: Vec<Checkpoint> = Vec::new();
        for replica in &self.0.replicas {
            let witnesses = match replica.witnesses(witness::is_of_log).await {
                Ok(witnesses) => witnesses,
                Err(error) => {
                    tracing::warn!(replica = replica.name(), error = %Chain(&error), "the witnesses of a replica cannot be read");
                    continue;
                }
            };
            for text in witnesses.into_iter().filter_map(|(_, text)| text) {
                marks.extend(serde_json::from_slice::<Witness>(&text).map(|witness| witness.checkpoint));
            }
        }
        let sizes: HashSet<u64> = marks.iter().map(|mark| mark.size).collect();
        let (mut tree, mut known) = (Tree::default(), HashSet::new());
        let mut times: HashMap<u64, Timestamp> = HashMap::new();
        loop {
            let leaves = self.0.db.logbook().leaves(tree.len(), LEAVES_AT_ONCE).await?;
            // A log with a gap is a problem that the verification reports; rows can be made again all the same.
            if leaves.is_empty() || !leaves.iter().all(|leaf| tree.push(leaf)) {
                break;
            }
            for leaf in &leaves {
                let Ok(record) = serde_json::from_str::<LogRecord>(&leaf.body) else { continue };
                known.extend(lost_roots(&record));
                if sizes.contains(&(leaf.number + 1)) {
                    times.insert(leaf.number + 1, record.at);
                }
            }
        }
        let lost = |mark: &&Checkpoint| {
            !known.contains(&mark.root)
                && !holds(&tree, mark)
                && saw_another_log(mark, times.get(&mark.size).copied())
        };
        let mut lost: Vec<_> = marks.iter().filter(lost).map(|mark| mark.root.clone()).collect();
        lost.sort();
        lost.dedup();
        if tree.len() > 0 && lost.is_empty() {
            return Ok(());
        }
        let record = self.rebuilt_record(None, None, None, by, json!({ "lost_roots": lost }));
        Ok(self.0.db.logbook().append(vec![record]).await?)
    }
}
