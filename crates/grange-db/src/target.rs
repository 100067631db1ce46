//! Which database is meant: the URL of the settings, read once, and shown without its password.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::dialect::Dialect;
use crate::error::Error;
use crate::settings::Settings;

/// The database that the settings name. Small, because errors carry it. Its `Display` is for people and holds no secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    Sqlite { path: Arc<Path> },
    Postgres { url: Arc<Url> },
}

impl Target {
    /// Reads the URL; a relative SQLite path is below `base_dir`. Reads `password_file` for PostgreSQL.
    pub fn read(settings: &Settings, base_dir: &Path) -> Result<Self, Error> {
        let bad = |reason: &str| Error::BadUrl { url: masked(&settings.url), reason: reason.to_owned() };
        let (scheme, rest) = settings
            .url
            .split_once(':')
            .ok_or_else(|| bad("it starts with neither sqlite: nor postgres:"))?;
        match scheme {
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() || path.starts_with(":memory:") || path.contains('?') {
                    return Err(bad("the path of a file must follow, without options"));
                }
                let path = base_dir.join(path);
                if path.to_str().is_none() {
                    return Err(bad("the path is not UTF-8"));
                }
                Ok(Self::Sqlite { path: path.into() })
            }
            "postgres" | "postgresql" => {
                let mut url = Url::parse(&settings.url).map_err(|error| bad(&error.to_string()))?;
                if url.path().trim_matches('/').is_empty() {
                    return Err(bad("the name of the database must follow the host"));
                }
                if let Some(file) = &settings.password_file {
                    let password = password(&base_dir.join(file))?;
                    url.set_password(Some(&password)).map_err(|()| bad("it names no host"))?;
                }
                if !url.query_pairs().any(|(key, _)| key == "application_name") {
                    url.query_pairs_mut().append_pair("application_name", "grange");
                }
                Ok(Self::Postgres { url: url.into() })
            }
            _ => Err(bad("it starts with neither sqlite: nor postgres:")),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite { .. } => Dialect::Sqlite,
            Self::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// The URL for the driver, with the secret. `mode` is SQLite's: `rwc` or `ro`.
    pub(crate) fn driver_url(&self, mode: &str) -> Url {
        match self {
            Self::Postgres { url } => Url::clone(url),
            Self::Sqlite { path } => {
                // Nothing of the path is left that could be read as part of a URL.
                let path = utf8_percent_encode(path.to_str().unwrap_or_default(), NON_ALPHANUMERIC);
                Url::parse(&format!("sqlite:{path}?mode={mode}")).expect("an encoded path parses")
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "the database file {}", path.display()),
            Self::Postgres { url } => {
                let mut shown = Url::clone(url);
                let _ = shown.set_password(None);
                shown.set_query(None);
                write!(f, "PostgreSQL at {shown}")
            }
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// The URL with whatever stands between `:` and `@` hidden; works on URLs that do not parse, too.
fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let Some((login, place)) = rest.rsplit_once('@') else {
        return url.to_owned();
    };
    match login.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:***@{place}"),
        None => url.to_owned(),
    }
}

fn password(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::Secret { path: path.to_owned(), source: source.into() })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
