//! Which backend a URL means, and how to show it without its password.

use url::Url;

use crate::error::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Local,
    /// With the whole URL of the database.
    Postgres(String),
    /// One or more servers of one NATS cluster.
    Nats(Vec<Url>),
}

impl Address {
    /// `postgres:` alone means the database that the caller has, where that is PostgreSQL.
    pub(crate) fn read(url: &str, database_url: Option<&str>) -> Result<Self, Error> {
        let refuse = || Error::Url { given: masked(url) };
        match url.trim() {
            "local:" => Ok(Self::Local),
            "postgres:" | "postgresql:" => database_url
                .filter(|url| is_postgres(url))
                .map(|url| Self::Postgres(url.to_owned()))
                .ok_or(Error::NoDatabase),
            url if is_postgres(url) => Ok(Self::Postgres(url.to_owned())),
            url => {
                let servers: Vec<Url> = url
                    .split(',')
                    .map(|one| Url::parse(one.trim()).map_err(|_| refuse()))
                    .collect::<Result<_, _>>()?;
                let fits = |server: &Url| {
                    matches!(server.scheme(), "nats" | "tls")
                        && server.host_str().is_some_and(|host| !host.is_empty())
                };
                if servers.iter().all(fits) { Ok(Self::Nats(servers)) } else { Err(refuse()) }
            }
        }
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// The URL, or list of URLs, as it may be shown: passwords are `***`. So is all of it when any of it cannot be read
/// and a password may hide there. Parameters go too: PostgreSQL takes a password among them.
pub(crate) fn masked(urls: &str) -> String {
    let shown: Option<Vec<String>> = if is_postgres(urls.trim()) {
        masked_one(urls.trim()).map(|one| vec![one])
    } else {
        urls.split(',').map(|url| masked_one(url.trim())).collect()
    };
    match shown {
        Some(shown) => shown.join(","),
        None if urls.contains('@') => "***".to_owned(),
        None => urls.to_owned(),
    }
}

fn masked_one(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok()?;
    if url.cannot_be_a_base() {
        return (!text.contains('@')).then(|| text.to_owned());
    }
    if url.password().is_some() {
        // Fails only for URLs that cannot have a password.
        let _ = url.set_password(Some("***"));
    } else if matches!(url.scheme(), "nats" | "tls") && !url.username().is_empty() {
        // NATS reads a lone name as a token.
        let _ = url.set_username("***");
    }
    url.set_query(None);
    url.set_fragment(None);
    Some(url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_choose_the_backend() {
        let pg = "postgres://u@h/d";
        assert_eq!(Address::read("local:", None).unwrap(), Address::Local);
        assert_eq!(Address::read("postgres:", Some(pg)).unwrap(), Address::Postgres(pg.into()));
        assert_eq!(Address::read(pg, Some("sqlite:x")).unwrap(), Address::Postgres(pg.into()));
        let Address::Nats(servers) = Address::read("nats://a:4222, tls://b", None).unwrap() else { panic!() };
        assert_eq!(servers.len(), 2);
        for (url, database, code) in [
            ("postgres:", None, "bus-no-database"),
            ("postgres:", Some("sqlite:grange.db"), "bus-no-database"),
            ("", None, "bus-url"),
            ("redis://h", None, "bus-url"),
            ("nats:", None, "bus-url"),
            ("nats://", None, "bus-url"),
            ("nats://a,redis://b", None, "bus-url"),
            ("localhost:4222", None, "bus-url"),
        ] {
            assert_eq!(Address::read(url, database).unwrap_err().code(), code, "{url}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        for (url, shown) in [
            ("local:", "local:"),
            ("postgres://grange:hunter2@db/grange?sslmode=require", "postgres://grange:***@db/grange"),
            ("postgres://db/grange?user=g&password=hunter2", "postgres://db/grange"),
            ("nats://hunter2@h:4222", "nats://***@h:4222"),
            ("nats://u:hunter2@a,nats://u:hunter2@b:1", "nats://u:***@a,nats://u:***@b:1"),
            ("postgres://u:hun,ter2@h/d", "postgres://u:***@h/d"),
            ("nats://u:123,hunter2@h", "***"),
            ("nats h", "nats h"),
        ] {
            assert_eq!(masked(url), shown);
        }
        for url in ["u:hunter2@host", "nats://u:hunter2@ho st", "redis://:hunter2@h", "//u:hunter2@h"] {
            let error = Address::read(url, None).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
