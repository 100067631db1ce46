//! Recovery without a database: rows are made again from what lies on the replicas. What contradicts itself is told,
//! not guessed.

use std::collections::BTreeMap;

use grange_base::Chain;
use grange_db::{Adopted, deciding};
use grange_model::vote::{COPIES_AGAINST_RECORD_MIN, recovered_record};
use grange_model::{Checksums, FileName, LogEvent, LogRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access_rules::AccessRuleReport;
use crate::archive::Archive;
use crate::error::Error;
use crate::replica::{Answer, Replica, UNREADABLE};

/// Names that are asked for at once.
const PAGE: usize = 500;

/// Copies that contradict each other without a majority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    pub name: FileName,
    /// What each replica answers.
    pub answers: BTreeMap<String, String>,
}

/// What a rebuild did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rebuilt {
    /// Names found on the replicas.
    pub found: u64,
    /// Files that had no row and have one now.
    pub entered: u64,
    /// Copies of those that are missing or differ from the others.
    pub incomplete: u64,
    /// Not entered: somebody must look.
    pub conflicts: Vec<Conflict>,
    /// Not entered: a deposit that every replica refused has the name. It must be withdrawn first.
    pub refused_deposits: Vec<FileName>,
    /// Replicas that could not be asked; whether they hold their copies is unknown until the next check.
    pub away: Vec<String>,
    /// Access rules that were kept beside the bits.
    pub access_rules: AccessRuleReport,
}

struct Copy {
    replica: usize,
    size: u64,
}

impl Archive {
    /// Enters every file that lies on the replicas and has no row.
    pub async fn rebuild(&self, by: &str) -> Result<Rebuilt, Error> {
        let mut rebuilt = Rebuilt::default();
        self.acknowledge_lost_log(by).await?;
        let mut after: Option<FileName> = None;
        loop {
            let (names, next) = self.page(after.as_ref(), &mut rebuilt.away).await?;
            let known = self.0.db.files().recorded(names.keys().cloned().collect()).await?;
            let unacknowledged = self.0.db.files().unacknowledged(names.keys().cloned().collect()).await?;
            let (mut adopted, mut records) = (Vec::new(), Vec::new());
            for (name, copies) in names {
                rebuilt.found += 1;
                if known.contains_key(name.as_str()) {
                    // Only rows of deposits that were never acknowledged are read one by one: there are few.
                    let unstored = unacknowledged.contains(&name);
                    let status = if unstored { self.status(&name).await? } else { None };
                    if status.is_some_and(|status| status.failed_everywhere()) {
                        rebuilt.refused_deposits.push(name);
                    }
                    continue;
                }
                match self.judge_copies(&name, &copies, &mut rebuilt).await? {
                    Ok(file) => {
                        let (checksum, size) = (Some(deciding(&file.checksums)), Some(file.size));
                        let detail = json!({ "copies": file.held.len() });
                        records.push(self.rebuilt_record(Some(name.to_string()), checksum, size, by, detail));
                        let wrong =
                            file.held.iter().filter(|(_, said)| *said != deciding(&file.checksums)).count();
                        let asked = self.0.replicas.len() - file.away.len();
                        rebuilt.incomplete += (asked - file.held.len() + wrong) as u64;
                        adopted.push(file);
                    }
                    Err(conflict) => rebuilt.conflicts.push(conflict),
                }
            }
            if !adopted.is_empty() {
                rebuilt.entered += self.0.db.files().adopt(adopted, records).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        if rebuilt.away.is_empty() {
            self.0.db.places().end_recovery().await?;
        }
        self.0.db.audits().vote_all().await?;
        rebuilt.access_rules = self.keep_access_rules().await?;
        for conflict in &rebuilt.conflicts {
            self.notify(conflict.name.as_str(), "its copies contradict each other: it was not rebuilt").await;
        }
        Ok(rebuilt)
    }

    pub(crate) fn rebuilt_record(
        &self,
        name: Option<String>,
        checksum: Option<String>,
        size: Option<u64>,
        by: &str,
        detail: serde_json::Value,
    ) -> LogRecord {
        let (at, event) = (self.0.clock.now(), LogEvent::Rebuilt);
        LogRecord { at, event, name, checksum, size, replica: None, by: by.to_owned(), detail }
    }

    /// The next names in order, with who lists them.
    #[allow(clippy::type_complexity)] // Read once, above.
    async fn page(
        &self,
        after: Option<&FileName>,
        away: &mut Vec<String>,
    ) -> Result<(BTreeMap<FileName, Vec<Copy>>, Option<FileName>), Error> {
        let mut names: BTreeMap<FileName, Vec<Copy>> = BTreeMap::new();
        let mut upto: Option<FileName> = None;
        for (index, replica) in self.0.replicas.iter().enumerate() {
            let (listed, next) = match replica.list(after, PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(replica = replica.name(), error = %Chain(&error), "a replica cannot be asked");
                    if !away.iter().any(|name| name == replica.name()) {
                        away.push(replica.name().to_owned());
                    }
                    continue;
                }
            };
            for one in listed {
                names
                    .entry(one.name)
                    .or_default()
                    .push(Copy { replica: index, size: one.size.unwrap_or_default() });
            }
            // Only as far as every replica has been asked.
            if let Some(next) = next {
                upto = Some(upto.map_or(next.clone(), |upto: FileName| upto.min(next)));
            }
        }
        if let Some(upto) = &upto {
            names.retain(|name, _| name <= upto);
        }
        Ok((names, upto))
    }

    async fn judge_copies(
        &self,
        name: &FileName,
        copies: &[Copy],
        rebuilt: &mut Rebuilt,
    ) -> Result<Result<Adopted, Conflict>, Error> {
        let strongest = self.0.settings.strongest();
        let mut answers = Vec::new();
        for copy in copies {
            let replica = &self.0.replicas[copy.replica];
            match replica.checksum(name, strongest).await {
                Ok(Answer::Sums(sums)) => answers.push((copy, deciding(&sums))),
                Ok(Answer::Unreadable) => answers.push((copy, UNREADABLE.to_owned())),
                Ok(Answer::Missing) => {}
                Err(error) => {
                    tracing::warn!(replica = replica.name(), error = %Chain(&error), "a replica cannot be asked");
                    if !rebuilt.away.iter().any(|name| name == replica.name()) {
                        rebuilt.away.push(replica.name().to_owned());
                    }
                }
            }
        }
        let said =
            |(copy, said): &(&Copy, String)| (said.clone(), self.0.replicas[copy.replica].keeps_bytes());
        let winner = recovered_record(&answers.iter().map(said).collect::<Vec<_>>()).map(str::to_owned);
        let told = || Conflict {
            name: name.clone(),
            answers: answers
                .iter()
                .map(|(copy, said)| (self.0.replicas[copy.replica].name().to_owned(), said.clone()))
                .collect(),
        };
        let Some(winner) = winner else { return Ok(Err(told())) };
        // A replica that cannot be asked could contradict a single copy, which would then be the record against it.
        let agreeing = answers.iter().filter(|(_, said)| *said == winner).count();
        if !rebuilt.away.is_empty() && agreeing < COPIES_AGAINST_RECORD_MIN {
            return Ok(Err(told()));
        }
        let Some((best, _)) = answers.iter().find(|(_, said)| *said == winner) else {
            return Ok(Err(told()));
        };
        let checksums = self.all_checksums(name, &winner, &answers).await?;
        let held = answers.iter().map(|(copy, said)| (self.0.replicas[copy.replica].row.id, said.clone()));
        let held: Vec<(i64, String)> = held.collect();
        let unasked = |replica: &&Replica| {
            rebuilt.away.iter().any(|name| name == replica.name())
                && held.iter().all(|(id, _)| *id != replica.row.id)
        };
        let away = self.0.replicas.iter().filter(unasked).map(|replica| replica.row.id).collect();
        Ok(Ok(Adopted { name: name.clone(), size: best.size, checksums, held, away }))
    }

    /// Every checksum that can be had, all of one copy that answers the winner: never some of one file and some of
    /// another. A checksum replica has them all; bytes are read once for all of them.
    async fn all_checksums(
        &self,
        name: &FileName,
        winner: &str,
        answers: &[(&Copy, String)],
    ) -> Result<Checksums, Error> {
        let decides: Checksums = winner.parse().unwrap_or_default();
        let mut wanted = self.0.settings.checksums.clone();
        wanted
            .extend(decides.algorithms().filter(|algorithm| !self.0.settings.checksums.contains(algorithm)));
        let mut agreeing: Vec<_> = answers
            .iter()
            .filter(|(_, said)| said == winner)
            .map(|(copy, _)| &self.0.replicas[copy.replica])
            .collect();
        agreeing.sort_by_key(|replica| replica.keeps_bytes());
        let mut best = decides;
        for replica in agreeing {
            let found = match replica.checksums(name, &wanted).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(replica = replica.name(), error = %Chain(&error), "a replica cannot be asked");
                    None
                }
            };
            // It may have changed since it answered.
            let Some(found) = found.filter(|found| found.same_as(&decides)) else { continue };
            if found.algorithms().count() > best.algorithms().count() {
                best = found;
            }
            if wanted.iter().all(|algorithm| best.get(*algorithm).is_some()) {
                break;
            }
        }
        Ok(best)
    }
}
