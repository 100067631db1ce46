//! The pictures in `schema/` show the tables as the migrations leave them.
//! `UPDATE_SCHEMA=1 scripts/with-services cargo test -p grange-db schema` redraws them.

use std::fmt::Write as _;
use std::path::Path;

use sqlx::any::AnyRow;

use crate::conformance::Bed;
use crate::row::Columns;

fn compare(engine: &str, drawn: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schema/{engine}.sql"));
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == drawn, "schema/{engine}.sql is stale: run with UPDATE_SCHEMA=1\n{drawn}");
}

async fn rows(bed: &Bed, sql: &'static str) -> Vec<AnyRow> {
    let read = bed
        .db
        .read("read the schema", sql, |tx, sql| Box::pin(async move { tx.rows(sqlx::query(*sql)).await }));
    read.await.unwrap()
}

#[tokio::test]
async fn the_picture_of_sqlite_is_true() {
    let bed = Bed::sqlite().await;
    let mut drawn = "-- Drawn from the migrations; do not edit.\n".to_owned();
    for row in rows(
        &bed,
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
         ORDER BY tbl_name, type DESC, name",
    )
    .await
    {
        writeln!(drawn, "\n{};", row.text("sql").unwrap()).unwrap();
    }
    compare("sqlite", &drawn);
}

#[tokio::test]
async fn the_picture_of_postgres_is_true() {
    let Some(bed) = Bed::postgres().await else { return };
    let mut drawn = "-- Drawn from the migrations; do not edit.\n".to_owned();
    let mut table = String::new();
    for row in rows(
        &bed,
        "SELECT c.table_name::text AS t, c.column_name::text AS c, upper(c.data_type::text) AS d,
             c.collation_name::text AS k, c.is_nullable::text AS n, c.column_default::text AS e,
             c.is_identity::text AS i
         FROM information_schema.columns c WHERE c.table_schema = current_schema()
         ORDER BY c.table_name, c.ordinal_position",
    )
    .await
    {
        let name = row.text("t").unwrap();
        if name != table {
            let _ = write!(drawn, "\n-- table {name}\n");
            table = name;
        }
        let _ = write!(drawn, "{} {}", row.text("c").unwrap(), row.text("d").unwrap());
        if let Some(collation) = row.text_or_none("k").unwrap() {
            let _ = write!(drawn, " COLLATE \"{collation}\"");
        }
        if row.text("n").unwrap() == "NO" {
            drawn.push_str(" NOT NULL");
        }
        if let Some(default) = row.text_or_none("e").unwrap() {
            let _ = write!(drawn, " DEFAULT {default}");
        }
        if row.text("i").unwrap() == "YES" {
            drawn.push_str(" IDENTITY");
        }
        drawn.push('\n');
    }
    drawn.push('\n');
    for row in rows(
        &bed,
        "SELECT indexdef::text AS sql FROM pg_catalog.pg_indexes WHERE schemaname = current_schema()
         ORDER BY tablename, indexname",
    )
    .await
    {
        let _ = writeln!(drawn, "{};", row.text("sql").unwrap().replace(" public.", " "));
    }
    compare("postgres", &drawn);
}
