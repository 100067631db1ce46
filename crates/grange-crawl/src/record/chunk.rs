//! Chunks: what one rotation of a crawl produced, and the manifest that names it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::state::FileEntry;

/// What a chunk holds. Whoever takes a crawl further needs nothing but this and the files it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `cp00001-20260102030405`, as Heritrix names its checkpoints.
    pub chunk: String,
    pub job: String,
    /// When the first and the last record were written.
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// URLs logged.
    pub urls: u64,
    /// WARC records, over all files.
    pub records: u64,
    /// Bytes of WARC files.
    pub bytes: u64,
    /// In the folder `warcs`.
    pub files: Vec<FileEntry>,
    /// In the folder `logs`.
    pub logs: Vec<FileEntry>,
    /// Whether this is the last chunk of the crawl.
    pub last_chunk: bool,
}

/// The name of chunk number `number`, closed at `now`.
pub fn chunk_name(number: u32, now: Timestamp) -> String {
    format!("cp{number:05}-{}", now.strftime("%Y%m%d%H%M%S"))
}

impl Manifest {
    pub fn new(
        chunk: &str,
        job: &str,
        urls: u64,
        mut files: Vec<FileEntry>,
        logs: Vec<FileEntry>,
        last_chunk: bool,
    ) -> Manifest {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Manifest {
            chunk: chunk.to_owned(),
            job: job.to_owned(),
            first: files.iter().filter_map(|file| file.first).min(),
            last: files.iter().filter_map(|file| file.last).max(),
            urls,
            records: files.iter().map(|file| file.records).sum(),
            bytes: files.iter().map(|file| file.size).sum(),
            files,
            logs,
            last_chunk,
        }
    }

    /// Writes the manifest aside and gives it its name: it is there whole or not at all.
    pub fn save(&self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}.json", self.chunk));
        let aside = folder.join(format!("{}.json.tmp", self.chunk));
        let mut file = File::create(&aside)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&aside, &path)?;
        File::open(folder)?.sync_all()?;
        Ok(path)
    }

    pub fn load(path: &Path) -> io::Result<Manifest> {
        serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_adds_up_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let entry = |name: &str, size, second| FileEntry {
            name: name.to_owned(),
            size,
            sha512: String::new(),
            md5: String::new(),
            records: 3,
            first: Timestamp::from_second(second).ok(),
            last: Timestamp::from_second(second + 5).ok(),
            viral: name.contains("VIRAL"),
        };
        let name = chunk_name(7, Timestamp::from_second(1_767_323_045).unwrap());
        assert_eq!(name, "cp00007-20260102030405");
        let files = vec![entry("b", 10, 100), entry("a-VIRAL", 5, 90)];
        let manifest = Manifest::new(&name, "job-1", 2, files, Vec::new(), true);
        assert_eq!((manifest.records, manifest.bytes), (6, 15));
        assert_eq!(manifest.first, Timestamp::from_second(90).ok());
        assert_eq!(manifest.last, Timestamp::from_second(105).ok());
        let path = manifest.save(folder.path()).unwrap();
        assert_eq!(path.file_name().unwrap(), "cp00007-20260102030405.json");
        assert_eq!(Manifest::load(&path).unwrap(), manifest);
    }
}
