//! The log, signed and proven: checkpoints, witnesses on every replica, and the proof that nothing was rewritten.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use grange_base::Chain;
use grange_db::{Checkpoint, FileFilter, Leaf, StoredFile, deciding};
use grange_model::{FileName, FindingKind, LogEvent, LogRecord};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::Archive;
use crate::error::Error;
use crate::key_trust::{KeyTrust, SignedVouch, signed_vouches};
use crate::lost_log::{lost_roots, saw_another_log};
use crate::tree::{self, Tree};
use crate::witness::{self, Witness};

/// Leaves read at once: some megabytes.
pub(crate) const LEAVES_AT_ONCE: u32 = 10_000;

/// Problems that are told by name; the rest is counted.
const PROBLEMS_TOLD: usize = 100;

/// One witness compared with the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessReport {
    pub replica: String,
    pub name: FileName,
    pub size: u64,
    /// The log is what it was when this was written.
    pub holds: bool,
    /// It is of the log before a rebuild, which was lost with its database.
    pub of_lost_log: bool,
}

/// What a look at the whole log found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogReport {
    /// Nothing was rewritten.
    pub ok: bool,
    pub leaves: u64,
    pub root: String,
    pub checkpoints: u64,
    pub witnesses: Vec<WitnessReport>,
    /// Replicas that are away: their witnesses were not read.
    #[serde(default)]
    pub away: Vec<String>,
    /// Files whose row was compared with the log.
    pub files: u64,
    /// How many problems there are; the first hundred are told.
    pub problem_count: u64,
    pub problems: Vec<String>,
}

impl LogReport {
    fn check_signature(&mut self, mark: &Checkpoint, what: &str, trust: &KeyTrust) {
        if !tree::signature_holds(mark) {
            self.problem(format!("the signature of {what} does not hold"));
        } else if let Some(doubt) = trust.doubt(mark) {
            self.problem(format!("{what} {doubt}"));
        }
    }

    fn problem(&mut self, text: String) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_TOLD {
            self.problems.push(text);
        }
    }
}

impl Archive {
    /// Signs the log as it is now.
    pub async fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let mut tree = self.0.tree.lock().await;
        self.catch_up(&mut tree).await?;
        let checkpoint = tree::sign(&tree, self.0.clock.now(), &self.key());
        self.0.db.logbook().save_checkpoint(checkpoint.clone()).await?;
        Ok(checkpoint)
    }

    pub(crate) async fn catch_up(&self, tree: &mut Tree) -> Result<(), Error> {
        loop {
            let leaves = self.0.db.logbook().leaves(tree.len(), LEAVES_AT_ONCE).await?;
            if leaves.is_empty() {
                return Ok(());
            }
            for leaf in &leaves {
                if !tree.push(leaf) {
                    return Err(Error::Proof {
                        reason: format!("leaf {} is missing from the log", tree.len()),
                    });
                }
            }
        }
    }

    /// Writes today's witness to every replica that has none yet. Gives the replicas that could not be reached.
    pub async fn write_witness(&self) -> Result<Vec<String>, Error> {
        let now = self.0.clock.now();
        let (mut checkpoint, mut away) = (None, Vec::new());
        for replica in &self.0.replicas {
            let written = async {
                if replica.witness_names().await?.iter().any(|name| witness::is_of_day(name, now)) {
                    return Ok(());
                }
                if checkpoint.is_none() {
                    checkpoint = Some(self.checkpoint().await?);
                }
                let Some(checkpoint) = &checkpoint else { return Ok(()) };
                let Some(name) = witness::name(now, checkpoint) else { return Ok(()) };
                let vouches = signed_vouches(&self.log_keys().await?);
                let text = Witness::new(checkpoint.clone(), vouches).to_text();
                replica.put_witness(&name, text.as_bytes()).await
            };
            if let Err(error) = written.await {
                let error: Error = error;
                tracing::warn!(replica = replica.name(), error = %Chain(&error), "no witness could be written");
                away.push(replica.name().to_owned());
            }
        }
        Ok(away)
    }

    /// Reads the whole log and proves, with its checkpoints and the witnesses on the replicas, that nothing in it was
    /// changed, taken out or put in; and that the rows of the files say what the log says.
    pub async fn verify_log(&self) -> Result<LogReport, Error> {
        let mut report = LogReport::default();
        let checkpoints = self.0.db.logbook().checkpoints().await?;
        report.checkpoints = checkpoints.len() as u64;
        let (witnesses, vouches) = self.read_witnesses(&mut report).await;
        let keys = self.log_keys().await?;
        let token = self.0.node_token.as_deref();
        let trust = KeyTrust::new(&self.key().public_key(), token, &keys, &vouches);
        for mark in &checkpoints {
            report.check_signature(mark, &format!("checkpoint {}", mark.size), &trust);
        }
        for (replica, name, mark) in &witnesses {
            report.check_signature(mark, &format!("{name} on {replica}"), &trust);
        }
        let marks = checkpoints;
        let sizes = marks.iter().map(|mark| mark.size).chain(witnesses.iter().map(|(_, _, one)| one.size));
        let mut log = LogReading::at(sizes.collect());
        // The log grows while it is read: as many leaves as there were before are read at least, and no more than there are
        // after.
        let least = self.0.db.logbook().size().await?;
        self.read_on(&mut log, &mut report).await?;
        let most = self.0.db.logbook().size().await?;
        if !(least..=most).contains(&log.tree.len()) {
            report.problem(format!("the log should have {least} leaves and has {}", log.tree.len()));
        }
        for mark in &marks {
            if log.roots.get(&mark.size) != Some(&mark.root) {
                report.problem(format!(
                    "the log is not what was signed at {} with {} leaves",
                    mark.at, mark.size
                ));
            }
        }
        for (replica, name, mark) in witnesses {
            let lost = log.said.lost_roots.contains(&mark.root);
            let holds = !lost && holds(&log.tree, &mark);
            if !holds && !lost {
                let (at, size) = (mark.at, mark.size);
                let cause = if saw_another_log(&mark, log.times.get(&size).copied()) {
                    "the log in this database was shorter then: the database was lost, or replaced by an older copy; if that is \
                     known, run `grange archive rebuild`, which records it"
                } else {
                    "it was rewritten since"
                };
                report.problem(format!(
                    "{name} on {replica} saw another log at {at} with {size} leaves: {cause}"
                ));
            }
            report.witnesses.push(WitnessReport { replica, name, size: mark.size, holds, of_lost_log: lost });
        }
        self.compare_rows(&mut log, &mut report).await?;
        report.leaves = log.tree.len();
        report.root = log.tree.root();
        report.ok = report.problem_count == 0;
        let found = (!report.ok)
            .then(|| format!("{} problems; the first: {}", report.problem_count, report.problems.join("; ")));
        let kind = FindingKind::FailedLogVerification;
        self.0.db.findings().observe(kind, "the log of events", found).await?;
        Ok(report)
    }

    /// The witnesses of all replicas that answer, and the vouches for keys that they carry.
    async fn read_witnesses(
        &self,
        report: &mut LogReport,
    ) -> (Vec<(String, FileName, Checkpoint)>, Vec<SignedVouch>) {
        let (mut found, mut vouches) = (Vec::new(), Vec::<SignedVouch>::new());
        for replica in &self.0.replicas {
            if replica.verify().await.is_err() {
                report.away.push(replica.name().to_owned());
                continue;
            }
            match replica.witnesses(witness::is_of_log).await {
                Ok(witnesses) => {
                    for (name, text) in witnesses {
                        match text.and_then(|text| serde_json::from_slice::<Witness>(&text).ok()) {
                            Some(witness) => {
                                vouches.extend(witness.vouches);
                                found.push((replica.name().to_owned(), name, witness.checkpoint));
                            }
                            None => {
                                report
                                    .problem(format!("{name} on {} is no witness any more", replica.name()));
                            }
                        }
                    }
                }
                Err(error) => {
                    report.problem(format!(
                        "the witnesses on {} cannot be read: {}",
                        replica.name(),
                        Chain(&error)
                    ));
                }
            }
        }
        vouches.sort_by(|one, other| (&one.public_key, &one.by_key).cmp(&(&other.public_key, &other.by_key)));
        vouches.dedup();
        (found, vouches)
    }

    /// Reads the leaves that came since, to the end of the log.
    async fn read_on(&self, log: &mut LogReading, report: &mut LogReport) -> Result<(), Error> {
        while !log.broken {
            let leaves = self.0.db.logbook().leaves(log.tree.len(), LEAVES_AT_ONCE).await?;
            if leaves.is_empty() {
                break;
            }
            for leaf in &leaves {
                if !log.push(leaf, report) {
                    report.problem(format!("leaf {} is missing from the log", log.tree.len()));
                    log.broken = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// A row changed behind the log's back is a rewriting too.
    async fn compare_rows(&self, log: &mut LogReading, report: &mut LogReport) -> Result<(), Error> {
        let mut filter = FileFilter::default();
        loop {
            let page = self.list(&filter).await?;
            let Some(last) = page.last() else { return Ok(()) };
            filter.after = Some(last.file.name.clone());
            let mut doubted = Vec::new();
            for file in page.into_iter().map(|status| status.file).filter(|file| file.stored_at.is_some()) {
                report.files += 1;
                if !log.said.confirms(&file) {
                    doubted.push(file);
                }
            }
            // Stored or corrected since the log was read: the leaf came with the row.
            while !doubted.is_empty() {
                self.read_on(log, report).await?;
                doubted = self.still_doubted(doubted, log, report).await?;
            }
        }
    }

    /// Reads these rows again. A row that is as it was before the last leaves were read, and that they do not confirm, is a
    /// problem; one that changed meanwhile is still doubted.
    async fn still_doubted(
        &self,
        doubted: Vec<StoredFile>,
        log: &LogReading,
        report: &mut LogReport,
    ) -> Result<Vec<StoredFile>, Error> {
        let mut changed = Vec::new();
        for before in doubted {
            let Some(now) = self.status(&before.name).await?.map(|status| status.file) else { continue };
            if now.stored_at.is_none() || log.said.confirms(&now) {
                continue;
            }
            if (&now.checksums, now.size) == (&before.checksums, before.size) {
                report.problem(format!("the row of {} does not say what the log says", now.name));
            } else {
                changed.push(now);
            }
        }
        Ok(changed)
    }
}

/// The log as far as it was read.
struct LogReading {
    tree: Tree,
    said: Said,
    /// Sizes that somebody signed.
    sizes: HashSet<u64>,
    /// The roots at those sizes, computed as the log is read.
    roots: HashMap<u64, String>,
    /// And when the last leaf of those sizes was added.
    times: HashMap<u64, Timestamp>,
    /// A leaf is missing: what comes after it proves nothing.
    broken: bool,
}

impl LogReading {
    fn at(sizes: HashSet<u64>) -> Self {
        let tree = Tree::default();
        let roots = sizes.get(&0).map(|size| (*size, tree.root())).into_iter().collect();
        Self { tree, said: Said::default(), sizes, roots, times: HashMap::new(), broken: false }
    }

    /// False where the leaf is not the next one.
    fn push(&mut self, leaf: &Leaf, report: &mut LogReport) -> bool {
        if !self.tree.push(leaf) {
            return false;
        }
        let added_at = self.said.hear(leaf, report);
        let size = self.tree.len();
        if self.sizes.contains(&size) {
            self.roots.insert(size, self.tree.root());
            self.times.extend(added_at.map(|at| (size, at)));
        }
        true
    }
}

/// That the witnessed log is the beginning of this one, by RFC 9162.
pub(crate) fn holds(tree: &Tree, mark: &Checkpoint) -> bool {
    if mark.size == 0 || mark.size > tree.len() {
        return mark.size == 0 && mark.root == Tree::default().root();
    }
    let Some(proof) = tree.consistency(mark.size) else { return false };
    tree::check_consistency((mark.size, &mark.root), (tree.len(), &tree.root()), &proof).is_ok()
}

/// What the log says of files, in sixteen bytes each: hashes with a key that nobody outside knows.
#[derive(Default)]
struct Said {
    state: RandomState,
    /// Name to checksum and size.
    bytes: HashMap<u64, u64>,
    /// Roots of logs that were lost before a rebuild.
    lost_roots: Vec<String>,
}

impl Said {
    /// Gives when the leaf was added.
    fn hear(&mut self, leaf: &Leaf, report: &mut LogReport) -> Option<Timestamp> {
        let Ok(record) = serde_json::from_str::<LogRecord>(&leaf.body) else {
            report.problem(format!("leaf {} cannot be read", leaf.number));
            return None;
        };
        self.lost_roots.extend(lost_roots(&record));
        if let (LogEvent::Stored | LogEvent::Rebuilt | LogEvent::Amended, Some(name), Some(checksum)) =
            (record.event, &record.name, &record.checksum)
        {
            let bytes = self.state.hash_one((checksum.as_str(), record.size));
            self.bytes.insert(self.state.hash_one(name.as_str()), bytes);
        }
        Some(record.at)
    }

    fn confirms(&self, file: &StoredFile) -> bool {
        let bytes = self.state.hash_one((deciding(&file.checksums).as_str(), Some(file.size)));
        self.bytes.get(&self.state.hash_one(file.name.as_str())) == Some(&bytes)
    }
}
