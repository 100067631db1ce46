//! Listings.

use super::{Bench, file};

pub(super) async fn names_come_in_the_order_of_their_bytes_page_by_page(bench: &Bench) {
    assert!(bench.names().await.is_empty());
    let mut names = Vec::new();
    for n in [5, 1, 4, 40, 2, 3, 10, 100] {
        for head in ["Z", "a", "é"] {
            let name = format!("{head}{n}");
            bench.put(&name, name.as_bytes()).await.unwrap();
            names.push(name);
        }
    }
    names.sort_unstable();
    for limit in [1, 5, 1000] {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = bench.blob.list(after.as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            listed.extend(page.into_iter().map(|listed| listed.name.to_string()));
            assert!(listed.len() <= names.len(), "pages of {limit} begin again: {listed:?}");
        }
        assert_eq!(listed, names, "pages of {limit}");
    }
    // After a name that is not there.
    let page = bench.blob.list(Some(&file("a100!")), 1).await.unwrap();
    assert_eq!(page[0].name, file("a2"));
}

pub(super) async fn what_is_no_file_of_the_store_is_not_listed_and_shortens_no_page(bench: &Bench) {
    bench.lay_foreign_things().await;
    let names = ["a1", "a2", "a3", "b1", "c1", "y1", "zz"];
    for name in names {
        bench.put(name, name.as_bytes()).await.unwrap();
    }
    for limit in 1..=names.len() {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = bench.blob.list(after.as_ref(), limit).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            listed.extend(page.into_iter().map(|listed| listed.name.to_string()));
            assert!(listed.len() <= names.len(), "pages of {limit} begin again: {listed:?}");
        }
        assert_eq!(listed, names, "pages of {limit}");
    }
    assert_eq!(bench.blob.list(None, 4).await.unwrap().len(), 4);
}

pub(super) async fn what_is_listed_is_what_stat_says(bench: &Bench) {
    for size in [0, 1, 70_000] {
        bench.put(&size.to_string(), &vec![7; size]).await.unwrap();
    }
    for listed in bench.blob.list(None, 10).await.unwrap() {
        let size = listed.size.unwrap();
        assert_eq!(size.to_string(), listed.name.as_str());
        let stat = bench.blob.stat(&listed.name).await.unwrap().unwrap();
        assert_eq!(stat.size, size);
        // S3 lists milliseconds and answers for one object in whole seconds.
        assert_eq!(stat.modified.as_second(), listed.modified.as_second());
    }
}

async fn files_in_folders_are_named_as_unlisted(bench: Bench) {
    bench.put("a", b"x").await.unwrap();
    bench.blob.mark("", "marker").await.unwrap();
    assert_eq!(bench.blob.unlisted(9).await.unwrap().count, 0);
    for path in ["2019/deep/b", "2019/c"] {
        bench.lay_deep(path).await;
    }
    let found = bench.blob.unlisted(9).await.unwrap();
    let mut paths: Vec<_> = found.paths.iter().map(|(path, size)| (path.as_str(), *size)).collect();
    paths.sort_unstable();
    let at = |path: &str| bench.path_of_unlisted(path);
    assert_eq!((found.count, paths), (2, vec![(at("2019/c").as_str(), 7), (at("2019/deep/b").as_str(), 7)]));
    let few = bench.blob.unlisted(1).await.unwrap();
    assert_eq!((few.count, few.paths.len()), (2, 1));
    assert_eq!(bench.names().await, ["a"]);
}

#[tokio::test]
async fn files_in_folders_of_a_swap_collection_are_named_as_unlisted() {
    files_in_folders_are_named_as_unlisted(Bench::swap().await.unwrap()).await;
}

#[cfg(feature = "s3")]
#[tokio::test]
async fn keys_below_folders_of_a_bucket_are_named_as_unlisted() {
    files_in_folders_are_named_as_unlisted(Bench::bucket().await.unwrap()).await;
    // A real bucket, where there is one.
    if let Some(bench) = Bench::s3().await {
        files_in_folders_are_named_as_unlisted(bench).await;
    }
}
