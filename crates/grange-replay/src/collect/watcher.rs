//! Keeps the collections that are served as the database and the data folder say.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use grange_base::Chain;
use grange_base::worker::Step;
use grange_blob::Buckets;
use grange_db::{AccessRow, AccessRulesMark, Db, IndexedCollection};
use grange_index::Index;
use grange_index::access::RuleSet;
use grange_model::User;
use tokio::runtime::Handle;

use super::copies::Follower;
use super::folder_owner::FolderOwner;
use super::foreign::ForeignFiles;
use super::shelf::Shelf;
use super::{blocking, read_rules};
use crate::collection::{Account, Collection, Collections};
use crate::holdings::Holdings;

/// A look that failed; what is served stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Db(#[from] grange_db::Error),
}

/// Opens every collection there is.
///
/// Indexes that this node keeps come from the shelf. Others come from where the `follower` looks; without one a shelf that
/// only reads shows what another process of this machine writes. `archive` is where the bytes of the collection of that name are, `buckets` those in which registered files may lie. What comes later is seen by [`Watcher::step`].
pub async fn open_all(
    db: &Db,
    shelf: &Shelf,
    archive: Arc<dyn Holdings>,
    buckets: Buckets,
    follower: Option<Follower>,
) -> Result<(Collections, Watcher), WatchError> {
    let collections = Collections::default();
    let mut watcher = Watcher {
        db: db.clone(),
        shelf: shelf.clone(),
        archive,
        buckets,
        collections: collections.clone(),
        foreign: HashMap::new(),
        rules: Arc::default(),
        rules_mark: None,
        follower,
        sources: HashMap::new(),
        reported: HashSet::new(),
    };
    watcher.look().await?;
    Ok((collections, watcher))
}

/// Looks again: for collections that came and went, for files registered since, for captures committed by another process,
/// and for access rules.
#[derive(Debug)]
pub struct Watcher {
    db: Db,
    shelf: Shelf,
    archive: Arc<dyn Holdings>,
    buckets: Buckets,
    collections: Collections,
    foreign: HashMap<String, Foreign>,
    /// As they were last read, and are in force for all that is served.
    rules: Arc<RuleSet>,
    /// What told these rules from others; `None` until they were read.
    rules_mark: Option<AccessRulesMark>,
    /// Where indexes come from that this node does not keep.
    follower: Option<Follower>,
    /// Where the index of each collection is from; those without one are not served.
    sources: HashMap<String, Source>,
    /// Collections of other nodes that were reported in the log.
    reported: HashSet<String>,
}

/// Where the index of a collection is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// This node keeps it.
    Kept,
    /// A copy in a store.
    Copy,
    /// The folder, which another process writes to.
    Folder,
    /// Another node keeps it, and there are no copies.
    Nowhere,
}

/// The files of a collection registered in place, and how far they are known.
#[derive(Debug)]
struct Foreign {
    files: Arc<ForeignFiles>,
    after: i64,
}

/// Rows read at once.
const PAGE: u32 = 1000;

impl Watcher {
    /// One look, for a worker.
    pub async fn step(&mut self) -> Result<Step, WatchError> {
        self.look().await?;
        Ok(Step::Idle)
    }

    async fn look(&mut self) -> Result<(), WatchError> {
        // Rules first: a collection is never served without those that were there before it. They are in force before
        // anything below can fail.
        self.look_at_rules().await?;
        self.collections.set_accounts(accounts(&self.db).await?);
        let mut listed = self.db.collections().indexes().await?;
        listed.retain(|row| !row.removed);
        for served in self.collections.all() {
            if !listed.iter().any(|row| row.name == served.name && row.identity == served.identity) {
                self.forget(&served.name).await;
            }
        }
        if let Some(follower) = &mut self.follower {
            follower.remove_unlisted(|name| listed.iter().any(|row| row.name == name)).await;
        }
        let mut failed = None;
        for row in listed {
            if let Err(error) = self.tend(&row).await {
                tracing::warn!(collection = row.name, error = %Chain(&error), "what is new of a collection cannot be seen yet");
                failed = failed.or(Some(error));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Puts the rules into force as they are now. They are read only when they changed: there may be a hundred thousand.
    async fn look_at_rules(&mut self) -> Result<(), WatchError> {
        let mark = self.db.access_rules().mark().await?;
        if self.rules_mark == Some(mark) {
            return Ok(());
        }
        let rows = self.db.access_rules().list().await?;
        self.enforce(&rows);
        self.rules_mark = Some(mark);
        Ok(())
    }

    fn enforce(&mut self, rows: &[AccessRow]) {
        self.rules = read_rules(rows);
        for served in self.collections.all() {
            served.set_rules(Arc::clone(&self.rules));
        }
    }

    /// A collection is gone, or another has its name now.
    async fn forget(&mut self, name: &str) {
        self.collections.remove(name);
        self.foreign.remove(name);
        self.sources.remove(name);
        if let Some(follower) = &mut self.follower {
            follower.forget(name);
        }
        if !self.shelf.writes() {
            self.close(name).await;
        }
    }

    async fn close(&self, name: &str) {
        let (shelf, of) = (self.shelf.clone(), name.to_owned());
        blocking(move || shelf.close(&of)).await;
    }

    async fn tend(&mut self, row: &IndexedCollection) -> Result<(), WatchError> {
        let name = &row.name;
        let source = self.source_of(row);
        let served = self.collections.get(name);
        match self.index(row, source).await {
            Ok(Some(index)) => {
                if served.as_ref().is_none_or(|served| !served.index.is_same(&index)) {
                    self.serve(row, index, served.as_deref());
                }
            }
            // A copy that is as it was, an index that is not made yet, or one of another node.
            Ok(None) if self.sources.get(name) == Some(&source) && source != Source::Nowhere => {}
            Ok(None) => {
                if served.is_some() && source != Source::Copy {
                    self.forget(name).await;
                }
                // An index that is made for the first time, or taken over by this node, is nowhere for one look.
                let stays = self.sources.get(name) == Some(&source);
                if source == Source::Nowhere && stays && self.reported.insert(name.clone()) {
                    let owner = row.owner.as_ref().map(|owner| owner.node.as_str());
                    tracing::warn!(
                        collection = name,
                        owner,
                        "another node keeps the index of the collection: this node cannot show it without index.copies"
                    );
                }
            }
            Err(error) => {
                // One broken index must not take the others from people, and one that is served stays.
                tracing::error!(collection = name, %error, "the index of a collection cannot be read");
                return Ok(());
            }
        }
        if source != Source::Nowhere {
            self.reported.remove(name);
        }
        self.sources.insert(name.clone(), source);
        self.register(name).await
    }

    fn source_of(&self, row: &IndexedCollection) -> Source {
        let kept = self.shelf.kept(&row.name).is_some_and(|kept| kept.lease.identity == row.identity);
        match (kept, &self.follower, self.shelf.writes()) {
            (true, ..) => Source::Kept,
            (false, Some(_), _) => Source::Copy,
            (false, None, false) if self.fits(row) => Source::Folder,
            (false, None, _) => Source::Nowhere,
        }
    }

    /// Whether the folder here is what the owner of the index wrote. Where there is none, one may come.
    fn fits(&self, row: &IndexedCollection) -> bool {
        let folder = self.shelf.folder().join(&row.name);
        !self.shelf.has_folder(&row.name) || FolderOwner::read(&folder).fits(row)
    }

    /// The index to serve; `None` if there is nothing (new) where it is from.
    async fn index(&mut self, row: &IndexedCollection, source: Source) -> Result<Option<Index>, String> {
        match source {
            Source::Kept => Ok(self.shelf.kept(&row.name).map(|kept| kept.index)),
            Source::Copy => {
                // The index that it gave out before is not served any more.
                let before = self.sources.get(&row.name).copied();
                let Some(follower) = &mut self.follower else { return Ok(None) };
                if before.is_some_and(|before| before != source) {
                    follower.forget(&row.name);
                }
                let newer = follower.newer(&row.name, &row.identity).await;
                newer.map_err(|error| Chain(&error).to_string())
            }
            Source::Folder => {
                let (shelf, of) = (self.shelf.clone(), row.name.clone());
                let opened = blocking(move || -> Result<Option<Index>, String> {
                    let Some(index) = shelf.index(&of).map_err(|error| Chain(&error).to_string())? else {
                        return Ok(None);
                    };
                    index.refresh().map_err(|error| Chain(&error).to_string())?;
                    Ok(Some(index))
                });
                opened.await
            }
            Source::Nowhere => Ok(None),
        }
    }

    /// Serves an index from now on; requests under way end with the one before.
    fn serve(&mut self, row: &IndexedCollection, index: Index, before: Option<&Collection>) {
        let name = row.name.as_str();
        let holdings: Arc<dyn Holdings> = if let Some(before) = before {
            Arc::clone(&before.holdings)
        } else if name == Collection::ARCHIVE {
            Arc::clone(&self.archive)
        } else {
            let archive = Arc::clone(&self.archive);
            let files = Arc::new(ForeignFiles::new(self.db.clone(), name, self.buckets.clone(), archive));
            self.foreign.insert(name.to_owned(), Foreign { files: Arc::clone(&files), after: 0 });
            files
        };
        let index = Arc::new(index);
        if let Some(foreign) = self.foreign.get(name) {
            foreign.files.follow(&index);
        }
        let collection = Collection::new(name, index, holdings).with_identity(&row.identity);
        collection.set_rules(Arc::clone(&self.rules));
        self.collections.add(collection);
    }

    /// Makes files known that were registered since, indexed or not yet.
    async fn register(&mut self, name: &str) -> Result<(), WatchError> {
        let Some(foreign) = self.foreign.get_mut(name) else { return Ok(()) };
        foreign.files.forget_unnamed();
        loop {
            let rows = self.db.collections().files(name, None, foreign.after, PAGE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            foreign.after = last.id;
            let files = Arc::clone(&foreign.files);
            let handle = Handle::current();
            blocking(move || rows.iter().for_each(|row| files.add(row, &handle))).await;
        }
    }
}

/// The accounts that may log in, for rules that are for some of them.
async fn accounts(db: &Db) -> Result<HashMap<String, Account>, grange_db::Error> {
    let users = db.users().list().await?.into_iter().filter(|user| user.disabled_at.is_none());
    let account = |user: User| {
        let account = Account { role: user.role.to_string(), staff: user.role.is_staff() };
        (user.name.as_str().to_owned(), account)
    };
    Ok(users.map(account).collect())
}
