//! Which indexes this node keeps: takes those that are free, prolongs its leases, and makes the folder of an index agree
//! with the rows before anything is served from it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grange_base::{Chain, Clock};
use grange_blob::Blob;
use grange_db::{Db, IndexLease, IndexedCollection};
use jiff::Timestamp;

use super::blocking;
use super::feeder::FeedError;
use super::fetches::IndexFetches;
use super::folder_owner::FolderOwner;
use super::mirror::{self, Fetched, MirrorError};
use super::reconcile::{self, Provenance};
use super::shelf::{KeptIndex, Shelf};

/// Prefix of the folders into which a copy of an index is fetched.
const FETCHED_ASIDE: &str = ".fetch-";
/// An index that could not be made ready is tried again after this long: a bucket or a disk that is away comes back, and
/// a damaged index waits for a person.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Leases are prolonged this often while work goes on that may outlast them: several times within the shorter one, of a file
/// or of an index.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(30);

/// A look at the indexes waits this long for the first copy that is not here yet, and for no other: files of the indexes that
/// are ready wait meanwhile.
const FETCH_WAIT: Duration = Duration::from_secs(3);
/// A copy store that did not answer is asked for the newest copies again after this long: each such request may take half a
/// minute, in which no file is indexed.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(300);

/// Keeps indexes. Clones are the same keeper.
#[derive(Clone, Debug)]
pub struct Keeper {
    db: Db,
    shelf: Shelf,
    clock: Clock,
    /// The node.
    owner: String,
    /// How long another node waits for a sign of this one before it takes over.
    lease: Duration,
    /// Where copies of indexes are, if anywhere.
    copies: Option<Arc<dyn Blob>>,
    /// Indexes that could not be made ready, and when they are tried again.
    later: Arc<Mutex<HashMap<String, Timestamp>>>,
    /// Copies that are being fetched.
    fetches: IndexFetches,
    compared: Arc<Mutex<ComparedLeases>>,
}

/// Which leases were compared with the copies since their indexes were made ready.
#[derive(Debug, Default)]
struct ComparedLeases {
    leases: HashMap<String, IndexLease>,
    /// The store did not answer; when it is asked again.
    ask_again: Option<Timestamp>,
}

/// The next step for the index of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tending {
    /// It is ours, and all is well.
    Nothing,
    /// Ours, and the lease is to be prolonged.
    Renew,
    /// Another node keeps it.
    Leave,
    /// Another node keeps it, or it is another collection, and we have it open.
    LetGo,
    /// It is free, or ours and not open.
    Take,
}

/// Decides about one index. `kept`: what we have open; `left`: what is left of our lease.
fn tending(
    row: &IndexedCollection,
    kept: Option<&IndexLease>,
    me: &str,
    now: Timestamp,
    lease: Duration,
) -> Tending {
    let mine = |owner: &grange_db::IndexOwner| owner.node == me;
    match (kept, &row.owner) {
        (Some(kept), Some(owner))
            if mine(owner) && owner.token == kept.token && row.identity == kept.identity =>
        {
            let left = owner.until.duration_since(now);
            let half = jiff::SignedDuration::try_from(lease / 2).unwrap_or(jiff::SignedDuration::MAX);
            if owner.lapsed || left < half { Tending::Renew } else { Tending::Nothing }
        }
        (Some(_), _) => Tending::LetGo,
        (None, Some(owner)) if !mine(owner) && !owner.lapsed => Tending::Leave,
        (None, _) => Tending::Take,
    }
}

impl Keeper {
    pub fn new(
        db: Db,
        shelf: Shelf,
        clock: Clock,
        owner: String,
        lease: Duration,
        copies: Option<Arc<dyn Blob>>,
    ) -> Self {
        Self {
            db,
            shelf,
            clock,
            owner,
            lease,
            copies,
            later: Arc::default(),
            fetches: IndexFetches::default(),
            compared: Arc::default(),
        }
    }

    /// Looks at every index, or at that of one collection. One that cannot be made ready is logged and tried again, and
    /// the others go on; so they do while a copy is fetched for long, unless one collection alone is asked for. Gives the collections that are to be taken away and whose indexes this node keeps.
    pub async fn tend(&self, only: Option<&str>) -> Result<Vec<String>, FeedError> {
        let wanted = |row: &IndexedCollection| only.is_none_or(|only| row.name == only);
        let removed = self.tend_those(wanted, only.is_some()).await?;
        // All indexes are in use by now; the store may be slow.
        for kept in self.shelf.all_kept() {
            if only.is_none_or(|only| kept.lease.collection == only) {
                self.while_prolonging(None, self.raise_above_copies(&kept)).await?;
            }
        }
        Ok(removed)
    }

    /// Makes those indexes ready that this node kept last: for the start of a node, which does not wait for copies of others, nor
    /// for the store that they are in.
    pub async fn tend_own(&self) -> Result<(), FeedError> {
        let own = |row: &IndexedCollection| {
            !row.removed && FolderOwner::read(&self.shelf.folder().join(&row.name)).fits(row)
        };
        self.tend_those(own, false).await.map(drop)
    }

    async fn tend_those(
        &self,
        wanted: impl Fn(&IndexedCollection) -> bool,
        patient: bool,
    ) -> Result<Vec<String>, FeedError> {
        let rows = self.db.collections().indexes().await?;
        let mut removed = Vec::new();
        let mut wait = (!patient).then_some(FETCH_WAIT);
        for kept in self.shelf.all_kept() {
            if !rows.iter().any(|row| row.name == kept.lease.collection) {
                self.while_prolonging(None, self.let_go(&kept.lease.collection)).await;
            }
        }
        self.later().retain(|name, _| rows.iter().any(|row| row.name == *name));
        self.fetches.retain(|name| rows.iter().any(|row| row.name == name));
        self.compared().leases.retain(|name, _| rows.iter().any(|row| row.name == *name));
        for row in rows.iter().filter(|row| wanted(row)) {
            let kept = self.shelf.kept(&row.name).map(|kept| kept.lease);
            let mut tending = tending(row, kept.as_ref(), &self.owner, self.clock.now(), self.lease);
            if tending == Tending::LetGo {
                tracing::warn!(
                    collection = row.name,
                    owner = row.owner.as_ref().map(|owner| owner.node.as_str()),
                    "this node does not keep the index of the collection any more"
                );
                self.while_prolonging(None, self.let_go(&row.name)).await;
                tending = self::tending(row, None, &self.owner, self.clock.now(), self.lease);
            }
            match tending {
                Tending::Nothing | Tending::LetGo => {}
                Tending::Leave => {
                    // Pieces of a copy whose fetch was cut off.
                    if !self.is_early(&row.name)
                        && let Err(error) = self.remove_fetched(&row.name).await
                    {
                        tracing::warn!(collection = row.name, error = %Chain(&error), "a left copy of an index was not removed");
                        self.put_off(&row.name);
                    }
                }
                Tending::Renew => {
                    self.keep(&row.name).await?;
                }
                Tending::Take => {
                    if self.is_early(&row.name) {
                        continue;
                    }
                    let Some(lease) = self.keep(&row.name).await? else { continue };
                    if row.removed {
                        removed.push(row.name.clone());
                        continue;
                    }
                    if self.fetches.is_running(&lease) {
                        continue;
                    }
                    let trusted = FolderOwner::read(&self.shelf.folder().join(&row.name)).is_of(&lease);
                    let making = self.make_ready(&lease, trusted, wait);
                    match self.while_prolonging(Some(&lease), making).await {
                        Ok(true) => {
                            self.later().remove(&row.name);
                            self.compared().leases.remove(&row.name);
                        }
                        Ok(false) => {
                            wait = wait.and(Some(Duration::ZERO));
                            tracing::info!(
                                collection = row.name,
                                "the copy of an index is being fetched; the index is used when all of it is here"
                            );
                        }
                        Err(error) => {
                            tracing::error!(
                                collection = row.name, error = %Chain(&error), retry_in_s = RETRY_AFTER.as_secs(),
                                "the index of a collection cannot be used"
                            );
                            self.put_off(&row.name);
                        }
                    }
                    continue;
                }
            }
            if row.removed && tending != Tending::Leave && !self.is_early(&row.name) {
                removed.push(row.name.clone());
            }
        }
        Ok(removed)
    }

    /// Prolongs the leases of all indexes that this node keeps. One that another node has taken over stays with that.
    pub(super) async fn prolong(&self) {
        for kept in self.shelf.all_kept() {
            self.prolong_one(&kept.lease).await;
        }
    }

    /// False: another node has taken the index over.
    async fn prolong_one(&self, lease: &IndexLease) -> bool {
        match self.db.collections().prolong_index(lease, self.lease).await {
            Ok(ours) => ours,
            Err(error) => {
                let collection = lease.collection.as_str();
                tracing::warn!(collection, error = %Chain(&error), "the lease of an index was not prolonged");
                true
            }
        }
    }

    /// Waits for work that may outlast the leases, and prolongs them meanwhile, and that of the index being made ready.
    pub(super) async fn while_prolonging<T>(
        &self,
        adopted: Option<&IndexLease>,
        work: impl Future<Output = T>,
    ) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = self.clock.sleep(RENEW_EVERY) => {
                    self.prolong().await;
                    if let Some(lease) = adopted {
                        self.prolong_one(lease).await;
                    }
                }
            }
        }
    }

    /// Ends when another node has taken the index over.
    async fn lost(&self, lease: &IndexLease) {
        loop {
            self.clock.sleep(RENEW_EVERY).await;
            if !self.prolong_one(lease).await {
                return;
            }
        }
    }

    /// Leaves a collection alone for a while: its index cannot be made ready, or not be removed.
    pub(super) fn put_off(&self, name: &str) {
        let due = self.clock.now().saturating_add(RETRY_AFTER).unwrap_or(Timestamp::MAX);
        self.later().insert(name.to_owned(), due);
    }

    async fn keep(&self, name: &str) -> Result<Option<IndexLease>, FeedError> {
        let has_folder = self.shelf.has_folder(name);
        Ok(self.db.collections().keep_index(name, &self.owner, self.lease, has_folder).await?)
    }

    async fn let_go(&self, name: &str) {
        let (shelf, of) = (self.shelf.clone(), name.to_owned());
        blocking(move || shelf.close(&of)).await;
    }

    /// Whether an index of this node is not ready.
    pub(super) fn waits(&self) -> bool {
        !self.later().is_empty() || self.fetches.are_under_way()
    }

    fn is_early(&self, name: &str) -> bool {
        self.later().get(name).is_some_and(|due| self.clock.now() < *due)
    }

    fn later(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compared(&self) -> MutexGuard<'_, ComparedLeases> {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Raises the token of a lease above that of the newest copy, where a database that was restored from a backup has
    /// forgotten later owners: copies under this token would count as older than theirs for ever. The index is in use before,
    /// and after a copy store that is away it is compared later.
    async fn raise_above_copies(&self, kept: &KeptIndex) -> Result<(), FeedError> {
        let Some(blob) = &self.copies else { return Ok(()) };
        let lease = &kept.lease;
        let name = lease.collection.as_str();
        {
            let compared = self.compared();
            if compared.leases.get(name) == Some(lease)
                || compared.ask_again.is_some_and(|due| self.clock.now() < due)
            {
                return Ok(());
            }
        }
        let newest = match mirror::newest_token(name, &lease.identity, &**blob).await {
            Ok(newest) => newest.filter(|newest| *newest > lease.token),
            Err(error) => {
                tracing::warn!(
                    collection = name, error = %Chain(&error), retry_in_s = ASK_AGAIN_AFTER.as_secs(),
                    "the copies of an index cannot be listed; the index is used without"
                );
                let due = self.clock.now().saturating_add(ASK_AGAIN_AFTER).unwrap_or(Timestamp::MAX);
                self.compared().ask_again = Some(due);
                return Ok(());
            }
        };
        let lease = match newest {
            Some(newest) => {
                tracing::warn!(
                    collection = name,
                    token = lease.token,
                    newest,
                    "copies of an index are of a later owner than the database knows, as after a restore: the token is raised above theirs"
                );
                // A task of its own: once the token is raised, the folder has to say so, or it is replaced at the next start.
                let (keeper, kept) = (self.clone(), kept.clone());
                let raising = tokio::spawn(async move { keeper.raise(kept, newest).await });
                let raised = match raising.await {
                    Ok(raised) => raised?,
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    // The process ends.
                    Err(_) => None,
                };
                // Another node has taken it over; the next look sees that.
                let Some(raised) = raised else { return Ok(()) };
                raised
            }
            None => lease.clone(),
        };
        let mut compared = self.compared();
        compared.ask_again = None;
        compared.leases.insert(lease.collection.clone(), lease);
        Ok(())
    }

    /// Raises the token, in the database, the folder and what is in use.
    async fn raise(&self, kept: KeptIndex, past: i64) -> Result<Option<IndexLease>, FeedError> {
        let KeptIndex { index, lease } = kept;
        let Some(raised) = self.db.collections().raise_index_token(&lease, past).await? else {
            return Ok(None);
        };
        let (shelf, folder) = (self.shelf.clone(), self.shelf.folder().join(&lease.collection));
        let (owner, of) = (FolderOwner::of(&raised), raised.clone());
        blocking(move || -> Result<(), FeedError> {
            owner.write(&folder)?;
            Ok(shelf.keep(of, index)?)
        })
        .await?;
        Ok(Some(raised))
    }

    /// Makes the index ready under a lease: its own folder if that is `trusted`, because nobody else kept the index since,
    /// else the newest copy, else an empty one. Files that it lacks wait to be indexed again; what the rows do not know of
    /// goes. False: its copy is still being fetched.
    async fn make_ready(
        &self,
        lease: &IndexLease,
        trusted: bool,
        wait: Option<Duration>,
    ) -> Result<bool, FeedError> {
        let name = lease.collection.as_str();
        let folder = self.shelf.folder().join(name);
        // One that was opened to be read.
        self.let_go(name).await;
        let mut provenance = Provenance::Kept;
        if !trusted {
            if self.shelf.has_folder(name) {
                tracing::warn!(collection = name, folder = %folder.display(), "another node has kept this index since; its folder here is replaced");
            }
            let (shelf, of) = (self.shelf.clone(), name.to_owned());
            blocking(move || shelf.remove(&of)).await?;
            if !self.is_fetched(lease, wait).await? {
                return Ok(false);
            }
            if let Some(made) = self.bring_copy(lease, &folder).await? {
                provenance = Provenance::CopyOf(made);
            }
        }
        let (shelf, of) = (self.shelf.clone(), name.to_owned());
        let index = blocking(move || shelf.open_to_write(&of)).await?;
        reconcile::reconcile(&self.db, lease, &index, provenance).await?;
        let owner = FolderOwner::of(lease);
        blocking(move || owner.write(&folder)).await?;
        tracing::info!(
            collection = name,
            token = lease.token,
            ?provenance,
            "this node keeps the index of the collection"
        );
        let (shelf, lease) = (self.shelf.clone(), lease.clone());
        blocking(move || shelf.keep(lease, index)).await?;
        Ok(true)
    }

    /// Fetches the pieces of the newest copy, if there are copies, and waits that long, or until they are here. False: that takes
    /// longer, and goes on beside other work.
    async fn is_fetched(&self, lease: &IndexLease, wait: Option<Duration>) -> Result<bool, FeedError> {
        if self.copies.is_none() {
            return Ok(true);
        }
        let mut task = self.fetches.take(lease).unwrap_or_else(|| {
            let (keeper, lease) = (self.clone(), lease.clone());
            tokio::spawn(async move { keeper.fetch_pieces(&lease, true).await.map(drop) })
        });
        let done = tokio::select! {
            biased;
            done = &mut task => done,
            () = self.clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {
                self.fetches.put(lease, task);
                return Ok(false);
            }
        };
        match done {
            Ok(fetched) => fetched.map(|()| true),
            // As for all work of this process.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime stops, and drops this task where it waits next.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Fetches the newest copy aside, and prolongs the lease meanwhile. Pieces that an earlier attempt fetched are not fetched
    /// again: they are named by their digests. `in_turn`: after others, of which only some are fetched at once.
    async fn fetch_pieces(&self, lease: &IndexLease, in_turn: bool) -> Result<Option<Fetched>, FeedError> {
        let Some(blob) = &self.copies else { return Ok(None) };
        let aside = self.fetched_aside(&lease.collection);
        let fetching = async {
            let _turn = if in_turn { self.fetches.turn().await } else { None };
            mirror::fetch(&lease.collection, Some(&lease.identity), &**blob, &aside).await
        };
        let fetched = tokio::select! {
            fetched = fetching => fetched,
            () = self.lost(lease) => {
                return Err(FeedError::TakenOver { collection: lease.collection.clone() });
            }
        };
        match fetched {
            Ok(fetched) => Ok(Some(fetched)),
            Err(MirrorError::Nothing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings the newest copy of the index into its folder, and gives when it was made.
    async fn bring_copy(&self, lease: &IndexLease, folder: &Path) -> Result<Option<Timestamp>, FeedError> {
        let fetched = self.fetch_pieces(lease, false).await?;
        if let Some(fetched) = &fetched {
            tokio::fs::rename(&fetched.folder, folder).await.map_err(mirror::io(folder))?;
        }
        // Its files have one name each from here on: the log is written to.
        self.remove_fetched(&lease.collection).await?;
        Ok(fetched.map(|fetched| fetched.made))
    }

    fn fetched_aside(&self, name: &str) -> PathBuf {
        self.shelf.folder().join(format!("{FETCHED_ASIDE}{name}"))
    }

    /// Ends the fetch of a copy and removes its pieces.
    pub(super) async fn remove_fetched(&self, name: &str) -> Result<(), FeedError> {
        self.fetches.end(name);
        let aside = self.fetched_aside(name);
        match tokio::fs::remove_dir_all(&aside).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(mirror::io(&aside)(error).into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use grange_db::IndexOwner;

    use super::*;

    #[test]
    fn an_index_is_kept_by_its_owner_and_let_go_by_all_others() {
        let now = Timestamp::UNIX_EPOCH + Duration::from_secs(1_000);
        let row = |node: Option<&str>, token, left: i64, identity: &str| IndexedCollection {
            name: "news".to_owned(),
            identity: identity.to_owned(),
            removed: false,
            owner: node.map(|node| IndexOwner {
                node: node.to_owned(),
                token,
                until: now + jiff::SignedDuration::from_secs(left),
                lapsed: left <= 0,
            }),
        };
        let kept = IndexLease {
            collection: "news".to_owned(),
            identity: "1".to_owned(),
            owner: "me".to_owned(),
            token: 3,
        };
        for (row, open, expected) in [
            (row(None, 0, 0, "1"), false, Tending::Take),
            (row(Some("me"), 3, 90, "1"), false, Tending::Take),
            (row(Some("other"), 4, 90, "1"), false, Tending::Leave),
            (row(Some("other"), 4, -1, "1"), false, Tending::Take),
            (row(Some("me"), 3, 90, "1"), true, Tending::Nothing),
            (row(Some("me"), 3, 40, "1"), true, Tending::Renew),
            // Ours, and nobody else came.
            (row(Some("me"), 3, -40, "1"), true, Tending::Renew),
            (row(Some("me"), 5, 90, "1"), true, Tending::LetGo),
            (row(Some("other"), 4, 90, "1"), true, Tending::LetGo),
            (row(Some("other"), 4, -1, "1"), true, Tending::LetGo),
            (row(Some("me"), 3, 90, "2"), true, Tending::LetGo),
            (row(None, 0, 0, "2"), true, Tending::LetGo),
        ] {
            let found = tending(&row, open.then_some(&kept), "me", now, Duration::from_secs(100));
            assert_eq!(found, expected, "{row:?}, open: {open}");
        }
    }
}
