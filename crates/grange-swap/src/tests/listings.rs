//! A listing has every file, also while files move from slice to slice.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;

use super::bed::Bed;
use crate::admin::Slices;

/// The names a server lists, or `None` when it says that some are missing.
async fn listed(bed: &Bed, server: usize) -> Option<BTreeSet<String>> {
    let response = bed.once(Method::GET, server, "get/c/?format=json", None).await;
    if response.status() != 200 {
        assert_eq!(response.status(), 503);
        return None;
    }
    let json: serde_json::Value = response.json().await.unwrap();
    if json["missing_slices"] != serde_json::json!([]) {
        return None;
    }
    let entries = json["entries"].as_array().unwrap();
    Some(entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_during_a_move_has_every_file() {
    let bed = Bed::new(2, 2).await;
    bed.create("c", 1, true).await;
    let names: BTreeSet<String> = (0..400).map(|n| format!("f{n}")).collect();
    for name in &names {
        assert_eq!(bed.put(0, "c", name, name.as_bytes()).await, 201);
    }
    let done = AtomicBool::new(false);
    let moves = async {
        for slices in [Slices::Double, Slices::Double, Slices::To(3), Slices::To(1)] {
            bed.reslice("c", slices).await;
        }
        done.store(true, Ordering::Relaxed);
    };
    let lists = async {
        let mut complete = 0;
        for turn in 0.. {
            if let Some(listed) = listed(&bed, turn % 2).await {
                let missing: Vec<_> = names.difference(&listed).collect();
                assert!(missing.is_empty(), "after {complete} whole listings one lacks {missing:?}");
                complete += 1;
            }
            if done.load(Ordering::Relaxed) {
                return complete;
            }
        }
        0
    };
    let ((), complete) = tokio::join!(moves, lists);
    assert!(complete > 1, "{complete} listings were whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_no_slice_lists_a_collection_after_every_change() {
    let bed = Bed::new(3, 1).await;
    bed.create("c", 1, true).await;
    assert_eq!(bed.put(0, "c", "f", b"f").await, 201);
    for slices in [Slices::Double, Slices::Halve] {
        bed.reslice("c", slices).await;
        for server in 0..3 {
            assert_eq!(
                listed(&bed, server).await,
                Some(BTreeSet::from(["f".to_owned()])),
                "{server} {slices:?}"
            );
        }
    }
}
