//! Folders and what people do to them.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use grange_base::{Clock, Size};
use rustix::fs::{FlockOperation, flock};

use crate::blob::{Blob, Taking, UnlistedFiles};
use crate::conformance::{disk, file, noise, sums};
use crate::disk::base::{Fault, sync_folder};
use crate::disk::{Disk, DiskSettings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_store_gives_and_never_takes() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |name: &str, read_only| {
        let mut settings = DiskSettings::new([folder.path().join(name)]);
        (settings.min_space_left, settings.read_only) = (Size(0), read_only);
        settings
    };
    let missing = Disk::open(settings("missing", true), Clock::system()).unwrap_err();
    assert_eq!(missing.code(), "blob-io");
    assert!(!folder.path().join("missing").exists());

    let writer = Disk::open(settings("one", false), Clock::system()).unwrap();
    writer.put(&file("a"), b"bytes"[..].into(), None).await.unwrap();
    let reader = Disk::open(settings("one", true), Clock::system()).unwrap();
    assert_eq!(reader.read_at(&file("a"), 0, 9).await.unwrap(), b"bytes"[..]);
    assert_eq!(reader.put(&file("b"), b"x"[..].into(), None).await.unwrap_err().code(), "blob-read-only");
    let path = folder.path().join("source");
    std::fs::write(&path, b"x").unwrap();
    let put = reader.put_file(&file("b"), &path, Taking::Move, None).await;
    assert_eq!(put.unwrap_err().code(), "blob-read-only");
    let removed = reader.remove_to_attic(&file("a"), &sums(b"bytes")).await;
    assert_eq!(removed.unwrap_err().code(), "blob-read-only");
    assert_eq!(reader.free().await.unwrap().largest_bytes, 0);
    assert!(path.exists());
}

#[test]
fn what_a_crash_left_is_cleared_but_not_what_another_process_writes() {
    let folder = tempfile::tempdir().unwrap();
    disk(&folder, &["one"]);
    let [dead, alive] = ["dead", "alive"].map(|name| folder.path().join("one/tempdir").join(name));
    std::fs::write(&dead, b"half").unwrap();
    std::fs::write(&alive, b"half").unwrap();
    let writer = std::fs::File::open(&alive).unwrap();
    flock(&writer, FlockOperation::LockExclusive).unwrap();
    disk(&folder, &["one"]);
    assert!(!dead.exists() && alive.exists());
    drop(writer);
    disk(&folder, &["one"]);
    assert!(!alive.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_file_on_the_same_disk_is_taken_over_and_a_copied_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let bytes = noise(2_000_000, 1);
    let inode = |path: &std::path::Path| std::fs::metadata(path).unwrap().ino();
    for (name, taking) in [("moved", Taking::Move), ("copied", Taking::Copy)] {
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        let before = inode(&path);
        disk.put_file(&file(name), &path, taking, Some(&sums(&bytes))).await.unwrap();
        let stored = disk.path(&file(name)).await.unwrap().unwrap();
        assert_eq!(inode(&stored) == before, taking == Taking::Move);
        let data = std::fs::metadata(&stored).unwrap();
        assert_eq!((data.nlink(), data.permissions().mode() & 0o777), (1, 0o444));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_file_of_the_archive_is_not_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let files = folder.path().join("one/filedir");
    std::fs::write(folder.path().join("secret"), b"secret").unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret"), files.join("link")).unwrap();
    std::fs::create_dir(files.join("folder")).unwrap();
    std::fs::write(files.join(".hidden"), b"x").unwrap();
    std::fs::write(files.join("A\u{30a}"), b"x").unwrap();
    disk.put(&file("a"), b"x"[..].into(), None).await.unwrap();
    let listed = disk.list(None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|listed| listed.name.as_str()).collect::<Vec<_>>(), ["a"]);
    for name in ["link", "folder"] {
        assert_eq!(disk.get(&file(name)).await.unwrap_err().code(), "blob-not-found");
        assert_eq!(disk.stat(&file(name)).await.unwrap(), None);
    }
    // Nor is it overwritten.
    assert!(disk.put(&file("link"), b"other"[..].into(), None).await.is_err());
    assert_eq!(std::fs::read(folder.path().join("secret")).unwrap(), b"secret");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_listing_shows_is_counted_and_named_also_in_subfolders() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one", "two"]);
    disk.put(&file("a"), b"x"[..].into(), None).await.unwrap();
    assert_eq!(disk.unlisted(9).await.unwrap(), UnlistedFiles::default());
    let (one, two) = (folder.path().join("one/filedir"), folder.path().join("two/filedir"));
    std::fs::create_dir_all(one.join("2019/deep/empty")).unwrap();
    std::fs::write(one.join("2019/deep/b.warc.gz"), b"bytes").unwrap();
    std::fs::write(one.join("2019/c.warc.gz"), b"x").unwrap();
    std::fs::write(two.join(".hidden"), b"xy").unwrap();
    std::os::unix::fs::symlink(&one, two.join("link")).unwrap();
    let found = disk.unlisted(9).await.unwrap();
    let mut paths: Vec<_> = found.paths.iter().map(|(path, _)| path.clone()).collect();
    paths.sort();
    let at = |folder: &std::path::Path, name: &str| folder.join(name).display().to_string();
    assert_eq!(
        paths,
        [at(&one, "2019/c.warc.gz"), at(&one, "2019/deep/b.warc.gz"), at(&two, ".hidden"), at(&two, "link")],
        "links are named and not followed"
    );
    assert_eq!(found.count, 4);
    let few = disk.unlisted(1).await.unwrap();
    assert_eq!((few.count, few.paths.len()), (4, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_that_is_not_there_stays_so_until_it_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = |name: &str| folder.path().join(name).join("disk");
    let open = |name: &str| {
        let mut settings = DiskSettings::new([mounted(name)]);
        (settings.min_space_left, settings.make_folders) = (Size(0), false);
        Disk::open(settings, Clock::system()).unwrap()
    };
    let disk = open("one");
    let markers = disk.markers().await.unwrap();
    assert!(markers[0].empty && markers[0].marker.is_none());
    assert_eq!((disk.list(None, 9).await.unwrap().len(), disk.stat(&file("a")).await.unwrap()), (0, None));
    assert_eq!(disk.unlisted(9).await.unwrap(), UnlistedFiles::default());
    assert!(disk.free().await.unwrap().largest_bytes > 0);
    assert!(disk.put(&file("a"), b"x"[..].into(), None).await.is_err());
    assert!(!folder.path().join("one").exists(), "nothing was made by looking or writing");
    let disk = open("one");
    disk.mark(&mounted("one").display().to_string(), "marker").await.unwrap();
    assert_eq!(disk.markers().await.unwrap()[0].marker.as_deref(), Some("marker"));
    disk.put(&file("a"), b"x"[..].into(), None).await.unwrap();
    assert_eq!(disk.list(None, 9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_come_and_go_by_hand_show_in_the_next_listing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one", "two"]);
    let names = async || {
        let listed = disk.list(None, 10).await.unwrap();
        listed.iter().map(|listed| listed.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    for (base, name) in [("one", "a"), ("two", "b"), ("one", "c")] {
        std::fs::write(folder.path().join(base).join("filedir").join(name), b"x").unwrap();
    }
    // Long unchanged, so that the names are kept.
    let long_ago = SystemTime::now() - Duration::from_secs(100);
    for base in ["one", "two"] {
        let dir = std::fs::File::open(folder.path().join(base).join("filedir")).unwrap();
        dir.set_modified(long_ago).unwrap();
    }
    assert_eq!(names().await, "a b c");
    std::fs::remove_file(folder.path().join("two/filedir/b")).unwrap();
    assert_eq!(names().await, "a c");
    std::fs::write(folder.path().join("two/filedir/d"), b"x").unwrap();
    assert_eq!(names().await, "a c d");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_kept_only_of_a_folder_that_has_not_changed_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let base = &disk.0.bases[0];
    // As on a file system whose clock ticks slowly: the folder changes, and its time does not.
    let add = |name: &str, changed: SystemTime| {
        std::fs::write(base.files.join(name), b"x").unwrap();
        std::fs::File::open(&base.files).unwrap().set_modified(changed).unwrap();
    };
    let now = SystemTime::now();
    add("a", now);
    assert_eq!(disk.list(None, 10).await.unwrap().len(), 1);
    add("b", now);
    assert_eq!(disk.list(None, 10).await.unwrap().len(), 2, "names read so soon are not kept");
    add("c", now - Duration::from_secs(100));
    let first = base.listing.names(&base.files).unwrap();
    assert!(Arc::ptr_eq(&first, &base.listing.names(&base.files).unwrap()), "the folder is read once");
    assert_eq!(first.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_read_is_an_error_and_not_an_empty_store() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let files = folder.path().join("one/filedir");
    std::fs::remove_dir(&files).unwrap();
    std::fs::write(&files, b"not a folder").unwrap();
    assert_eq!(disk.get(&file("a")).await.unwrap_err().code(), "blob-io");
    assert_eq!(disk.stat(&file("a")).await.unwrap_err().code(), "blob-io");
    assert_eq!(disk.list(None, 10).await.unwrap_err().code(), "blob-io");
    assert_eq!(disk.markers().await.unwrap_err().code(), "blob-io");
    assert!(sync_folder(&folder.path().join("gone")).is_err(), "names that were not synced are not durable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_is_empty_only_without_a_marker_and_without_files() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one", "two"]);
    let empty = async || disk.markers().await.unwrap().iter().map(|part| part.empty).collect::<Vec<_>>();
    assert_eq!(empty().await, [true, true]);
    std::fs::write(folder.path().join("one/filedir/a"), b"x").unwrap();
    // A disk that is not mounted has not even the folder.
    std::fs::remove_dir(folder.path().join("two/filedir")).unwrap();
    assert_eq!(empty().await, [false, true]);
    let two = folder.path().join("two").display().to_string();
    disk.mark(&two, "mine").await.unwrap();
    assert_eq!(empty().await, [false, false]);
    let markers = disk.markers().await.unwrap();
    assert_eq!((markers[0].marker.as_deref(), markers[1].marker.as_deref()), (None, Some("mine")));
    assert_eq!(disk.mark("elsewhere", "mine").await.unwrap_err().code(), "blob-io");
    // Marked, and without its folder of files, it is neither empty nor whole, and lists nothing.
    assert_eq!((&markers[0].lost, &markers[1].lost), (&None, &None));
    std::fs::remove_dir(folder.path().join("two/filedir")).unwrap();
    assert_eq!(disk.markers().await.unwrap()[1].lost.as_deref(), Some("filedir"));
    assert_eq!(disk.list(None, 9).await.unwrap_err().code(), "blob-io");
    disk.mark(&two, "mine").await.unwrap();
    assert_eq!(disk.markers().await.unwrap()[1].lost, None);
    // A marker that is there and cannot be read is not a missing one.
    std::fs::create_dir(folder.path().join("one/grange-replica.json")).unwrap();
    assert_eq!(disk.markers().await.unwrap_err().code(), "blob-io");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_a_file_is_that_of_its_last_change_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let path = folder.path().join("one/filedir/a");
    std::fs::write(&path, b"x").unwrap();
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    std::fs::File::open(&path).unwrap().set_modified(changed).unwrap();
    let expected = "2001-09-09T01:46:40Z".parse().unwrap();
    assert_eq!(disk.stat(&file("a")).await.unwrap().unwrap().modified, expected);
    assert_eq!(disk.list(None, 9).await.unwrap()[0].modified, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_path_of_a_file_is_where_its_bytes_lie() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one", "two"]);
    for (base, name) in [("one", "a"), ("two", "b")] {
        let path = folder.path().join(base).join("filedir").join(name);
        std::fs::write(&path, b"x").unwrap();
        assert_eq!(disk.local_path(&file(name)).await.unwrap(), Some(path));
    }
    assert_eq!(disk.local_path(&file("c")).await.unwrap(), None);
    // Errors name the store by its folders.
    let [one, two] = ["one", "two"].map(|base| folder.path().join(base).display().to_string());
    assert_eq!(disk.place(), format!("{one},{two}"));
}

#[tokio::test]
async fn a_marker_whose_name_was_not_synced_is_gone_and_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let one = folder.path().join("one").display().to_string();
    disk.faults().add(Fault::MarkerSync);
    assert_eq!(disk.mark(&one, "mine").await.unwrap_err().code(), "blob-io");
    assert_eq!(disk.markers().await.unwrap()[0].marker, None, "it would be believed");
    disk.mark(&one, "mine").await.unwrap();
    assert_eq!(disk.markers().await.unwrap()[0].marker.as_deref(), Some("mine"));
}
