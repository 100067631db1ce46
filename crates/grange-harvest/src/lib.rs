//! A job from its claim to its report: run its engine, document the crawl, deposit every file, tell what came of it.
//!
//! It must never plan: which jobs there are is the scheduler's, and neither names the other.
//!
//! ```text
//! claim ─▶ folder ─▶ engine ──chunks──▶ deposit (while the crawl goes on)
//!                      │ outcome
//!                      ▼
//!                  metadata WARC ─▶ deposit ─▶ report ─▶ folder removed, once every replica is proven
//! ```
//!
//! # Invariants
//!
//! * A [`JobFolder`] is made before anything is fetched and goes only when every file in it is proven on every
//!   replica. What a killed harvester left is found by its folders: resumed if the job is still to be had, else
//!   documented, stored and left to whoever has the job now.
//! * A job whose folder is lost is continued from the files that were stored of it: its new folder is crawled only after they
//!   have been imported.
//! * Whatever happens to the crawl, what was captured is stored. Errors of the harvest and of the upload are kept apart.
//! * Whoever lost the lease of a job stops crawling it and reports nothing.
//!
//! # The two parts with a life of their own
//!
//! [`metadata`] turns a folder into its metadata WARC:
//!
//! * [`metadata::note_file`] is called once for every closed WARC file, before the file is deposited and may go. It
//!   leaves in [`JobFolder::cdx`] what the CDX record of that file needs. Calling it again changes nothing.
//! * [`metadata::write`] is called once the crawl has ended, however it ended, and again after a crash: if the file is
//!   there it is not made again. It reads the folder and the [`JobPapers`] and nothing else. It leaves
//!   `metadata/<jobid>-metadata-<number>.warc.gz`, number as in [`HarvestInfo::metadata_number`].
//!   It never packs [`JobFolder::crawl`]`/job.json`, which holds passwords.
//!
//! [`dedup`] answers the crawler's question whether a capture was stored before:
//!
//! * [`dedup::oracle_for`] is called before the crawl, and again when it is resumed. Jobs it knows nothing of are told in
//!   [`dedup::Prepared::missing`]; they never fail the job.

mod active_work;
mod crawl;
pub mod crawl_job;
mod crawling;
pub mod dedup;
mod deposit;
pub mod engine;
pub mod folder;
mod found;
mod gate;
mod harvester;
mod home;
pub mod metadata;
mod native;
pub mod oai;
pub mod papers;
mod prepare;
mod prepare_gate;
mod pulse;
pub mod report;
pub mod seed_owners;
mod settings;
pub mod statistics;
mod store;
mod takeover;
#[cfg(test)]
pub(crate) mod test_bed;
#[cfg(test)]
pub(crate) mod test_shelf;
mod waiting;
pub mod watchdog;

pub use engine::Engine;
pub use folder::{HarvestInfo, JobFolder};
pub use harvester::{Error, Harvester, Parts};
pub use native::{Native, check_template, shipped_templates};
pub use papers::JobPapers;
pub use settings::Settings;
