//! What clients were promised, and whether the servers keep it.
//!
//! The oracle knows for every name which contents are possible: one when the last request was answered clearly, several when
//! an answer was lost. An answer that contradicts all possible contents is a broken promise.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::network::Reply;

pub(super) const NAMESPACES: [&str; 2] = ["a", "b/c"];
/// Names in every collection; with them all slices of every number up to six are used.
pub(super) const FILES: [&str; 9] = ["f0", "f1", "f2", "f3", "f4", "d/f5", "d/f6", "d/e/f7", "d/e/f8"];

/// What a file holds; `None` when there is no file.
pub(super) type Content = Option<u32>;

#[derive(Clone, Debug)]
pub(super) struct FileState {
    pub possible: BTreeSet<Content>,
    /// A removal was asked for without an answer, and may still be under way.
    removal_under_way: bool,
    /// A byte of it was changed on the disk.
    pub rotten: bool,
}

impl Default for FileState {
    fn default() -> Self {
        Self { possible: BTreeSet::from([None]), removal_under_way: false, rotten: false }
    }
}

impl FileState {
    fn set(&mut self, content: Content) {
        self.possible = BTreeSet::from([content]);
        if self.removal_under_way {
            self.possible.insert(None);
        }
    }

    pub(super) fn certain(&self) -> Option<Content> {
        self.possible.first().copied().filter(|_| self.possible.len() == 1)
    }
}

/// Requests about a whole collection without a clear answer: they may take effect until the servers have come to rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubt {
    pub created: bool,
    pub removed_with_files: bool,
    pub removed_if_empty: bool,
}

impl Doubt {
    pub(super) fn any(self) -> bool {
        self != Self::default()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct CollectionState {
    pub living: Option<Uuid>,
    pub doubt: Doubt,
    pub files: BTreeMap<&'static str, FileState>,
}

/// One of these contents must be in the attic.
#[derive(Clone, Debug)]
struct InAttic {
    what: String,
    contents: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub collections: BTreeMap<&'static str, CollectionState>,
    attic: Vec<InAttic>,
    versions: u32,
}

pub(super) fn content(namespace: &str, name: &str, version: u32) -> Vec<u8> {
    format!("{namespace}/{name} version {version}\n").repeat(1 + version as usize % 4).into_bytes()
}

pub(super) fn rotten(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[0] ^= 1;
    bytes
}

fn no_file(reply: &Reply) -> bool {
    reply.status == 404 && reply.text().contains("no such file")
}

/// A broken promise.
pub(super) type Broken = String;

impl Oracle {
    pub(super) fn new() -> Self {
        let mut oracle = Self::default();
        for namespace in NAMESPACES {
            let files = FILES.iter().map(|name| (*name, FileState::default())).collect();
            let collection = CollectionState { files, ..CollectionState::default() };
            oracle.collections.insert(namespace, collection);
        }
        oracle
    }

    pub(super) fn new_version(&mut self) -> u32 {
        self.versions += 1;
        self.versions
    }

    pub(super) fn collection(&self, namespace: &str) -> &CollectionState {
        &self.collections[namespace]
    }

    fn collection_mut(&mut self, namespace: &str) -> &mut CollectionState {
        self.collections.get_mut(namespace).unwrap()
    }

    fn file_mut(&mut self, namespace: &str, name: &str) -> &mut FileState {
        self.collection_mut(namespace).files.get_mut(name).unwrap()
    }

    fn expect_in_attic(&mut self, namespace: &str, name: &str, versions: impl IntoIterator<Item = u32>) {
        let contents = versions.into_iter().flat_map(|version| {
            let good = content(namespace, name, version);
            [rotten(good.clone()), good]
        });
        self.attic.push(InAttic { what: format!("{namespace}/{name}"), contents: contents.collect() });
    }

    /// `vague`: the collection itself may have come or gone meanwhile.
    pub(super) fn judge_put(
        &mut self,
        namespace: &str,
        name: &str,
        version: u32,
        reply: Option<&Reply>,
        vague: bool,
    ) -> Result<(), Broken> {
        let file = self.file_mut(namespace, name);
        let before = file.clone();
        match reply.map(|reply| reply.status) {
            Some(201) if vague || before.rotten || before.possible.contains(&None) => {
                file.rotten = false;
                file.set(Some(version));
                if before.rotten && !before.possible.contains(&None) && !vague {
                    let bytes = rotten(content(namespace, name, version));
                    self.attic
                        .push(InAttic { what: format!("rotten {namespace}/{name}"), contents: vec![bytes] });
                }
                Ok(())
            }
            Some(201) => Err(format!("PUT {namespace}/{name} was new, but it held {:?}", before.possible)),
            Some(200) if vague || before.possible.contains(&Some(version)) => {
                file.rotten = false;
                file.set(Some(version));
                Ok(())
            }
            Some(200) => {
                Err(format!("PUT {namespace}/{name} was the same, but it held {:?}", before.possible))
            }
            Some(409) if !vague => {
                file.possible.remove(&None);
                if !file.rotten {
                    file.possible.remove(&Some(version));
                }
                if file.possible.is_empty() {
                    return Err(format!(
                        "PUT {namespace}/{name} had a conflict, but it held {:?}",
                        before.possible
                    ));
                }
                if file.removal_under_way {
                    file.possible.insert(None);
                }
                Ok(())
            }
            Some(404) => Ok(()),
            _ => {
                if file.possible.contains(&None) {
                    file.possible.insert(Some(version));
                }
                Ok(())
            }
        }
    }

    pub(super) fn judge_delete(
        &mut self,
        namespace: &str,
        name: &str,
        reply: Option<&Reply>,
        vague: bool,
    ) -> Result<(), Broken> {
        let file = self.file_mut(namespace, name);
        let before = file.possible.clone();
        match reply {
            Some(reply) if reply.status == 204 => {
                if !vague && before == BTreeSet::from([None]) {
                    return Err(format!("DELETE {namespace}/{name} removed a file that was not there"));
                }
                file.rotten = false;
                file.set(None);
                let versions: Vec<u32> = before.into_iter().flatten().collect();
                if !vague {
                    self.expect_in_attic(namespace, name, versions);
                }
                Ok(())
            }
            Some(reply) if no_file(reply) && !vague => {
                if !before.contains(&None) {
                    return Err(format!("DELETE {namespace}/{name} found no file, but it held {before:?}"));
                }
                file.set(None);
                Ok(())
            }
            Some(reply) if reply.status == 404 => Ok(()),
            _ => {
                file.removal_under_way = true;
                file.possible.insert(None);
                Ok(())
            }
        }
    }

    /// The version that bytes are.
    fn version_of(&self, namespace: &str, name: &str, bytes: &[u8]) -> Result<u32, Broken> {
        let file = &self.collection(namespace).files[name];
        let is = |version: &u32| {
            let good = content(namespace, name, *version);
            good == bytes || (file.rotten && rotten(good) == bytes)
        };
        (1..=self.versions).find(is).ok_or_else(|| {
            let shown = String::from_utf8_lossy(bytes).into_owned();
            format!(
                "{namespace}/{name} holds bytes that nobody sent: {shown:?}, possible {:?}",
                file.possible
            )
        })
    }

    pub(super) fn judge_get(
        &mut self,
        namespace: &str,
        name: &str,
        reply: Option<&Reply>,
        vague: bool,
    ) -> Result<(), Broken> {
        let found = match reply {
            Some(reply) if reply.status == 200 => Some(self.version_of(namespace, name, &reply.body)?),
            Some(reply) if no_file(reply) => None,
            _ => return Ok(()),
        };
        if vague {
            return Ok(());
        }
        let file = self.file_mut(namespace, name);
        if !file.possible.contains(&found) {
            return Err(format!("GET {namespace}/{name} gave {found:?}, possible {:?}", file.possible));
        }
        file.set(found);
        Ok(())
    }

    /// `busy` names had other requests at the same time.
    pub(super) fn judge_list(
        &self,
        namespace: &str,
        directory: &str,
        reply: Option<&Reply>,
        busy: &BTreeSet<&'static str>,
        vague: bool,
    ) -> Result<(), Broken> {
        let Some(reply) = reply.filter(|reply| !vague && [200, 404].contains(&reply.status)) else {
            return Ok(());
        };
        if reply.status == 404 && !reply.text().contains("no such directory") {
            return Ok(());
        }
        let mut listed = BTreeSet::new();
        if reply.status == 200 {
            let listing: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            if listing["missing_slices"] != serde_json::json!([]) {
                return Ok(());
            }
            let entries = listing["entries"].as_array().unwrap();
            let files = entries.iter().filter(|entry| entry["directory"] == false);
            listed = files.map(|entry| format!("{directory}{}", entry["name"].as_str().unwrap())).collect();
        }
        for (name, file) in &self.collection(namespace).files {
            let here = name.strip_prefix(directory).is_some_and(|rest| !rest.contains('/'));
            if !here || busy.contains(name) {
                continue;
            }
            if listed.contains(*name) && file.possible == BTreeSet::from([None]) {
                return Err(format!("a listing of {namespace}/{directory} has {name}, which is removed"));
            }
            if !listed.contains(*name) && !file.possible.contains(&None) {
                return Err(format!("a listing of {namespace}/{directory} lacks {name}: {listed:?}"));
            }
        }
        Ok(())
    }

    /// Of a creation that was asked of several servers at once.
    pub(super) fn judge_create(&mut self, namespace: &str, replies: &[Option<Reply>]) -> Result<(), Broken> {
        let created: Vec<Uuid> = replies
            .iter()
            .flatten()
            .filter(|reply| reply.status == 200)
            .map(|reply| {
                let record: crate::collection::Collection = serde_json::from_slice(&reply.body).unwrap();
                record.uuid
            })
            .collect();
        let unclear = replies.iter().any(|reply| reply.as_ref().is_none_or(|reply| reply.status >= 500));
        let collection = self.collection_mut(namespace);
        if created.len() > 1 {
            return Err(format!("{namespace} was created {} times at once", created.len()));
        }
        if let Some(uuid) = created.first() {
            if collection.living.is_some() && !collection.doubt.any() {
                return Err(format!("{namespace} was created a second time"));
            }
            if collection.living.is_some() {
                self.forget_files(namespace)?;
            }
            self.collection_mut(namespace).living = Some(*uuid);
        }
        self.collection_mut(namespace).doubt.created |= unclear;
        Ok(())
    }

    pub(super) fn judge_removal(
        &mut self,
        namespace: &str,
        with_files: bool,
        reply: Option<&Reply>,
    ) -> Result<(), Broken> {
        let collection = self.collection_mut(namespace);
        match reply.map(|reply| reply.status) {
            Some(200) => {
                let files = collection.files.iter();
                let kept = files.filter(|(_, file)| !file.possible.contains(&None)).map(|(name, _)| *name);
                let kept: Vec<_> = kept.collect();
                if !with_files && !kept.is_empty() && !collection.doubt.removed_with_files {
                    return Err(format!("{namespace} was removed as empty and held {kept:?}"));
                }
                let doubt = collection.doubt;
                collection.doubt.removed_with_files = true;
                self.forget_files(namespace)?;
                let collection = self.collection_mut(namespace);
                (collection.living, collection.doubt) = (None, doubt);
                Ok(())
            }
            Some(404 | 409) => Ok(()),
            _ => {
                let doubt = &mut collection.doubt;
                *(if with_files { &mut doubt.removed_with_files } else { &mut doubt.removed_if_empty }) =
                    true;
                Ok(())
            }
        }
    }

    /// A collection is gone: its files are in the attic.
    fn forget_files(&mut self, namespace: &str) -> Result<(), Broken> {
        let with_files = self.collection(namespace).doubt.removed_with_files;
        for name in FILES {
            let file = std::mem::take(self.file_mut(namespace, name));
            if file.possible.contains(&None) {
                continue;
            }
            if !with_files {
                return Err(format!("{namespace} is gone without a request to remove {name} with it"));
            }
            self.expect_in_attic(namespace, name, file.possible.into_iter().flatten());
        }
        Ok(())
    }

    /// The servers have come to rest: what living collection there is, and what its files hold.
    pub(super) fn judge_rest(
        &mut self,
        namespace: &'static str,
        living: Option<Uuid>,
        files: &BTreeMap<String, Vec<u8>>,
        attic: &BTreeSet<Vec<u8>>,
    ) -> Result<(), Broken> {
        let collection = self.collection(namespace);
        let doubt = collection.doubt;
        if !doubt.any() && collection.living != living {
            return Err(format!("{namespace} is {living:?} and should be {:?}", collection.living));
        }
        if let Some(unknown) = files.keys().find(|name| !FILES.contains(&name.as_str())) {
            return Err(format!("{namespace} has a file that nobody stored: {unknown}"));
        }
        for name in FILES {
            let file = self.collection(namespace).files[name].clone();
            let found = files.get(name).map(|bytes| self.version_of(namespace, name, bytes)).transpose()?;
            if !file.possible.contains(&found) {
                let kept = |version: u32| {
                    let good = content(namespace, name, version);
                    attic.contains(&good) || attic.contains(&rotten(good))
                };
                let taken_along = found.is_none()
                    && doubt.removed_with_files
                    && file.possible.iter().flatten().any(|version| kept(*version));
                if !taken_along {
                    return Err(format!("{namespace}/{name} holds {found:?}, possible {:?}", file.possible));
                }
            }
            let rotten = found.is_some_and(|version| files[name] != content(namespace, name, version));
            let possible = BTreeSet::from([found]);
            *self.file_mut(namespace, name) = FileState { possible, removal_under_way: false, rotten };
        }
        let collection = self.collection_mut(namespace);
        (collection.living, collection.doubt) = (living, Doubt::default());
        Ok(())
    }

    pub(super) fn judge_attic(&self, attic: &BTreeSet<Vec<u8>>) -> Result<(), Broken> {
        let lost = self.attic.iter().find(|kept| !kept.contents.iter().any(|bytes| attic.contains(bytes)));
        lost.map_or(Ok(()), |lost| Err(format!("{} was removed and is not in the attic", lost.what)))
    }

    pub(super) fn mark_rotten(&mut self, namespace: &str, name: &str) {
        self.file_mut(namespace, name).rotten = true;
    }
}
