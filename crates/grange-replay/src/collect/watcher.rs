//! Keeps the collections that are served as the database and the data folder say.

use std::collections::HashMap;
use std::sync::Arc;

use grange_base::Chain;
use grange_base::worker::Step;
use grange_blob::Buckets;
use grange_db::{AccessRulesMark, Db};
use grange_index::Index;
use grange_index::access::RuleSet;
use grange_model::User;
use tokio::runtime::Handle;

use super::copies::Follower;
use super::foreign::ForeignFiles;
use super::read_rules;
use super::shelf::{Shelf, ShelfError};
use crate::collection::{Account, Collection, Collections};
use crate::holdings::Holdings;

/// A look that failed; what is served stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Db(#[from] grange_db::Error),
    #[error(transparent)]
    Shelf(#[from] ShelfError),
}

/// Opens every collection there is.
///
/// With a `follower` indexes come from where it looks, else from the shelf. `archive` is where the bytes of the collection of that name are, `buckets` those in which registered files may lie. What comes later is seen by [`Watcher::step`].
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
    rules: Arc<RuleSet>,
    /// What told these rules from others; `None` until they were read.
    rules_mark: Option<AccessRulesMark>,
    /// Where indexes come from instead of the shelf.
    follower: Option<Follower>,
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
        // Rules first: a collection is never served without those that were there before it.
        self.look_at_rules().await?;
        self.collections.set_accounts(accounts(&self.db).await?);
        let listed = self.db.collections().names().await?;
        for served in self.collections.all() {
            if !listed.contains(&served.name) {
                self.collections.remove(&served.name);
                self.foreign.remove(&served.name);
                self.shelf.close(&served.name);
                if let Some(follower) = &mut self.follower {
                    follower.forget(&served.name);
                }
            }
        }
        for name in listed {
            match self.collections.get(&name) {
                Some(served) => {
                    if self.follower.is_some() {
                        self.follow(&served).await;
                    } else if !self.shelf.writes() {
                        refresh(&served).await;
                    }
                }
                None => self.open(&name).await?,
            }
            self.register(&name).await?;
        }
        Ok(())
    }

    /// Puts the rules into force as they are now, before anything else that may fail. They are read only when they changed:
    /// there may be a hundred thousand.
    async fn look_at_rules(&mut self) -> Result<(), WatchError> {
        let mark = self.db.access_rules().mark().await?;
        if self.rules_mark == Some(mark) {
            return Ok(());
        }
        self.rules = read_rules(&self.db.access_rules().list().await?);
        for served in self.collections.all() {
            served.set_rules(Arc::clone(&self.rules));
        }
        self.rules_mark = Some(mark);
        Ok(())
    }

    async fn open(&mut self, name: &str) -> Result<(), WatchError> {
        let index = match self.index(name).await {
            Ok(Some(index)) => index,
            // Nothing was indexed yet.
            Ok(None) => return Ok(()),
            Err(error) => {
                // One broken index must not take the others from people.
                tracing::error!(collection = name, %error, "a collection cannot be served");
                return Ok(());
            }
        };
        let holdings: Arc<dyn Holdings> = if name == Collection::ARCHIVE {
            Arc::clone(&self.archive)
        } else {
            let files = Arc::new(ForeignFiles::new(self.buckets.clone(), Arc::clone(&self.archive)));
            self.foreign.insert(name.to_owned(), Foreign { files: Arc::clone(&files), after: 0 });
            files
        };
        let collection = Collection::new(name, Arc::new(index), holdings);
        collection.set_rules(Arc::clone(&self.rules));
        self.register(name).await?;
        self.collections.add(collection);
        Ok(())
    }

    async fn index(&mut self, name: &str) -> Result<Option<Index>, String> {
        if let Some(follower) = &mut self.follower {
            return follower.newer(name).await.map_err(|error| Chain(&error).to_string());
        }
        let (shelf, of) = (self.shelf.clone(), name.to_owned());
        match tokio::task::spawn_blocking(move || shelf.index(&of)).await {
            Ok(opened) => opened.map_err(|error| Chain(&error).to_string()),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Serves a newer copy of the index, if there is one; requests under way end with the old one.
    async fn follow(&mut self, served: &Collection) {
        match self.index(&served.name).await {
            Ok(Some(index)) => {
                let holdings = Arc::clone(&served.holdings);
                let newer = Collection::new(&served.name, Arc::new(index), holdings);
                newer.set_rules(Arc::clone(&self.rules));
                self.collections.add(newer);
            }
            Ok(None) => {}
            Err(error) => {
                let collection = &served.name;
                tracing::warn!(collection, %error, "what was indexed since cannot be seen yet");
            }
        }
    }

    /// Makes files known that were registered since, indexed or not yet.
    async fn register(&mut self, name: &str) -> Result<(), WatchError> {
        let Some(foreign) = self.foreign.get_mut(name) else { return Ok(()) };
        loop {
            let rows = self.db.collections().files(name, None, foreign.after, PAGE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            foreign.after = last.id;
            let files = Arc::clone(&foreign.files);
            let handle = Handle::current();
            let added = tokio::task::spawn_blocking(move || {
                for row in &rows {
                    files.add(row, &handle);
                }
            });
            if let Err(error) = added.await {
                std::panic::resume_unwind(error.into_panic());
            }
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

async fn refresh(collection: &Collection) {
    let index = Arc::clone(&collection.index);
    match tokio::task::spawn_blocking(move || index.refresh()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let collection = &collection.name;
            tracing::warn!(collection, error = %Chain(&error), "what was indexed since cannot be seen yet");
        }
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
