//! Collections: imported, listed, removed; files taken out of the index and in again.

use std::path::{Path, PathBuf};

use grange_base::Chain;
use grange_blob::is_bucket_url;
use grange_db::{CollectedFile, CollectedState, Collection, Enrolled, NewCollected, Which};
use grange_model::account::Permission;
use grange_model::collection::{FileKind, check_name};
use jiff::Timestamp;

use crate::{App, Error, Who};

/// What an import came to, before anything is indexed.
#[derive(Clone, Debug, Default)]
pub struct CollectionImport {
    pub enrolled: Enrolled,
    /// What was not taken, with the reason; the first [`PASSED_OVER_MAX`].
    pub passed_over: Vec<String>,
}

/// Reasons told of one import: a folder of photographs is not listed name by name.
const PASSED_OVER_MAX: usize = 100;
/// Files registered in one transaction.
const ENROL_FILES: usize = 500;
/// Folders within folders. Deeper trees are loops made of mounts.
const DEPTH_MAX: usize = 64;

impl App {
    pub async fn collections(&self, who: &Who) -> Result<Vec<Collection>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.collections().list().await?)
    }

    pub async fn collection(&self, who: &Who, name: &str) -> Result<Collection, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.collections().get(name).await?)
    }

    /// Files of a collection after an id, in the order they came.
    pub async fn collection_files(
        &self,
        who: &Who,
        name: &str,
        state: Option<CollectedState>,
        after: i64,
        limit: u32,
    ) -> Result<Vec<CollectedFile>, Error> {
        who.needs(Permission::ReadSystem)?;
        self.db.collections().get(name).await?;
        Ok(self.db.collections().files(name, state, after, limit).await?)
    }

    /// Registers files and folders of the node's machine and of buckets, or stores and then registers them. Repeating it changes nothing.
    pub async fn import(
        &self,
        who: &Who,
        name: &str,
        paths: &[PathBuf],
        store: bool,
    ) -> Result<CollectionImport, Error> {
        who.needs(Permission::ManageSystem)?;
        if !who.is_local() {
            return Err(Error::NotLocal { what: "name files of it" });
        }
        check_name(name).map_err(Error::Invalid)?;
        let in_bucket = |path: &&PathBuf| path.to_str().is_some_and(is_bucket_url);
        let (far, near): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(in_bucket);
        let asked: Vec<PathBuf> = near.into_iter().cloned().collect();
        let walked = tokio::task::spawn_blocking(move || walk(&asked, store)).await;
        let (mut files, mut passed_over) = walked.map_err(|error| Error::Invalid(error.to_string()))?;
        for path in far {
            self.walk_bucket(path, store, &mut files, &mut passed_over).await;
        }
        self.db.collections().ensure(name, &who.actor()).await?;
        let mut enrolled = Enrolled::default();
        for batch in files.chunks(ENROL_FILES) {
            let mut new = Vec::with_capacity(batch.len());
            for FoundFile { path, size, modified } in batch {
                let (size, modified) = (*size, *modified);
                if store {
                    match (self.store_found(who, path).await, path.file_name()) {
                        (Ok(()), Some(own)) => {
                            let path = own.to_string_lossy().into_owned();
                            new.push(NewCollected { path, size, modified, stored: true });
                        }
                        (Err(error), _) => passed_over.push(format!("{}: {error}", path.display())),
                        (Ok(()), None) => {}
                    }
                } else if let Some(text) = path.to_str() {
                    new.push(NewCollected { path: text.to_owned(), size, modified, stored: false });
                } else {
                    passed_over.push(format!("{}: its path is not UTF-8", path.display()));
                }
            }
            let done = self.db.collections().enrol(name, new, &who.actor()).await?;
            enrolled.new += done.new;
            enrolled.known += done.known;
            enrolled.again += done.again;
        }
        passed_over.truncate(PASSED_OVER_MAX);
        Ok(CollectionImport { enrolled, passed_over })
    }

    /// Stores a file of this machine or of a bucket under its own name.
    async fn store_found(&self, who: &Who, path: &Path) -> Result<(), Error> {
        let Some(url) = path.to_str().filter(|url| is_bucket_url(url)) else {
            return self.store_path(who, path, None).await.map(drop);
        };
        let reader =
            self.buckets.reader(url).await.map_err(|error| Error::Invalid(Chain(&error).to_string()))?;
        let reader = reader.ok_or_else(|| Error::NotFound { noun: "file", name: url.to_owned() })?;
        let own = path.file_name().unwrap_or_default().to_string_lossy();
        self.store_bytes(who, &own, None, reader).await.map(drop)
    }

    /// The files of a bucket, or below a prefix of it.
    async fn walk_bucket(
        &self,
        path: &Path,
        store: bool,
        files: &mut Vec<FoundFile>,
        passed_over: &mut Vec<String>,
    ) {
        let url = path.to_string_lossy();
        match self.buckets.list(&url).await {
            Ok(listed) if listed.is_empty() => passed_over.push(format!("{url}: there is nothing")),
            Ok(listed) => {
                let one = matches!(listed.as_slice(), [only] if *only.url == *url);
                for file in listed {
                    let path = PathBuf::from(file.url);
                    match fits(&path, store) {
                        // A bucket's listing here has no times.
                        Ok(()) => files.push(FoundFile { path, size: file.size, modified: None }),
                        Err(reason) if one => passed_over.push(format!("{url}: {reason}")),
                        Err(_) => {}
                    }
                }
            }
            Err(error) => passed_over.push(format!("{url}: {}", Chain(&error))),
        }
    }

    /// Marks a collection for removal; its index goes, its files stay.
    pub async fn remove_collection(&self, who: &Who, name: &str) -> Result<(), Error> {
        who.needs(Permission::ManageSystem)?;
        Ok(self.db.collections().remove(name, &who.actor()).await?)
    }

    /// Marks indexed files to be taken out of the index.
    pub async fn roll_back_index(&self, who: &Who, collection: &str, which: &Which) -> Result<u64, Error> {
        who.needs(Permission::ManageSystem)?;
        Ok(self.db.collections().roll_back(collection, which, &who.actor()).await?)
    }

    /// Marks files that failed or were taken out to be indexed again.
    pub async fn index_again(&self, who: &Who, collection: &str, which: &Which) -> Result<u64, Error> {
        who.needs(Permission::ManageSystem)?;
        Ok(self.db.collections().index_again(collection, which, &who.actor()).await?)
    }
}

/// A file to import, as it is now.
#[derive(Clone, Debug)]
struct FoundFile {
    path: PathBuf,
    size: u64,
    modified: Option<Timestamp>,
}

impl FoundFile {
    fn new(path: PathBuf, about: &std::fs::Metadata) -> Self {
        let modified = about.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        Self { path, size: about.len(), modified }
    }
}

/// The files that paths name, folders opened up, in the order of their names. Links to folders are not followed.
fn walk(paths: &[PathBuf], store: bool) -> (Vec<FoundFile>, Vec<String>) {
    let (mut files, mut passed_over) = (Vec::new(), Vec::new());
    for path in paths {
        match path.canonicalize().and_then(|path| path.metadata().map(|about| (path, about))) {
            Ok((path, about)) if about.is_dir() => open_up(&path, 0, store, &mut files, &mut passed_over),
            Ok((path, about)) => match fits(&path, store) {
                Ok(()) => files.push(FoundFile::new(path, &about)),
                Err(reason) => passed_over.push(format!("{}: {reason}", path.display())),
            },
            Err(error) => passed_over.push(format!("{}: {error}", path.display())),
        }
    }
    (files, passed_over)
}

fn open_up(
    folder: &Path,
    depth: usize,
    store: bool,
    files: &mut Vec<FoundFile>,
    passed_over: &mut Vec<String>,
) {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = match entries {
        Ok(entries) if depth < DEPTH_MAX => entries,
        Ok(_) => return passed_over.push(format!("{}: too deep", folder.display())),
        Err(error) => return passed_over.push(format!("{}: {error}", folder.display())),
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&path, depth + 1, store, files, passed_over);
        } else if fits(&path, store).is_ok()
            && let Ok(about) = path.metadata()
            && about.is_file()
        {
            files.push(FoundFile::new(path, &about));
        }
    }
}

fn fits(path: &Path, store: bool) -> Result<(), &'static str> {
    match FileKind::of(&path.to_string_lossy()) {
        FileKind::Records => Ok(()),
        FileKind::Wacz | FileKind::Lines if store => {
            Err("only WARC and ARC files can be imported with storing")
        }
        FileKind::Wacz | FileKind::Lines => Ok(()),
        FileKind::Other => Err("it is no WARC, ARC, WACZ, CDX or CDXJ file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_opened_up_in_order_and_what_is_nothing_is_told() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b/2.warc.gz", "b/1.arc", "a.wacz", "notes.txt", "c/index.cdxj"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let names = |store| {
            let paths = [dir.path().to_owned(), dir.path().join("notes.txt"), dir.path().join("none.warc")];
            let (files, passed_over) = walk(&paths, store);
            let base = dir.path().canonicalize().unwrap();
            let inside = |path: &Path| path.strip_prefix(&base).unwrap().to_string_lossy().into_owned();
            (files.iter().map(|file| inside(&file.path)).collect::<Vec<_>>(), passed_over)
        };
        let (found, passed_over) = names(false);
        assert_eq!(found, ["a.wacz", "b/1.arc", "b/2.warc.gz", "c/index.cdxj"]);
        assert_eq!(passed_over.len(), 2, "{passed_over:?}");
        assert_eq!(names(true).0, ["b/1.arc", "b/2.warc.gz"]);
    }
}
