//! Statements about many rows at once: a list travels as one JSON parameter, which each engine unpacks in its words.

use crate::act::{Query, Tx};
use crate::dialect::{Dialect, Sql};

/// One statement in the words of each engine.
pub(crate) struct Bulk {
    pub(crate) sqlite: Sql,
    pub(crate) postgres: Sql,
}

impl Bulk {
    pub(crate) fn on<'q>(&'static self, tx: &Tx<'_>) -> Query<'q> {
        match tx.dialect {
            Dialect::Sqlite => tx.sql(&self.sqlite),
            Dialect::Postgres => tx.sql(&self.postgres),
        }
    }
}

/// A statement with a list of numbers in it: `of_ids!("… IN (", "$2", ") …")`.
macro_rules! of_ids {
    ($before:expr, $parameter:literal, $after:expr) => {
        $crate::bulk::Bulk {
            sqlite: $crate::dialect::Sql::new(concat!(
                $before,
                "SELECT value FROM json_each(",
                $parameter,
                ")",
                $after
            )),
            postgres: $crate::dialect::Sql::new(concat!(
                $before,
                "SELECT value::bigint FROM jsonb_array_elements_text(",
                $parameter,
                "::jsonb)",
                $after
            )),
        }
    };
}
pub(crate) use of_ids;

/// The list as that parameter.
pub(crate) fn ids(ids: &[i64]) -> String {
    let mut text = String::with_capacity(ids.len() * 8 + 2);
    text.push('[');
    for (index, id) in ids.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&id.to_string());
    }
    text.push(']');
    text
}
