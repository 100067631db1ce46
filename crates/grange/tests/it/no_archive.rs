//! A folder without an archive: only `up`, `demo` and `init` make one; everything else says what is missing.

use crate::harness::{Grange, run};

/// A command of every kind that works on an archive.
const NEEDS_AN_ARCHIVE: &[&str] = &[
    "nodes",
    "findings",
    "db status",
    "db migrate",
    "db restored",
    "db backup",
    "users list",
    "users add anna --role admin",
    "changes",
    "harvests ls",
    "domains ls",
    "domains create a.dk",
    "seeds ls a.dk",
    "schedules ls",
    "templates ls",
    "jobs ls",
    "channels ls",
    "traps ls",
    "oai repos",
    "oai jobs",
    "oai add http://127.0.0.1:1/oai",
    "oai serve --listen 127.0.0.1:0",
    "store FILE",
    "get a.txt",
    "record a.txt 0",
    "files ls",
    "replicas ls",
    "audit run",
    "audit status",
    "audit verify-log",
    "repair --all",
    "archive rebuild",
    "collections ls",
    "collections import c FILE",
    "index status",
    "index jobs 1",
    "index publish file:copies",
    "access ls",
];

/// Commands that work on files, other servers or the settings, and leave the data folder alone.
const NEEDS_NONE: &[&str] = &[
    "settings show",
    "settings check",
    "settings explain db.url",
    "settings example",
    "completions bash",
    "man",
];

/// Commands that make an archive, and those that need none or take their folder by another argument.
const LEFT_OUT: &[&str] =
    &["init", "up", "demo", "restore", "crawl", "replay", "warc", "cdx", "swap", "testkit", "help"];

/// A command that is added must be tried on a mistyped folder, or be left out on purpose.
#[test]
fn every_command_is_tried_on_a_folder_without_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let help = run(folder.path(), &["--help"]).ok().stdout;
    // Two spaces and a name; options and wrapped lines begin otherwise.
    let listed = |line: &&str| {
        let name = line.strip_prefix("  ");
        name.is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_lowercase()))
    };
    let names: Vec<_> =
        help.lines().filter(listed).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"db") && names.contains(&"settings"), "{help}");
    let known = NEEDS_AN_ARCHIVE.iter().chain(NEEDS_NONE).chain(LEFT_OUT);
    let known: Vec<_> = known.filter_map(|command| command.split(' ').next()).collect();
    let unknown: Vec<_> = names.iter().filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "add them to a list of this file: {unknown:?}");
}

#[test]
fn a_mistyped_folder_is_told_and_nothing_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.txt");
    std::fs::write(&file, "bytes").unwrap();
    let there = || std::fs::read_dir(folder.path()).unwrap().count();
    for command in NEEDS_AN_ARCHIVE {
        let command = command.replace("FILE", file.to_str().unwrap());
        let args: Vec<_> = ["--data", "grnage-data"].into_iter().chain(command.split(' ')).collect();
        let ended = run(folder.path(), &args);
        assert_eq!(ended.code, 3, "{command}: {ended:?}");
        for word in ["there is no archive in grnage-data", "the folder is missing", "--data grnage-data init"]
        {
            assert!(ended.stderr.contains(word), "{command}: {ended:?}");
        }
        assert_eq!(there(), 1, "{command} created something");
    }
    for command in NEEDS_NONE {
        let args: Vec<_> = ["--data", "grnage-data"].into_iter().chain(command.split(' ')).collect();
        run(folder.path(), &args).ok();
        assert_eq!(there(), 1, "{command} created something");
    }
}

#[test]
fn files_on_disk_need_no_archive() {
    let folder = tempfile::tempdir().unwrap();
    let warc = crate::replay::warc(folder.path());
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    for command in [&["warc", "ls"][..], &["warc", "check"], &["cdx", "index"]] {
        let args = [&["--data", "none"], command, &[warc.to_str().unwrap()]].concat();
        run(folder.path(), &args).ok();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before);
}

#[test]
fn init_creates_an_archive_once_and_commands_work_on_it() {
    let grange = Grange::new();
    let made = grange.run_as_is(&["init", "--json"]).ok().json();
    assert_eq!(made["engine"], "sqlite");
    assert_eq!(std::fs::read_to_string(grange.data().join("node.id")).unwrap().trim(), made["node"]);
    grange.run_as_is(&["domains", "create", "a.dk"]).ok();
    grange.run_as_is(&["init"]).fails(4, &["there is an archive", "nothing was changed"]);
    assert!(grange.run_as_is(&["domains", "ls"]).ok().stdout.contains("a.dk"));
    // The first admin is made by the first node.
    let node = grange.up();
    assert!(node.greeting.contains("log in  admin / "), "{}", node.greeting);
    grange.run_as_is(&["init"]).fails(4, &["there is an archive"]);
    assert_eq!(node.stop(), 0);
}

#[test]
fn an_archive_that_lost_its_database_is_not_given_an_empty_one() {
    let grange = Grange::new();
    grange.run_as_is(&["init"]).ok();
    for name in ["grange.db", "grange.db-wal", "grange.db-shm"] {
        let _ = std::fs::remove_file(grange.data().join(name));
    }
    grange.run_as_is(&["files", "ls"]).fails(3, &["has lost its database", "grange.db is missing"]);
    assert!(!grange.data().join("grange.db").exists());
    grange.run_as_is(&["init"]).ok();
    grange.run_as_is(&["files", "ls"]).ok();
}

#[tokio::test]
async fn init_makes_the_tables_of_an_empty_postgresql_and_joins_one_that_has_them() {
    let Some(database) = grange_testkit::TestDatabase::create().await else { return };
    let set = format!("db.url={}", database.url);
    let (first, second) = (Grange::with(&[&set]), Grange::with(&[&set]));
    first.run_as_is(&["domains", "ls"]).fails(3, &["there is no archive"]);
    assert_eq!(first.run_as_is(&["init", "--json"]).ok().json()["engine"], "postgres");
    first.run_as_is(&["domains", "create", "a.dk"]).ok();
    second.run_as_is(&["init"]).ok();
    assert!(second.run_as_is(&["domains", "ls"]).ok().stdout.contains("a.dk"));
    let away = Grange::with(&["db.url=postgres://grange@127.0.0.1:1/grange"]);
    away.run_as_is(&["init"]).fails(1, &["cannot reach PostgreSQL"]);
    assert!(!away.data().exists(), "a server that is away leaves no half archive");
}
