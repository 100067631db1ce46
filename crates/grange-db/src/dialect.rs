//! What SQLite and PostgreSQL say differently. Everything else is written once.

use std::sync::OnceLock;

/// The engine whose words are to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    fn words(self) -> [(&'static str, &'static str); 4] {
        match self {
            Self::Sqlite => [
                // One machine, one clock: the injected one, always bound as the first parameter.
                ("{now}", "$1"),
                // The one writer needs no row locks.
                ("{skip_locked}", ""),
                ("{for_update}", ""),
                ("{for_share}", ""),
            ],
            Self::Postgres => [
                // Many machines: leases are judged by the server's clock alone. Not now(), which stands still
                // within a transaction; and in a subquery, so that it is asked once per statement and an index can be
                // searched by it.
                ("{now}", "(SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"),
                ("{skip_locked}", "FOR UPDATE SKIP LOCKED"),
                // A row that decides is held until the commit: others who change it wait, and then see what was done.
                ("{for_update}", "FOR UPDATE"),
                ("{for_share}", "FOR SHARE"),
            ],
        }
    }
}

/// A statement for both engines. `{now}` is the time leases are judged by: a statement that uses it binds the
/// injected clock's time as `$1`, which PostgreSQL ignores.
pub(crate) struct Sql {
    template: &'static str,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl Sql {
    pub(crate) const fn new(template: &'static str) -> Self {
        Self { template, sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    pub(crate) fn on(&'static self, dialect: Dialect) -> &'static str {
        let cell = match dialect {
            Dialect::Sqlite => &self.sqlite,
            Dialect::Postgres => &self.postgres,
        };
        cell.get_or_init(|| {
            let mut text = self.template.to_owned();
            for (word, said) in dialect.words() {
                text = text.replace(word, said);
            }
            text
        })
    }
}
