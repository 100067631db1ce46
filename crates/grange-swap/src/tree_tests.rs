use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;

use super::*;

struct Bed {
    tree: Tree,
    folder: tempfile::TempDir,
}

fn bed() -> Bed {
    bed_with(false)
}

fn bed_with(sums_in_files: bool) -> Bed {
    let folder = tempfile::tempdir().unwrap();
    Partition::init(folder.path(), "test").unwrap();
    let partition = Arc::new(Partition::open(folder.path()).unwrap().sums_in_files(sums_in_files));
    let tree = Tree::open(partition, Namespace::new("a/b").unwrap()).unwrap();
    Bed { tree, folder }
}

fn path(text: &str) -> LocalPath {
    LocalPath::new(text).unwrap()
}

fn put(tree: &Tree, name: &str, bytes: &[u8]) -> Published {
    let name = path(name);
    if let Some(parent) = name.parent() {
        tree.make_directory(&parent).unwrap();
    }
    let mut staged = tree.stage().unwrap();
    staged.file.write_all(bytes).unwrap();
    staged.seal(&Sum::of(bytes), Some(1_000_000_000)).unwrap();
    let published = tree.publish(&staged, &name, bytes.len() as u64).unwrap();
    tree.sync_parent(&name).unwrap();
    published
}

#[test]
fn a_file_lies_on_disk_as_it_was_sent() {
    let Bed { tree, folder } = bed();
    assert_eq!(put(&tree, "documents/project1/readme.txt", b"hello"), Published::New);
    let on_disk = folder.path().join("a/b/documents/project1/readme.txt");
    assert_eq!(fs::read(&on_disk).unwrap(), b"hello");
    let opened = tree.open_file("documents/project1/readme.txt").unwrap();
    assert_eq!((opened.size, opened.modified), (5, 1_000_000_000));
    assert_eq!(tree.counts(), (1, 5));
    let entries = tree.list(Some(&path("documents"))).unwrap().unwrap();
    assert_eq!(entries.len(), 1);
    assert!(entries[0].directory && entries[0].name == "project1");
    assert_eq!(tree.list(Some(&path("nothing"))).unwrap(), None);
}

#[test]
fn a_name_is_given_once() {
    let Bed { tree, folder: _folder } = bed();
    assert_eq!(put(&tree, "x", b"one"), Published::New);
    let Published::Taken(Found::File { size: 3, .. }) = put(&tree, "x", b"second") else { panic!() };
    tree.make_directory(&path("d/e")).unwrap();
    assert_eq!(put(&tree, "d", b"file"), Published::Taken(Found::Directory));
    assert_eq!(tree.make_directory(&path("x/y")).unwrap_err().kind(), ErrorKind::NotADirectory);
    assert_eq!(tree.find(&path("x/y")).unwrap(), Found::Nothing);
    assert_eq!(tree.find(&path("d")).unwrap(), Found::Directory);
}

#[test]
fn what_is_dropped_before_publishing_leaves_nothing() {
    let Bed { tree, folder } = bed();
    let mut staged = tree.stage().unwrap();
    staged.file.write_all(b"half").unwrap();
    drop(staged);
    assert_eq!(fs::read_dir(folder.path().join(".swap-tmp")).unwrap().count(), 0);
    assert_eq!(tree.list(None).unwrap().unwrap(), []);
}

#[test]
fn links_lead_nowhere() {
    let Bed { tree, folder } = bed();
    let root = folder.path().join("a/b");
    fs::write(folder.path().join("secret"), "s").unwrap();
    symlink("../../secret", root.join("file")).unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    fs::create_dir(root.join("real")).unwrap();
    symlink("real", root.join("inner")).unwrap();
    for name in ["file", "etc/passwd", "inner", "inner/x"] {
        assert_eq!(tree.open_file(name).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        assert!(tree.open_cached(name).is_err(), "{name}");
    }
    assert!(tree.make_directory(&path("etc/x")).is_err());
    let mut foreign = Vec::new();
    tree.walk(|met| {
        if let Met::Foreign(name) = met {
            foreign.push(name);
        }
        true
    })
    .unwrap();
    foreign.sort();
    assert_eq!(foreign, ["etc", "file", "inner"]);
}

#[test]
fn removed_files_go_to_the_attic_and_none_is_lost() {
    let Bed { tree, folder } = bed();
    for bytes in [b"one", b"two"] {
        put(&tree, "d/x", bytes);
        tree.to_attic(&path("d/x"), "2026-11-16", 3).unwrap();
        assert_eq!(tree.find(&path("d/x")).unwrap(), Found::Nothing);
    }
    let attic = folder.path().join(".swap-attic/2026-11-16/a/b/d");
    let mut kept: Vec<_> =
        fs::read_dir(attic).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    kept.sort();
    assert_eq!(kept, [b"one", b"two"]);
    assert_eq!(tree.counts(), (0, 0));
}

#[test]
fn an_emptied_tree_leaves_no_directories() {
    let Bed { tree, folder } = bed();
    put(&tree, "d/e/x", b"x");
    tree.prune().unwrap();
    assert!(folder.path().join("a/b/d/e/x").exists());
    tree.unlink(&path("d/e/x"), 1).unwrap();
    tree.prune().unwrap();
    assert!(!folder.path().join("a").exists());
}

#[test]
fn checksums_beside_the_files_follow_them() {
    let Bed { tree, folder } = bed_with(true);
    assert_eq!(put(&tree, "d/x", b"one"), Published::New);
    assert_eq!(put(&tree, "back\\slash", b"two"), Published::New);
    // The loser of a name does not leave its checksum there.
    assert!(matches!(put(&tree, "d/x", b"other"), Published::Taken(Found::File { .. })));
    let kept = |name: &str| tree.open_file(name).unwrap().sum;
    assert_eq!((kept("d/x"), kept("back\\slash")), (Some(Sum::of(b"one")), Some(Sum::of(b"two"))));
    assert_eq!(tree.open_cached("d/x").unwrap_err().kind(), ErrorKind::WouldBlock);
    // As the tool of the trade writes it.
    let check = "find .swap-sums -type f -exec cat {} + | sha512sum --check --strict --quiet";
    let check = || std::process::Command::new("sh").args(["-c", check]).current_dir(folder.path()).status();
    assert!(check().unwrap().success());

    tree.to_attic(&path("d/x"), "2026-11-16", 3).unwrap();
    let beside = |name: &str| folder.path().join(".swap-sums").join(name);
    assert!(!beside("a/b/d/x").exists() && beside(".swap-attic/2026-11-16/a/b/d/x").exists());
    assert!(check().unwrap().success());
    assert_eq!(put(&tree, "d/x", b"three"), Published::New);
    assert_eq!(kept("d/x"), Some(Sum::of(b"three")));
    tree.unlink(&path("d/x"), 5).unwrap();
    assert!(!beside("a/b/d/x").exists());
    tree.unlink(&path("back\\slash"), 3).unwrap();
    tree.prune().unwrap();
    assert!(!beside("a").exists());
}
