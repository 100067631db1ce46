//! Bytes that changed behind the store's back.

use grange_model::Algorithm;

use crate::blob::{Blob, Source};
use crate::conformance::{disk, file, noise, sums};

fn rewrite(folder: &tempfile::TempDir, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = folder.path().join("one/filedir").join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    let aside = path.with_file_name("aside");
    std::fs::write(&aside, bytes).unwrap();
    std::fs::rename(aside, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_a_truncated_and_a_swapped_file_are_found_by_their_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let bytes = noise(1_000_003, 1);
    let mut found = 0;
    for bit in [0, 7, 4_000_000, 8 * 1_000_003 - 1] {
        let name = format!("flipped-{bit}");
        disk.put(&file(&name), bytes[..].into(), None).await.unwrap();
        rewrite(&folder, &name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        let sum = disk.checksum(&file(&name), Algorithm::ALL).await.unwrap().unwrap();
        let right = sums(&bytes);
        found +=
            usize::from(sum.sha512 != right.sha512 && sum.sha256 != right.sha256 && sum.md5 != right.md5);
    }
    for left in [0, 1, 500_000, 1_000_002] {
        let name = format!("truncated-{left}");
        disk.put(&file(&name), bytes[..].into(), None).await.unwrap();
        rewrite(&folder, &name, |bytes| bytes.truncate(left));
        found += usize::from(
            !disk.checksum(&file(&name), Algorithm::ALL).await.unwrap().unwrap().same_as(&sums(&bytes)),
        );
        assert_eq!(disk.stat(&file(&name)).await.unwrap().unwrap().size, left as u64);
    }
    let other = noise(1_000_003, 2);
    disk.put(&file("a"), bytes[..].into(), None).await.unwrap();
    disk.put(&file("b"), other[..].into(), None).await.unwrap();
    rewrite(&folder, "a", |file| file.clone_from(&other));
    rewrite(&folder, "b", |file| file.clone_from(&bytes));
    for (name, put) in [("a", &bytes), ("b", &other)] {
        let sum = disk.checksum(&file(name), Algorithm::ALL).await.unwrap().unwrap();
        found += usize::from(!sum.same_as(&sums(put)));
    }
    assert_eq!(found, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_replaced_by_way_of_the_attic() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let good = noise(400_000, 1);
    disk.put(&file("a"), good[..].into(), None).await.unwrap();
    rewrite(&folder, "a", |bytes| bytes[1000] ^= 0x10);
    // The good bytes are other bytes than those that lie there now.
    let refused = disk.put(&file("a"), Source::from(&good[..]), Some(&sums(&good))).await.unwrap_err();
    assert_eq!(refused.code(), "blob-conflict");
    // Who still believes the file to be good cannot remove it.
    let refused = disk.remove_to_attic(&file("a"), &sums(&good)).await.unwrap_err();
    assert_eq!(refused.code(), "blob-other-bytes");
    let bad = disk.checksum(&file("a"), Algorithm::ALL).await.unwrap().unwrap();
    disk.remove_to_attic(&file("a"), &bad).await.unwrap();
    disk.put(&file("a"), Source::from(&good[..]), Some(&sums(&good))).await.unwrap();
    let sum = disk.checksum(&file("a"), Algorithm::ALL).await.unwrap().unwrap();
    assert!(sum.same_as(&sums(&good)));
    let attic = std::fs::read_dir(folder.path().join("one/atticdir")).unwrap();
    let kept: Vec<_> = attic.map(|entry| entry.unwrap().path().join("a")).collect();
    assert_eq!(kept.len(), 1);
    assert!(sums(&std::fs::read(&kept[0]).unwrap()).same_as(&bad), "the bad bytes are kept for people");
}
