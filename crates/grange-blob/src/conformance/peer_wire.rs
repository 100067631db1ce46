//! What only a wire can do to bytes: be cut, lie, or belong to somebody else.

use std::sync::Arc;

use grange_base::Clock;
use tokio::io::AsyncReadExt;

use super::peer_node::{Node, peer};
use super::{disk, file, noise, sums};
use crate::blob::{Blob, Source};
use crate::memory::Memory;

/// More than the buffers of a loopback connection and of both ends take, so that a reader that stops holds up the
/// sender.
const LARGE: usize = 64 << 20;

async fn node_with(bytes: &[u8]) -> (Arc<Memory>, Node) {
    let memory = Arc::new(Memory::new(Clock::system()));
    memory.put(&file("a"), bytes.into(), None).await.unwrap();
    let node = Node::start(memory.clone()).await;
    (memory, node)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_that_was_cut_goes_on_where_it_broke() {
    let bytes = noise(LARGE, 1);
    let (_memory, node) = node_with(&bytes).await;
    let (wire, peer) = node.over_a_wire().await;
    let mut opened = peer.get(&file("a")).await.unwrap();
    let mut read = vec![0; 1 << 20];
    opened.read_exact(&mut read).await.unwrap();
    for cut in 1..=3 {
        node.cut(&wire).await;
        wire.mend();
        let mut more = vec![0; (10 << 20) * cut];
        opened.read_exact(&mut more).await.unwrap();
        read.extend(more);
    }
    opened.read_to_end(&mut read).await.unwrap();
    assert!(read == bytes);
    assert_eq!(node.requests(), 4, "one download and three times picked up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_was_cut_goes_on_where_it_broke() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Blob> = Arc::new(disk(&folder, &["one"]));
    let node = Node::start(Arc::clone(&store)).await;
    let (wire, peer) = node.over_a_wire().await;
    let bytes = noise(LARGE, 1);
    // The sender gives its bytes one stretch after the other, and the wire is cut three times in between.
    let (mut writer, reader) = tokio::io::duplex(64 << 10);
    let sending = tokio::spawn({
        let peer = peer.clone();
        async move { peer.put(&file("a"), Source::new(reader).of_size(LARGE as u64), None).await }
    });
    for stretch in bytes.chunks(LARGE / 4) {
        let (there, _) = wire.carried();
        tokio::io::AsyncWriteExt::write_all(&mut writer, stretch).await.unwrap();
        grange_testkit::until("some of it has travelled", || async { wire.carried().0 > there + (1 << 20) })
            .await;
        node.cut(&wire).await;
        wire.mend();
    }
    drop(writer);
    let stored = sending.await.unwrap().unwrap();
    assert_eq!((stored.size, stored.checksums.sha512), (LARGE as u64, sums(&bytes).sha512));
    let (there, _) = wire.carried();
    let again = there - LARGE as u64;
    assert!(again <= 4 * (9 << 20), "{again} bytes were sent again after four cuts");
    assert!(store.checksum(&file("a"), &[grange_model::Algorithm::Sha512]).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_nobody_goes_on_with_leaves_nothing_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Blob> = Arc::new(disk(&folder, &["one"]));
    let node = Node::start(Arc::clone(&store)).await;
    let (wire, peer) = node.over_a_wire().await;
    let bytes = noise(20 << 20, 1);
    // The sender holds back the rest until the wire was cut.
    let (mut writer, reader) = tokio::io::duplex(64 << 10);
    let sending = tokio::spawn({
        let peer = peer.clone();
        async move { peer.put(&file("a"), Source::new(reader).of_size(20 << 20), None).await }
    });
    tokio::io::AsyncWriteExt::write_all(&mut writer, &bytes[..10 << 20]).await.unwrap();
    let temp = folder.path().join("one/tempdir");
    grange_testkit::until("it is being written", || async { std::fs::read_dir(&temp).unwrap().count() > 0 })
        .await;
    node.cut(&wire).await;
    drop(writer);
    let error = sending.await.unwrap().unwrap_err();
    assert!(["blob-unreachable", "blob-source"].contains(&error.code()), "{error}");
    grange_testkit::until("the half-written file is gone", || async {
        std::fs::read_dir(&temp).unwrap().count() == 0
    })
    .await;
    assert!(store.list(None, 10).await.unwrap().is_empty());
    wire.mend();
    peer.put(&file("a"), bytes[..].into(), Some(&sums(&bytes))).await.unwrap();
    assert_eq!(store.stat(&file("a")).await.unwrap().unwrap().size, 20 << 20);
}

/// The last answer gets lost: the file is there, and the sender is told so when it asks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_whose_answer_was_lost_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Blob> = Arc::new(disk(&folder, &["one"]));
    let node = Node::start(Arc::clone(&store)).await;
    let (wire, peer) = node.over_a_wire().await;
    let bytes = noise(LARGE, 3);
    let sending = tokio::spawn({
        let (peer, bytes) = (peer.clone(), bytes.clone());
        async move { peer.put(&file("a"), Source::from(&bytes[..]), None).await }
    });
    // All bytes are over; what is left is the sync and the reading back.
    grange_testkit::until("all bytes went over", || async { wire.carried().0 > LARGE as u64 }).await;
    wire.cut();
    wire.mend();
    assert_eq!(sending.await.unwrap().unwrap().size, LARGE as u64);
    let (there, _) = wire.carried();
    assert!(there < LARGE as u64 + (9 << 20), "{there} bytes went over");
}

/// A store has 256 places for uploads under way; 300 that came one after the other need one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_has_ended_holds_no_place() {
    let memory = Arc::new(Memory::new(Clock::system()));
    let node = Node::start(memory.clone()).await;
    let peer = node.peer();
    for number in 0..300 {
        let stored = peer.put(&file(&format!("file-{number}")), b"bytes"[..].into(), None).await;
        assert!(stored.is_ok(), "file {number}: {stored:?}");
    }
    assert_eq!(memory.list(None, 1000).await.unwrap().len(), 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_away_is_said_to_be_away() {
    let (_memory, node) = node_with(b"bytes").await;
    let (wire, peer) = node.over_a_wire().await;
    node.cut(&wire).await;
    let error = peer.stat(&file("a")).await.unwrap_err();
    assert_eq!((error.code(), error.retry()), ("blob-unreachable", grange_base::Retry::Soon));
    wire.mend();
    assert_eq!(peer.stat(&file("a")).await.unwrap().unwrap().size, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_our_token_is_not_believed() {
    let (_memory, node) = node_with(b"bytes").await;
    let stranger = peer(node.address, "another secret");
    assert_eq!(stranger.stat(&file("a")).await.unwrap_err().code(), "blob-unproven");
    assert_eq!(stranger.get(&file("a")).await.unwrap_err().code(), "blob-unproven");
    assert_eq!(stranger.put(&file("b"), b"x"[..].into(), None).await.unwrap_err().code(), "blob-unproven");
    assert_eq!(node.peer().stat(&file("b")).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changes_during_a_broken_download_is_not_pieced_together() {
    let bytes = noise(LARGE, 1);
    let (memory, node) = node_with(&bytes).await;
    let (wire, peer) = node.over_a_wire().await;
    let mut opened = peer.get(&file("a")).await.unwrap();
    let mut read = vec![0; 1 << 20];
    opened.read_exact(&mut read).await.unwrap();
    node.cut(&wire).await;
    memory.damage(&file("a"), |bytes| bytes[0] ^= 1);
    wire.mend();
    let error = opened.read_to_end(&mut read).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_went_during_a_broken_download_ends_it() {
    let bytes = noise(LARGE, 1);
    let (memory, node) = node_with(&bytes).await;
    let (wire, peer) = node.over_a_wire().await;
    let mut opened = peer.get(&file("a")).await.unwrap();
    let mut read = vec![0; 1 << 20];
    opened.read_exact(&mut read).await.unwrap();
    node.cut(&wire).await;
    memory.remove_to_attic(&file("a"), &sums(&bytes)).await.unwrap();
    wire.mend();
    let error = opened.read_to_end(&mut read).await.unwrap_err();
    assert!(error.to_string().contains("there is no file a"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_no_file_can_have_are_refused_by_the_node_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Blob> = Arc::new(disk(&folder, &["one"]));
    std::fs::write(folder.path().join("one/secret"), b"secret").unwrap();
    let served = crate::peer::serve::Served::new(Arc::clone(&store), None);
    for name in
        ["..%2Fsecret", "../secret", "%2e%2e%2fsecret", "a%00b", "A%CC%8A", "%ff", "", &"a".repeat(300)]
    {
        for (method, path) in [("GET", "files"), ("PUT", "files"), ("GET", "stat"), ("POST", "remove")] {
            if name.is_empty() && path == "files" && method == "GET" {
                continue;
            }
            let request = http::Request::builder().method(method).uri("/").body(empty()).unwrap();
            let answer = served.answer(&format!("/{path}/{name}"), request).await;
            assert_eq!(answer.status(), 400, "{method} {path} {name}");
        }
    }
    assert!(store.list(None, 10).await.unwrap().is_empty());
}

fn empty() -> http_body_util::Full<bytes::Bytes> {
    http_body_util::Full::default()
}
