//! Copies of an index in a bucket or any other store of bytes, for replay nodes elsewhere.
//!
//! ```text
//! index-NAME.<sha256>.00000012.seg                       segments, the manifest and the (empty) log, each once whatever
//!                                                         copies it is in
//! index-NAME.<identity>.t<token>.<microseconds>.state    which of them make an index; the newest counts
//! index-NAME.<identity>.t<token>.<order>.<microseconds>.state
//!                                                         the same, made when the clock was behind that of the state before:
//!                                                         the order counts in place of the time
//! index-NAME.<microseconds>.state                        the same as earlier versions wrote it
//! ```
//!
//! A store never changes what it has under a name, so a state is put last and whoever sees it finds all of it. The identity
//! tells apart collections that had one name after another. The token is that of the node that keeps the index: what an
//! owner of before puts late is older than anything of its successor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grange_base::Clock;
use grange_blob::{Blob, Source, Taking, sum_path};
use grange_index::{Index, Snapshot};
use grange_model::{Algorithm, FileName};
use jiff::Timestamp;
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
    #[error(transparent)]
    Shelf(#[from] ShelfError),
    #[error("there is no index of the collection {name} in {}; name another collection, or another --data", folder.display())]
    NoIndex { name: String, folder: PathBuf },
    #[error("there is no copy of an index {name} in {place}")]
    Nothing { name: String, place: String },
    #[error("{name} in {place} is not the list of an index: copy the index there again")]
    State { name: String, place: String },
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Names in the folder of the index, and what the store calls them.
    files: BTreeMap<String, String>,
}

/// The state of a copy, as its name says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StateName {
    name: FileName,
    made: Timestamp,
    /// The time it was made, or just after the state before it.
    order: Timestamp,
    token: i64,
}

/// A copy that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    pub folder: PathBuf,
    /// When it was made: later changes are not in it.
    pub made: Timestamp,
}

/// Whose copy is made.
#[derive(Clone, Copy, Debug)]
pub struct CopyOwner<'a> {
    pub name: &'a str,
    pub identity: &'a str,
    pub token: i64,
}

use super::folder_owner::{FIRST, FolderOwner};
use super::shelf::{Shelf, ShelfError};

/// A list of more than this is none of ours: some thousand segments fit.
const STATE_BYTES_MAX: u64 = 1 << 20;
/// The folder of what was fetched, each file under the name it has in the store.
pub(super) const FETCHED: &str = "fetched";
/// Names read at once.
const PAGE: usize = 1000;

pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> MirrorError {
    let path = path.to_owned();
    move |source| MirrorError::Io { path, source }
}

fn named(text: &str, place: &str) -> Result<FileName, MirrorError> {
    text.parse().map_err(|_| MirrorError::State { name: text.to_owned(), place: place.to_owned() })
}

/// A copy that was made.
#[derive(Debug)]
pub struct Published {
    /// How many files were new; `None` if the newest copy is of this owner and the same, and nothing was put.
    pub new_files: Option<u64>,
    /// The state of the index that was copied. The index may have changed since.
    pub copied: Arc<Snapshot>,
}

/// Copies an index as it is now. `aside` is an empty folder on the disk of the index.
pub async fn publish(
    index: &Index,
    owner: CopyOwner<'_>,
    blob: &dyn Blob,
    aside: &Path,
    clock: &Clock,
) -> Result<Published, MirrorError> {
    let name = owner.name;
    // Before the copy is made: what changes meanwhile counts as later.
    let made = clock.now();
    let (of, folder) = (index.clone(), aside.to_owned());
    let checkpoint = tokio::task::spawn_blocking(move || of.checkpoint(folder)).await;
    let copied = checkpoint.map_err(|error| io(aside)(std::io::Error::other(error)))??;
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
    let newest = newest_state(name, Some(owner.identity), blob).await?;
    let before = newest.filter(|newest| newest.token == owner.token);
    if let Some(before) = &before
        && read_state(before, blob).await.is_ok_and(|last| last == state)
    {
        return Ok(Published { new_files: None, copied });
    }
    let order = order_of(made, before.map(|before| before.order));
    let text = serde_json::to_vec(&state).map_err(|error| io(aside)(error.into()))?;
    let CopyOwner { identity, token, .. } = owner;
    let times = if order == made {
        format!("{:020}", made.as_microsecond())
    } else {
        format!("{:020}.{:020}", order.as_microsecond(), made.as_microsecond())
    };
    let state_name = format!("index-{name}.{identity}.t{token:010}.{times}.state");
    let size = text.len() as u64;
    blob.put(&named(&state_name, blob.place())?, Source::new(std::io::Cursor::new(text)).of_size(size), None)
        .await?;
    Ok(Published { new_files: Some(new), copied })
}

/// Where a state stands among those of its owner: behind the one before it, also when the clock was set back meanwhile. Names
/// hold microseconds.
fn order_of(made: Timestamp, before: Option<Timestamp>) -> Timestamp {
    let next = before.and_then(|before| before.checked_add(jiff::SignedDuration::from_micros(1)).ok());
    next.map_or(made, |next| next.max(made))
}

/// Copies the index in the folder of a shelf, which nobody writes to meanwhile.
pub async fn publish_folder(
    shelf: &Shelf,
    name: &str,
    blob: &dyn Blob,
    clock: &Clock,
) -> Result<Option<u64>, MirrorError> {
    let folder = shelf.folder().join(name);
    if !shelf.has_folder(name) {
        return Err(MirrorError::NoIndex { name: name.to_owned(), folder });
    }
    let (identity, token) = FolderOwner::of_folder(&folder);
    let index = shelf.open_to_write(name)?;
    let aside = tempfile::tempdir_in(shelf.folder()).map_err(io(shelf.folder()))?;
    let owner = CopyOwner { name, identity: &identity, token };
    Ok(publish(&index, owner, blob, &aside.path().join("checkpoint"), clock).await?.new_files)
}

async fn read_state(newest: &StateName, blob: &dyn Blob) -> Result<State, MirrorError> {
    let wrong = || MirrorError::State { name: newest.name.to_string(), place: blob.place().to_owned() };
    let mut text = Vec::new();
    let opened = blob.get(&newest.name).await?;
    opened.take(STATE_BYTES_MAX).read_to_end(&mut text).await.map_err(|_| wrong())?;
    serde_json::from_slice(&text).map_err(|_| wrong())
}

/// Brings the newest copy of an index into a folder of its own below `folder`, and gives that. What is there already is not
/// fetched again; every segment is checked before the folder has its name. Without an identity the newest copy of any
/// collection of this name is meant.
pub async fn fetch(
    name: &str,
    identity: Option<&str>,
    blob: &dyn Blob,
    folder: &Path,
) -> Result<Fetched, MirrorError> {
    let nothing = || MirrorError::Nothing { name: name.to_owned(), place: blob.place().to_owned() };
    let newest = newest_state(name, identity, blob).await?.ok_or_else(nothing)?;
    let done = folder
        .join(newest.name.as_str().trim_start_matches("index-").trim_end_matches(".state").replace('.', "-"));
    let fetched = Fetched { folder: done.clone(), made: newest.made };
    if done.join("MANIFEST").exists() {
        return Ok(fetched);
    }
    let wrong = || MirrorError::State { name: newest.name.to_string(), place: blob.place().to_owned() };
    let state = read_state(&newest, blob).await?;
    let kept = folder.join(FETCHED);
    let aside = folder.join("aside");
    // Left by a fetch of another copy that was cut off.
    match tokio::fs::remove_dir_all(&aside).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(&aside)(error)),
        _ => {}
    }
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
        tokio::fs::hard_link(&here, &link).await.map_err(io(&link))?;
    }
    tokio::fs::rename(&aside, &done).await.map_err(io(&done))?;
    Ok(fetched)
}

/// Compares what was fetched with the names it has, and removes what differs together with the copy made of it, so that the
/// next fetch brings it again. Gives how many files were damaged.
pub async fn drop_damaged(folder: &Path, copy: &Path) -> Result<u64, MirrorError> {
    let kept = folder.join(FETCHED);
    let mut damaged = 0;
    let mut entries = tokio::fs::read_dir(&kept).await.map_err(io(&kept))?;
    while let Some(entry) = entries.next_entry().await.map_err(io(&kept))? {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let sum = sum_path(&path, &[Algorithm::Sha256]).await.ok().and_then(|(_, sums)| sums.sha256);
        if sum.map(|sum| sum.to_string()).as_deref() == promised(&name) {
            continue;
        }
        tracing::error!(path = %path.display(), "a fetched piece of an index is damaged: it is fetched again");
        tokio::fs::remove_file(&path).await.map_err(io(&path))?;
        damaged += 1;
    }
    // Also where nothing differs: the copy is put together from its pieces again.
    match tokio::fs::remove_dir_all(copy).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(copy)(error)),
        _ => Ok(damaged),
    }
}

/// The digest in the name of a piece.
fn promised(name: &str) -> Option<&str> {
    name.split('.').nth(1)
}

/// Copies one file, under its name only when it is what the name says.
async fn bring(blob: &dyn Blob, name: &FileName, here: &Path) -> Result<(), MirrorError> {
    let part = here.with_extension("part");
    let mut opened = blob.get(name).await?;
    let mut file = tokio::fs::File::create(&part).await.map_err(io(&part))?;
    tokio::io::copy(&mut opened, &mut file).await.map_err(io(&part))?;
    file.sync_all().await.map_err(io(&part))?;
    let (_, sums) = sum_path(&part, &[Algorithm::Sha256]).await.map_err(io(&part))?;
    if sums.sha256.map(|sum| sum.to_string()).as_deref() != promised(name.as_str()) {
        return Err(MirrorError::State { name: name.to_string(), place: blob.place().to_owned() });
    }
    tokio::fs::rename(&part, here).await.map_err(io(here))
}

/// The token of the newest copy of an index.
pub async fn newest_token(name: &str, identity: &str, blob: &dyn Blob) -> Result<Option<i64>, MirrorError> {
    Ok(newest_state(name, Some(identity), blob).await?.map(|state| state.token))
}

async fn newest_state(
    name: &str,
    identity: Option<&str>,
    blob: &dyn Blob,
) -> Result<Option<StateName>, MirrorError> {
    let start = format!("index-{name}.");
    // A name may not end with the dot; what comes in between begins with a smaller byte than it.
    let mut after = Some(named(&format!("index-{name}"), blob.place())?);
    let mut newest: Option<((bool, i64, Timestamp), StateName)> = None;
    loop {
        let page = blob.list(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.name.clone());
        let past = last.name.as_str() > start.as_str() && !last.name.as_str().starts_with(&start);
        for listed in page {
            let Some(state) = listed.name.as_str().strip_prefix(&start).and_then(StateParts::read) else {
                continue;
            };
            let wanted = match identity {
                None => true,
                Some(identity) => state.identity.map_or(identity == FIRST, |of| of == identity),
            };
            // Tokens of different collections say nothing of each other.
            let token = if identity.is_some() { state.token } else { 0 };
            let order = (state.identity.is_some(), token, state.order);
            if wanted && newest.as_ref().is_none_or(|(newest, _)| order > *newest) {
                let StateParts { token, made, order: at, .. } = state;
                newest = Some((order, StateName { name: listed.name, made, order: at, token }));
            }
        }
        if past {
            break;
        }
    }
    Ok(newest.map(|(_, state)| state))
}

/// The parts of a state's name behind that of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateParts<'a> {
    /// Absent in those of earlier versions.
    identity: Option<&'a str>,
    token: i64,
    order: Timestamp,
    made: Timestamp,
}

impl<'a> StateParts<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.strip_suffix(".state")?.split('.').collect();
        let time = |text: &str| Timestamp::from_microsecond(text.parse().ok()?).ok();
        let (identity, token, order, made) = match parts[..] {
            [made] => (None, "t0", made, made),
            [identity, token, made] => (Some(identity), token, made, made),
            [identity, token, order, made] => (Some(identity), token, order, made),
            _ => return None,
        };
        let token = token.strip_prefix('t')?.parse().ok()?;
        Some(Self { identity, token, order: time(order)?, made: time(made)? })
    }
}

#[cfg(test)]
mod tests {
    use grange_blob::Memory;
    use grange_index::{Settings, Stamp};

    use super::*;

    /// Its key is that of its URL: an index reads the URL.
    fn line(key: &str) -> String {
        let host = key.trim_start_matches("com,").trim_end_matches(")/");
        format!(
            "{key} 20260101000000 {{\"url\": \"http://{host}.com/\", \"offset\": \"1\", \"filename\": \"a.warc\"}}\n"
        )
    }

    const fn owner(identity: &'static str, token: i64) -> CopyOwner<'static> {
        CopyOwner { name: "news", identity, token }
    }

    #[tokio::test]
    async fn a_copy_in_a_store_is_fetched_whole_and_what_is_damaged_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
        let blob = Memory::new(clock.clone());
        let index = Index::open(dir.path().join("news"), Settings::default()).unwrap();
        let there = dir.path().join("there");
        let nothing = fetch("news", None, &blob, &there).await;
        assert!(matches!(nothing, Err(MirrorError::Nothing { .. })), "{nothing:?}");
        let mut known = Vec::new();
        for (round, key) in ["com,a)/", "com,b)/"].into_iter().enumerate() {
            index.load(line(key).as_bytes(), None).unwrap();
            known.push(key);
            hand.advance(std::time::Duration::from_secs(1));
            let aside = dir.path().join(format!("aside{round}"));
            let new = publish(&index, owner("a", 1), &blob, &aside, &clock).await.unwrap().new_files;
            assert!(new.is_some_and(|new| new > 0));
            let fetched = fetch("news", Some("a"), &blob, &there).await.unwrap();
            assert_eq!(fetched.made, clock.now());
            assert_eq!(fetch("news", None, &blob, &there).await.unwrap(), fetched);
            let copy = Index::open_read_only(&fetched.folder, Settings::default()).unwrap();
            for key in &known {
                assert!(copy.snapshot().closest(key, Stamp::MAX).unwrap().is_some(), "{key}");
            }
        }
        // Another index whose name begins the same is another, and so is another collection of that name.
        for (name, identity) in [("new", None), ("news", Some("b")), ("news", Some(FIRST))] {
            let found = fetch(name, identity, &blob, &there).await;
            assert!(matches!(found, Err(MirrorError::Nothing { .. })), "{found:?}");
        }
        let names = blob.list(None, 100).await.unwrap();
        let segment = names
            .iter()
            .find(|listed| listed.name.as_str().strip_suffix(".seg").is_some())
            .unwrap()
            .name
            .clone();
        blob.damage(&segment, |bytes| bytes[10] ^= 1);
        let elsewhere = dir.path().join("elsewhere");
        assert!(fetch("news", None, &blob, &elsewhere).await.is_err());
    }

    #[tokio::test]
    async fn an_index_that_did_not_change_has_no_new_state_and_a_late_owner_none_that_counts() {
        let dir = tempfile::tempdir().unwrap();
        let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
        let blob = Memory::new(clock.clone());
        let [one, two] =
            ["one", "two"].map(|name| Index::open(dir.path().join(name), Settings::default()).unwrap());
        one.load(line("com,a)/").as_bytes(), None).unwrap();
        two.load(line("com,b)/").as_bytes(), None).unwrap();
        let mut round = 0;
        let mut put = async |index: &Index, token| {
            hand.advance(std::time::Duration::from_secs(1));
            round += 1;
            let aside = dir.path().join(format!("aside{round}"));
            publish(index, owner("a", token), &blob, &aside, &clock).await.unwrap().new_files.is_some()
        };
        assert!(put(&one, 1).await);
        assert!(!put(&one, 1).await, "nothing changed");
        assert!(put(&two, 2).await);
        // The owner of before comes late with something new.
        one.load(line("com,c)/").as_bytes(), None).unwrap();
        assert!(put(&one, 1).await);
        let found = fetch("news", Some("a"), &blob, &dir.path().join("there")).await.unwrap();
        let copy = Index::open_read_only(&found.folder, Settings::default()).unwrap();
        assert!(copy.snapshot().closest("com,b)/", Stamp::MAX).unwrap().is_some());
        assert!(copy.snapshot().closest("com,c)/", Stamp::MAX).unwrap().is_none());
    }

    #[tokio::test]
    async fn a_copy_made_by_a_clock_that_was_set_back_replaces_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let (clock, hand) = Clock::test(noon);
        let blob = Memory::new(clock.clone());
        let index = Index::open(dir.path().join("news"), Settings::default()).unwrap();
        for key in ["com,a)/", "com,b)/", "com,c)/"] {
            index.load(line(key).replace("a.warc", key).as_bytes(), Some(key)).unwrap();
        }
        let mut fetched = Vec::new();
        // At noon; an hour before it, twice; a moment after it; and on.
        for (round, (minute, removed)) in
            [(0, None), (-60, Some("com,a)/")), (-59, Some("com,b)/")), (0, None), (1, Some("com,c)/"))]
                .into_iter()
                .enumerate()
        {
            let now = noon + jiff::SignedDuration::from_mins(minute);
            hand.set(now);
            if let Some(removed) = removed {
                assert_eq!(index.remove_lines(removed).unwrap(), 1);
            }
            let aside = dir.path().join(format!("aside{round}"));
            let published = publish(&index, owner("a", 1), &blob, &aside, &clock).await.unwrap();
            assert_eq!(published.new_files.is_some(), round == 0 || removed.is_some(), "{round}");
            let found = fetch("news", Some("a"), &blob, &dir.path().join("there")).await.unwrap();
            // The time it was really made: rows that changed later are judged by it.
            assert!(published.new_files.is_none() || found.made == now, "{round}: {}", found.made);
            let copy = Index::open_read_only(&found.folder, Settings::default()).unwrap();
            let mut names: Vec<String> = copy.snapshot().file_names().map(ToOwned::to_owned).collect();
            names.sort();
            fetched.push(names.concat());
        }
        assert_eq!(fetched, ["com,a)/com,b)/com,c)/", "com,b)/com,c)/", "com,c)/", "com,c)/", ""]);
    }

    #[tokio::test]
    async fn a_damaged_piece_is_fetched_again() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::test("2026-01-01T00:00:00Z".parse().unwrap()).0;
        let blob = Memory::new(clock.clone());
        let index = Index::open(dir.path().join("news"), Settings::default()).unwrap();
        index.load(line("com,a)/").as_bytes(), None).unwrap();
        publish(&index, owner("a", 1), &blob, &dir.path().join("aside"), &clock).await.unwrap();
        let there = dir.path().join("there");
        let found = fetch("news", Some("a"), &blob, &there).await.unwrap();
        let pieces = std::fs::read_dir(there.join(FETCHED)).unwrap().map(|entry| entry.unwrap().path());
        let segment =
            pieces.into_iter().find(|path| path.extension().is_some_and(|end| end == "seg")).unwrap();
        let mut bytes = std::fs::read(&segment).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        // In place, as a disk damages it: the copy is linked to the same bytes.
        let mut file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        assert_eq!(drop_damaged(&there, &found.folder).await.unwrap(), 1);
        let again = fetch("news", Some("a"), &blob, &there).await.unwrap();
        assert_eq!(again, found);
        let copy = Index::open_read_only(&again.folder, Settings::default()).unwrap();
        assert!(copy.snapshot().closest("com,a)/", Stamp::MAX).unwrap().is_some());
        assert_eq!(drop_damaged(&there, &dir.path().join("nothing")).await.unwrap(), 0);
    }

    #[test]
    fn states_of_this_and_of_earlier_versions_are_told_by_their_names() {
        for (text, expected) in [
            ("00001767225600000000.state", Some((None, 0))),
            ("0192f3c4-7b1a.t0000000007.00001767225600000000.state", Some((Some("0192f3c4-7b1a"), 7))),
            (
                "0192f3c4-7b1a.t0000000007.00001767225600000001.00001767225500000000.state",
                Some((Some("0192f3c4-7b1a"), 7)),
            ),
            ("0192f3c4-7b1a.t0000000007.x.00001767225500000000.state", None),
            ("0192f3c4-7b1a.0000000007.00001767225600000000.state", None),
            ("ab12.00000012.seg", None),
            ("ab12.MANIFEST", None),
            ("x.state", None),
        ] {
            let found = StateParts::read(text).map(|parts| (parts.identity, parts.token));
            assert_eq!(found, expected, "{text}");
        }
    }
}
