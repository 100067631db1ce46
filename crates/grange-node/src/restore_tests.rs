use std::sync::Mutex;

use grange_model::account::Role;

use super::*;

/// Which of the next moves of a file fail; no file system refuses them for real.
static TO_FAIL: Mutex<Vec<(PathBuf, Vec<bool>)>> = Mutex::new(Vec::new());

/// Whether this move is to fail.
pub(super) fn fail(path: &Path) -> io::Result<()> {
    let mut to_fail = TO_FAIL.lock().unwrap();
    let moves = to_fail.iter_mut().find(|(one, _)| one == path).map(|(_, moves)| moves);
    let fails = moves.filter(|moves| !moves.is_empty()).is_some_and(|moves| moves.remove(0));
    if fails { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
}

fn actor() -> Actor {
    Actor::new("anna", "cli")
}

async fn open_at(path: &Path) -> Db {
    open(&Settings::default(), path, &Clock::system()).await.unwrap()
}

async fn add(db: &Db, name: &str) {
    let new = grange_db::NewUser { name: name.parse().unwrap(), role: Role::Viewer, password_hash: None };
    db.users().create(new, &actor()).await.unwrap();
}

async fn names(db: &Db) -> Vec<String> {
    db.users().list().await.unwrap().into_iter().map(|user| user.name.to_string()).collect()
}

/// A data folder whose newest row stands only in the log, and a backup from before.
async fn data_folder(root: &Path) -> (PathBuf, PathBuf) {
    let (live, data, backup) = (root.join("live"), root.join("data"), root.join("backup.db"));
    for folder in [&live, &data] {
        fs::create_dir(folder).unwrap();
    }
    let db = open_at(&live.join("grange.db")).await;
    add(&db, "anna").await;
    db.backup_to(&backup).await.unwrap();
    add(&db, "berta").await;
    // As a killed node leaves it.
    for end in ["", "-wal"] {
        fs::copy(live.join(format!("grange.db{end}")), data.join(format!("grange.db{end}"))).unwrap();
    }
    db.close().await;
    assert!(fs::metadata(data.join("grange.db-wal")).unwrap().len() > 0);
    (data, backup)
}

/// The databases that were kept beside that of the folder.
fn kept(data: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let is_kept = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.contains(".replaced-") && name.ends_with('Z')
    };
    paths.filter(is_kept).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_fails_at_any_move_loses_no_row_of_the_database_that_is_there() {
    // The exchange and the rename in its stead; the exchange alone; the rename that keeps the old one; nothing.
    for (moves, failed) in
        [(vec![true, true], true), (vec![true], false), (vec![false, true], true), (vec![], false)]
    {
        let root = tempfile::tempdir().unwrap();
        let (data, backup) = data_folder(root.path()).await;
        let database = data.join("grange.db");
        TO_FAIL.lock().unwrap().push((data.join("grange.db.restored"), moves.clone()));
        let restored = restore_database(&Settings::default(), &data, &backup, false, &actor()).await;
        assert_eq!(restored.is_err(), failed, "{restored:?}");
        let db = open_at(&database).await;
        assert_eq!(names(&db).await, if failed { vec!["anna", "berta"] } else { vec!["anna"] }, "{moves:?}");
        add(&db, "carl").await;
        // Kept for itself: whatever is written to the one is not in the other.
        for kept in kept(&data) {
            let old = open_at(&kept).await;
            assert_eq!(names(&old).await, ["anna", "berta"], "{moves:?}");
            old.close().await;
        }
        assert!(failed || kept(&data).len() == 1);
        add(&db, "dora").await;
        db.close().await;
        let db = open_at(&database).await;
        assert_eq!(names(&db).await.last().map(String::as_str), Some("dora"));
        db.close().await;
        assert!(!beside(&database, ".restored").exists() && !beside(&database, ".restoring").exists());
    }
}

/// Neither the file nor its log can be read by SQLite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_be_opened_is_kept_with_its_log_and_has_it_still_after_an_error() {
    for failed in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let (data, backup) = data_folder(root.path()).await;
        let (database, log) = (data.join("grange.db"), data.join("grange.db-wal"));
        let torn = vec![7; 10_000];
        fs::write(&database, &torn).unwrap();
        fs::write(&log, vec![8; 5_000]).unwrap();
        TO_FAIL.lock().unwrap().push((data.join("grange.db.restored"), vec![failed]));
        let restored = restore_database(&Settings::default(), &data, &backup, false, &actor()).await;
        assert_eq!(restored.is_err(), failed, "{restored:?}");
        let [kept] = &kept(&data)[..] else { panic!("one is kept") };
        assert_eq!(fs::read(kept).unwrap(), torn);
        assert_eq!(fs::read(&database).unwrap() == torn, failed);
        // SQLite itself may have thrown the log away when it looked at it; nobody else does.
        let kept_log = fs::read(beside(kept, "-wal")).ok();
        assert_eq!(fs::read(&log).ok(), kept_log.filter(|_| failed));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_restored_only_into_a_data_folder_an_empty_one_or_a_new_one_that_was_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let (_, backup) = data_folder(root.path()).await;
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("photos")).unwrap();
    fs::write(at("photos/a.jpg"), "x").unwrap();
    fs::create_dir(at("empty")).unwrap();
    fs::create_dir_all(at("moved/secrets")).unwrap();
    for (name, new, refused) in [
        ("typo", false, Some("--new")),
        ("photos", false, Some("not a data folder")),
        ("photos", true, Some("not a data folder")),
        ("empty", false, None),
        ("moved", false, None),
        ("made", true, None),
    ] {
        let restored = restore_database(&Settings::default(), &at(name), &backup, new, &actor()).await;
        match refused {
            Some(words) => assert!(restored.unwrap_err().to_string().contains(words), "{name}"),
            None => assert!(restored.unwrap().database.exists(), "{name}"),
        }
    }
    assert!(!at("typo").exists());
    assert_eq!(fs::read_dir(at("photos")).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_is_no_backup_of_itself_by_any_name() {
    let root = tempfile::tempdir().unwrap();
    let (data, _) = data_folder(root.path()).await;
    let linked = root.path().join("linked.db");
    fs::hard_link(data.join("grange.db"), &linked).unwrap();
    let error = restore_database(&Settings::default(), &data, &linked, false, &actor()).await.unwrap_err();
    assert!(matches!(error, RestoreError::Itself { .. }), "{error}");
}
