//! A folder without an archive: only `up`, `demo` and `init` make one; everything else says what is missing.

use grange_testkit::until;

use crate::archive_bed::{single, single_with, source};
use crate::harness::{Grange, run};

/// Every command that works on an archive.
const NEEDS_AN_ARCHIVE: &[&str] = &[
    "nodes",
    "findings",
    "db status",
    "db migrate",
    "db restored",
    "db backup",
    "nodes forget n1",
    "harvests ls",
    "harvests show h",
    "harvests create selective h --schedule daily",
    "harvests create snapshot h",
    "harvests set h --comments x",
    "harvests activate h",
    "harvests deactivate h",
    "harvests preview h",
    "harvests add h a.dk",
    "harvests remove h a.dk",
    "harvests add-seeds h FILE",
    "harvests domains h",
    "harvests runs h",
    "domains import FILE",
    "domains create a.dk",
    "domains ls",
    "domains show a.dk",
    "domains set a.dk --comments x",
    "domains aliases",
    "domains stats",
    "domains history a.dk",
    "domains configure a.dk c",
    "domains unconfigure a.dk c",
    "domains login a.dk l --url https://a.dk/ --username u --secret-file FILE",
    "domains logins a.dk",
    "domains logout a.dk l",
    "seeds ls a.dk",
    "seeds show a.dk s",
    "seeds put a.dk s FILE",
    "seeds rm a.dk s",
    "schedules ls",
    "schedules show s",
    "schedules put s --unit day",
    "schedules rm s",
    "templates ls",
    "templates show t",
    "templates put t FILE",
    "templates activate t",
    "templates deactivate t",
    "jobs ls",
    "jobs show 1",
    "jobs resubmit 1",
    "jobs reject 1",
    "jobs unreject 1",
    "jobs cancel 1",
    "channels ls",
    "channels create c",
    "channels default c",
    "channels rm c",
    "channels harvesters",
    "traps ls",
    "traps show t",
    "traps put t FILE",
    "traps activate t",
    "traps deactivate t",
    "traps rm t",
    "traps test a",
    "oai repos",
    "oai show 1",
    "oai add http://127.0.0.1:1/oai",
    "oai import FILE",
    "oai set 1 --delay 3s",
    "oai refresh 1",
    "oai rm 1",
    "oai harvest 1",
    "oai jobs",
    "oai stop 1",
    "oai schedule 1",
    "oai reschedule 1",
    "oai schedules",
    "oai unschedule 1",
    "oai history",
    "oai export 1",
    "oai serve --listen 127.0.0.1:0",
    "files ls",
    "files show a.txt",
    "files withdraw a.txt",
    "replicas ls",
    "replicas adopt one",
    "audit run",
    "audit status",
    "audit verify-log",
    "audit keys",
    "audit rotate-key",
    "audit prove a.txt",
    "repair --all",
    "repair ls",
    "repair decide a.txt --keep record",
    "repair confirm UUID",
    "repair withdraw UUID",
    "archive rebuild",
    "collections ls",
    "collections import c FILE",
    "collections show c",
    "collections rm c",
    "index status",
    "index rollback a.warc",
    "index again a.warc",
    "index publish file:copies",
    "index jobs 1",
    "access ls",
    "access add --block court --url http://a.dk/",
    "access rm 1",
    "access import FILE",
    "access export",
    "access test http://a.dk/",
    "users list",
    "users add anna --role admin",
    "users passwd anna",
    "users role anna admin",
    "users disable anna",
    "users enable anna",
    "users token anna --for x",
    "users tokens anna",
    "users revoke UUID",
    "changes",
    "store FILE",
    "get a.txt",
    "record a.txt 0",
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

/// Commands that make an archive, and those that need none, read files that are named, or take their folder by another
/// argument.
const LEFT_OUT: &[&str] = &[
    "init",
    "up",
    "demo",
    "restore",
    "crawl",
    "replay",
    "warc",
    "cdx",
    "swap",
    "testkit",
    "help",
    "oai filter test",
    "audit check-proof",
    // Looks for a copy, see below.
    "index fetch",
];

/// An id of no row.
const SOME_ID: &str = "018f0000-0000-7000-8000-000000000001";

/// The commands below this one, by its help; none below one that does something itself.
fn below(folder: &std::path::Path, command: &[String]) -> Vec<Vec<String>> {
    let args: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    let help = run(folder, &args).ok().stdout;
    // The first page has headings of its own; two spaces and a name begin a command, options and wrapped lines do not.
    let mut lists_commands = command.is_empty();
    let mut found = Vec::new();
    for line in help.lines() {
        if !line.is_empty() && !line.starts_with(' ') && !command.is_empty() {
            lists_commands = line == "Commands:";
        }
        let name = line
            .strip_prefix("  ")
            .filter(|name| name.starts_with(|letter: char| letter.is_ascii_lowercase()));
        if let Some(name) = name.and_then(|name| name.split_whitespace().next())
            && lists_commands
            && name != "help"
        {
            found.push([command, &[name.to_owned()]].concat());
        }
    }
    found
}

/// A command that is added must be tried on a mistyped folder, or be left out on purpose.
#[test]
fn every_command_is_tried_on_a_folder_without_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let words = |command: &&str| command.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let known = NEEDS_AN_ARCHIVE.iter().chain(NEEDS_NONE).chain(LEFT_OUT);
    let known: Vec<Vec<String>> = known.map(words).collect();
    let (mut left, mut tried, mut unknown) = (below(folder.path(), &[]), 0, Vec::new());
    while let Some(command) = left.pop() {
        // With all that is below it.
        if LEFT_OUT.contains(&command.join(" ").as_str()) {
            continue;
        }
        let inner = below(folder.path(), &command);
        if !inner.is_empty() {
            left.extend(inner);
        } else if known.iter().any(|known| known.starts_with(&command)) {
            tried += 1;
        } else {
            unknown.push(command.join(" "));
        }
    }
    assert!(unknown.is_empty(), "add them to a list of this file: {unknown:?}");
    assert!(tried > 100, "the help lists fewer commands than there are: {tried}");
}

#[test]
fn a_mistyped_folder_is_told_and_nothing_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.txt");
    std::fs::write(&file, "bytes").unwrap();
    let there = || std::fs::read_dir(folder.path()).unwrap().count();
    for command in NEEDS_AN_ARCHIVE {
        let command = command.replace("FILE", file.to_str().unwrap()).replace("UUID", SOME_ID);
        let args: Vec<_> = ["--data", "grnage-data"].into_iter().chain(command.split(' ')).collect();
        let ended = run(folder.path(), &args);
        assert_eq!(ended.code, 3, "{command}: {ended:?}");
        for word in ["there is no archive in grnage-data", "the folder is missing", "--data grnage-data init"]
        {
            assert!(ended.stderr.contains(word), "{command}: {ended:?}");
        }
        assert_eq!(there(), 1, "{command} created something");
    }
    run(folder.path(), &["--data", "grnage-data", "index", "fetch", "file:copies", "out"])
        .fails(1, &["cannot list the folder"]);
    assert_eq!(there(), 1, "a copy that is looked for is not made");
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
    let advice = ["has lost its database", "grange restore BACKUP --to", "init", "archive rebuild"];
    grange.run_as_is(&["up"]).fails(3, &advice);
    assert!(!grange.data().join("grange.db").exists());
    grange.run_as_is(&["init"]).ok();
    grange.run_as_is(&["files", "ls"]).ok();
    assert_eq!(grange.up().stop(), 0);
}

/// Each trace by itself.
#[test]
fn up_makes_no_database_beside_the_traces_of_an_archive() {
    for trace in ["node.id", "secrets/log.key", "backups", "replicas/one/filedir/a.warc"] {
        let grange = single();
        let path = grange.data().join(trace);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, grange_model::ids::NodeId::new().to_string()).unwrap();
        grange.run_as_is(&["up"]).fails(3, &["has lost its database"]);
        assert!(!grange.data().join("grange.db").exists(), "{trace}");
    }
    // The token of the nodes is copied into the folder of a new one.
    let fresh = single();
    assert!(fresh.data().join("secrets/node.token").exists());
    assert_eq!(fresh.up().stop(), 0);
}

/// A start that fails before there is a database is no loss of one.
#[test]
fn a_first_start_that_fails_can_be_repeated() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let grange = Grange::new();
    let listen = format!("node.listen={}", taken.local_addr().unwrap());
    grange.run_as_is(&["--set", &listen, "up"]).fails(1, &["another program has this port"]);
    assert_eq!(grange.up().stop(), 0);
}

#[tokio::test]
async fn a_node_whose_database_is_removed_is_not_ready_and_acknowledges_nothing() {
    let grange = single_with(&["node.heartbeat=100ms"]);
    let mut node = grange.up();
    grange.run(&["store", source(&grange, "before.txt", 100).to_str().unwrap()]).ok();
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(grange.data().join(format!("grange.db{end}")));
    }
    let file = source(&grange, "after.txt", 100);
    grange.run_as_is(&["store", file.to_str().unwrap()]).fails(1, &["removed or replaced", "grange restore"]);
    let (status, body) = node.ready().await;
    assert!(status == 503 && body.to_string().contains("removed or replaced"), "{body}");
    node.wait_for("the loss to be logged", |node| node.log().contains("the database file is lost"));
    assert!(!grange.data().join("grange.db").exists());
    node.kill();
    grange.run_as_is(&["up"]).fails(3, &["has lost its database"]);
    // An empty one is made only when somebody asks for it, and what lies on the replicas is a finding.
    grange.run_as_is(&["init"]).ok();
    let node = grange.up();
    until("the strays to be a finding", async || {
        let findings = grange.run(&["findings"]);
        findings.code == 5 && findings.stdout.contains("stray-files")
    })
    .await;
    grange.run(&["archive", "rebuild"]).ok();
    until("the finding to close", async || grange.run(&["findings"]).code == 0).await;
    assert_eq!(node.stop(), 0);
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
