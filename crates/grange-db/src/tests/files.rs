//! SQLite files that cannot be opened are refused with a sentence, and left as they were.

use std::fs;
use std::path::Path;

use grange_base::{Clock, Period, Retry};
use grange_testkit::until;
use tempfile::TempDir;

use crate::conformance::{Bed, anna, named};
use crate::{Db, Error, NewUser, Settings};

async fn refused(dir: &Path, settings: &Settings) -> Error {
    Db::open(settings, dir, Clock::system()).await.expect_err("must be refused")
}

#[tokio::test]
async fn a_missing_file_is_made_and_a_missing_folder_is_not() {
    let dir = TempDir::new().unwrap();
    let db = Db::open(&Settings::default(), dir.path(), Clock::system()).await.unwrap();
    assert_eq!(db.file(), Some(dir.path().join("grange.db").as_path()));
    assert!(!db.is_shared());
    db.ping().await.unwrap();
    let settings = Settings { url: "sqlite:no/such/grange.db".into(), ..Settings::default() };
    let error = refused(dir.path(), &settings).await;
    assert_eq!(error.code(), "db-unreadable");
    assert!(error.to_string().contains("no/such/grange.db"), "{error}");
    assert!(!dir.path().join("no").exists());
}

#[tokio::test]
async fn a_path_with_strange_letters_is_a_path() {
    let dir = TempDir::new().unwrap();
    let name = "Ærø #1 100%25 'x' & y.db";
    let settings = Settings { url: format!("sqlite:{name}"), ..Settings::default() };
    let db = Db::open(&settings, dir.path(), Clock::system()).await.unwrap();
    assert_eq!(db.users().count().await.unwrap(), 0);
    assert!(dir.path().join(name).is_file());
    db.backup_to(&dir.path().join("copy 'of' it?.db")).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_kept() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("grange.db");
    let letter = "Dear archive, this is a letter and much longer than sixteen bytes.";
    fs::write(&path, letter).unwrap();
    let error = refused(dir.path(), &Settings::default()).await;
    assert_eq!(error.code(), "db-not-a-database");
    assert_eq!(fs::read_to_string(&path).unwrap(), letter);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was put beside it");
    // A folder in its place is none either.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(refused(dir.path(), &Settings::default()).await.code(), "db-unreadable");
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let bed = Bed::sqlite().await;
    for n in 0..200 {
        bed.user(&format!("user-{n}"), grange_model::Role::Viewer).await;
    }
    bed.db.close().await;
    let path = bed.dir.path().join("grange.db");
    let whole = fs::read(&path).unwrap();
    // Bits flipped in every page but the first.
    let mut damaged = whole.clone();
    for page in damaged.chunks_mut(4096).skip(1) {
        page[0..64].fill(0x5a);
    }
    fs::write(&path, &damaged).unwrap();
    let error = refused(bed.dir.path(), &Settings::default()).await;
    assert_eq!(error.code(), "db-damaged", "{error}");
    // Cut short.
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = refused(bed.dir.path(), &Settings::default()).await;
    assert_eq!(error.code(), "db-damaged", "{error}");
    // The header destroyed.
    let mut headless = whole.clone();
    headless[..16].fill(0);
    fs::write(&path, &headless).unwrap();
    assert_eq!(refused(bed.dir.path(), &Settings::default()).await.code(), "db-not-a-database");
    // The whole file again, and all is well.
    fs::write(&path, &whole).unwrap();
    assert_eq!(bed.again().await.users().count().await.unwrap(), 200);
}

#[tokio::test]
async fn another_programs_database_is_refused_and_kept() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("grange.db");
    sqlx::any::install_default_drivers();
    let target = crate::Target::Sqlite { path: path.clone().into() };
    let mut conn = crate::sqlite::connect_writer(&target, std::time::Duration::ZERO).await.unwrap();
    sqlx::query("CREATE TABLE recipes (name TEXT)").execute(&mut conn).await.unwrap();
    sqlx::Connection::close(conn).await.unwrap();
    let before = fs::read(&path).unwrap();
    let error = refused(dir.path(), &Settings::default()).await;
    assert_eq!(error.code(), "db-foreign");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_database_says_so_and_works_again_when_it_is_free() {
    let bed = Bed::sqlite().await;
    let settings = Settings { busy_timeout: Period::from_millis(20), ..Settings::default() };
    let patient = Db::open(&settings, bed.dir.path(), bed.clock.clone()).await.unwrap();
    let target = patient.0.target.clone();
    let mut other = crate::sqlite::connect_writer(&target, std::time::Duration::ZERO).await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let new = NewUser { name: named("berta"), role: grange_model::Role::Viewer, password_hash: None };
    let error = patient.users().create(new.clone(), &anna()).await.unwrap_err();
    assert_eq!((error.code(), error.retry()), ("db-locked", Retry::Soon));
    assert!(error.to_string().starts_with("cannot create the user: the database file "), "{error}");
    // Reading goes on.
    assert_eq!(patient.users().count().await.unwrap(), 0);
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    patient.users().create(new, &anna()).await.unwrap();
}

#[tokio::test]
async fn a_closed_database_says_so_after_doing_what_was_asked_before() {
    let bed = Bed::sqlite().await;
    let made: Vec<_> = (0..50)
        .map(|n| {
            let db = bed.db.clone();
            tokio::spawn(async move {
                db.work().offer(crate::Offer::new("job", n.to_string(), serde_json::json!(n))).await
            })
        })
        .collect();
    until("the first offer to be in", async || bed.db.work().counts("job").await.unwrap().ready > 0).await;
    bed.db.close().await;
    let mut kept = 0;
    for offered in made {
        match offered.await.unwrap() {
            Ok(_) => kept += 1,
            Err(error) => assert_eq!(error.code(), "db-closed"),
        }
    }
    let error = bed.db.users().count().await.unwrap_err();
    assert_eq!(error.code(), "db-closed");
    bed.db.close().await;
    assert_eq!(bed.again().await.work().counts("job").await.unwrap().ready, kept);
    assert!(!bed.dir.path().join("grange.db-wal").exists() || kept > 0);
}

#[tokio::test]
async fn a_file_that_was_removed_or_replaced_under_us_is_noticed_and_no_act_is_acknowledged() {
    for replaced in [false, true] {
        let dir = TempDir::new().unwrap();
        let open = async || Db::open(&Settings::default(), dir.path(), Clock::system()).await.unwrap();
        let (db, file) = (open().await, dir.path().join("grange.db"));
        let user =
            |name: &str| NewUser { name: named(name), role: grange_model::Role::Viewer, password_hash: None };
        db.users().create(user("before"), &anna()).await.unwrap();
        db.ping().await.unwrap();
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(dir.path().join(format!("grange.db{end}")));
        }
        if replaced {
            fs::write(&file, "").unwrap();
        }
        let errors = [
            db.ping().await.unwrap_err(),
            db.users().create(user("after"), &anna()).await.unwrap_err(),
            db.backup_to(&dir.path().join("copy.db")).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.code(), error.retry()), ("db-file-lost", Retry::No), "{error}");
            assert!(error.to_string().contains("grange restore BACKUP"), "{error}");
        }
        // Nothing was made in its place.
        assert_eq!(fs::metadata(&file).map(|file| file.len()).ok(), replaced.then_some(0));
        db.close().await;
    }
}
