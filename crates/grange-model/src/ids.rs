//! Ids: one type per noun, so that a token's id cannot be handed where a user's is wanted.
//!
//! All are UUIDs of version 7, written in lower case with hyphens: they sort by the time they were made, which keeps
//! new rows together in an index and listings in order.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A text that is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{given}\" is not the id of a {noun}: ids look like 0192f3c4-7b1a-7c3e-9f00-2a6d1c5e8b47")]
pub struct IdError {
    given: String,
    noun: &'static str,
}

macro_rules! id {
    ($name:ident, $noun:literal) => {
        #[doc = concat!("The id of a ", $noun, ".")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, later in order than those made before it on this machine.
            #[allow(clippy::new_without_default)] // A default that differs each time would surprise.
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Uuid::parse_str(text).map(Self).map_err(|_| IdError { given: text.to_owned(), noun: $noun })
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": "uuid" })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

id!(UserId, "user");
id!(TokenId, "token");
id!(SessionId, "session");
id!(NodeId, "node");
id!(WorkId, "piece of work");
id!(AuditId, "check");
id!(RepairId, "repair");
id!(CollectionId, "collection");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_written_and_later_ones_sort_later() {
        let ids: Vec<UserId> = (0..100).map(|_| UserId::new()).collect();
        assert!(ids.is_sorted());
        let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
        assert!(texts.is_sorted(), "the text sorts as the id does");
        assert_eq!(texts[0].parse::<UserId>().unwrap(), ids[0]);
        assert_eq!(serde_json::to_string(&ids[0]).unwrap(), format!("\"{}\"", texts[0]));
    }

    #[test]
    fn a_text_that_is_no_id_is_refused_by_noun() {
        let error = "anna".parse::<TokenId>().unwrap_err().to_string();
        assert!(error.starts_with("\"anna\" is not the id of a token"), "{error}");
    }
}
