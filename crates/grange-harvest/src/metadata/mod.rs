//! The papers of a job: `<job>-metadata-1.warc.gz`, which says how the job was set up, what its crawler logged and
//! reported, and what lies where in its files. Later jobs are built on it (duplicate reduction, trap tests), and tools
//! written for NetarchiveSuite read it.
//!
//! ```text
//! crawl ── each closed WARC ──▶ note_file ──▶ cdx/ ── the end ──▶ write ──▶ metadata/ ── archive ──▶ read
//! ```
//!
//! Invariants:
//! - The file is made from the job folder: same folder, same records, with the same ids and dates.
//! - It is there whole or not at all; a crash half-way leaves only a file ending in `.open`, which the next try removes.
//! - Nothing is held in memory but a buffer, however large logs and WARC files are.
//! - Passwords never get in: of `job.json`, which holds them, only the traps are taken.

mod address;
mod info;
mod joined;
mod nas_cdx;
mod paper;
pub mod read;
#[cfg(test)]
mod tests;
mod write;

pub use address::{Address, Class};
pub use nas_cdx::note_file;
pub use write::write;

use grange_db::FileFilter;
use grange_model::FileName;
use grange_model::harvest::JobId;

/// The name of a job's metadata file; `number` is the attempt at the job.
pub fn file_name(job: JobId, number: u32) -> String {
    format!("{job}-metadata-{number}.warc.gz")
}

/// The job whose metadata file this is, by its name: `(prefix-)<job>(-…)-metadata-<n>.(w)arc(.gz)`, as
/// NetarchiveSuite looks for them.
pub fn job_of(file: &str) -> Option<JobId> {
    let file = file.strip_suffix(".gz").unwrap_or(file);
    let stem = file.strip_suffix(".warc").or_else(|| file.strip_suffix(".arc"))?;
    let (job, number) = stem.rsplit_once("-metadata-")?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(number) {
        return None;
    }
    // The first part that is a number: prefixes of collections are words.
    job.split('-').find(|part| digits(part)).and_then(|part| part.parse().ok())
}

/// The metadata files of a job that the archive has. A job that was tried several times may have several.
pub async fn stored(
    archive: &dyn grange_archive::ArchiveClient,
    job: JobId,
) -> Result<Vec<FileName>, grange_archive::Error> {
    let begin = format!("{job}-metadata-");
    let filter = FileFilter { after: begin.parse().ok(), limit: ATTEMPTS_MAX, ..FileFilter::default() };
    let names = archive.list(&filter).await?.into_iter().map(|status| status.file.name);
    Ok(names
        .take_while(|name| name.as_str().starts_with(&begin))
        .filter(|name| job_of(name.as_str()) == Some(job))
        .collect())
}

/// Attempts at one job looked for; the scheduler gives up far earlier.
const ATTEMPTS_MAX: u32 = 100;
