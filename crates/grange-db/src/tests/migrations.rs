//! Migrations: older databases are brought forward, newer and changed ones refused.

use std::fs;

use grange_base::Clock;
use grange_testkit::TestDatabase;
use tempfile::TempDir;

use crate::migrate::{STEPS, Step};
use crate::{Db, Settings};

/// What the next release might bring.
const NEXT: Step = Step {
    number: 9999,
    name: "9999_next",
    sqlite: "CREATE TABLE next (id TEXT NOT NULL PRIMARY KEY) STRICT;",
    postgres: "CREATE TABLE next (id TEXT NOT NULL PRIMARY KEY);",
};

fn next_release() -> Vec<Step> {
    STEPS.iter().copied().chain([NEXT]).collect()
}

fn newest() -> i64 {
    STEPS.last().unwrap().number
}

fn names(steps: &[Step]) -> Vec<&'static str> {
    steps.iter().map(|step| step.name).collect()
}

fn copies(dir: &TempDir) -> Vec<String> {
    let names =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.contains("before")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_older_file_is_migrated_after_a_copy() {
    let (dir, settings) = (TempDir::new().unwrap(), Settings::default());
    let clock = Clock::test("2026-03-04T05:06:07.089Z".parse().unwrap()).0;
    let old = Db::open_with(&settings, dir.path(), clock.clone(), &STEPS[..2]).await.unwrap();
    old.audit().append(crate::Record::default(), &grange_model::Actor::system()).await.unwrap();
    old.close().await;
    assert_eq!(copies(&dir), Vec::<String>::new(), "a new file needs no copy");
    let status = Db::status(&settings, dir.path()).await.unwrap();
    assert_eq!((status.engine.as_str(), status.step, status.step_known), ("sqlite", 2, newest()));
    assert_eq!(status.pending, names(&STEPS[2..]));
    let new = Db::open(&settings, dir.path(), clock.clone()).await.unwrap();
    assert_eq!(new.work().counts("x").await.unwrap().ready, 0);
    assert_eq!(new.audit().list(&crate::AuditFilter::default()).await.unwrap().len(), 1);
    assert_eq!(copies(&dir), ["grange.db.before-0003-20260304T050607.089Z"]);
    new.close().await;
    // The copy is the older database, whole.
    let url = format!("sqlite:{}", copies(&dir)[0]);
    let status = Db::status(&Settings { url, ..Settings::default() }, dir.path()).await.unwrap();
    assert_eq!(status.step, 2);
    // Opening again migrates and copies nothing.
    Db::open(&settings, dir.path(), clock.clone()).await.unwrap().close().await;
    assert_eq!(copies(&dir).len(), 1);
    assert_eq!(Db::migrate(&settings, dir.path(), &clock).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_newer_file_is_refused_and_kept() {
    let (dir, settings) = (TempDir::new().unwrap(), Settings::default());
    let newer = Db::open_with(&settings, dir.path(), Clock::system(), &next_release()).await.unwrap();
    newer.close().await;
    let before = fs::read(dir.path().join("grange.db")).unwrap();
    let error = Db::open(&settings, dir.path(), Clock::system()).await.unwrap_err();
    assert_eq!(error.code(), "db-newer");
    let text = error.to_string();
    let told = format!("was made by a newer Grange (step {}, this program knows {})", NEXT.number, newest());
    assert!(text.contains(&told), "{text}");
    assert_eq!(Db::status(&settings, dir.path()).await.unwrap_err().code(), "db-newer");
    assert_eq!(fs::read(dir.path().join("grange.db")).unwrap(), before);
    assert_eq!(copies(&dir), Vec::<String>::new());
}

#[tokio::test]
async fn a_changed_step_is_refused() {
    let (dir, settings) = (TempDir::new().unwrap(), Settings::default());
    Db::open(&settings, dir.path(), Clock::system()).await.unwrap().close().await;
    let mut edited = STEPS.to_vec();
    edited[1].sqlite = "CREATE TABLE users (id TEXT);";
    let error = Db::open_with(&settings, dir.path(), Clock::system(), &edited).await.unwrap_err();
    assert_eq!(error.code(), "db-migration-changed");
    assert!(error.to_string().starts_with("step 2 (0002_people) of the database file "), "{error}");
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_one_before() {
    let (dir, settings) = (TempDir::new().unwrap(), Settings::default());
    let mut steps = next_release();
    steps[4].sqlite = "CREATE TABLE next (id TEXT); INSERT INTO nowhere VALUES (1);";
    let error = Db::open_with(&settings, dir.path(), Clock::system(), &steps).await.unwrap_err();
    assert_eq!(error.code(), "db-migration-failed");
    assert_eq!(Db::status(&settings, dir.path()).await.unwrap().step, 4);
    let db = Db::open_with(&settings, dir.path(), Clock::system(), &next_release()).await.unwrap();
    db.ping().await.unwrap();
}

#[tokio::test]
async fn postgres_is_migrated_only_when_told() {
    let Some(server) = TestDatabase::create().await else {
        return;
    };
    let (dir, clock) = (TempDir::new().unwrap(), Clock::system());
    let settings = Settings { url: server.url.clone(), ..Settings::default() };
    let error = Db::open(&settings, dir.path(), clock.clone()).await.unwrap_err();
    assert_eq!(error.code(), "db-unmigrated");
    let told = format!("is at step 0 and this program needs {}: run `grange db migrate`", newest());
    assert!(error.to_string().ends_with(&told), "{error}");
    let status = Db::status(&settings, dir.path()).await.unwrap();
    assert_eq!((status.engine.as_str(), status.step, status.pending.len()), ("postgres", 0, STEPS.len()));
    Db::migrate_with(&settings, dir.path(), &clock, &STEPS[..1]).await.unwrap();
    assert_eq!(Db::open(&settings, dir.path(), clock.clone()).await.unwrap_err().code(), "db-unmigrated");
    // Several at once: the steps are taken once.
    let (a, b, c) = tokio::join!(
        Db::migrate(&settings, dir.path(), &clock),
        Db::migrate(&settings, dir.path(), &clock),
        Db::migrate(&settings, dir.path(), &clock),
    );
    let mut taken = [a.unwrap(), b.unwrap(), c.unwrap()].concat();
    taken.sort();
    assert_eq!(taken, names(&STEPS[1..]));
    Db::open(&settings, dir.path(), clock.clone()).await.unwrap().ping().await.unwrap();
    // Newer, changed and foreign are refused as on SQLite.
    let newer = next_release();
    Db::migrate_with(&settings, dir.path(), &clock, &newer).await.unwrap();
    assert_eq!(Db::open(&settings, dir.path(), clock.clone()).await.unwrap_err().code(), "db-newer");
    assert_eq!(Db::migrate(&settings, dir.path(), &clock).await.unwrap_err().code(), "db-newer");
    let mut edited = newer.clone();
    edited[2].postgres = "SELECT 1";
    let error = Db::open_with(&settings, dir.path(), clock.clone(), &edited).await.unwrap_err();
    assert_eq!(error.code(), "db-migration-changed");
}

/// A repair that was confirmed by a release whose confirmed repairs had no row in `work`.
async fn confirm_in_the_old_way(settings: &Settings, dir: &TempDir) -> grange_model::RepairId {
    let before = STEPS.iter().position(|step| step.number == 18).unwrap();
    let clock = Clock::system();
    Db::migrate_with(settings, dir.path(), &clock, &STEPS[..before]).await.unwrap();
    let db = Db::open_with(settings, dir.path(), clock, &STEPS[..before]).await.unwrap();
    let one = vec![("one".parse().unwrap(), grange_model::ReplicaKind::Bitarchive)];
    db.replicas().declare(one).await.unwrap();
    let id = grange_model::RepairId::new();
    let statements = [
        "INSERT INTO files (name, size, checksum, checksums, created_at) VALUES ('f0', 1, 'md5=00', '{}', 0)".to_owned(),
        format!(
            "INSERT INTO repairs (id, file_id, replica_id, kind, state, asked_by, asked_at, confirmed_by, confirmed_at)
             SELECT '{id}', f.id, r.id, 'missing', 'confirmed', 'anna', 1, 'bert', 2 FROM files f, replicas r
             WHERE r.name = 'one'"
        ),
    ];
    for statement in statements {
        let run = db.write_one("prepare", statement, |tx, statement| {
            Box::pin(async move { tx.run(sqlx::query(sqlx::AssertSqlSafe(statement.clone()))).await })
        });
        assert_eq!(run.await.unwrap(), 1);
    }
    db.close().await;
    id
}

async fn it_is_performed(settings: &Settings, dir: &TempDir, id: grange_model::RepairId) {
    let clock = Clock::system();
    Db::migrate(settings, dir.path(), &clock).await.unwrap();
    let db = Db::open(settings, dir.path(), clock).await.unwrap();
    let lease = std::time::Duration::from_secs(60);
    let (row, claim) = db.repairs().claim("me", lease).await.unwrap().expect("somebody performs it");
    assert_eq!((row.id, row.confirmed_by.as_deref()), (id, Some("bert")));
    db.repairs().end(&claim, id, None, Vec::new()).await.unwrap();
    assert!(db.repairs().claim("me", lease).await.unwrap().is_none());
    db.close().await;
}

#[tokio::test]
async fn a_repair_that_an_older_release_confirmed_is_performed() {
    let (dir, settings) = (TempDir::new().unwrap(), Settings::default());
    let id = confirm_in_the_old_way(&settings, &dir).await;
    it_is_performed(&settings, &dir, id).await;
}

#[tokio::test]
async fn a_repair_that_an_older_release_confirmed_is_performed_on_postgres() {
    let Some(server) = TestDatabase::create().await else {
        return;
    };
    let (dir, settings) =
        (TempDir::new().unwrap(), Settings { url: server.url.clone(), ..Settings::default() });
    let id = confirm_in_the_old_way(&settings, &dir).await;
    it_is_performed(&settings, &dir, id).await;
}

#[test]
fn the_folders_and_the_list_hold_the_same_steps() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for engine in ["sqlite", "postgres"] {
        let files = fs::read_dir(root.join(engine)).unwrap();
        let mut names: Vec<_> = files.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let listed: Vec<_> = STEPS.iter().map(|step| format!("{}.sql", step.name)).collect();
        assert_eq!(names, listed, "{engine}");
    }
    assert!(STEPS.is_sorted_by_key(|step| step.number));
    for step in STEPS {
        assert!(step.name.starts_with(&format!("{:04}_", step.number)), "{}", step.name);
    }
}
