//! Whom a rule is for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::network::{Network, NetworkError};

/// Readers that a rule is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Audience {
    /// Those whose account works at the archive: every role but `viewer`.
    Staff,
    /// Those whose account has this role.
    Role(String),
    /// One user by name; `*` is everybody who is signed in.
    User(String),
    /// Those in a network.
    Network(String),
}

/// A text that names no audience.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownAudience {
    #[error("\"{0}\" is not an audience: write staff, role:NAME, user:NAME or network:192.0.2.0/24")]
    Form(String),
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl FromStr for Audience {
    type Err = UnknownAudience;

    fn from_str(text: &str) -> Result<Self, UnknownAudience> {
        let form = || UnknownAudience::Form(text.to_owned());
        match text.split_once(':').map(|(kind, name)| (kind, name.trim())) {
            None if text == "staff" => Ok(Self::Staff),
            Some((_, "")) | None => Err(form()),
            Some(("role", name)) => Ok(Self::Role(name.to_lowercase())),
            Some(("user", name)) => Ok(Self::User(name.to_lowercase())),
            Some(("network", network)) => {
                network.parse::<Network>()?;
                Ok(Self::Network(network.to_owned()))
            }
            Some(_) => Err(form()),
        }
    }
}

impl TryFrom<String> for Audience {
    type Error = UnknownAudience;

    fn try_from(text: String) -> Result<Self, UnknownAudience> {
        text.parse()
    }
}

impl From<Audience> for String {
    fn from(audience: Audience) -> Self {
        audience.to_string()
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Staff => f.write_str("staff"),
            Self::Role(name) => write!(f, "role:{name}"),
            Self::User(name) => write!(f, "user:{name}"),
            Self::Network(network) => write!(f, "network:{network}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audiences_are_read_as_they_are_written() {
        for text in
            ["staff", "role:curator", "user:anna", "user:*", "network:192.0.2.0/24", "network:2001:db8::/32"]
        {
            assert_eq!(text.parse::<Audience>().unwrap().to_string(), text);
        }
        assert_eq!("user:Anna".parse(), Ok(Audience::User("anna".to_owned())));
        for text in ["", "everyone", "role:", "user: ", "network:10.0.0.0/99", "group:x", "Staff"] {
            assert!(text.parse::<Audience>().is_err(), "{text}");
        }
    }
}
