//! A child process that is killed while it commits and merges, and what is there afterwards.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Batch, Capture, Index, Position, Settings, Stamp};

const CHILD: &str = "GRANGE_INDEX_CRASH_FOLDER";

fn settings() -> Settings {
    // Small, so that writing out the head and merging happen all the time.
    Settings { head_bytes: 6000, block_bytes: 256, ..Settings::default() }
}

fn rows_of(file: u64) -> u64 {
    3 + file % 20
}

fn captures(file: u64) -> impl Iterator<Item = Capture> {
    (0..rows_of(file)).map(move |n| Capture {
        surt: format!("com,example)/{}", (file * 7 + n * 13) % 50),
        time: Stamp::parse("20140102030405").unwrap(),
        digest: Some(format!("{file}-{n}")),
        offset: Some(n),
        ..Capture::default()
    })
}

/// The child: commits file after file and says each name once it is durable. As a test of its own it does nothing.
#[test]
fn child_that_commits_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let index = Index::open(folder, settings()).unwrap();
    let merger = index.merge_in_background().unwrap();
    let mut file = 0;
    loop {
        let name = format!("file-{file}");
        if !index.holds_file(&name) {
            // Every eleventh file is taken out again, in every run.
            let passing = file % 11 == 5;
            if passing {
                println!("\nremoving {file}");
                std::io::stdout().flush().unwrap();
            }
            let mut batch = Batch::new();
            batch.add_file(&name, Some("1"), captures(file));
            index.commit(batch).unwrap();
            if passing {
                index.remove_file(&name).unwrap();
                println!("\nremoved {file}");
            } else {
                println!("\ncommitted {file}");
            }
            std::io::stdout().flush().unwrap();
            merger.ring();
        }
        file += 1;
    }
}

/// Another child: loads lines in bulk, again and again, each time under another job.
#[test]
fn child_that_loads_until_it_is_killed() {
    let Some(folder) = std::env::var_os(LOADER) else { return };
    let index = Index::open(folder, settings()).unwrap();
    let first = index.snapshot().stats().rows / LINES;
    for load in first.. {
        index.load(lines(load).as_bytes(), None).unwrap();
        index.merge_step().unwrap();
        println!("\ncommitted {load}");
        std::io::stdout().flush().unwrap();
    }
}

const LOADER: &str = "GRANGE_INDEX_CRASH_LOAD_FOLDER";
const LINES: u64 = 400;

fn lines(load: u64) -> String {
    let line = |n: u64| {
        format!(
            "com,example)/{n} 2014{load:010} {{\"offset\": \"{n}\", \"filename\": \"load-{load}-{}\"}}\n",
            n % 7
        )
    };
    (0..LINES).map(line).collect()
}

#[test]
fn a_load_that_is_killed_leaves_nothing_and_one_that_returned_leaves_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut loads = 0;
    for round in 0..8 {
        let said = run_and_kill(folder.path(), LOADER, "child_that_loads_until_it_is_killed", 1 + round % 3);
        loads = said.iter().map(|(_, load)| load + 1).max().unwrap_or(loads).max(loads);
        let index = Index::open(folder.path(), settings()).unwrap();
        let snapshot = index.snapshot();
        let (mut count, mut rows) = (0, snapshot.ascending(Position::default(), None));
        while rows.advance().unwrap() {
            count += 1;
        }
        // The load that was under way may have come through.
        assert!(count == loads * LINES || count == (loads + 1) * LINES, "{count} rows after {loads} loads");
        loads = count / LINES;
        let live = 3 + index.inner.lock().as_ref().unwrap().segments.len();
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            live,
            "manifest, lock, log and segments"
        );
    }
}

/// Runs a child until it has said `lines` things, kills it, and answers what it said.
fn run_and_kill(folder: &Path, variable: &str, child: &str, lines: usize) -> Vec<(String, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("tests::crash::{child}"), "--nocapture"])
        .env(variable, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    for line in out.lines().map_while(Result::ok) {
        if let Some((word, file)) = line.split_once(' ')
            && let Ok(file) = file.parse()
            && ["committed", "removing", "removed"].contains(&word)
        {
            said.push((word.to_owned(), file));
        }
        if said.len() == lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    said
}

#[test]
fn whatever_was_committed_survives_thirty_kills() {
    let folder = tempfile::tempdir().unwrap();
    drop(Index::open(folder.path(), settings()).unwrap());
    let (mut committed, mut removed, mut unsure) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for round in 0..32 {
        // Different lengths, so that the kill falls on commits, on writing out the head and on merges.
        for (word, file) in
            run_and_kill(folder.path(), CHILD, "child_that_commits_until_it_is_killed", 3 + round * 5 % 17)
        {
            match word.as_str() {
                "committed" => drop(committed.insert(file)),
                "removing" => drop(unsure.insert(file)),
                _ => drop((unsure.remove(&file), removed.insert(file))),
            }
        }
        let index = Index::open(folder.path(), settings()).unwrap();
        let mut found = std::collections::BTreeMap::<u64, u64>::new();
        let snapshot = index.snapshot();
        let mut rows = snapshot.ascending(Position::default(), None);
        while let Some(view) = rows.next().unwrap() {
            let file = view.file().strip_prefix("file-").unwrap().parse().unwrap();
            *found.entry(file).or_default() += 1;
        }
        for file in &committed {
            assert_eq!(found.get(file), Some(&rows_of(*file)), "file {file} in round {round}");
        }
        for (file, rows) in &found {
            assert_eq!(*rows, rows_of(*file), "file {file} is there by half in round {round}");
        }
        // A removal that was said to be done holds, unless the child of a later round added the file anew.
        let again: BTreeSet<u64> = removed.iter().filter(|file| found.contains_key(file)).copied().collect();
        assert!(again.iter().all(|file| unsure.contains(file)), "{again:?} came back in round {round}");
    }
    assert!(committed.len() > 50, "{} files", committed.len());
    let index = Index::open(folder.path(), settings()).unwrap();
    index.merge_all().unwrap();
    assert_eq!(index.snapshot().stats().rows, {
        let snapshot = index.snapshot();
        let (mut count, mut rows) = (0, snapshot.ascending(Position::default(), None));
        while rows.advance().unwrap() {
            count += 1;
        }
        count
    });
}
