//! The `[archive]` section of the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use grange_base::{Period, Size};
use grange_model::{Algorithm, ReplicaKind, ReplicaName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The replicas of the archive, and how they are kept true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The replicas by name. Two with bytes and one with checksums are three opinions and two copies: the least that
    /// can tell which copy went bad. A replica that is in use cannot be left out again.
    #[schemars(with = "BTreeMap<String, ReplicaSettings>")]
    pub replicas: BTreeMap<ReplicaName, ReplicaSettings>,

    /// Which checksums are computed when a file comes in. The strongest of them decides, the others are for people
    /// with old lists.
    pub checksums: Vec<Algorithm>,

    /// How often a file is sent again to a replica that took it and then says it has nothing. One, as in
    /// NetarchiveSuite: more would only hide a bad disk.
    pub upload_retries: u32,

    /// How long a file or a check belongs to the process that works on it, renewed while it does. A killed process
    /// holds up its files for so long.
    pub lease: Period,

    /// The first pause before a file is tried again on a replica that failed; doubled up to `retry_most`.
    pub retry_first: Period,

    /// The longest pause between tries.
    pub retry_most: Period,

    /// How often every replica is asked which files it has; `0s` never does.
    pub list_every: Period,

    /// How often every byte of every replica is read and compared; `0s` never does. 90 days is what most archives
    /// of this kind aim at.
    pub check_every: Period,

    /// How often some files of each replica are challenged with a fresh salt; `0s` never does.
    pub challenge_every: Period,

    /// How many files each of those challenges picks; at least 1.
    pub challenge_files: u32,

    /// The most bytes per second that checks read from one replica; `0B` is no limit.
    pub check_bytes_per_second: Size,

    /// The hours of the day, UTC, in which checks may read: from, and up to but not including. `[0, 24]` is always,
    /// `[22, 6]` the night.
    pub check_hours: [u8; 2],

    /// Over how long a check by the calendar is spread, so that disks are left to people and a bad disk is not met by
    /// the checks of all replicas in one night; `0s` reads as fast as it may. Checks asked for by people never wait.
    pub check_spread: Period,

    /// Whether copies that a check by the calendar finds missing are made again at once from a proven one. A corrupt
    /// copy always waits for a second pair of eyes.
    pub repair_missing: bool,

    /// How many files are named to a replica in one question of a check; at least 1.
    pub check_page: u32,

    /// How often the log is signed.
    pub checkpoint_every: Period,
}

/// One replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReplicaSettings {
    /// `bitarchive` keeps bytes, `checksum` names and checksums only.
    pub kind: ReplicaKind,

    /// Where: for a bitarchive the stores of its nodes, one or many, as `{ url = "file:FOLDER" }` with the options of
    /// a store; for a checksum replica one `file:` folder, or `peer://HOST:PORT/NAME` for the folder of another node.
    /// Relative folders are below the data folder. Empty means `file:replicas/NAME`.
    pub at: Vec<grange_blob::Settings>,

    /// A file whose first line must be given to take a copy out of this replica without a second person's word. Empty means
    /// `secrets/replica-NAME.credential` in the data folder, created at first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_file: Option<PathBuf>,
}

impl Default for ReplicaSettings {
    fn default() -> Self {
        Self { kind: ReplicaKind::Bitarchive, at: Vec::new(), credential_file: None }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let replica = |name: &str, kind| {
            let name = name.parse().ok()?;
            Some((name, ReplicaSettings { kind, ..ReplicaSettings::default() }))
        };
        let replicas = [
            replica("one", ReplicaKind::Bitarchive),
            replica("two", ReplicaKind::Bitarchive),
            replica("three", ReplicaKind::Checksum),
        ];
        Self {
            replicas: replicas.into_iter().flatten().collect(),
            checksums: Algorithm::ALL.iter().rev().copied().collect(),
            upload_retries: 1,
            lease: Period::from_secs(30),
            retry_first: Period::from_secs(10),
            retry_most: Period::from_secs(60 * 60),
            list_every: Period::from_secs(24 * 60 * 60),
            check_every: Period::from_secs(90 * 24 * 60 * 60),
            challenge_every: Period::from_secs(24 * 60 * 60),
            challenge_files: 100,
            check_bytes_per_second: Size(0),
            check_hours: [0, 24],
            check_spread: Period::from_secs(7 * 24 * 60 * 60),
            repair_missing: true,
            check_page: 500,
            checkpoint_every: Period::from_secs(60 * 60),
        }
    }
}

impl Settings {
    /// The checksum that decides.
    pub fn strongest(&self) -> Algorithm {
        self.checksums.iter().copied().max().unwrap_or(Algorithm::Sha512)
    }

    /// Whether checks may read in this hour of the day.
    pub fn may_check(&self, hour: u8) -> bool {
        let [from, to] = self.check_hours;
        if from <= to { (from..to).contains(&hour) } else { hour >= from || hour < to }
    }

    /// Every setting here that cannot work, with the reason.
    pub fn unusable(&self) -> Vec<Unusable> {
        let mut found = Vec::new();
        let mut refuse = |wrong: bool, key: &str, reason: &str| {
            if wrong {
                found.push(Unusable { key: key.to_owned(), reason: reason.to_owned() });
            }
        };
        refuse(
            !self.replicas.values().any(|replica| replica.kind == ReplicaKind::Bitarchive),
            "replicas",
            "at least one replica must be of kind bitarchive, or no bytes are kept",
        );
        refuse(self.checksums.is_empty(), "checksums", "the list is empty: name at least sha512");
        refuse(
            self.lease.0.is_zero(),
            "lease",
            "a lease of 0s ends before any work is done: the default is 30s",
        );
        refuse(
            self.retry_most < self.retry_first,
            "retry_most",
            "it is shorter than retry_first, the first pause",
        );
        refuse(
            self.check_page == 0,
            "check_page",
            "with 0 files per question a check would ask for nothing and find everything missing: the default is 500",
        );
        refuse(
            self.challenge_files == 0 && !self.challenge_every.0.is_zero(),
            "challenge_files",
            "a challenge of 0 files proves nothing: set challenge_every = \"0s\" to have none",
        );
        let [from, to] = self.check_hours;
        refuse(
            from > 23 || to > 24 || from == to,
            "check_hours",
            "no hour of the day is in it: write [0, 24] for always, [22, 6] for the night",
        );
        for (name, replica) in &self.replicas {
            let key = |rest: &str| format!("replicas.{name}.at{rest}");
            if replica.kind == ReplicaKind::Checksum && replica.at.len() > 1 {
                let reason = "a checksum replica is located in one place".to_owned();
                found.push(Unusable { key: key(""), reason });
            }
            for (index, place) in replica.at.iter().enumerate() {
                if place.checksums.is_empty() {
                    let reason = "the list is empty: name at least sha512".to_owned();
                    found.push(Unusable { key: key(&format!("[{index}].checksums")), reason });
                }
            }
        }
        found
    }
}

/// A setting of the section that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Below `archive`.
    pub key: String,
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_three_opinions_and_two_copies() {
        let settings = Settings::default();
        assert_eq!(settings.unusable(), []);
        let kinds: Vec<_> =
            settings.replicas.iter().map(|(name, replica)| format!("{name} {}", replica.kind)).collect();
        assert_eq!(kinds, ["one bitarchive", "three checksum", "two bitarchive"]);
        assert_eq!(settings.strongest(), Algorithm::Sha512);
        let read: Settings = toml::from_str("check_hours = [22, 6]\n[replicas.a]\n").unwrap();
        assert_eq!(read.replicas.len(), 1);
        let hours: Vec<_> = (0..24).filter(|hour| read.may_check(*hour)).collect();
        assert_eq!(hours, [0, 1, 2, 3, 4, 5, 22, 23]);
        assert!(toml::from_str::<Settings>("upload_retrys = 1").is_err());
        let only_sums: Settings = toml::from_str("[replicas.a]\nkind = \"checksum\"\n").unwrap();
        assert!(only_sums.unusable()[0].reason.contains("bitarchive"));
    }

    #[test]
    fn a_value_that_cannot_work_is_refused_with_its_reason() {
        for (text, key) in [
            ("check_page = 0", "check_page"),
            ("lease = \"0s\"", "lease"),
            ("retry_first = \"2h\"", "retry_most"),
            ("challenge_files = 0", "challenge_files"),
            ("check_hours = [5, 5]", "check_hours"),
            ("check_hours = [0, 25]", "check_hours"),
            ("checksums = []", "checksums"),
            ("[replicas.a]\nat = [{ checksums = [] }]", "replicas.a.at[0].checksums"),
            (
                "[replicas.a]\n[replicas.b]\nkind = \"checksum\"\nat = [{ url = \"file:x\" }, { url = \"file:y\" }]",
                "replicas.b.at",
            ),
        ] {
            let found = toml::from_str::<Settings>(text).unwrap().unusable();
            assert_eq!(found.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), [key], "{text}");
        }
        let none = "challenge_files = 0\nchallenge_every = \"0s\"\nupload_retries = 0\ncheck_hours = [22, 6]";
        assert_eq!(toml::from_str::<Settings>(none).unwrap().unusable(), []);
    }
}
