//! What can go wrong with the frontier. Each text says what was tried, on what, and what to do.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum FrontierError {
    #[error("cannot {doing} the frontier in {}: check the disk and the rights of the folder, then resume", folder.display())]
    Store {
        doing: &'static str,
        folder: PathBuf,
        #[source]
        source: Box<fjall::Error>,
    },
    #[error("cannot make the folder {} for the frontier: check its rights", folder.display())]
    Folder {
        folder: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the frontier in {} was begun with {begun}, and now {given} is asked for: resume with the settings it was \
         begun with, or begin in a new folder", folder.display()
    )]
    OtherSettings { folder: PathBuf, begun: String, given: String },
    #[error("{what} in the frontier in {} cannot be read: begin in a new folder", folder.display())]
    Damaged { folder: PathBuf, what: String },
    #[error("{url} was finished, but is not being fetched: each claim is finished once")]
    NotClaimed { url: String },
    #[error("there is no queue {name:?}: list the queues to see their names")]
    NoQueue { name: String },
}

pub type Result<T> = std::result::Result<T, FrontierError>;
