//! Local files laid out for peers to fetch: each under a name that cannot be guessed, for as long as somebody waits
//! for it, and only to who knows the node token.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grange_base::named_file;
use grange_model::FileName;
use http::{Method, Request};
use uuid::Uuid;

use super::giving;
use super::origin::{At, Origin};
use super::serve::{Answer, Refusal, named, no_route, ok};
use crate::blob::{Opened, Stat};
use crate::disk::modified;
use crate::error::Error;

/// The files that this node offers now. Clones share them.
#[derive(Clone, Debug)]
pub struct Offers {
    node: Arc<str>,
    files: Arc<Mutex<HashMap<String, Offered>>>,
}

#[derive(Clone, Debug)]
struct Offered {
    name: FileName,
    path: PathBuf,
}

/// One file on offer. Dropping it takes it back.
#[derive(Debug)]
pub struct Offer {
    id: String,
    offers: Offers,
}

impl Offers {
    /// Of the node with this id.
    pub fn new(node: impl Into<Arc<str>>) -> Self {
        Self { node: node.into(), files: Arc::default() }
    }

    fn files(&self) -> MutexGuard<'_, HashMap<String, Offered>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays the file out under a fresh name.
    pub fn offer(&self, name: &FileName, path: &Path) -> Offer {
        // 122 random bits.
        let id = Uuid::new_v4().simple().to_string();
        self.files().insert(id.clone(), Offered { name: name.clone(), path: path.to_owned() });
        Offer { id, offers: self.clone() }
    }

    /// How many files are on offer.
    pub fn len(&self) -> usize {
        self.files().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Answers one request about the offer. `path` is what follows its mount point, still percent-encoded. The caller
    /// has admitted the sender.
    pub async fn answer<B: Send>(&self, id: &str, path: &str, request: Request<B>) -> Answer {
        let (parts, _) = request.into_parts();
        let found = async {
            let path = path.strip_prefix('/').filter(|_| parts.method == Method::GET);
            let (what, name) = path.and_then(|path| path.split_once('/')).ok_or_else(no_route)?;
            let name = named(name)?;
            let offered = self.files().get(id).filter(|offered| offered.name == name).cloned();
            let not_found = || Error::NotFound { name: name.clone(), place: "offer".to_owned() };
            let offered = offered.ok_or_else(not_found)?;
            let failed = |source| Error::Source { name: name.clone(), source };
            let file = named_file::open_async(&offered.path).await.map_err(failed)?;
            let data = file.metadata().await.map_err(failed)?;
            let (size, modified) = (data.len(), modified(&data));
            match what {
                "files" => giving::stream(Opened::new(size, file), &parts.headers),
                "stat" => Ok(ok(&Stat { size, modified })),
                _ => Err(no_route()),
            }
        };
        found.await.unwrap_or_else(Refusal::into_answer)
    }
}

impl Offer {
    pub fn origin(&self) -> Origin {
        Origin { node: self.offers.node.to_string(), at: At::Offer(self.id.clone()) }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.offers.files().remove(&self.id);
    }
}
