//! URLs and settings as people write them.

use std::path::Path;

use crate::{Error, Settings, Target};

fn read(url: &str) -> Result<Target, Error> {
    Target::read(&Settings { url: url.to_owned(), ..Settings::default() }, Path::new("/data"))
}

#[test]
fn urls_name_the_database_as_people_expect() {
    for (url, shown) in [
        ("sqlite:grange.db", "the database file /data/grange.db"),
        ("sqlite:sub/x.db", "the database file /data/sub/x.db"),
        ("sqlite:/var/x.db", "the database file /var/x.db"),
        ("sqlite:///var/x.db", "the database file /var/x.db"),
        ("postgres://u:p%40ss@db:5433/grange?sslmode=require", "PostgreSQL at postgres://u@db:5433/grange"),
        ("postgresql://db/grange", "PostgreSQL at postgresql://db/grange"),
    ] {
        let target = read(url).unwrap();
        assert_eq!(target.to_string(), shown);
        assert!(!format!("{target:?}").contains("p%40ss"));
    }
}

#[test]
fn wrong_urls_are_refused_with_the_reason_and_without_the_password() {
    for (url, part) in [
        ("grange.db", "it starts with neither sqlite: nor postgres:"),
        ("mysql://u:secret@h/x", "\"mysql://u:***@h/x\" cannot be used: it starts with neither"),
        ("sqlite:", "the path of a file must follow"),
        ("sqlite::memory:", "the path of a file must follow"),
        ("sqlite:x.db?mode=ro", "without options"),
        ("postgres://u:secret@h", "the name of the database must follow the host"),
        ("postgres://u:secret@h:port/x", "invalid port number"),
    ] {
        let error = read(url).unwrap_err();
        assert_eq!(error.code(), "db-bad-url");
        let text = error.to_string();
        assert!(text.contains(part), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn the_password_comes_from_its_file() {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::write(dir.path().join("secret"), "p@ss:w/rd\nsecond line\n").unwrap();
    let mut settings = Settings {
        url: "postgres://u@h/x".into(),
        password_file: Some("secret".into()),
        ..Settings::default()
    };
    let target = Target::read(&settings, dir.path()).unwrap();
    let Target::Postgres { url } = &target else { panic!() };
    assert_eq!(url.password(), Some("p%40ss%3Aw%2Frd"));
    assert_eq!(target.to_string(), "PostgreSQL at postgres://u@h/x");
    settings.password_file = Some("missing".into());
    let error = Target::read(&settings, dir.path()).unwrap_err();
    assert_eq!(error.code(), "db-secret-unreadable");
    assert!(error.to_string().contains("/missing: make the file of db.password_file readable"), "{error}");
}

#[test]
fn the_settings_read_as_documented() {
    let settings: Settings =
        serde_json::from_str(r#"{ "url": "sqlite:x.db", "backup_every": "0s" }"#).unwrap();
    assert_eq!(
        settings,
        Settings {
            url: "sqlite:x.db".into(),
            backup_every: grange_base::Period::from_secs(0),
            ..Settings::default()
        }
    );
    let error = serde_json::from_str::<Settings>(r#"{ "urll": "x" }"#).unwrap_err();
    assert!(error.to_string().contains("unknown field `urll`"), "{error}");
}
