//! Killed while writing: what was acknowledged is there, and nothing is there by half.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use grange_base::{Clock, Size};
use grange_model::Algorithm;

use crate::blob::{Blob, Source, Taking};
use crate::conformance::{file, noise, sums};
use crate::disk::{Disk, DiskSettings};

const CHILD: &str = "GRANGE_BLOB_CRASH_CHILD";
const ROUNDS: u64 = 60;
const WRITERS: usize = 4;

fn open(folder: &Path) -> Disk {
    let mut settings = DiskSettings::new(["one", "two"].map(|base| folder.join(base)));
    (settings.min_space_left, settings.min_space_required) = (Size(0), Size(0));
    Disk::open(settings, Clock::system()).unwrap()
}

/// A name says what its bytes are: `ROUND-WRITER-NUMBER-SIZE`, moved ones ending in `m`.
fn bytes_of(name: &str) -> Vec<u8> {
    let size = name.trim_end_matches('m').rsplit('-').next().unwrap().parse().unwrap();
    noise(size, name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte)))
}

fn say(word: &str, name: &str) {
    // One write per line, so that a line is whole or absent.
    std::io::stdout().lock().write_all(format!("\n{word} {name}\n").as_bytes()).unwrap();
}

/// Not a test by itself: the process that `nothing_acknowledged_is_lost_when_killed` kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_puts_until_killed() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (folder, round) = told.split_once('|').unwrap();
    let (folder, disk) = (Path::new(folder).to_owned(), open(Path::new(folder)));
    let writers = (0..WRITERS).map(|writer| {
        let (disk, folder, round) = (disk.clone(), folder.clone(), round.to_owned());
        tokio::spawn(async move {
            for number in 0_usize.. {
                // From nothing over one buffer to many.
                let size = [0, 100, 70_000, 300_000, 2_000_000][(writer + number) % 5];
                let moved = number % 3 == 2;
                let name = format!("{round}-{writer}-{number}-{size}{}", if moved { "m" } else { "" });
                let bytes = bytes_of(&name);
                if moved {
                    let path = folder.join("source").join(&name);
                    std::fs::write(&path, &bytes).unwrap();
                    say("started", &name);
                    disk.put_file(&file(&name), &path, Taking::Move, None).await.unwrap();
                } else {
                    say("started", &name);
                    disk.put(&file(&name), Source::from(&bytes[..]), Some(&sums(&bytes))).await.unwrap();
                }
                say("acknowledged", &name);
            }
        })
    });
    futures_util::future::join_all(writers.collect::<Vec<_>>()).await;
}

/// Starts the child, kills it after so many lines, and gives the names it started and those it acknowledged.
fn killed_after(lines: usize, folder: &Path, round: u64) -> (HashSet<String>, HashSet<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "disk::tests::crash::child_that_puts_until_killed", "--nocapture"])
        .env(CHILD, format!("{}|{round}", folder.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut started, mut acknowledged, mut seen) = (HashSet::new(), HashSet::new(), 0);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let fresh = match line.split_once(' ') {
            Some(("started", name)) => started.insert(name.to_owned()),
            Some(("acknowledged", name)) => acknowledged.insert(name.to_owned()),
            _ => false,
        };
        seen += usize::from(fresh);
        if fresh && seen == lines {
            // SIGKILL; what is in the pipe is read on until it ends.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(seen >= lines, "the child ended by itself");
    (started, acknowledged)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_killed_and_nothing_is_there_by_half() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("source")).unwrap();
    let (mut all, mut leftovers, mut stored_unsaid) = (0, 0, 0);
    for round in 0..ROUNDS {
        // Every number of lines from the first start to the middle of the crowd.
        let lines = 1 + (round * 7 % 29) as usize;
        let (started, acknowledged) = killed_after(lines, folder.path(), round);
        for base in ["one", "two"] {
            leftovers += std::fs::read_dir(folder.path().join(base).join("tempdir")).unwrap().count();
        }
        let disk = open(folder.path());
        for base in ["one", "two"] {
            assert_eq!(std::fs::read_dir(folder.path().join(base).join("tempdir")).unwrap().count(), 0);
        }
        let listed = disk.list(None, usize::MAX).await.unwrap();
        let there: HashSet<_> = listed.iter().map(|listed| listed.name.to_string()).collect();
        for name in &acknowledged {
            assert!(there.contains(name), "{name} was acknowledged in round {round} and is gone");
        }
        let of_round = format!("{round}-");
        for name in there.iter().filter(|name| name.starts_with(&of_round)) {
            let found = disk.checksum(&file(name), Algorithm::ALL).await.unwrap();
            assert_eq!(found, Some(sums(&bytes_of(name))), "{name} is not whole");
            stored_unsaid += usize::from(!acknowledged.contains(name));
        }
        // A file to be moved lies in the archive, or where it was, or both; never nowhere.
        for name in started.iter().filter(|name| name.ends_with('m')) {
            let source = folder.path().join("source").join(name);
            assert!(there.contains(name) || source.exists(), "{name} is nowhere");
            let put = disk.put_file(&file(name), &source, Taking::Move, None).await;
            assert!(put.is_ok() || !source.exists(), "{name} cannot be put again: {put:?}");
        }
        all += acknowledged.len();
    }
    println!(
        "{ROUNDS} kills, {all} acknowledged and whole, {stored_unsaid} stored but not yet acknowledged, \
         {leftovers} half-written files cleared away"
    );
}
