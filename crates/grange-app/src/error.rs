//! Why an act was not done: a stable code to branch on, a sentence to read.

use grange_model::account::{Permission, Role, UserNameError};

/// What went wrong with an act.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{user} has the role {role}, which does not include {permission}; ask an admin")]
    Forbidden { user: String, role: Role, permission: Permission },
    #[error("log in first, or send a token with `Authorization: Bearer …`")]
    Unknown,
    #[error("name or password is wrong")]
    WrongPassword,
    #[error("there is no {noun} \"{name}\"")]
    NotFound { noun: &'static str, name: String },
    #[error(transparent)]
    UserName(#[from] UserNameError),
    #[error("a password has at least {chars_min} characters")]
    PasswordTooShort { chars_min: usize },
    #[error("a password has at most {bytes_max} bytes")]
    PasswordTooLong { bytes_max: usize },
    #[error("the password could not be hashed")]
    Hashing,
    #[error("a token needs a name of 1 to 100 characters that says what it is for")]
    TokenName,
    #[error("only somebody on the node's own machine can {what}; send the bytes instead")]
    NotLocal { what: &'static str },
    #[error("there is no record at offset {offset} of {name}: {reason}")]
    NoRecord { name: String, offset: u64, reason: String },
    #[error(transparent)]
    FileName(#[from] grange_model::file::FileNameError),
    #[error(transparent)]
    Archive(Box<grange_archive::Error>),
    #[error("{0}")]
    Invalid(String),
    #[error("logins cannot be kept here: this node has no vault")]
    NoVault,
    #[error(transparent)]
    Vault(#[from] grange_base::VaultError),
    #[error(transparent)]
    Db(#[from] grange_db::Error),
}

impl From<grange_archive::Error> for Error {
    /// Boxed: it carries two sets of checksums, and few acts meet it.
    fn from(error: grange_archive::Error) -> Self {
        Self::Archive(Box::new(error))
    }
}

impl Error {
    /// Stable; the API field and the key of the translation.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "forbidden",
            Self::Unknown => "log-in-first",
            Self::WrongPassword => "wrong-password",
            Self::NotFound { .. } => "not-found",
            Self::UserName(_) => "user-name",
            Self::PasswordTooShort { .. } => "password-too-short",
            Self::PasswordTooLong { .. } => "password-too-long",
            Self::Hashing => "hashing",
            Self::TokenName => "token-name",
            Self::NotLocal { .. } => "not-local",
            Self::NoRecord { .. } => "no-record",
            Self::FileName(_) => "file-name",
            Self::Archive(error) => error.code(),
            Self::Invalid(_) => "invalid",
            Self::NoVault => "no-vault",
            Self::Vault(_) => "vault",
            Self::Db(error) => error.code(),
        }
    }
}
