//! Metadata harvesting over OAI-PMH: whom we ask, what we hold of theirs, which jobs there are, what became of them.
//!
//! ```text
//! repository ── sets, formats          what Identify, ListSets and ListMetadataFormats said
//!      │
//! recurring job ── job ── history      one harvest of one set in one format; a line for how it ended
//!      │
//!   record ── set mapping              (repository, identifier, prefix), a file each
//! ```

pub mod choice;
pub mod counts;
pub mod history;
pub mod ids;
pub mod job;
pub mod page;
pub mod record;
pub mod recurring;
pub mod repository;

pub use choice::{DeletedPolicy, DeletedSupport, Granularity, Method, Outcome, Slices, Validation};
pub use counts::Counts;
pub use history::HistoryLine;
pub use ids::{HistoryId, OaiJobId, RecurringId, RepositoryId};
pub use job::{HarvestSpec, OaiJob, OaiJobStatus};
pub use page::{KnownRecord, OaiPage, RecordRow};
pub use record::{OaiRecord, RecordStatus};
pub use recurring::{RecurringJob, RecurringState};
pub use repository::{Format, Identified, Repository, RepositoryRules, Set};
