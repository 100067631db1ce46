//! Global trap lists and the tester.

use std::io;
use std::path::{Path, PathBuf};

use grange_db::{FileFilter, JobFilter};
use grange_model::FileName;
use grange_model::account::Permission;
use grange_model::harvest::trap::{self, TrapTester};
use grange_model::harvest::{JobId, JobStatus, JobTrapHits, TrapHits, TrapList};

use super::{bad_lines, parsed};
use crate::{App, Error, Who};

/// Gives every line of the crawl log in a job's metadata file, without holding more than one.
pub type ReadCrawlLog = fn(&Path, &mut dyn FnMut(&[u8])) -> io::Result<()>;

/// How crawl logs of stored jobs are read, and where a metadata file lies meanwhile.
#[derive(Clone, Debug)]
pub struct CrawlLogs {
    pub read: ReadCrawlLog,
    pub scratch: PathBuf,
}

/// Jobs looked at when none is named: the newest that are done, as many as take some minutes at most.
const JOBS_UNNAMED: u32 = 10;
/// Jobs that may be named at once.
const JOBS_MAX: usize = 1000;
/// Attempts at one job, each with its metadata file.
const ATTEMPTS_MAX: u32 = 100;

impl App {
    pub async fn trap_lists(&self, who: &Who) -> Result<Vec<TrapList>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.traps().list().await?)
    }

    pub async fn trap_list(&self, who: &Who, name: &str) -> Result<TrapList, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.traps().get(&parsed(name)?).await?)
    }

    /// Makes or replaces a list; `text` has an expression per line.
    pub async fn save_traps(
        &self,
        who: &Who,
        name: &str,
        description: &str,
        active: bool,
        text: &str,
        edition: Option<i64>,
    ) -> Result<TrapList, Error> {
        who.needs(Permission::EditHarvests)?;
        let expressions = trap::parse(text).map_err(|bad| bad_lines("the traps", bad))?;
        let traps = self.db.traps();
        Ok(traps.save(&parsed(name)?, description, active, &expressions, edition, &who.actor()).await?)
    }

    pub async fn set_traps_active(&self, who: &Who, name: &str, active: bool) -> Result<TrapList, Error> {
        let list = self.trap_list(who, name).await?;
        let text = list.expressions.join("\n");
        self.save_traps(who, name, &list.description, active, &text, Some(list.edition)).await
    }

    pub async fn delete_traps(&self, who: &Who, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.traps().delete(&parsed(name)?, &who.actor()).await?)
    }

    /// Counts what expressions would have blocked among the lines of crawl logs.
    pub fn test_traps(&self, who: &Who, text: &str, crawl_log: &str) -> Result<TrapHits, Error> {
        who.needs(Permission::View)?;
        let expressions = trap::parse(text).map_err(|bad| bad_lines("the traps", bad))?;
        let mut tester = TrapTester::new(&expressions).map_err(Error::Invalid)?;
        crawl_log.lines().for_each(|line| tester.line(line));
        Ok(tester.hits())
    }

    /// Counts what expressions would have blocked in the crawl logs of stored jobs; of the newest, if none is named.
    pub async fn test_traps_on_jobs(
        &self,
        who: &Who,
        text: &str,
        jobs: Vec<JobId>,
    ) -> Result<JobTrapHits, Error> {
        // Examples of what matches are URLs of captures, hidden ones too.
        who.needs(Permission::ReadSystem)?;
        let expressions = trap::parse(text).map_err(|bad| bad_lines("the traps", bad))?;
        let mut tester = TrapTester::new(&expressions).map_err(Error::Invalid)?;
        if jobs.len() > JOBS_MAX {
            return Err(Error::Invalid(format!(
                "{} jobs are too many at once: name {JOBS_MAX} at most",
                jobs.len()
            )));
        }
        let Some(logs) = &self.harvesting.crawl_logs else {
            return Err(Error::Invalid("this node cannot read the crawl logs of stored jobs".to_owned()));
        };
        let jobs = if jobs.is_empty() { self.newest_jobs().await? } else { jobs };
        tokio::fs::create_dir_all(&logs.scratch).await.map_err(|error| scratch(&logs.scratch, error))?;
        let place = tempfile::tempdir_in(&logs.scratch).map_err(|error| scratch(&logs.scratch, error))?;
        let (mut read, mut missing) = (Vec::new(), Vec::new());
        for job in jobs {
            let files = self.metadata_files(job).await?;
            if files.is_empty() {
                missing.push(job);
                continue;
            }
            for name in files {
                let path = place.path().join(name.as_str());
                self.archive.get().await?.get(&name, &path).await?;
                let reader = logs.read;
                let work = move || {
                    let done = reader(&path, &mut |line| tester.line(&String::from_utf8_lossy(line)));
                    // It has served; the folder goes in any case.
                    let _ = std::fs::remove_file(&path);
                    done.map(|()| tester)
                };
                let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
                tester = done.map_err(|error| {
                    Error::Invalid(format!("the metadata file {name} of job {job} cannot be read: {error}"))
                })?;
            }
            read.push(job);
        }
        Ok(JobTrapHits { hits: tester.hits(), jobs: read, missing })
    }

    async fn newest_jobs(&self) -> Result<Vec<JobId>, Error> {
        let filter = JobFilter { status: vec![JobStatus::Done], limit: JOBS_UNNAMED, ..JobFilter::default() };
        Ok(self.db.jobs().list(&filter).await?.into_iter().map(|job| job.id).collect())
    }

    /// The metadata files of a job in the archive: `<job>-metadata-<n>.warc.gz`.
    async fn metadata_files(&self, job: JobId) -> Result<Vec<FileName>, Error> {
        let begin = format!("{job}-metadata-");
        let filter = FileFilter { after: begin.parse().ok(), limit: ATTEMPTS_MAX, ..FileFilter::default() };
        let found = self.archive.get().await?.list(&filter).await?;
        let names = found.into_iter().map(|status| status.file.name);
        Ok(names.take_while(|name| name.as_str().starts_with(&begin)).collect())
    }
}

fn scratch(place: &Path, error: io::Error) -> Error {
    Error::Invalid(format!("cannot put metadata files into {}: {error}", place.display()))
}
