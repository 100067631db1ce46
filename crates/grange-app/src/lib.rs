//! Every act a person may perform, with permission and audit: one cloneable handle.
//!
//! The page, the JSON API and the command line call the same methods. Permission is asked in one place
//! ([`Who`]), secrets are hashed here, and the audit row is written by the store in the act's own transaction.
//! Nothing here knows HTTP, HTML or a terminal.

mod access;
mod access_csv;
mod access_terms;
mod archive;
mod changes;
mod collections;
mod error;
mod harvest;
mod oai;
mod password;
mod secret;
mod sessions;
mod system;
mod tokens;
mod users;
mod who;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use grange_base::Clock;
use grange_db::Db;
use jiff::Timestamp;

pub use access::{Access, AccessTest, RuleDraft, RulePart};
pub use archive::OpenArchive;
pub use collections::CollectionImport;
pub use error::Error;
pub use grange_archive::Error as ArchiveError;
pub use grange_db::{
    CollectedState, ConfigurationChange, HarvestChange, JobFilter, NewChannel, NewHarvest, NewRecurring,
    OaiHistoryFilter, Which,
};
pub use harvest::{CrawlLogs, Harvesting, ImportReport, NewLogin, ReadCrawlLog};
pub use oai::OaiPort;
pub use sessions::{LoggedIn, SessionOf};
pub use who::{Via, Who};

/// The acts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    db: Db,
    clock: Clock,
    rules: Arc<Rules>,
    archive: OpenArchive,
    harvesting: Arc<Harvesting>,
    oai: Option<Arc<dyn OaiPort>>,
    buckets: grange_blob::Buckets,
}

/// What the settings say about acts.
#[derive(Clone, Debug)]
pub struct Rules {
    pub session_lifetime: Duration,
    pub session_idle: Duration,
    pub secure_cookies: bool,
    /// A node not heard of for so long counts as lost.
    pub lost_after: Duration,
    /// Where copies of the embedded database go.
    pub backups: PathBuf,
    /// What was opened.
    pub database: grange_db::Status,
}

impl App {
    pub fn new(db: Db, clock: Clock, rules: Rules, archive: OpenArchive) -> Self {
        Self {
            db,
            clock,
            rules: Arc::new(rules),
            archive,
            harvesting: Arc::default(),
            oai: None,
            buckets: grange_blob::Buckets::default(),
        }
    }

    /// The time that plans, leases and records go by: the database's.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// With what the settings say about harvests; without it the defaults hold and logins cannot be kept.
    #[must_use]
    pub fn with_harvesting(self, harvesting: Harvesting) -> Self {
        Self { harvesting: Arc::new(harvesting), ..self }
    }

    /// With buckets whose files may be imported.
    #[must_use]
    pub fn with_buckets(self, buckets: grange_blob::Buckets) -> Self {
        Self { buckets, ..self }
    }

    pub fn secure_cookies(&self) -> bool {
        self.rules.secure_cookies
    }
}
