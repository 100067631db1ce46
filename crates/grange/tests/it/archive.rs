//! The archive through the command line: proven copies, damage found and repaired, a lost database rebuilt.

use std::path::Path;

use serde_json::Value;
use warc::write::{FileOptions, NewRecord, WarcFile};

use crate::archive_bed::single;
use crate::harness::Grange;

/// Files of several sizes beside the data folder; gives their names.
fn files(grange: &Grange) -> Vec<&'static str> {
    let pattern = |bytes: usize| (0..bytes).map(|at| (at * 31 % 251) as u8).collect::<Vec<_>>();
    let sizes = [("zero.warc", 0), ("one.warc", 1), ("some.warc", 70_000), ("more.warc", 3_000_000)];
    for (name, bytes) in sizes {
        std::fs::write(grange.path(name), pattern(bytes)).unwrap();
    }
    sizes.map(|(name, _)| name).to_vec()
}

fn store(grange: &Grange, names: &[&str]) -> Value {
    let paths: Vec<_> = names.iter().map(|name| grange.path(name).to_str().unwrap().to_owned()).collect();
    let mut args = vec!["store", "--json"];
    args.extend(paths.iter().map(String::as_str));
    grange.run(&args).ok().json()
}

/// Counts of a check of every byte of every replica.
fn audit(grange: &Grange, code: i32) -> [u64; 3] {
    let ended = grange.run(&["audit", "run", "--wait", "--json"]);
    assert_eq!(ended.code, code, "{ended:?}");
    let counts = ended.json();
    ["ok", "missing", "corrupt"].map(|field| counts[field].as_u64().unwrap())
}

fn same(one: &Path, other: &Path) -> bool {
    std::fs::read(one).unwrap() == std::fs::read(other).unwrap()
}

#[test]
fn what_is_stored_comes_back_and_other_bytes_under_its_name_are_refused() {
    let grange = single();
    let names = files(&grange);
    let outcomes = store(&grange, &names);
    assert!(outcomes.as_array().unwrap().iter().all(|outcome| outcome["stored"] == true), "{outcomes}");
    assert_eq!(store(&grange, &names)[2]["already"], true, "storing the same again changes nothing");
    for name in &names {
        let dest = grange.path(&format!("{name}.back"));
        grange.run(&["get", name, dest.to_str().unwrap()]).ok();
        assert!(same(&grange.path(name), &dest), "{name}");
        // With all Grange software gone, the copies lie there under their own names.
        for replica in ["one", "two"] {
            assert!(same(
                &grange.path(name),
                &grange.data().join(format!("replicas/{replica}/filedir/{name}"))
            ));
        }
    }
    std::fs::write(grange.path("some.warc"), "other bytes").unwrap();
    grange
        .run(&["store", grange.path("some.warc").to_str().unwrap()])
        .fails(4, &["has other bytes as some.warc"]);
    grange.run(&["get", "nowhere.warc", "x"]).fails(3, &["nowhere.warc"]);
    grange.run(&["record", "one.warc", "0"]).fails(3, &["no record"]);
    let listed = grange.run(&["files", "ls", "--json"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), names.len());
    for field in ["name", "size", "checksums", "holdings"] {
        assert!(listed[0].get(field).is_some(), "{field}: {listed}");
    }
}

#[test]
fn damage_is_found_blamed_and_repaired_and_the_log_holds() {
    let grange = single();
    let names = files(&grange);
    let node = grange.up();
    store(&grange, &names);
    assert_eq!(audit(&grange, 0), [12, 0, 0]);

    let at = |replica: &str, name: &str| grange.data().join(format!("replicas/{replica}/filedir/{name}"));
    let mut flipped = std::fs::read(at("one", "more.warc")).unwrap();
    flipped[1_000_000] ^= 1;
    std::fs::write(at("one", "more.warc"), flipped).unwrap();
    std::fs::remove_file(at("two", "some.warc")).unwrap();

    let [_, missing, corrupt] = audit(&grange, 5);
    assert_eq!((missing, corrupt), (1, 1));
    // A wrong copy is never served.
    let dest = grange.path("served");
    grange.run(&["get", "more.warc", dest.to_str().unwrap()]).ok();
    assert!(same(&grange.path("more.warc"), &dest));

    let would = grange.run(&["repair", "--all", "--json"]).ok().json();
    assert_eq!((would["dry_run"].clone(), would["copies"].as_array().unwrap().len()), (true.into(), 2));
    let done = grange.run(&["repair", "--all", "--yes", "--json"]).ok().json();
    assert_eq!((done["done"].as_u64(), done["failed"].as_u64()), (Some(2), Some(0)), "{done}");
    assert_eq!(audit(&grange, 0), [12, 0, 0]);
    let attic = std::fs::read_dir(grange.data().join("replicas/one/atticdir")).unwrap().count();
    assert_eq!(attic, 1, "the bad copy is kept");

    grange.run(&["audit", "verify-log"]).ok();
    let proof = grange.run(&["audit", "prove", "more.warc"]).ok().json();
    assert!(proof.to_string().contains("more.warc"));
    assert_eq!(node.stop(), 0);
    // Somebody changes the database behind the archive's back.
    grange_testkit::sqlite::execute(&grange.data().join("grange.db"), "UPDATE files SET size = size + 1");
    let ended = grange.run(&["audit", "verify-log"]);
    assert_eq!(ended.code, 1, "{ended:?}");
}

#[test]
fn a_record_that_all_copies_contradict_is_shown_and_corrected_by_two_people() {
    let grange = single();
    let names = files(&grange);
    store(&grange, &names);
    let wrong = "00".repeat(64);
    let spoil = "UPDATE files SET checksum = 'sha512=' || hex(zeroblob(64)),
         checksums = json_set(checksums, '$.sha512', hex(zeroblob(64))) WHERE name = 'some.warc'";
    grange_testkit::sqlite::execute(&grange.data().join("grange.db"), spoil);
    assert_eq!(grange.run(&["audit", "verify-log"]).code, 1, "the row does not say what the log says");
    audit(&grange, 5);
    let would = grange.run(&["repair", "--all", "--json"]).ok().json();
    let copies = would["copies"].as_array().unwrap();
    assert_eq!(
        (copies.len(), &copies[0]["kind"], &copies[0]["name"]),
        (1, &"record".into(), &"some.warc".into())
    );
    let shown = || grange.run(&["files", "show", "some.warc"]).ok().json()["checksums"]["sha512"].clone();
    assert_eq!(shown(), wrong, "a dry run changes nothing");
    // No credential stands for a second person here.
    let asked = grange.run(&["repair", "--all", "--yes", "--json"]);
    assert_eq!(asked.code, 5, "{asked:?}");
    assert_eq!(shown(), wrong);
    let id = asked.json()["copies"][0]["repair"].as_str().unwrap().to_owned();
    grange.run(&["repair", "confirm", &id]).fails(4, &["second person"]);
    let node = grange.up();
    grange.run(&["users", "add", "olga", "--role", "admin"]).ok();
    let token = grange.run(&["users", "token", "olga", "--for", "tests"]).ok().stdout;
    let (file, admin) = (grange.file("token", &token), node.url("admin"));
    let olga = ["--server", &admin, "--token-file", file.to_str().unwrap()];
    grange.run(&[&olga[..], &["repair", "confirm", &id]].concat()).ok();
    assert_ne!(shown(), wrong);
    let dest = grange.path("back");
    grange.run(&["get", "some.warc", dest.to_str().unwrap()]).ok();
    assert!(same(&grange.path("some.warc"), &dest));
    grange.run(&["audit", "verify-log"]).ok();
    let proof = grange.run(&["audit", "prove", "some.warc"]).ok().json();
    assert!(proof.to_string().contains("amended"), "{proof}");
    assert_eq!(audit(&grange, 0), [12, 0, 0]);
}

#[test]
fn a_lost_database_is_rebuilt_from_the_replicas() {
    let grange = single();
    let names = files(&grange);
    store(&grange, &names);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(grange.data().join(format!("grange.db{end}")));
    }
    grange.run(&["archive", "rebuild"]).fails(3, &["has lost its database", "init", "archive rebuild"]);
    let made = grange.run(&["init"]).ok().stdout;
    for word in ["one, three, two hold files", "grange restore BACKUP --to", "archive rebuild"] {
        assert!(made.contains(word), "{made}");
    }
    // A log that has grown past the lost one before the rebuild is judged alike.
    let path = grange.file("later.txt", "later");
    grange.run(&["store", path.to_str().unwrap()]).ok();
    let verified = grange.run(&["audit", "verify-log"]);
    assert!(verified.code == 1 && verified.stdout.contains("archive rebuild"), "{verified:?}");
    let rebuilt = grange.run(&["archive", "rebuild", "--json"]).ok().json();
    assert_eq!(rebuilt["entered"].as_u64(), Some(names.len() as u64), "{rebuilt}");
    assert_eq!(audit(&grange, 0), [15, 0, 0]);
    grange.run(&["audit", "verify-log"]).ok();
}

#[test]
fn a_token_sends_and_gets_bytes_over_the_network() {
    let grange = single();
    files(&grange);
    let node = grange.up();
    grange.run(&["users", "add", "olga", "--role", "operator"]).ok();
    grange.run(&["users", "add", "vera", "--role", "viewer"]).ok();
    let remote = |user: &str, args: &[&str]| {
        let file = grange.file(user, &grange.run(&["users", "token", user]).ok().stdout);
        let admin = node.url("admin");
        let mut all = vec!["--server", &admin, "--token-file", file.to_str().unwrap()];
        all.extend(args);
        grange.run(&all)
    };
    let (path, back) = (grange.path("more.warc"), grange.path("back"));
    remote("olga", &["store", path.to_str().unwrap()]).ok();
    remote("olga", &["get", "more.warc", back.to_str().unwrap()]).ok();
    assert!(same(&path, &back));
    remote("vera", &["store", path.to_str().unwrap()]).fails(4, &["viewer"]);
    // Files are handed out whole, whatever access rules hide of them: to staff, and each reading is recorded.
    remote("vera", &["get", "more.warc", grange.path("second").to_str().unwrap()]).fails(4, &["viewer"]);
    remote("vera", &["record", "more.warc", "0"]).fails(4, &["viewer"]);
    let changes = grange.run(&["changes", "--json"]).ok().json();
    let read: Vec<_> =
        changes["changes"].as_array().unwrap().iter().filter(|one| one["act"] == "file.read").collect();
    assert_eq!(read.len(), 1, "{changes}");
    assert_eq!((&read[0]["who"], &read[0]["subject"]), (&"olga".into(), &"file:more.warc".into()));
    remote("olga", &["repair", "--all", "--yes"]).ok();
    assert_eq!(node.stop(), 0);
}

/// A corrupt copy leaves its place only when a second person has said yes.
#[test]
fn a_repair_that_waits_is_confirmed_by_a_second_person() {
    let grange = single();
    files(&grange);
    store(&grange, &["one.warc", "some.warc"]);
    let node = grange.up();
    grange.run(&["users", "add", "olga", "--role", "operator"]).ok();
    let token = grange.file("olga", &grange.run(&["users", "token", "olga"]).ok().stdout);
    let admin = node.url("admin");
    let olga = |args: &[&str]| {
        let mut all = vec!["--server", &admin, "--token-file", token.to_str().unwrap()];
        all.extend(args);
        grange.run(&all)
    };
    let bad = grange.data().join("replicas/one/filedir/some.warc");
    std::fs::remove_file(&bad).unwrap();
    std::fs::write(&bad, "other bytes").unwrap();
    assert_eq!(audit(&grange, 5)[2], 1);
    let asked = olga(&["repair", "--all", "--yes", "--json"]);
    assert_eq!((asked.code, asked.json()["waiting"].as_u64()), (5, Some(1)), "{asked:?}");
    let waiting = grange.run(&["repair", "ls", "--json"]).ok().json();
    let id = waiting[0]["id"].as_str().unwrap().to_owned();
    olga(&["repair", "confirm", &id]).fails(4, &["second person"]);
    assert_eq!(std::fs::read(&bad).unwrap(), b"other bytes");
    grange.run(&["repair", "confirm", &id]).ok();
    assert!(same(&grange.path("some.warc"), &bad));
    assert_eq!(audit(&grange, 0), [6, 0, 0]);
    grange.run(&["repair", "confirm", "nonsense"]).fails(3, &["nonsense"]);
    assert_eq!(node.stop(), 0);
}

#[test]
fn a_record_is_given_by_its_place() {
    let grange = single();
    let date = warc::Date::from("2026-01-02T03:04:05Z".parse::<jiff::Timestamp>().unwrap());
    let mut file = WarcFile::create(grange.path("w.warc.gz"), &FileOptions::default(), date).unwrap();
    let mut write = |uri, body: &[u8]| {
        file.write(&mut NewRecord::resource(uri, date, "text/plain", body)).unwrap().offset
    };
    let (first, second) = (write("http://a.dk/1", b"one"), write("http://a.dk/2", b"and two"));
    file.close().unwrap();
    store(&grange, &["w.warc.gz"]);
    for (offset, uri, body) in [(first, "http://a.dk/1", "one"), (second, "http://a.dk/2", "and two")] {
        let record = grange.run(&["record", "w.warc.gz", &offset.to_string()]).ok().stdout;
        assert!(record.starts_with("WARC/1.1\r\n"), "{record}");
        assert!(record.contains(&format!("WARC-Target-URI: {uri}\r\n")), "{record}");
        assert!(record.trim_end().ends_with(&format!("\r\n\r\n{body}")), "{record}");
    }
    grange.run(&["record", "w.warc.gz", &(second + 1).to_string()]).fails(3, &["no record"]);
}

/// Everything by commands, without a node: the log is signed and witnessed all the same, and a third party can check.
#[test]
fn a_proof_is_checked_without_a_data_folder_and_a_changed_one_fails() {
    let grange = single();
    files(&grange);
    store(&grange, &["one.warc", "some.warc"]);
    let witness = std::fs::read_dir(grange.data().join("replicas/three")).unwrap();
    let witness = witness.map(|entry| entry.unwrap().path());
    let witness =
        witness.into_iter().find(|path| path.to_str().unwrap().contains("grange-witness-")).unwrap();
    let text = grange.run(&["audit", "prove", "some.warc"]).ok().stdout;
    let proof = grange.file("proof.json", &text);
    let forged = grange.file("forged.json", &text.replace("\\\"size\\\":70000", "\\\"size\\\":70001"));
    assert_ne!(std::fs::read(&proof).unwrap(), std::fs::read(&forged).unwrap());
    let elsewhere = tempfile::tempdir().unwrap();
    let check = |args: &[&str]| {
        crate::harness::run(elsewhere.path(), &[&["audit", "check-proof", "--json"], args].concat())
    };
    let [proof, forged, witness] = [&proof, &forged, &witness].map(|path| path.to_str().unwrap());
    let checked = check(&[proof, "--witness", witness]).ok().json();
    assert_eq!(
        (&checked["holds"], &checked["records"][0]["size"]),
        (&true.into(), &70_000.into()),
        "{checked}"
    );
    let key = checked["public_key"].as_str().unwrap();
    check(&[proof, "--key", key]).ok();
    let other = if key.starts_with('0') { key.replacen('0', "1", 1) } else { format!("0{}", &key[1..]) };
    assert_eq!(check(&[proof, "--key", &other]).code, 1);
    assert_eq!(check(&[forged]).code, 1);
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0, "nothing was made");
    grange.run(&["audit", "verify-log"]).ok();
}

#[test]
fn a_replica_that_the_settings_forgot_keeps_the_node_from_starting() {
    let grange = single();
    files(&grange);
    store(&grange, &["one.warc"]);
    let file = grange.file("two.toml", "[archive.replicas.one]\nkind = \"bitarchive\"\n");
    grange.run(&["--settings", file.to_str().unwrap(), "up"]).fails(1, &["three", "two"]);
}

/// Two machines on one PostgreSQL, each with one of the two replicas on its disks and the other on its peer's.
#[tokio::test]
async fn replicas_on_two_nodes_are_filled_from_either_and_heal() {
    let Some(database) = grange_testkit::TestDatabase::create().await else { return };
    let ports = grange_testkit::ReservedPorts::new(2);
    let machine = |own: usize| {
        let place = |replica: usize, name: &str| {
            if replica == own {
                format!("file:replicas/{name}")
            } else {
                format!("peer://{}/{name}", ports[replica])
            }
        };
        let settings = format!(
            "[archive.replicas.one]\nat = [{{ url = \"{}\", min_space_left = \"1MB\" }}]\n\
             [archive.replicas.two]\nat = [{{ url = \"{}\", min_space_left = \"1MB\" }}]\n\
             [archive]\nretry_first = \"100ms\"\nretry_most = \"200ms\"\n",
            place(0, "one"),
            place(1, "two")
        );
        let (db, listen) = (format!("db.url={}", database.url), format!("node.listen={}", ports[own]));
        let grange = Grange::with(&[&db, "bus.url=postgres:", &listen]);
        std::fs::create_dir_all(grange.data().join("secrets")).unwrap();
        std::fs::write(grange.data().join("grange.toml"), settings).unwrap();
        std::fs::write(
            grange.data().join("secrets/node.token"),
            "shared by both machines, and long enough\n",
        )
        .unwrap();
        grange
    };
    let (one, two) = (machine(0), machine(1));
    one.run(&["db", "migrate"]).ok();
    let (first, second) = (one.up(), two.up());
    let names = files(&one);
    store(&one, &names[..2]);
    for name in &names[..2] {
        assert!(same(&one.path(name), &two.data().join(format!("replicas/two/filedir/{name}"))), "{name}");
    }
    let dest = two.path("back");
    two.run(&["get", names[1], dest.to_str().unwrap()]).ok();
    assert!(same(&one.path(names[1]), &dest));
    assert_eq!(audit(&two, 0), [4, 0, 0]);

    // One machine is away: the other takes the file, says what is not proven, and it heals when the machine is back.
    assert_eq!(second.stop(), 0);
    let ended = one.run(&["store", "--json", one.path(names[3]).to_str().unwrap()]);
    assert_eq!(ended.code, 5, "{ended:?}");
    assert_eq!(ended.json()[0]["unproven"][0]["replica"], "two");
    let second = two.up();
    let copy = two.data().join(format!("replicas/two/filedir/{}", names[3]));
    grange_testkit::until("the file reaches the machine that was away", || async { copy.exists() }).await;
    assert!(same(&one.path(names[3]), &copy));
    assert_eq!((first.stop(), second.stop()), (0, 0));
}
