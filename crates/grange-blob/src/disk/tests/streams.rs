//! Senders that give too much, and readers that go away.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use grange_model::Algorithm;
use grange_testkit::until;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::blob::{Blob, Source, Taking};
use crate::buffers::BUFFER_BYTES;
use crate::conformance::{disk, file, noise, sums};
use crate::disk::lanes::LANE_BYTES_MIN;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_of_more_than_it_announced_is_stopped_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    // A full number of buffers, so that the announced size is reached before the first byte too many.
    let announced = 4 * BUFFER_BYTES as u64;
    let mut sender = tokio::io::repeat(7).take(100 * announced);
    let source = Source::new(&mut sender).of_size(announced);
    assert_eq!(disk.put(&file("a"), source, None).await.unwrap_err().code(), "blob-wrong-size");
    assert_eq!(disk.stat(&file("a")).await.unwrap(), None);
    assert!(sender.limit() > 90 * announced, "{} bytes are left", sender.limit());
}

/// Gives one full buffer, then its end, and panics if it is read again.
struct EndsOnce {
    left: usize,
    ended: bool,
}

impl AsyncRead for EndsOnce {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        assert!(!self.ended, "the source was read again after its end");
        let len = self.left.min(buffer.remaining());
        buffer.put_slice(&vec![7; len]);
        self.left -= len;
        self.ended = len == 0;
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_not_read_again_after_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let source = Source::new(EndsOnce { left: BUFFER_BYTES, ended: false });
    assert_eq!(disk.put(&file("a"), source, None).await.unwrap().size, BUFFER_BYTES as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_not_read_to_its_end_when_nobody_waits_for_its_checksum_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let name = file("a");
    disk.put(&name, b"bytes"[..].into(), None).await.unwrap();
    // A terabyte of holes takes no space, and hours to read.
    let path = disk.path(&name).await.unwrap().unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    // The thread that reads holds the store.
    let read_by = || Arc::strong_count(&disk.0) - 1;
    tokio::select! {
        _ = disk.checksum(&name, &[Algorithm::Md5]) => panic!("a terabyte was read"),
        () = until("somebody reads the file", async || read_by() > 0) => {}
    }
    until("nobody reads the file", async || read_by() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_not_taken_when_nobody_waits_for_that_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    // A terabyte of holes takes no space, and hours to read.
    let source = folder.path().join("source");
    std::fs::File::create(&source).unwrap().set_len(1 << 40).unwrap();
    let (name, read_by) = (file("a"), || Arc::strong_count(&disk.0) - 1);
    // A file to be moved is linked and read where it lies. One whose name is known is compared with what is there.
    for known in [false, true] {
        if known {
            disk.put(&name, b"bytes"[..].into(), None).await.unwrap();
        }
        tokio::select! {
            _ = disk.put_file(&name, &source, Taking::Move, None) => panic!("a terabyte was read"),
            () = until("somebody reads the file", async || read_by() > 0) => {}
        }
        until("nobody reads the file", async || read_by() == 0).await;
        assert!(source.exists(), "what was not taken stays");
        let stored = disk.stat(&name).await.unwrap().map(|stat| stat.size);
        assert_eq!(stored, known.then_some(5));
        assert_eq!(std::fs::read_dir(folder.path().join("one/tempdir")).unwrap().count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_not_removed_when_nobody_waits_for_that_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let name = file("a");
    disk.put(&name, b"bytes"[..].into(), None).await.unwrap();
    let path = disk.path(&name).await.unwrap().unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let (expected, read_by) = (sums(b"bytes"), || Arc::strong_count(&disk.0) - 1);
    tokio::select! {
        _ = disk.remove_to_attic(&name, &expected) => panic!("a terabyte was read"),
        () = until("somebody reads the file", async || read_by() > 0) => {}
    }
    until("nobody reads the file", async || read_by() == 0).await;
    assert!(path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_large_file_is_summed_up_in_a_lane_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    for (name, size, expected) in
        [("a", LANE_BYTES_MIN - 1, false), ("b", LANE_BYTES_MIN, true), ("c", LANE_BYTES_MIN + 1, true)]
    {
        let bytes = noise(size as usize, size);
        disk.put(&file(name), bytes[..].into(), None).await.unwrap();
        assert_eq!(disk.large(&file(name)).await.unwrap().is_some(), expected, "{size} bytes");
        let sum = disk.checksum(&file(name), &[Algorithm::Sha512]).await.unwrap().unwrap();
        assert_eq!(sum.sha512, sums(&bytes).sha512, "{size} bytes");
    }
}

#[test]
fn work_that_a_stopping_process_does_not_begin_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let stopped = runtime();
    let handle = stopped.handle().clone();
    stopped.shutdown_background();
    let error = runtime().block_on(async {
        let _on_the_stopped_one = handle.enter();
        disk.stat(&file("a")).await.unwrap_err()
    });
    assert!(grange_base::Chain(&error).to_string().contains("the process stops"), "{error}");
}
