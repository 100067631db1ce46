//! Access rules beside the bits: what was taken down stays down when the database is gone or older than the archive.
//!
//! Every replica keeps a small file for each rule that was ever added and for each that a person removed. Files are
//! never changed, so it does not matter in which order or by which node they are written: a rule is in force if it was
//! added and not removed. A rule that is in force there and unknown to the database is established again at once; a
//! person who does not want it removes it again.
//!
//! ```text
//! grange-witness-access-add-<key>.json       { format, rule: { key, rule, note, created_at, created_by }, sha256 }
//! grange-witness-access-remove-<key>.json    { format, removed: { key, removed_at, removed_by }, sha256 }
//! ```

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use grange_base::Chain;
use grange_db::{AccessRow, AccessRuleState, KeptRule, RemovedRule};
use grange_model::{FileName, FindingKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::archive::Archive;
use crate::error::Error;
use crate::replica::Replica;
use crate::witness;

/// The rules in step with the replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessRuleReport {
    /// Files written beside the bits.
    pub written: u64,
    /// Rules that the database did not know, in force again.
    pub reestablished: Vec<AccessRow>,
    /// Rules that were removed once and are in force in this database: a person decides.
    pub returned: Vec<AccessRow>,
    /// Files beside the bits that cannot be understood.
    pub damaged: Vec<String>,
    /// Replicas that could not be asked.
    pub away: Vec<String>,
}

/// What is kept of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kept {
    Rule(KeptRule),
    Removed(RemovedRule),
}

#[derive(Serialize, Deserialize)]
struct KeptFile {
    format: String,
    #[serde(flatten)]
    kept: Kept,
    /// Of the JSON of `rule` or `removed`, without spaces: what is damaged is not taken for a rule.
    sha256: String,
}

const FORMAT: &str = "grange-access-rule 1";

impl Kept {
    fn name(&self) -> Option<FileName> {
        let name = match self {
            Self::Rule(rule) => format!("{}add-{}.json", witness::ACCESS_PREFIX, rule.key),
            Self::Removed(removed) => format!("{}remove-{}.json", witness::ACCESS_PREFIX, removed.key),
        };
        name.parse().ok()
    }

    fn checksum(&self) -> String {
        let text = match self {
            Self::Rule(rule) => serde_json::to_vec(rule),
            Self::Removed(removed) => serde_json::to_vec(removed),
        };
        HEXLOWER.encode(&Sha256::digest(text.unwrap_or_default()))
    }

    fn to_text(&self) -> String {
        let file = KeptFile { format: FORMAT.to_owned(), kept: self.clone(), sha256: self.checksum() };
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let file: KeptFile = serde_json::from_slice(text).ok()?;
        (file.format == FORMAT && file.sha256 == file.kept.checksum()).then_some(file.kept)
    }
}

/// All that every replica should keep.
fn all_kept(state: AccessRuleState) -> Vec<Kept> {
    let rules = state.rules.into_iter().map(Kept::Rule);
    rules.chain(state.removed.into_iter().map(Kept::Removed)).collect()
}

/// The files of which the database knows everything: also those of rules that were removed.
fn known_names(all: &[Kept]) -> BTreeSet<FileName> {
    let added = |kept: &Kept| match kept {
        Kept::Rule(_) => None,
        Kept::Removed(removed) => format!("{}add-{}.json", witness::ACCESS_PREFIX, removed.key).parse().ok(),
    };
    all.iter().flat_map(|kept| [kept.name(), added(kept)]).flatten().collect()
}

/// Why a rule is too long to be kept beside the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has {bytes} bytes as it is kept beside the files, and at most {most} can be kept; shorten its message or its note"
)]
pub struct RuleTooLong {
    pub bytes: u64,
    pub most: u64,
}

/// Whether a rule that is about to be added can be kept beside the bits: it would be lost with the database otherwise.
pub fn check_rule_length(rule: &serde_json::Value, note: &str, by: &str) -> Result<(), RuleTooLong> {
    let kept = Kept::Rule(KeptRule {
        // As long as a key and a time can be.
        key: "k".repeat(64),
        rule: rule.clone(),
        note: note.to_owned(),
        created_at: jiff::Timestamp::MAX,
        created_by: by.to_owned(),
    });
    let bytes = kept.to_text().len() as u64;
    if bytes <= witness::BYTES_MAX { Ok(()) } else { Err(RuleTooLong { bytes, most: witness::BYTES_MAX }) }
}

/// What lies beside the bits, over all replicas that answered.
#[derive(Debug, Default)]
struct Beside {
    rules: BTreeMap<String, KeptRule>,
    removed: BTreeMap<String, RemovedRule>,
}

/// What is to be done about the difference between the database and what lies beside the bits.
#[derive(Debug, Default, PartialEq, Eq)]
struct Difference {
    /// In force beside the bits, unknown here.
    lost: Vec<KeptRule>,
    /// Removals unknown here.
    removals: Vec<RemovedRule>,
    /// Keys of rules that were removed once and are in force here.
    returned: BTreeSet<String>,
}

fn compare(state: &AccessRuleState, beside: &Beside) -> Difference {
    let here: BTreeSet<&str> = state.rules.iter().map(|rule| rule.key.as_str()).collect();
    let removed: BTreeSet<&str> = state.removed.iter().map(|one| one.key.as_str()).collect();
    let lost = beside.rules.values().filter(|rule| {
        let key = rule.key.as_str();
        !here.contains(key) && !removed.contains(key) && !beside.removed.contains_key(key)
    });
    let removals = beside.removed.values().filter(|one| !removed.contains(one.key.as_str()));
    let returned = here.iter().filter(|key| beside.removed.contains_key(**key) || removed.contains(*key));
    Difference {
        lost: lost.cloned().collect(),
        removals: removals.cloned().collect(),
        returned: returned.map(|key| (*key).to_owned()).collect(),
    }
}

impl Archive {
    /// Brings the access rules of the database and those beside the bits together, and reads every file there.
    pub async fn keep_access_rules(&self) -> Result<AccessRuleReport, Error> {
        self.keep_rules(true).await
    }

    /// The same, after a change and between full readings: of the files that lie beside the bits only those are read that
    /// are unknown to the database.
    pub async fn keep_changed_access_rules(&self) -> Result<AccessRuleReport, Error> {
        self.keep_rules(false).await
    }

    async fn keep_rules(&self, read_all: bool) -> Result<AccessRuleReport, Error> {
        let mut report = AccessRuleReport::default();
        let (mut beside, mut names) = (Beside::default(), Vec::new());
        let rules = self.0.db.access_rules();
        let known = if read_all { BTreeSet::new() } else { known_names(&all_kept(rules.state().await?)) };
        for replica in &self.0.replicas {
            match self.read_access_rules(replica, &known, &mut beside, &mut report).await {
                Ok(found) => names.push((replica, found)),
                Err(error) => {
                    tracing::warn!(replica = replica.name(), error = %Chain(&error), "cannot read the access rules kept on this replica");
                    report.away.push(replica.name().to_owned());
                }
            }
        }
        let difference = compare(&rules.state().await?, &beside);
        if !difference.removals.is_empty() {
            rules.note_removed(difference.removals).await?;
        }
        if !difference.lost.is_empty() {
            report.reestablished = rules.reestablish(difference.lost).await?;
        }
        for row in rules.list().await? {
            if row.key.as_ref().is_some_and(|key| difference.returned.contains(key)) {
                report.returned.push(row);
            }
        }
        if !report.reestablished.is_empty() {
            let count = report.reestablished.len();
            let reason = format!(
                "{count} access rules were lost and are in force again, from the copies beside the bits; see `grange access ls`"
            );
            self.notify("access rules", &reason).await;
        }
        // Without all replicas and all files nobody can tell that nothing is damaged.
        if (read_all && report.away.is_empty()) || !report.damaged.is_empty() {
            let damaged = (!report.damaged.is_empty()).then(|| report.damaged.join(", "));
            let kind = FindingKind::DamagedAccessRule;
            self.0.db.findings().observe(kind, "access rules beside the bits", damaged).await?;
        }
        let all = all_kept(rules.state().await?);
        for (replica, found) in names {
            for kept in &all {
                let Some(name) = kept.name().filter(|name| !found.contains(name)) else { continue };
                let Err(error) = replica.put_witness(&name, kept.to_text().as_bytes()).await else {
                    report.written += 1;
                    continue;
                };
                tracing::warn!(replica = replica.name(), %name, error = %Chain(&error), "cannot keep an access rule on this replica");
                if !report.away.iter().any(|away| away == replica.name()) {
                    report.away.push(replica.name().to_owned());
                }
                // One rule that is refused holds up no other.
                if replica.verify().await.is_err() {
                    break;
                }
            }
        }
        Ok(report)
    }

    /// The names of the files on the replica; what they say is added, except those that are known.
    async fn read_access_rules(
        &self,
        replica: &Replica,
        known: &BTreeSet<FileName>,
        beside: &mut Beside,
        report: &mut AccessRuleReport,
    ) -> Result<BTreeSet<FileName>, Error> {
        let is_rule = |name: &FileName| name.as_str().starts_with(witness::ACCESS_PREFIX);
        let names = replica.witness_names().await?.into_iter().filter(is_rule).collect();
        let unread = |name: &FileName| is_rule(name) && !known.contains(name);
        for (name, text) in replica.witnesses(unread).await? {
            match text.and_then(|text| Kept::parse(&text)) {
                Some(Kept::Rule(rule)) => {
                    beside.rules.insert(rule.key.clone(), rule);
                }
                Some(Kept::Removed(removed)) => {
                    beside.removed.insert(removed.key.clone(), removed);
                }
                None => {
                    // A finding, which is announced once.
                    tracing::warn!(replica = replica.name(), %name, "an access rule kept beside the bits is damaged; copy it from another replica");
                    report.damaged.push(format!("{name} on {}", replica.name()));
                }
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn rule(key: &str) -> KeptRule {
        KeptRule {
            key: key.to_owned(),
            rule: json!({ "surt_prefix": "dk,a)/", "decision": { "block": { "message": "court" } } }),
            note: "case 7".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
            created_by: "anna".to_owned(),
        }
    }

    fn removed(key: &str) -> RemovedRule {
        RemovedRule { key: key.to_owned(), removed_at: Timestamp::UNIX_EPOCH, removed_by: "berta".to_owned() }
    }

    #[test]
    fn a_kept_rule_is_read_back_and_a_damaged_one_is_not() {
        for kept in [Kept::Rule(rule("k1")), Kept::Removed(removed("k1"))] {
            let text = kept.to_text();
            assert_eq!(Kept::parse(text.as_bytes()), Some(kept.clone()));
            assert_eq!(Kept::parse(text.replace("k1", "k2").as_bytes()), None);
            assert_eq!(Kept::parse(&text.as_bytes()[..text.len() / 2]), None);
            assert!(witness::reserved(&kept.name().unwrap()));
        }
    }

    #[test]
    fn a_rule_that_is_accepted_can_be_kept_and_read_back() {
        let of = |bytes: usize| json!({ "surt_prefix": "dk,a)/", "decision": { "block": { "message": "m".repeat(bytes) } } });
        for (value, note, fits) in [
            (of(100), String::new(), true),
            (of(60_000), String::new(), true),
            (of(66_000), String::new(), false),
            (of(0), "n".repeat(66_000), false),
            // Control characters take six bytes each as they are kept.
            (of(0), "\u{1}".repeat(12_000), false),
        ] {
            let kept = KeptRule { rule: value.clone(), note: note.clone(), ..rule("k1") };
            let bytes = Kept::Rule(kept).to_text().len() as u64;
            let found = check_rule_length(&value, &note, "anna");
            assert_eq!(found.is_ok(), fits, "{found:?}");
            assert!(!fits || bytes <= witness::BYTES_MAX, "{bytes}");
        }
    }

    #[test]
    fn what_was_added_and_not_removed_anywhere_is_in_force() {
        let state =
            AccessRuleState { rules: vec![rule("here"), rule("back")], removed: vec![removed("gone")] };
        let beside = Beside {
            rules: ["here", "back", "gone", "lost", "ended"].map(|key| (key.to_owned(), rule(key))).into(),
            removed: ["back", "ended"].map(|key| (key.to_owned(), removed(key))).into(),
        };
        let difference = compare(&state, &beside);
        assert_eq!(difference.lost, [rule("lost")]);
        assert_eq!(difference.removals, [removed("back"), removed("ended")]);
        assert_eq!(difference.returned, ["back".to_owned()].into());
        assert_eq!(compare(&AccessRuleState::default(), &Beside::default()), Difference::default());
    }
}
