//! Small files per second: stored durably, listed, and audited from the disk.
//!
//! `cargo run --release -p grange-blob --example small_files -- [FOLDER] [FILES] [BYTES]`

use std::path::PathBuf;
use std::time::Instant;

use futures_util::{StreamExt, stream};
use grange_base::{Clock, Size};
use grange_blob::{Blob, Disk, DiskSettings, Source};
use grange_model::{Algorithm, FileName};

/// Files under way at once: syncs of several files share the disk's round trips.
const AT_ONCE: usize = 32;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let count: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let bytes: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(4096);
    let folder = folder.join(format!("grange-small-{}", std::process::id()));
    let mut settings = DiskSettings::new([folder.clone()]);
    settings.min_space_left = Size(0);
    let disk = Disk::open(settings, Clock::system()).expect("a store");

    let start = Instant::now();
    stream::iter(0..count)
        .for_each_concurrent(AT_ONCE, async |number| {
            let name: FileName = format!("{number:08}.warc").parse().expect("a name");
            let content = format!("{number:08}").repeat(bytes / 8);
            disk.put(&name, Source::from(content.as_bytes()), None).await.expect("put");
        })
        .await;
    rate("stored (synced and read back)", count, start);

    for round in 1..=2 {
        let start = Instant::now();
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let page = disk.list(after.as_ref(), 1000).await.expect("a page");
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            names.extend(page.into_iter().map(|listed| listed.name));
        }
        assert_eq!(names.len(), count);
        rate(&format!("listed in pages of 1000, round {round}"), count, start);

        let start = Instant::now();
        stream::iter(&names)
            .for_each_concurrent(AT_ONCE, async |name| {
                let sums = disk.checksum(name, &[Algorithm::Sha512]).await.expect("a checksum");
                assert!(sums.is_some());
            })
            .await;
        rate(&format!("audited from the disk, round {round}"), count, start);
    }
    std::fs::remove_dir_all(folder).expect("clean up");
}

fn rate(what: &str, count: usize, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{what:36} {:8.0} files/s", count as f64 / seconds);
}
