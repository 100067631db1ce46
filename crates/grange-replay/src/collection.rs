//! Collections by name: what is captured, where its bytes are, and who may see it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use grange_index::Index;
use grange_index::access::Rule;

use crate::capture::Lately;
use crate::holdings::Holdings;

/// One collection: an index of its own, the bytes behind it, and its access rules.
#[derive(Debug)]
pub struct Collection {
    pub name: String,
    /// Which collection of this name it is: one that was removed and made again is another.
    pub identity: String,
    pub index: Arc<Index>,
    pub holdings: Arc<dyn Holdings>,
    /// Records of it that were read lately.
    pub(crate) lately: Lately,
    rules: RwLock<Arc<[Rule]>>,
}

impl Collection {
    /// The collection of what this Grange has harvested and stored itself.
    pub const ARCHIVE: &'static str = "archive";

    pub fn new(name: &str, index: Arc<Index>, holdings: Arc<dyn Holdings>) -> Self {
        let rules = RwLock::new(Arc::from(Vec::new()));
        let identity = String::new();
        Self { name: name.to_owned(), identity, index, holdings, lately: Lately::default(), rules }
    }

    /// The same as the collection that a row tells of.
    #[must_use]
    pub fn with_identity(mut self, identity: &str) -> Self {
        identity.clone_into(&mut self.identity);
        self
    }

    /// The rules in force now; a request judges everything it shows by one reading of them.
    pub fn rules(&self) -> Arc<[Rule]> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_rules(&self, rules: Vec<Rule>) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules.into();
    }
}

/// Every collection served here. Cloning shares it: a collection added is there for all.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    by_name: Arc<RwLock<BTreeMap<String, Arc<Collection>>>>,
    /// One for all of them: its size is that of the process.
    lately: Lately,
}

impl Collections {
    pub fn get(&self, name: &str) -> Option<Arc<Collection>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub fn add(&self, mut collection: Collection) {
        collection.lately = self.lately.clone();
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        by_name.insert(collection.name.clone(), Arc::new(collection));
    }

    pub fn remove(&self, name: &str) -> bool {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// In order of their names.
    pub fn all(&self) -> Vec<Arc<Collection>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
