//! The folder of a job: what lies where.
//!
//! ```text
//! <jobid>_<timestamp>/
//!   harvest-info.json   which job this is, of which harvest, by whose claim; written first
//!   seeds.txt           what the crawl starts from
//!   seed-owners.json    the configuration that each seed counts for
//!   template.toml       the template as it was when the job was planned
//!   crawl/              the engine's own: job.json, warcs/, logs/, reports/, manifests/, state/
//!   cdx/                one file for each closed WARC file, kept when the WARC itself has gone
//!   metadata/           <jobid>-metadata-<number>.warc.gz
//!   stored/             a file of an earlier attempt while it is imported
//!   taken-over          what earlier attempts stored is imported
//!   crawl-starts.json   when the crawl was begun or resumed and not laid aside in order since
//!   outcome.json        how the crawl ended; from here on it is only documented and deposited
//!   reported            the job's end is known to the database
//! ```
//!
//! Only its owner may look into it: `crawl/job.json` holds the passwords of logins.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use grange_model::harvest::{DomainName, Job, JobId, Name};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const INFO: &str = "harvest-info.json";
const REPORTED: &str = "reported";
const TAKEN_OVER: &str = "taken-over";
const CRAWL_STARTS: &str = "crawl-starts.json";
/// Where the ending of a crawl is kept.
pub(crate) const OUTCOME: &str = "outcome.json";
/// How the name of a folder begins while it is being made.
const ASIDE: &str = ".new-";

/// Which job a folder belongs to, and what its papers say of it. Frozen when the folder is made, but for the claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HarvestInfo {
    /// Of this file; a newer one is refused.
    pub version: u32,
    pub job: Job,
    pub harvest_comments: String,
    pub audience: String,
    pub schedule: Option<Name>,
    /// Who runs the crawl: a person or an office.
    pub operator: String,
    /// How the names of the job's WARC files begin.
    pub file_prefix: String,
    /// The number in the name of the metadata file: which attempt at the job this folder is. 1 unless a harvester died
    /// and another began anew, so that what both stored does not collide.
    pub metadata_number: u32,
    /// Earlier attempts may have stored files: the crawl is continued from them.
    #[serde(default)]
    pub earlier_attempts: bool,
    /// `domain` shows the same site as its alias.
    pub aliases: Vec<(DomainName, DomainName)>,
    pub duplicate_reduction_jobs: Vec<JobId>,
    /// Who made the folder.
    pub harvester: String,
    /// The fencing token of the claim.
    pub claim_token: i64,
    /// Which attempt at the job the claim is; 0 in folders of older versions, which did not note it.
    #[serde(default)]
    pub attempt: u32,
}

impl HarvestInfo {
    pub const VERSION: u32 = 1;
}

/// The folder of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFolder {
    root: PathBuf,
}

impl JobFolder {
    /// Makes the folder of a job that was just claimed, with everything that `fill` writes into it. It is there whole or not at
    /// all: a crawl that is resumed in half a folder would fail its job.
    pub fn create<E>(
        base: &Path,
        info: &HarvestInfo,
        now: Timestamp,
        failed: impl Fn(PathBuf, io::Error) -> E,
        fill: impl FnOnce(&JobFolder) -> Result<(), E>,
    ) -> Result<JobFolder, E> {
        let aside = JobFolder { root: base.join(format!("{ASIDE}{}", info.job.id)) };
        let root = base.join(format!("{}_{}", info.job.id, now.strftime("%Y%m%d%H%M%S%3f")));
        let begun = || {
            fs::create_dir_all(base)?;
            aside.remove()?;
            DirBuilder::new().mode(0o700).create(&aside.root)?;
            for place in [aside.cdx(), aside.metadata()] {
                fs::create_dir(place)?;
            }
            aside.save_info(info)
        };
        let named = || {
            if aside.crawl().exists() {
                File::open(aside.crawl())?.sync_all()?;
            }
            File::open(&aside.root)?.sync_all()?;
            fs::rename(&aside.root, &root)?;
            File::open(base)?.sync_all()
        };
        let io = |source| failed(base.to_owned(), source);
        let made = begun().map_err(io).and_then(|()| fill(&aside)).and_then(|()| named().map_err(io));
        if let Err(error) = made {
            // Nothing was fetched into it. A name whose sync failed is not believed.
            let _ = aside.remove();
            let _ = JobFolder { root }.remove();
            return Err(error);
        }
        Ok(JobFolder { root })
    }

    /// The folder at this path, whatever lies there.
    pub fn at(root: PathBuf) -> JobFolder {
        JobFolder { root }
    }

    /// The folders of jobs below `base`, oldest job first.
    pub fn list(base: &Path) -> io::Result<Vec<JobFolder>> {
        let mut found = Vec::new();
        for root in below(base)? {
            let folder = JobFolder { root };
            if let Some(job) = folder.job().filter(|_| folder.root.join(INFO).exists()) {
                found.push((job, folder.root));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, root)| JobFolder { root }).collect())
    }

    /// Takes away folders that were never finished being made. For when nobody makes one.
    pub fn sweep(base: &Path) -> io::Result<()> {
        for root in below(base)? {
            if root.file_name().is_some_and(|name| name.to_string_lossy().starts_with(ASIDE)) {
                fs::remove_dir_all(root)?;
            }
        }
        Ok(())
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The job that it is named after.
    pub fn job(&self) -> Option<JobId> {
        self.root.file_name()?.to_str()?.split_once('_')?.0.parse().ok().map(JobId)
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.root.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub fn info(&self) -> io::Result<HarvestInfo> {
        let info: HarvestInfo = self.load(INFO)?;
        if info.version > HarvestInfo::VERSION {
            let reason = format!("{INFO} has version {}, of a newer Grange", info.version);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(info)
    }

    pub fn save_info(&self, info: &HarvestInfo) -> io::Result<()> {
        self.save(INFO, info)
    }

    /// What the crawl starts from.
    pub fn seeds(&self) -> PathBuf {
        self.root.join("seeds.txt")
    }

    pub fn template(&self) -> PathBuf {
        self.root.join("template.toml")
    }

    /// The engine's own folder.
    pub fn crawl(&self) -> PathBuf {
        self.root.join("crawl")
    }

    /// WARC files. Those that end in `.open` are being written.
    pub fn warcs(&self) -> PathBuf {
        self.root.join("crawl/warcs")
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join("crawl/logs")
    }

    pub fn reports(&self) -> PathBuf {
        self.root.join("crawl/reports")
    }

    /// What each chunk of the native engine holds.
    pub fn manifests(&self) -> PathBuf {
        self.root.join("crawl/manifests")
    }

    /// What is known of closed WARC files; see [`crate::metadata::note_file`].
    pub fn cdx(&self) -> PathBuf {
        self.root.join("cdx")
    }

    /// Where a file that was stored before is read.
    pub fn stored(&self) -> PathBuf {
        self.root.join("stored")
    }

    /// Where the metadata file goes.
    pub fn metadata(&self) -> PathBuf {
        self.root.join("metadata")
    }

    /// Writes a value as JSON: it is there whole or not at all.
    pub fn save(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.write(name, &serde_json::to_vec_pretty(value)?)
    }

    pub fn load<T: DeserializeOwned>(&self, name: &str) -> io::Result<T> {
        serde_json::from_slice(&fs::read(self.root.join(name))?).map_err(io::Error::from)
    }

    /// Writes a file aside and gives it its name. If that fails nothing is left of it: it may be tried again on a full disk.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let aside = self.root.join(format!("{name}.tmp"));
        let written = || {
            let mut file = File::create(&aside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&aside, self.root.join(name))
        };
        if let Err(error) = written() {
            let _ = fs::remove_file(&aside);
            return Err(error);
        }
        File::open(&self.root)?.sync_all()
    }

    /// Whether stored files of earlier attempts have to be imported before anything is fetched.
    pub fn must_take_over(&self, info: &HarvestInfo) -> bool {
        info.earlier_attempts && !self.root.join(TAKEN_OVER).exists()
    }

    /// Notes that what earlier attempts stored is imported.
    pub fn set_taken_over(&self) -> io::Result<()> {
        self.write(TAKEN_OVER, b"")
    }

    /// Notes that the crawl is begun or resumed now. Gives how often that was noted before since `since` without the crawl
    /// having been laid aside in order: so often did the process end in the middle of it.
    pub fn note_crawl_start(&self, now: Timestamp, since: Timestamp) -> io::Result<usize> {
        let mut starts: Vec<Timestamp> = match self.load(CRAWL_STARTS) {
            Ok(starts) => starts,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        starts.retain(|start| *start >= since);
        let before = starts.len();
        starts.push(now);
        self.save(CRAWL_STARTS, &starts)?;
        Ok(before)
    }

    /// Notes that the crawl was laid aside in order, or has ended.
    pub fn clear_crawl_starts(&self) -> io::Result<()> {
        match fs::remove_file(self.root.join(CRAWL_STARTS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Notes that the database knows how the job ended: nothing is left but files to deposit.
    pub fn set_reported(&self) -> io::Result<()> {
        self.write(REPORTED, b"")
    }

    /// The crawl has ended: what is left is to document and deposit it.
    pub fn has_ended(&self) -> bool {
        self.is_reported() || self.root.join(OUTCOME).exists()
    }

    /// How many WARC files lie here, and how many bytes they have: what waits for the archive once the crawl has ended.
    pub fn files_left(&self) -> (u64, u64) {
        let entries =
            [self.warcs(), self.metadata()].into_iter().filter_map(|place| fs::read_dir(place).ok());
        let sizes = entries.flatten().flatten().filter_map(|entry| entry.metadata().ok());
        sizes
            .filter(fs::Metadata::is_file)
            .fold((0, 0), |(files, bytes), meta| (files + 1, bytes + meta.len()))
    }

    pub fn is_reported(&self) -> bool {
        self.root.join(REPORTED).exists()
    }

    /// Takes the folder away, if it is there. Only for those whose files are all proven elsewhere.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// What lies in a folder; nothing where there is none.
fn below(base: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| entry.map(|entry| entry.path())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bed;

    fn fill(folder: &JobFolder) -> io::Result<()> {
        folder.write("seeds.txt", b"http://a.dk/\n")?;
        fs::create_dir(folder.crawl())?;
        folder.save("crawl/job.json", &1)
    }

    fn create(base: &Path, fill: impl FnOnce(&JobFolder) -> io::Result<()>) -> io::Result<JobFolder> {
        let papers = test_bed::papers(7, &[]);
        JobFolder::create(base, &papers.info, papers.at, |_, error| error, fill)
    }

    #[test]
    fn a_folder_is_found_only_when_everything_is_in_it() {
        let base = tempfile::tempdir().unwrap();
        let found = || JobFolder::list(base.path()).unwrap();
        // A process that is killed at any moment before leaves what the process sees at that moment.
        let folder = create(base.path(), |folder| {
            assert_eq!(found(), [], "after the description of the job");
            folder.write("template.toml", b"")?;
            assert_eq!(found(), [], "after the template");
            fill(folder)?;
            assert_eq!(found(), [], "after the engine's part");
            Ok(())
        });
        let folder = folder.unwrap();
        assert_eq!(found(), std::slice::from_ref(&folder));
        for name in ["harvest-info.json", "seeds.txt", "template.toml", "crawl/job.json", "cdx", "metadata"] {
            assert!(folder.root().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn of_a_folder_that_could_not_be_made_nothing_is_left_and_a_killed_one_is_made_again() {
        let base = tempfile::tempdir().unwrap();
        let refused = create(base.path(), |folder| {
            fill(folder)?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);

        let killed = std::panic::catch_unwind(|| create(base.path(), |_| panic!("killed here")));
        assert!(killed.is_err());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
        let folder = create(base.path(), fill).unwrap();
        assert_eq!(JobFolder::list(base.path()).unwrap(), [folder]);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }
}
