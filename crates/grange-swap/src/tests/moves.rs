use std::collections::BTreeMap;

use grange_base::{Clock, Size};
use grange_testkit::wait::until;
use jiff::Timestamp;
use proptest::prelude::*;

use super::bed::Bed;
use crate::admin::{Reslice, Slices};
use crate::http::{get, request};
use crate::name::LocalPath;
use crate::place::Point;
use crate::removal;
use crate::route::Route;

fn name(n: u32) -> String {
    match n % 3 {
        0 => format!("f{n}"),
        1 => format!("d{}/f{n}", n % 5),
        _ => format!("d{}/e{}/f{n}", n % 5, n % 2),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doubling_halving_and_any_other_number_keep_every_file() {
    let bed = Bed::new(3, 2).await;
    bed.create("c", 2, true).await;
    let mut expected = BTreeMap::new();
    for n in 0..60 {
        let bytes = vec![n as u8; 10 + 3000 * n as usize];
        assert_eq!(bed.put(n as usize % 3, "c", &name(n), &bytes).await, 201);
        expected.insert(name(n), bytes);
    }
    let dry = Reslice { slices: Slices::Double, dry_run: true, mixed_disks: false };
    let estimate = bed.admin(1).reslice("c", dry).await.unwrap();
    assert_eq!((estimate.files, estimate.new_partitions), (30, 2));
    for (slices, count) in [
        (Slices::Double, 4),
        (Slices::Halve, 2),
        (Slices::To(3), 3),
        (Slices::To(5), 5),
        (Slices::To(1), 1),
        (Slices::To(6), 6),
    ] {
        bed.reslice("c", slices).await;
        assert_eq!(bed.copied("c"), expected, "{slices:?}");
        let report = bed.verify(0, "c").await;
        assert_eq!((report.files, report.problem_count), (60, 0), "{slices:?}: {report:?}");
        let status = bed.admin(2).collection("c").await.unwrap();
        assert_eq!((status.slices.len(), status.files()), (count, 60), "{slices:?}");
        let groups =
            bed.all_partitions().into_iter().filter(|partition| partition.join("c").exists()).count();
        assert_eq!(groups, count, "a partition that was left keeps nothing");
        for n in 0..60 {
            assert_eq!(bed.get(n as usize % 3, "c", &name(n)).await.as_ref(), Ok(&expected[&name(n)]));
        }
    }
    // Conflicts are still seen by the authorities of the new number.
    assert_eq!(bed.put(0, "c", "d1", b"file").await, 409);
    assert_eq!(bed.put(0, "c", "f0/x", b"file").await, 409);
    let wrong = bed
        .admin(0)
        .reslice("c", Reslice { slices: Slices::To(7), dry_run: false, mixed_disks: false })
        .await;
    assert_eq!(wrong.unwrap_err().status(), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn checksums_in_files_are_carried_along() {
    let bed = Bed::tuned(2, 2, |settings| settings.sums_in_files = true).await;
    bed.create("c", 2, true).await;
    for n in 0..20 {
        assert_eq!(bed.put(0, "c", &name(n), &[n as u8; 100]).await, 201);
    }
    assert_eq!(bed.delete(1, "c", &name(3)).await, 204);
    let kept = |bed: &Bed| {
        let mut kept = bed.copied(".swap-sums/c");
        kept.retain(|_, line| line.len() > 128);
        kept.into_keys().collect::<Vec<_>>()
    };
    let expected: Vec<_> = bed.copied("c").into_keys().collect();
    assert_eq!(expected.len(), 19);
    for slices in [Slices::Double, Slices::To(1)] {
        bed.reslice("c", slices).await;
        assert_eq!(kept(&bed), expected, "{slices:?}");
        let report = bed.verify(0, "c").await;
        let found = (report.files, report.problem_count, report.without_checksum);
        assert_eq!(found, (19, 0, 0), "{slices:?}: {report:?}");
    }
    // What rots is seen by the checksum beside it, and what has none gets one.
    let at =
        |name: &str| bed.all_partitions().into_iter().map(|p| p.join(name)).find(|p| p.exists()).unwrap();
    std::fs::write(at(&format!("c/{}", name(5))), "rotten").unwrap();
    std::fs::remove_file(at(&format!(".swap-sums/c/{}", name(6)))).unwrap();
    let report = bed.verify(1, "c").await;
    assert_eq!((report.problem_count, report.without_checksum), (1, 1), "{report:?}");
    assert_eq!(bed.verify(1, "c").await.without_checksum, 0);
}

fn files_below(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { 1 }).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_reads_no_faster_than_it_may() {
    const RATE: u64 = 1000;
    const FILE: u64 = 400;
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let bed = Bed::on_clock(1, 2, |settings| settings.move_rate = Size(RATE), clock).await;
    bed.create("c", 1, true).await;
    for n in 0..40 {
        assert_eq!(bed.put(0, "c", &name(n), &[n as u8; FILE as usize]).await, 201);
    }
    let two = 2.try_into().unwrap();
    let bytes = (0..40).filter(|n| Point::of(&name(*n)).slice(two) == 1).count() as u64 * FILE;
    assert!(bytes > 4 * RATE, "too little moves to show a limit");
    let first = bed.all_partitions().into_iter().find(|partition| partition.join("c").exists()).unwrap();
    let moved = || 40 * FILE - files_below(&first.join("c")) * FILE;
    let wanted = Reslice { slices: Slices::Double, dry_run: false, mixed_disks: false };
    bed.admin(0).reslice("c", wanted).await.unwrap();
    for second in 0.. {
        // What may go has gone, and whoever is next waits on the clock; or all is done.
        let may = (RATE * (second + 1)).min(bytes);
        until("as much has moved as may", async || moved() + FILE > may).await;
        assert!(moved() <= may, "{} bytes moved in {second} s", moved());
        if moved() == bytes {
            break;
        }
        hand.advance(std::time::Duration::from_secs(1));
    }
    bed.settled("c", 2).await;
    assert_eq!(bed.copied("c").len(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn by_a_record_that_no_longer_holds_no_file_is_called_missing() {
    let bed = Bed::new(1, 2).await;
    bed.create("c", 1, true).await;
    let name = (0..100).map(name).find(|name| Point::of(name).slice(2.try_into().unwrap()) == 1).unwrap();
    assert_eq!(bed.put(0, "c", &name, b"x").await, 201);
    let node = bed.servers[0].as_ref().unwrap().node();
    // As requests have it that began before the move.
    let before = node.view().get("c").unwrap().clone();
    bed.reslice("c", Slices::Double).await;
    let path = LocalPath::new(&*name).unwrap();
    let removed = removal::remove(node, &before, &path, None).await;
    assert_eq!(removed.unwrap_err().status(), 503);
    let (request, _) = request::read(b"GET /get/c/x HTTP/1.1\r\nHost: x\r\n\r\n").unwrap().unwrap();
    let read = get::lookup(&before, &path, &request).await.unwrap();
    assert!(matches!(read, get::Lookup::Elsewhere(Route::Behind)), "{read:?}");
    assert_eq!(bed.get(0, "c", &name).await.unwrap(), b"x");
    assert_eq!(bed.delete(0, "c", &name).await, 204);
}

/// What people and fate do to a collection.
#[derive(Clone, Debug)]
enum Act {
    Put(u32, u8),
    Delete(u32),
    Double,
    Halve,
    /// Doubles or halves, and a server dies before it is done.
    CrashWhileMoving(bool, usize),
    Crash(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => (0..40_u32, any::<u8>()).prop_map(|(n, byte)| Act::Put(n, byte)),
        3 => (0..40_u32).prop_map(Act::Delete),
        1 => Just(Act::Double),
        1 => Just(Act::Halve),
        2 => (any::<bool>(), 0..2_usize).prop_map(|(double, server)| Act::CrashWhileMoving(double, server)),
        1 => (0..2_usize).prop_map(Act::Crash),
    ];
    proptest::collection::vec(act, 10..40)
}

async fn crash(bed: &mut Bed, server: usize) {
    bed.stop(server).await;
    bed.start(server).await;
    for server in 0..bed.servers.len() {
        bed.sees(server, bed.servers.len() - 1).await;
    }
}

async fn play(acts: Vec<Act>) {
    let mut bed = Bed::new(2, 4).await;
    bed.create("c", 2, true).await;
    let mut expected: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut slices = 2_u32;
    for act in acts {
        match act {
            Act::Put(n, byte) => {
                let (name, bytes) = (name(n), vec![byte; 100 + n as usize]);
                let status = bed.put(n as usize % 2, "c", &name, &bytes).await;
                match expected.get(&name) {
                    None => {
                        assert_eq!(status, 201, "{name}");
                        expected.insert(name, bytes);
                    }
                    Some(known) => assert_eq!(status, if *known == bytes { 200 } else { 409 }, "{name}"),
                }
            }
            Act::Delete(n) => {
                let status = bed.delete(n as usize % 2, "c", &name(n)).await;
                assert_eq!(status, if expected.remove(&name(n)).is_some() { 204 } else { 404 });
            }
            Act::Double if slices < 8 => {
                slices *= 2;
                bed.reslice("c", Slices::Double).await;
            }
            Act::Halve if slices > 1 => {
                slices /= 2;
                bed.reslice("c", Slices::Halve).await;
            }
            Act::CrashWhileMoving(double, server) if (slices < 8 && double) || (slices > 1 && !double) => {
                slices = if double { slices * 2 } else { slices / 2 };
                let wanted = Reslice { slices: Slices::To(slices), dry_run: false, mixed_disks: false };
                bed.admin(0).reslice("c", wanted).await.unwrap();
                crash(&mut bed, server).await;
                bed.settled("c", slices).await;
            }
            Act::Crash(server) => crash(&mut bed, server).await,
            _ => {}
        }
    }
    assert_eq!(bed.copied("c"), expected);
    for (name, bytes) in &expected {
        assert_eq!(bed.get(0, "c", name).await.as_ref(), Ok(bytes), "{name}");
    }
    let report = bed.verify(0, "c").await;
    assert_eq!((report.files, report.problem_count), (expected.len() as u64, 0), "{report:?}");
}

proptest! {
    // Each case runs two servers; more of them are run with PROPTEST_CASES.
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 20, ..ProptestConfig::default() })]
    #[test]
    fn any_sequence_of_acts_and_crashes_leaves_exactly_the_expected_files(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(play(acts));
    }
}
