//! Which of two stored answers set a cookie later. Files of several writers overlap in time, and those with infected answers
//! come first.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use jiff::Timestamp;
use url::Url;
use urlkey::{Suffixes, registrable_domain};

/// Cookies remembered, 24 bytes each. When all are forgotten, an older cookie may take the place of a newer one.
const REMEMBERED_MAX: usize = 1 << 16;

/// When each cookie was set last, by the hash of its site and name: any host of a site may set it.
#[derive(Debug, Default)]
pub(super) struct NewestCookies(HashMap<u64, Timestamp>);

impl NewestCookies {
    /// Whether no newer value of the cookie was taken in, given a value of `Set-Cookie`; it is taken in then.
    pub(super) fn takes(&mut self, url: &Url, cookie: &[u8], date: Timestamp) -> bool {
        let host = url.host_str().unwrap_or_default();
        let site = registrable_domain(host, Suffixes::All).unwrap_or(host);
        let name = cookie.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
        let key = BuildHasherDefault::<DefaultHasher>::default().hash_one((site, name));
        if self.0.len() >= REMEMBERED_MAX && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let newest = self.0.entry(key).or_insert(date);
        let takes = *newest <= date;
        *newest = date.max(*newest);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_value_does_not_replace_a_newer_one_of_the_same_cookie() {
        let mut newest = NewestCookies::default();
        for (host, cookie, second, takes) in [
            ("www.e.org", "a=1; Path=/", 5, true),
            ("e.org", "a=2", 4, false),
            ("e.org", "b=2", 4, true),
            ("f.org", "a=2", 4, true),
            ("e.org", "a=3; Domain=e.org", 5, true),
            ("e.org", " a =; Max-Age=0", 6, true),
            ("e.org", "a=4", 5, false),
        ] {
            let (url, date) = (format!("http://{host}/"), Timestamp::from_second(second).unwrap());
            let taken = newest.takes(&Url::parse(&url).unwrap(), cookie.as_bytes(), date);
            assert_eq!(taken, takes, "{host} {cookie} {second}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let (mut newest, url) = (NewestCookies::default(), Url::parse("http://e.org/").unwrap());
        for number in 0..REMEMBERED_MAX + 2 {
            assert!(newest.takes(&url, format!("c{number}=1").as_bytes(), Timestamp::UNIX_EPOCH));
        }
        assert_eq!(newest.0.len(), 2);
    }
}
