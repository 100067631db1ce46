//! Behind the port: what a case sees of a backend that its users do not, and what it breaks there.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::{Bench, file};
use crate::disk::Disk;
use crate::disk::base::Fault;
use crate::disk::tests::flip;
use crate::memory::Memory;
use crate::swap::Swap;

#[cfg(feature = "s3")]
use super::faulty_bucket::FaultyBucket;
#[cfg(feature = "s3")]
use crate::s3::S3;

pub(super) enum Insides {
    Memory(Arc<Memory>),
    /// Also those of a peer: the disks of its node.
    Disk(Disk),
    #[cfg(feature = "s3")]
    Bucket(Arc<S3>, Arc<FaultyBucket>),
    Swap(Arc<Swap>),
}

impl Bench {
    /// The bytes of all files in the attic, sorted.
    pub(super) async fn attic(&self) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = match &self.insides {
            Insides::Memory(memory) => memory.attic().into_iter().map(|(_, bytes)| bytes.to_vec()).collect(),
            Insides::Disk(_) => {
                let kept = files_below(self.folder.path()).into_iter().filter(|path| has(path, "atticdir"));
                kept.map(|path| std::fs::read(path).unwrap()).collect()
            }
            #[cfg(feature = "s3")]
            Insides::Bucket(s3, _) => {
                use futures_util::TryStreamExt;
                use object_store::ObjectStoreExt;
                let listed =
                    s3.store().list(Some(&s3.key(&["attic"]))).try_collect::<Vec<_>>().await.unwrap();
                let mut found = Vec::new();
                for object in listed {
                    let got = s3.store().get(&object.location).await.unwrap();
                    found.push(got.bytes().await.unwrap().to_vec());
                }
                found
            }
            Insides::Swap(_) => {
                let kept =
                    files_below(self.folder.path()).into_iter().filter(|path| has(path, ".swap-attic"));
                kept.map(|path| std::fs::read(path).unwrap()).collect()
            }
        };
        found.sort();
        found
    }

    /// Changes a byte of a stored file where it lies.
    pub(super) async fn damage(&self, name: &str) {
        match &self.insides {
            Insides::Memory(memory) => memory.damage(&file(name), |bytes| bytes[0] ^= 1),
            Insides::Disk(disk) => flip(&disk.path(&file(name)).await.unwrap().unwrap()),
            #[cfg(feature = "s3")]
            Insides::Bucket(s3, bucket) => bucket.flip(&s3.key(&["files", name])).await,
            Insides::Swap(_) => {
                let lies = |path: &PathBuf| path.ends_with(Path::new("library/warcs").join(name));
                let found = files_below(self.folder.path())
                    .into_iter()
                    .find(|path| lies(path) && !has(path, ".swap-attic"));
                flip(&found.unwrap());
            }
        }
    }

    /// Changes a byte of the next file between its writing and its reading back.
    pub(super) fn damage_next_write(&self) {
        match &self.insides {
            Insides::Memory(memory) => memory.flip_next.store(true, SeqCst),
            Insides::Disk(disk) => disk.faults().add(Fault::WrittenByte),
            #[cfg(feature = "s3")]
            Insides::Bucket(_, bucket) => bucket.flip_next.store(true, SeqCst),
            Insides::Swap(swap) => swap.flip_next.store(true, SeqCst),
        }
    }

    /// Lets every read of a stored file fail.
    pub(super) fn make_unreadable(&self, name: &str) {
        match &self.insides {
            Insides::Memory(memory) => *memory.unreadable.lock().unwrap() = Some(file(name)),
            Insides::Disk(disk) => disk.faults().add(Fault::Unreadable(file(name))),
            #[cfg(feature = "s3")]
            Insides::Bucket(s3, bucket) => {
                *bucket.unreadable.lock().unwrap() = Some(s3.key(&["files", name]));
            }
            Insides::Swap(swap) => *swap.unreadable.lock().unwrap() = Some(file(name)),
        }
    }

    /// Lays things among the files that are none of them, before, between and after their names.
    pub(super) async fn lay_foreign_things(&self) {
        match &self.insides {
            Insides::Memory(_) => {}
            Insides::Disk(disk) => {
                for base in ["one/filedir", "two/filedir"] {
                    let base = self.folder.path().join(base);
                    std::fs::create_dir(base.join("b-folder")).unwrap();
                    std::fs::write(base.join("b-folder/x"), "foreign").unwrap();
                    std::fs::write(base.join(".hidden"), "foreign").unwrap();
                    symlink("/etc/passwd", base.join("c-link")).unwrap();
                }
                assert!(disk.path(&file("c-link")).await.unwrap().is_none());
            }
            #[cfg(feature = "s3")]
            Insides::Bucket(s3, _) => {
                use object_store::ObjectStoreExt;
                for key in [
                    &["files", ".hidden"][..],
                    &["files", "b", "x"],
                    &["files", "b", "y"],
                    &["files", "z", "x"],
                ] {
                    s3.store().put(&s3.key(key), "foreign".into()).await.unwrap();
                }
            }
            Insides::Swap(swap) => {
                for path in ["b/x", "b/y", "z/x"] {
                    swap.put_deep(path).await;
                }
            }
        }
    }

    /// Lays a foreign file into a folder among the files of a bucket or a collection.
    pub(super) async fn lay_deep(&self, path: &str) {
        match &self.insides {
            #[cfg(feature = "s3")]
            Insides::Bucket(s3, _) => {
                use object_store::ObjectStoreExt;
                s3.store().put(&s3.key(&["files", path]), "foreign".into()).await.unwrap();
            }
            Insides::Swap(swap) => swap.put_deep(path).await,
            Insides::Memory(_) | Insides::Disk(_) => panic!("these have no such folders"),
        }
    }

    /// How such a file is named to people.
    pub(super) fn path_of_unlisted(&self, path: &str) -> String {
        let place = self.blob.place().trim_end_matches('/');
        match &self.insides {
            #[cfg(feature = "s3")]
            Insides::Bucket(..) => format!("{place}/files/{path}"),
            _ => format!("{place}/{path}"),
        }
    }
}

fn has(path: &Path, folder: &str) -> bool {
    path.components().any(|one| one.as_os_str() == folder)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}
