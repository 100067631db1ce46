//! One suite for every backend. A case is a sentence about the port; the macro below runs each on all of them.

use std::future::{Ready, ready};
use std::path::PathBuf;
use std::sync::Arc;

use grange_base::{Clock, Size};
use grange_model::{Algorithm, Checksums, FileName};
use tokio::io::AsyncReadExt;

use crate::blob::{Blob, Source, Stored};
use crate::digest::{By, Summing};
use crate::disk::{Disk, DiskSettings};
use crate::error::Error;
use crate::memory::Memory;
use crate::swap::Swap;
use insides::Insides;

mod contents;
mod damage;
#[cfg(feature = "s3")]
mod faulty_bucket;
mod insides;
mod listing;
mod peer_node;
mod peer_pull;
mod peer_wire;
mod refusals;
mod swap_network;

/// A store of its own for one case.
struct Bench {
    blob: Arc<dyn Blob>,
    insides: Insides,
    /// The node behind a peer.
    _node: Option<peer_node::Node>,
    /// Where plain files for `put_file` can lie; on the same disk as a disk store.
    folder: tempfile::TempDir,
}

impl Bench {
    fn memory() -> Ready<Option<Self>> {
        let blob = Arc::new(Memory::new(Clock::system()));
        let insides = Insides::Memory(Arc::clone(&blob));
        ready(Some(Self { blob, insides, _node: None, folder: tempfile::tempdir().unwrap() }))
    }

    fn disk() -> Ready<Option<Self>> {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk(&folder, &["one", "two"]);
        ready(Some(Self { blob: Arc::new(disk.clone()), insides: Insides::Disk(disk), _node: None, folder }))
    }

    async fn peer() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk(&folder, &["one", "two"]);
        let node = peer_node::Node::start(Arc::new(disk.clone())).await;
        let (blob, insides) = (Arc::new(node.peer()), Insides::Disk(disk));
        Some(Self { blob, insides, _node: Some(node), folder })
    }

    /// The code for buckets over a bucket in memory, which needs no server.
    #[cfg(feature = "s3")]
    fn bucket() -> Ready<Option<Self>> {
        let memory = Arc::new(object_store::memory::InMemory::new());
        ready(Some(Self::over_bucket(memory, "prefix", tempfile::tempdir().unwrap())))
    }

    #[cfg(feature = "s3")]
    fn over_bucket(
        store: Arc<dyn object_store::ObjectStore>,
        prefix: &str,
        folder: tempfile::TempDir,
    ) -> Self {
        let faulty = Arc::new(faulty_bucket::FaultyBucket::new(store));
        let s3 = Arc::new(crate::s3::S3::over(faulty.clone(), prefix));
        Self { blob: s3.clone(), insides: Insides::Bucket(s3, faulty), _node: None, folder }
    }

    #[cfg(feature = "s3")]
    async fn s3() -> Option<Self> {
        let lent = grange_testkit::TestBucket::lend()?;
        let settings = crate::s3::S3Settings {
            bucket: lent.bucket.clone(),
            prefix: lent.prefix.clone(),
            endpoint: Some(lent.endpoint.clone()),
            region: "us-east-1".to_owned(),
            access_key: lent.access_key.clone(),
            secret_key: lent.secret_key.clone(),
            checksums: Algorithm::ALL.to_vec(),
            read_only: false,
        };
        let opened = crate::s3::S3::open(settings, Clock::system()).await.unwrap();
        Some(Self::over_bucket(Arc::clone(opened.store()), &lent.prefix, tempfile::tempdir().unwrap()))
    }

    /// Two servers, so that some names are redirected.
    async fn swap() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let address = swap_network::start(folder.path()).await;
        let key = std::fs::read_to_string(folder.path().join("swap.key")).unwrap();
        let all = Algorithm::ALL.to_vec();
        let swap = Swap::new(&address, "library/warcs", Some(key.trim()), all, false).unwrap();
        let swap = Arc::new(swap);
        grange_testkit::until("every slice answers", async || {
            for name in ["a", "b", "c", "d", "e", "f"] {
                if swap.stat(&file(name)).await.is_err() {
                    return false;
                }
            }
            true
        })
        .await;
        Some(Self { blob: swap.clone(), insides: Insides::Swap(swap), _node: None, folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn put(&self, name: &str, bytes: &[u8]) -> Result<Stored, Error> {
        self.blob.put(&file(name), bytes.into(), None).await
    }

    async fn read(&self, name: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.blob.get(&file(name)).await.unwrap().read_to_end(&mut bytes).await.unwrap();
        bytes
    }

    async fn names(&self) -> Vec<String> {
        let listed = self.blob.list(None, usize::MAX).await.unwrap();
        listed.into_iter().map(|listed| listed.name.to_string()).collect()
    }
}

/// A disk store with these base directories below the folder, that leaves no space unused.
pub(crate) fn disk(folder: &tempfile::TempDir, bases: &[&str]) -> Disk {
    let mut settings = DiskSettings::new(bases.iter().map(|base| folder.path().join(base)));
    settings.min_space_left = Size(0);
    settings.min_space_required = Size(0);
    Disk::open(settings, Clock::system()).unwrap()
}

pub(crate) fn file(name: &str) -> FileName {
    name.parse().unwrap()
}

pub(crate) fn sums(bytes: &[u8]) -> Checksums {
    let mut summing = Summing::inline(By::First, Algorithm::ALL);
    summing.update(&bytes::Bytes::copy_from_slice(bytes));
    summing.finish()
}

/// Bytes without a pattern that a mistake could hide behind.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A sender that breaks off after these bytes.
fn breaking(bytes: &[u8]) -> Source<'_> {
    struct Broken;
    impl tokio::io::AsyncRead for Broken {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Err(std::io::ErrorKind::ConnectionReset.into()))
        }
    }
    Source::new(bytes.chain(Broken))
}

macro_rules! on_every_backend {
    ($($file:ident { $($case:ident)* })*) => {
        on_every_backend! { @ memory $($file { $($case)* })* }
        on_every_backend! { @ disk $($file { $($case)* })* }
        on_every_backend! { @ peer $($file { $($case)* })* }
        on_every_backend! { @ swap $($file { $($case)* })* }
        #[cfg(feature = "s3")]
        on_every_backend! { @ bucket $($file { $($case)* })* }
        #[cfg(feature = "s3")]
        on_every_backend! { @ s3 $($file { $($case)* })* }
    };
    (@ $backend:ident $($file:ident { $($case:ident)* })*) => {
        mod $backend {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    if let Some(bench) = super::Bench::$backend().await {
                        super::$file::$case(&bench).await;
                    }
                }
            )*)*
        }
    };
}

on_every_backend! {
    contents {
        what_was_put_is_got_back_at_every_size
        a_range_is_read_anywhere_and_ends_with_the_file
        a_checksum_is_of_the_stored_bytes_and_only_as_asked
        a_challenge_is_answered_from_the_bytes
        a_missing_file_is_an_answer
        a_local_file_is_copied_or_moved
        a_local_file_that_is_not_what_is_stored_stays
        names_of_every_kind_are_kept_apart
        removed_files_are_in_the_attic_and_may_come_again
        a_marker_lies_beside_the_files_and_can_be_replaced
        there_is_room_and_it_is_told
    }
    damage {
        a_write_that_reads_back_differently_is_not_kept
        a_local_file_stays_when_its_copy_reads_back_differently
        a_changed_byte_is_told_by_every_question_about_the_bytes
        changed_bytes_are_removed_by_their_own_checksum_only
        without_a_checksum_only_a_file_that_cannot_be_read_is_removed
    }
    listing {
        what_is_no_file_of_the_store_is_not_listed_and_shortens_no_page
        names_come_in_the_order_of_their_bytes_page_by_page
        what_is_listed_is_what_stat_says
    }
    refusals {
        the_same_bytes_again_change_nothing
        the_bytes_of_a_file_that_is_known_are_not_read_again
        nobody_sees_a_part_of_a_file_that_is_being_written
        other_bytes_under_a_known_name_are_refused
        a_local_file_with_a_wrong_checksum_is_refused_and_stays
        a_sender_with_a_wrong_checksum_is_refused_and_leaves_nothing
        a_sender_with_a_wrong_size_is_refused_and_leaves_nothing
        a_sender_that_breaks_off_leaves_nothing
        two_writers_of_one_name_leave_one_of_them_whole
        removing_needs_the_right_checksum
    }
}
