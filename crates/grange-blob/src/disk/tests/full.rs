//! Disks without room: pretended ones, and a real small one.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use grange_base::{Clock, Retry, Size};

use crate::blob::{Blob, Source, Taking};
use crate::conformance::{file, noise, sums};
use crate::disk::{Disk, DiskSettings, FreeSpace, Room};

/// The free space of each base, as the test sets it.
#[derive(Clone, Debug, Default)]
struct Pretended(Arc<[AtomicU64; 2]>);

impl FreeSpace for Pretended {
    fn of(&self, base: &Path) -> io::Result<Room> {
        let free = self.0[usize::from(base.ends_with("two"))].load(SeqCst);
        Ok(Room { free, total: 1000 })
    }
}

fn count(base: &Path) -> usize {
    std::fs::read_dir(base.join("filedir")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_folder_hands_over_to_the_next_and_all_full_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let mut settings = DiskSettings::new([one.clone(), two.clone()]);
    (settings.min_space_left, settings.min_space_required) = (Size(100), Size(10));
    let space = Pretended::default();
    space.0.iter().for_each(|free| free.store(1000, SeqCst));
    let disk = Disk::with_space(settings, Clock::system(), Box::new(space.clone())).unwrap();
    assert_eq!(disk.free().await.unwrap().largest_bytes, 990);
    let put = async |name: &str, size: usize| disk.put(&file(name), noise(size, 1)[..].into(), None).await;

    put("a", 10).await.unwrap();
    assert_eq!((count(&one), count(&two)), (1, 0));
    space.0[0].store(100, SeqCst);
    put("b", 10).await.unwrap();
    assert_eq!((count(&one), count(&two)), (1, 1));
    // Too large for what the second has left, though it takes smaller ones.
    space.0[1].store(500, SeqCst);
    let error = put("c", 491).await.unwrap_err();
    assert_eq!((error.code(), error.retry()), ("blob-full", Retry::Soon));
    assert!(error.to_string().contains("491B") && error.to_string().contains("one"), "{error}");
    put("c", 490).await.unwrap();
    space.0[1].store(100, SeqCst);
    assert_eq!(put("d", 0).await.unwrap_err().code(), "blob-full");
    let free = disk.free().await.unwrap();
    assert_eq!((free.largest_bytes, free.free_bytes, free.total_bytes), (0, Some(200), Some(2000)));
    // What is there stays readable, and putting it again is still fine.
    assert!(put("a", 10).await.unwrap().already);
    assert_eq!(disk.read_at(&file("c"), 0, 9999).await.unwrap().len(), 490);
    // A removed file makes room as far as the disk says so.
    space.0[0].store(1000, SeqCst);
    put("d", 1).await.unwrap();
    assert_eq!((count(&one), count(&two)), (2, 2));
}

/// A file system of a few megabytes; unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path, bytes: u64) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let size = format!("size={bytes}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(path.to_owned()));
        }
        grange_testkit::skipped("the right to mount a small tmpfs");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_runs_full_in_the_middle_of_a_file_loses_none_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, three] = ["one", "two", "three"].map(|base| folder.path().join(base));
    let Some(_one) = SmallDisk::mount(&one, 2 << 20) else { return };
    let Some(_two) = SmallDisk::mount(&two, 3 << 20) else { return };
    let Some(_three) = SmallDisk::mount(&three, 8 << 20) else { return };
    let mut settings = DiskSettings::new([one.clone(), two.clone(), three.clone()]);
    (settings.min_space_left, settings.min_space_required) = (Size(0), Size(0));
    let disk = Disk::open(settings, Clock::system()).unwrap();
    let bytes = noise(5 << 20, 1);
    // Its size is not told, so the first disk is tried, and the next, and the next.
    let stored = disk.put(&file("a"), Source::new(&bytes[..]), Some(&sums(&bytes))).await.unwrap();
    assert_eq!(stored.checksums, sums(&bytes));
    assert_eq!([&one, &two, &three].map(|base| count(base)), [0, 0, 1]);
    // A size that is told goes where it fits at once; a file that fits nowhere leaves nothing.
    let small = noise(1 << 20, 2);
    disk.put(&file("b"), small[..].into(), None).await.unwrap();
    assert_eq!([&one, &two, &three].map(|base| count(base)), [1, 0, 1]);
    let path = folder.path().join("source");
    std::fs::write(&path, &bytes).unwrap();
    let errors = [
        disk.put(&file("c"), Source::new(&bytes[..]), None).await.unwrap_err(),
        disk.put(&file("c"), bytes[..].into(), None).await.unwrap_err(),
        disk.put_file(&file("c"), &path, Taking::Move, None).await.unwrap_err(),
    ];
    assert_eq!(errors.map(|error| error.code()), ["blob-full"; 3]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!([&one, &two, &three].map(|base| count(base)), [1, 0, 1]);
    for base in [&one, &two, &three] {
        assert_eq!(std::fs::read_dir(base.join("tempdir")).unwrap().count(), 0);
    }
    // There is room for what still fits.
    disk.put(&file("d"), noise(2 << 20, 3)[..].into(), None).await.unwrap();
}
