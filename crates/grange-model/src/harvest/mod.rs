//! Harvests: what is harvested, when, within which limits, and what became of it.
//!
//! ```text
//! domain ── configuration ── seed lists        what one site is harvested with
//!                 │
//! harvest definition (selective: chosen configurations + schedule; snapshot: every domain, once)
//!                 │ a run is due
//!                 ▼
//!               run ── job ── job ── …         each job one crawl on one harvester, then history per configuration
//! ```

pub mod alias;
pub mod channel;
pub mod definition;
pub mod domain;
pub mod domain_name;
pub mod event_seeds;
pub mod fields;
pub mod history;
pub mod job;
pub mod limit;
pub mod login;
pub mod name;
pub mod progress;
pub mod schedule;
pub mod schedule_dates;
pub mod seeds;
pub mod template;
pub mod trap;

pub use alias::{Alias, AliasError, AliasReview};
pub use channel::{Channel, ChannelKind, ChannelName, Harvester, HarvesterState};
pub use definition::{HarvestDefinition, HarvestKind, Run};
pub use domain::{Configuration, DEFAULT_CONFIGURATION, DEFAULT_SEEDS, Domain, NewConfiguration};
pub use domain_name::{DomainName, DomainNameError};
pub use fields::{CustomField, FieldKind, FieldNoun};
pub use history::{Best, DomainReport, HistoryEntry, StopReason};
pub use job::{HarvestId, Job, JobConfiguration, JobId, JobSpec, JobStatus};
pub use limit::{Limit, Limits};
pub use login::{CredentialShown, LoginForm};
pub use name::{Name, NameError};
pub use progress::{CrawlState, Progress};
pub use schedule::{At, Ends, Every, Schedule, ScheduleError, Unit};
pub use schedule_dates::Next;
pub use seeds::{BadLine, SeedList};
pub use template::{Template, TemplateCheck};
pub use trap::{JobTrapHits, TrapHits, TrapList};
