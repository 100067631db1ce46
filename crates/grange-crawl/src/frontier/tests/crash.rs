//! A process killed at any moment, and a disk that has only part of the last write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;

const PAGES: u64 = 1600;
const HOSTS: u64 = 20;
const BATCH: usize = 8;
const KILLS: usize = 30;
const FOLDER: &str = "GRANGE_FRONTIER_CRASH_FOLDER";

fn page(n: u64) -> String {
    format!("http://h{}.org/{n}", n % HOSTS)
}

fn page_number(url: &str) -> u64 {
    url.rsplit('/').next().unwrap().parse().unwrap()
}

/// Two that only this page names, and some that others name too.
fn links(n: u64) -> Vec<Candidate> {
    let all = [2 * n + 1, 2 * n + 2, n / 2, (n * 7919) % PAGES, (n * 104_729) % PAGES];
    all.into_iter().filter(|n| *n < PAGES).map(|n| found(&page(n), "L")).collect()
}

fn open(folder: &Path) -> (Frontier, super::super::Resumed) {
    let (frontier, resumed) =
        Frontier::open(folder, impolite(), Budgets::default(), Timestamp::now()).unwrap();
    let mark =
        resumed.marks.get("finished").map_or(0, |mark| u64::from_be_bytes(mark[..].try_into().unwrap()));
    assert_eq!(mark, resumed.counts.finished, "the mark belongs to its batch");
    assert_eq!(resumed.counts.discovered, resumed.counts.finished + resumed.counts.queued);
    (frontier, resumed)
}

/// Takes a batch, tells each URL to `told`, and finishes it; false if nothing is left.
fn work(frontier: &Frontier, mut told: impl FnMut(&str)) -> bool {
    let now = Timestamp::now();
    let mut batch = Vec::new();
    while batch.len() < BATCH
        && let Next::Uri(claim) = frontier.next(now).unwrap()
    {
        let url = claim.candidate.url.to_string();
        told(&url);
        batch.push(Finished { discovered: links(page_number(&url)), ..done(*claim, 200, 10) });
    }
    let finished = frontier.counts(now).finished + batch.len() as u64;
    let mark = ("finished".to_owned(), finished.to_be_bytes().to_vec());
    frontier.finish(&batch, &[mark], now).unwrap();
    !batch.is_empty()
}

/// Not a test of its own: what the killed process does. It tells on its output what it fetches.
#[test]
fn child_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (frontier, _) = open(Path::new(&folder));
    frontier.add(&[seed(&page(0))], Timestamp::now()).unwrap();
    let mut out = std::io::stdout().lock();
    while work(&frontier, |url| writeln!(out, "fetched {url}").unwrap()) {
        out.flush().unwrap();
    }
    writeln!(out, "all done").unwrap();
}

#[test]
fn killed_at_any_moment_nothing_is_lost_and_only_what_was_in_flight_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut fetched: BTreeMap<u64, u32> = BTreeMap::new();
    let mut kills = 0;
    let mut is_done = false;
    while !is_done {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "frontier::tests::crash::child_that_is_killed",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Points that differ from run to run of the loop, in and between batches.
        let kill_after = if kills < KILLS { 11 + (kills * 37) % 60 } else { usize::MAX };
        let mut lines = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            if let Some(at) = line.find("fetched ") {
                *fetched.entry(page_number(&line[at..])).or_default() += 1;
                lines += 1;
                if lines == kill_after {
                    child.kill().unwrap();
                    kills += 1;
                }
            }
            is_done |= line.contains("all done");
        }
        assert!(child.wait().unwrap().success() || lines >= kill_after, "the child failed by itself");
    }
    assert!(kills >= 20, "{kills}");
    assert_eq!(fetched.keys().copied().collect::<Vec<_>>(), (0..PAGES).collect::<Vec<_>>());
    let repeated: u32 = fetched.values().map(|times| times - 1).sum();
    assert!(repeated as usize <= kills * BATCH, "{repeated} repeated after {kills} kills");
    let (_, resumed) = open(folder.path());
    assert_eq!((resumed.counts.finished, resumed.counts.queued), (PAGES, 0));
}

fn journal(folder: &Path) -> PathBuf {
    let journals = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    journals.filter(|path| path.extension().is_some_and(|ext| ext == "jnl")).max().unwrap()
}

/// What was written of a journal; the rest of the file is room for more. No test here writes a megabyte.
fn written(journal: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    fs::File::open(journal).unwrap().take(1 << 20).read_to_end(&mut bytes).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    bytes
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { fs::copy(&path, &target).map(drop).unwrap() }
    }
}

#[test]
fn a_torn_last_write_is_as_if_it_had_never_been() {
    let folder = tempfile::tempdir().unwrap();
    let (frontier, _) = open(folder.path());
    frontier.add(&[seed(&page(0))], Timestamp::now()).unwrap();
    let mut states = BTreeSet::new();
    let mut ends = Vec::new();
    for _ in 0..12 {
        work(&frontier, |_| {});
        states.insert(frontier.counts(Timestamp::now()).finished);
        ends.push(written(&journal(folder.path())).len());
    }
    drop(frontier);
    let mut whole = written(&journal(folder.path()));
    whole.resize(whole.len() + 4096, 0);
    fs::write(journal(folder.path()), &whole).unwrap();
    let (last, end) = (ends[ends.len() - 2], ends[ends.len() - 1]);
    let all = *states.last().unwrap();
    for (i, cut) in (last + 1..end).step_by((end - last) / 8).enumerate() {
        let torn = tempfile::tempdir().unwrap();
        copy(folder.path(), torn.path());
        let mut bytes = whole.clone();
        // Cut off, or never filled: file systems do both.
        if i % 2 == 0 {
            bytes.truncate(cut);
        } else {
            bytes[cut..].fill(0);
        }
        fs::write(journal(torn.path()), &bytes).unwrap();
        let (frontier, resumed) = open(torn.path());
        assert!(states.contains(&resumed.counts.finished) && resumed.counts.finished < all, "cut at {cut}");
        let mut rest = BTreeSet::new();
        while work(&frontier, |url| assert!(rest.insert(url.to_owned()))) {}
        assert_eq!(rest.len() as u64 + resumed.counts.finished, PAGES);
    }
}
