//! Names from a fixed list: the error for a wrong one says which name was probably meant.

/// A name that is not on its list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{given}\" is not a {noun}{}: choose from {}", hint(*.nearest), .known.join(", "))]
pub struct UnknownName {
    pub given: String,
    pub noun: &'static str,
    pub nearest: Option<&'static str>,
    pub known: Vec<&'static str>,
}

impl UnknownName {
    pub(crate) fn new(given: &str, noun: &'static str, known: Vec<&'static str>) -> Self {
        let lower = given.to_lowercase();
        let nearest = known
            .iter()
            .map(|name| (strsim::damerau_levenshtein(&lower, name), *name))
            // More than a third of the letters wrong is no longer a slip of the finger.
            .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name);
        Self { given: given.to_owned(), noun, nearest, known }
    }
}

fn hint(nearest: Option<&'static str>) -> String {
    nearest.map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default()
}

/// An enum whose values have fixed lower-case names: `ALL`, `as_str`, `Display`, `FromStr`, serde and JSON schema.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident, $noun:literal { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<Self, $crate::UnknownName> {
                let found = Self::ALL.iter().copied().find(|value| value.as_str() == text);
                found.ok_or_else(|| {
                    $crate::UnknownName::new(text, $noun, Self::ALL.iter().map(|value| value.as_str()).collect())
                })
            }
        }
    };
}
pub(crate) use named;
