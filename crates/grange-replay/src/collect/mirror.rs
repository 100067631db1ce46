//! Copies of an index in a bucket or any other store of bytes, for replay nodes elsewhere.
//!
//! ```text
//! index-NAME.<sha256>.00000012.seg     segments, the manifest and the (empty) log, each once whatever copies it is in
//! index-NAME.<microseconds>.state      which of them make an index; the newest counts
//! ```
//!
//! A store never changes what it has under a name, so a state is put last and whoever sees it finds all of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grange_base::Clock;
use grange_blob::{Blob, Source, Taking, sum_path};
use grange_index::Index;
use grange_model::{Algorithm, FileName};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

/// Why an index was not copied. What was copied before is still whole.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    #[error("cannot read or write {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Index(#[from] grange_index::Error),
    #[error(transparent)]
    Blob(#[from] grange_blob::Error),
    #[error("there is no copy of an index {name} in {place}")]
    Nothing { name: String, place: String },
    #[error("{name} in {place} is not the list of an index: copy the index there again")]
    State { name: String, place: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Names in the folder of the index, and what the store calls them.
    files: BTreeMap<String, String>,
}

/// A list of more than this is none of ours: some thousand segments fit.
const STATE_BYTES_MAX: u64 = 1 << 20;
/// The folder of what was fetched, each file under the name it has in the store.
pub(super) const FETCHED: &str = "fetched";
/// Names read at once.
const PAGE: usize = 1000;

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> MirrorError {
    let path = path.to_owned();
    move |source| MirrorError::Io { path, source }
}

fn named(text: &str, place: &str) -> Result<FileName, MirrorError> {
    text.parse().map_err(|_| MirrorError::State { name: text.to_owned(), place: place.to_owned() })
}

/// Copies an index as it is now. `aside` is an empty folder on the disk of the index. Gives how many files were new.
pub async fn publish(
    index: &Index,
    name: &str,
    blob: &dyn Blob,
    aside: &Path,
    clock: &Clock,
) -> Result<u64, MirrorError> {
    let (of, folder) = (index.clone(), aside.to_owned());
    let made = tokio::task::spawn_blocking(move || of.checkpoint(folder)).await;
    made.map_err(|error| io(aside)(std::io::Error::other(error)))??;
    let mut state = State { files: BTreeMap::new() };
    let mut new = 0;
    let mut entries = tokio::fs::read_dir(aside).await.map_err(io(aside))?;
    while let Some(entry) = entries.next_entry().await.map_err(io(aside))? {
        let (path, file) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let (_, sums) = sum_path(&path, &[Algorithm::Sha256]).await.map_err(io(&path))?;
        let Some(sum) = sums.sha256 else { continue };
        let stored_as = format!("index-{name}.{sum}.{file}");
        let stored = blob.put_file(&named(&stored_as, blob.place())?, &path, Taking::Copy, None).await?;
        new += u64::from(!stored.already);
        state.files.insert(file, stored_as);
    }
    let text = serde_json::to_vec(&state).map_err(|error| io(aside)(error.into()))?;
    let state_name = format!("index-{name}.{:020}.state", clock.now().as_microsecond());
    let size = text.len() as u64;
    blob.put(&named(&state_name, blob.place())?, Source::new(std::io::Cursor::new(text)).of_size(size), None)
        .await?;
    Ok(new)
}

/// Brings the newest copy of an index into a folder of its own below `folder`, and gives that. What is there already is not
/// fetched again; every segment is checked before the folder has its name.
pub async fn fetch(name: &str, blob: &dyn Blob, folder: &Path) -> Result<PathBuf, MirrorError> {
    let newest = newest_state(name, blob).await?;
    let done = folder
        .join(newest.as_str().trim_start_matches("index-").trim_end_matches(".state").replace('.', "-"));
    if done.join("MANIFEST").exists() {
        return Ok(done);
    }
    let wrong = || MirrorError::State { name: newest.to_string(), place: blob.place().to_owned() };
    let mut text = Vec::new();
    let opened = blob.get(&newest).await?;
    opened.take(STATE_BYTES_MAX).read_to_end(&mut text).await.map_err(io(folder))?;
    let state: State = serde_json::from_slice(&text).map_err(|_| wrong())?;
    let kept = folder.join(FETCHED);
    let aside = folder.join("aside");
    for path in [&kept, &aside] {
        tokio::fs::create_dir_all(path).await.map_err(io(path))?;
    }
    for (file, stored_as) in &state.files {
        // Both come from the store: neither may lead out of the folder.
        let plain = |text: &str| !text.contains('/') && !text.starts_with('.') && !text.is_empty();
        if !plain(file) || !plain(stored_as) {
            return Err(wrong());
        }
        let here = kept.join(stored_as);
        if !here.exists() {
            bring(blob, &named(stored_as, blob.place())?, &here).await?;
        }
        let link = aside.join(file);
        match tokio::fs::remove_file(&link).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(&link)(error)),
            _ => tokio::fs::hard_link(&here, &link).await.map_err(io(&link))?,
        }
    }
    tokio::fs::rename(&aside, &done).await.map_err(io(&done))?;
    Ok(done)
}

/// Copies one file, under its name only when it is what the name says.
async fn bring(blob: &dyn Blob, name: &FileName, here: &Path) -> Result<(), MirrorError> {
    let part = here.with_extension("part");
    let mut opened = blob.get(name).await?;
    let mut file = tokio::fs::File::create(&part).await.map_err(io(&part))?;
    tokio::io::copy(&mut opened, &mut file).await.map_err(io(&part))?;
    file.sync_all().await.map_err(io(&part))?;
    let (_, sums) = sum_path(&part, &[Algorithm::Sha256]).await.map_err(io(&part))?;
    let promised = name.as_str().split('.').nth(1).unwrap_or_default();
    if sums.sha256.map(|sum| sum.to_string()).as_deref() != Some(promised) {
        return Err(MirrorError::State { name: name.to_string(), place: blob.place().to_owned() });
    }
    tokio::fs::rename(&part, here).await.map_err(io(here))
}

async fn newest_state(name: &str, blob: &dyn Blob) -> Result<FileName, MirrorError> {
    let start = format!("index-{name}.");
    // A name may not end with the dot; what comes in between begins with a smaller byte than it.
    let mut after = Some(named(&format!("index-{name}"), blob.place())?);
    let mut newest = None;
    loop {
        let page = blob.list(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.name.clone());
        let past = last.name.as_str() > start.as_str() && !last.name.as_str().starts_with(&start);
        newest = page
            .into_iter()
            .map(|listed| listed.name)
            .rfind(|name| name.as_str().starts_with(&start) && name.as_str().strip_suffix(".state").is_some())
            .or(newest);
        if past {
            break;
        }
    }
    newest.ok_or_else(|| MirrorError::Nothing { name: name.to_owned(), place: blob.place().to_owned() })
}

#[cfg(test)]
mod tests {
    use grange_blob::Memory;
    use grange_index::{Settings, Stamp};

    use super::*;

    fn line(key: &str) -> String {
        format!(
            "{key} 20260101000000 {{\"url\": \"http://x/\", \"offset\": \"1\", \"filename\": \"a.warc\"}}\n"
        )
    }

    #[tokio::test]
    async fn a_copy_in_a_store_is_fetched_whole_and_what_is_damaged_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
        let blob = Memory::new(clock.clone());
        let index = Index::open(dir.path().join("news"), Settings::default()).unwrap();
        let there = dir.path().join("there");
        let nothing = fetch("news", &blob, &there).await;
        assert!(matches!(nothing, Err(MirrorError::Nothing { .. })), "{nothing:?}");
        let mut known = Vec::new();
        for (round, key) in ["com,a)/", "com,b)/"].into_iter().enumerate() {
            index.load(line(key).as_bytes(), None).unwrap();
            known.push(key);
            hand.advance(std::time::Duration::from_secs(1));
            publish(&index, "news", &blob, &dir.path().join(format!("aside{round}")), &clock).await.unwrap();
            let folder = fetch("news", &blob, &there).await.unwrap();
            assert_eq!(fetch("news", &blob, &there).await.unwrap(), folder);
            let copy = Index::open_read_only(&folder, Settings::default()).unwrap();
            for key in &known {
                assert!(copy.snapshot().closest(key, Stamp::MAX).unwrap().is_some(), "{key}");
            }
        }
        // Another index whose name begins the same is another.
        assert!(matches!(fetch("new", &blob, &there).await, Err(MirrorError::Nothing { .. })));
        let names = blob.list(None, 100).await.unwrap();
        let segment = names
            .iter()
            .find(|listed| listed.name.as_str().strip_suffix(".seg").is_some())
            .unwrap()
            .name
            .clone();
        blob.damage(&segment, |bytes| bytes[10] ^= 1);
        let elsewhere = dir.path().join("elsewhere");
        assert!(fetch("news", &blob, &elsewhere).await.is_err());
    }
}
