//! Deciding about bytes reads bytes: files that rot on the disk under a checksum that does not.

use std::io::Write as _;
use std::path::PathBuf;

use grange_base::{Clock, Size};
use grange_testkit::wait::until;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::bed::Bed;
use crate::admin::{Reslice, Slices};
use crate::digest::Sum;
use crate::place::Point;

fn on_disk(bed: &Bed, path: &str) -> PathBuf {
    bed.all_partitions().into_iter().map(|partition| partition.join(path)).find(|path| path.exists()).unwrap()
}

/// The name of a file that goes from slice 0 of one to slice 1 of two.
fn moves_when_doubled() -> String {
    let names = (0..100).map(|n| format!("f{n}"));
    names.into_iter().find(|name| Point::of(name).slice(2.try_into().unwrap()) == 1).unwrap()
}

/// Changes a byte and leaves the attribute.
fn rot(path: &PathBuf) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[0] ^= 1;
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(&bytes).unwrap();
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn good_bytes_replace_rotten_ones() {
    for tune in [|_: &mut crate::Settings| (), |settings: &mut crate::Settings| settings.sums_in_files = true]
    {
        let bed = Bed::tuned(2, 1, tune).await;
        bed.create("c", 2, true).await;
        for name in ["a", "d/b"] {
            assert_eq!(bed.put(0, "c", name, b"good bytes").await, 201);
            let rotten = rot(&on_disk(&bed, &format!("c/{name}")));
            assert_eq!(bed.get(0, "c", name).await.unwrap(), rotten);
            assert_eq!(bed.put(1, "c", name, b"other bytes").await, 409, "neither good nor rotten");
            assert_eq!(bed.put(1, "c", name, &rotten).await, 200, "these bytes are there");
            assert_eq!(bed.put(1, "c", name, b"good bytes").await, 201);
            assert_eq!(bed.get(0, "c", name).await.unwrap(), b"good bytes");
            assert_eq!(bed.put(0, "c", name, b"good bytes").await, 200);
        }
        let report = bed.verify(0, "c").await;
        assert_eq!((report.files, report.problem_count, report.without_checksum), (2, 0, 0), "{report:?}");
        let attic = bed.copied(".swap-attic");
        assert!(attic.values().all(|bytes| bytes == b"food bytes"), "{attic:?}");
        assert_eq!(attic.len(), 2, "the rotten bytes are kept for people: {attic:?}");
        assert_eq!(bed.admin(0).collection("c").await.unwrap().files(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotten_file_is_removed_by_the_bytes_it_holds() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, true).await;
    assert_eq!(bed.put(0, "c", "a", b"good bytes").await, 201);
    let rotten = rot(&on_disk(&bed, "c/a"));
    let stored = Sum::of(b"good bytes").to_string();
    let refused = bed.admin(0).remove_file("c", "a", Some(&stored)).await.unwrap_err();
    assert_eq!(refused.status(), 412);
    let found = Sum::of(&rotten).to_string();
    assert!(refused.to_string().contains(&found), "{refused}");
    bed.admin(0).remove_file("c", "a", Some(&found)).await.unwrap();
    assert_eq!(bed.get(0, "c", "a").await, Err(404));
    assert_eq!(bed.put(0, "c", "a", b"good bytes").await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotten_file_moves_like_any_other_and_stays_visibly_rotten() {
    let bed = Bed::new(2, 1).await;
    bed.create("c", 1, true).await;
    let name = moves_when_doubled();
    assert_eq!(bed.put(0, "c", &name, b"good bytes").await, 201);
    let rotten = rot(&on_disk(&bed, &format!("c/{name}")));
    bed.reslice("c", Slices::Double).await;
    assert_eq!(bed.get(0, "c", &name).await.unwrap(), rotten);
    let report = bed.verify(0, "c").await;
    assert_eq!((report.files, report.problem_count), (1, 1), "{report:?}");
    assert_eq!(bed.put(0, "c", &name, b"good bytes").await, 201);
    assert_eq!(bed.verify(0, "c").await.problem_count, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_moved_is_tried_again_after_growing_pauses() {
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let bed = Bed::on_clock(1, 2, |_| (), clock).await;
    bed.create("c", 1, true).await;
    let name = moves_when_doubled();
    assert_eq!(bed.put(0, "c", &name, b"x").await, 201);
    let double = Reslice { slices: Slices::Double, dry_run: false, mixed_disks: false };
    // A directory by hand where the file is to go.
    let partitions = bed.all_partitions();
    let empty = partitions.iter().find(|partition| !partition.join("c").exists()).unwrap();
    std::fs::create_dir_all(empty.join("c").join(&name)).unwrap();
    bed.admin(0).reslice("c", double).await.unwrap();
    let node = bed.servers[0].as_ref().unwrap().node();
    let slice = || bed.servers[0].as_ref().unwrap().node().inventory().slices[0].clone();
    until("the trouble is told", async || slice().trouble.is_some()).await;
    let walks = || node.progress(node.view().get("c").unwrap().record.uuid, 0).seen().walks;
    let before = walks();
    for _ in 0..50 {
        node.move_now.notify_one();
        tokio::task::yield_now().await;
    }
    assert_eq!(walks(), before, "nobody walks the slice while the clock stands");
    std::fs::remove_dir(empty.join("c").join(&name)).unwrap();
    until("it is moved after a pause", async || {
        hand.advance(std::time::Duration::from_secs(1));
        bed.copied("c").len() == 1 && empty.join("c").join(&name).is_file()
    })
    .await;
    bed.settled("c", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_file_is_not_brought_back_by_a_copy_under_way() {
    let (clock, _hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let bed = Bed::on_clock(2, 1, |settings| settings.move_rate = Size(1), clock).await;
    bed.create("c", 1, true).await;
    let name = moves_when_doubled();
    let bytes = [7; 400];
    assert_eq!(bed.put(0, "c", &name, &bytes).await, 201);
    let old = bed
        .servers
        .iter()
        .flatten()
        .position(|server| server.node().view().get("c").is_some_and(|known| known.tree(0).is_some()));
    let target = 1 - old.unwrap();
    let double = Reslice { slices: Slices::Double, dry_run: false, mixed_disks: false };
    let record = bed.admin(0).reslice("c", double).await.unwrap();
    assert_eq!(record.to, 2);
    until("the new server has the record", async || {
        let node = bed.servers[target].as_ref().unwrap().node();
        node.inventory().collections.iter().any(|record| record.epoch == 2)
    })
    .await;
    // A copy whose sender was cut off after its last byte but one, and whose lock is gone.
    let mut copy = TcpStream::connect(&bed.addresses[target]).await.unwrap();
    let head = format!("PUT /move/c/{name}?epoch=2 HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n");
    copy.write_all(head.as_bytes()).await.unwrap();
    copy.write_all(&bytes[..399]).await.unwrap();
    until("the file is removed", async || bed.delete(0, "c", &name).await == 204).await;
    copy.write_all(&bytes[399..]).await.unwrap();
    let mut answer = [0; 12];
    copy.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 409");
    assert_eq!(bed.get(0, "c", &name).await, Err(404));
    assert_eq!(bed.copied("c").len(), 0);
    // It may be stored again, by people.
    assert_eq!(bed.put(0, "c", &name, b"new").await, 201);
    assert_eq!(bed.get(1, "c", &name).await.unwrap(), b"new");
}
