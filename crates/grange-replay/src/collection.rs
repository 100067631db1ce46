//! Collections by name: what is captured, where its bytes are, and who may see it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use grange_index::Index;
use grange_index::access::RuleSet;

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
    rules: RwLock<Arc<RuleSet>>,
}

impl Collection {
    /// The collection of what this Grange has harvested and stored itself.
    pub const ARCHIVE: &'static str = "archive";

    pub fn new(name: &str, index: Arc<Index>, holdings: Arc<dyn Holdings>) -> Self {
        let rules = RwLock::default();
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
    pub fn rules(&self) -> Arc<RuleSet> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_rules(&self, rules: impl Into<Arc<RuleSet>>) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules.into();
    }
}

/// Every collection served here. Cloning shares it: a collection added is there for all.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    by_name: Arc<RwLock<BTreeMap<String, Arc<Collection>>>>,
    /// One for all of them: its size is that of the process.
    lately: Lately,
    accounts: Arc<RwLock<HashMap<String, Account>>>,
}

/// What access rules ask about the account of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub role: String,
    /// Whether the role works at the archive instead of only reading it.
    pub staff: bool,
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

    /// The account of a user by name, if there is one that may log in.
    pub fn account(&self, user: &str) -> Option<Account> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.get(&user.to_lowercase()).cloned()
    }

    /// Replaces the accounts, which have names in lower case.
    pub fn set_accounts(&self, accounts: HashMap<String, Account>) {
        *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = accounts;
    }

    /// In order of their names.
    pub fn all(&self) -> Vec<Arc<Collection>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
