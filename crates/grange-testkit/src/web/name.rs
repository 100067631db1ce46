//! The names of the hosts. Every site has a registrable name of its own, so that queues, quotas and scope by domain
//! have something to tell apart.

use std::fmt;

/// What stands before the site's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sub {
    /// `h0042.test`
    Bare,
    /// `www.h0042.test`
    Www,
    /// `cdn.h0042.test`: pictures, style sheets and scripts that belong to the site's pages.
    Cdn,
    /// `bücher.h0042.test`, on the wire `xn--bcher-kva.h0042.test`.
    Idn,
}

impl Sub {
    const ALL: [Self; 4] = [Self::Bare, Self::Www, Self::Cdn, Self::Idn];

    fn label(self) -> &'static str {
        match self {
            Self::Bare => "",
            Self::Www => "www.",
            Self::Cdn => "cdn.",
            Self::Idn => "xn--bcher-kva.",
        }
    }
}

/// `http` or `https`: what the links say. Both ports answer both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    #[default]
    Http,
    Https,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub hosts: usize,
    pub suffix: String,
    pub scheme: Scheme,
}

impl Names {
    pub(crate) fn host(&self, site: usize, sub: Sub) -> String {
        format!("{}h{site:04}.{}", sub.label(), self.suffix)
    }

    /// `http://h0042.test`, without a slash at the end.
    pub(crate) fn origin(&self, site: usize, sub: Sub) -> String {
        format!("{}://{}", self.scheme, self.host(site, sub))
    }

    /// Which site a Host header means; `None` for a name that is not of this web.
    pub(crate) fn find(&self, host: &str) -> Option<(usize, Sub)> {
        let name = host.split(':').next().unwrap_or_default();
        let mut rest = name.strip_suffix('.').unwrap_or(name);
        let lower;
        if rest.bytes().any(|byte| byte.is_ascii_uppercase()) {
            lower = rest.to_ascii_lowercase();
            rest = &lower;
        }
        let rest = rest.strip_suffix(self.suffix.as_str())?.strip_suffix('.')?;
        // The longest label first: the empty one would match all.
        let (sub, number) =
            Sub::ALL.iter().rev().find_map(|sub| Some((*sub, rest.strip_prefix(sub.label())?)))?;
        let digits = number.strip_prefix('h')?;
        let site = digits.parse().ok()?;
        (site < self.hosts && digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .then_some((site, sub))
    }

    /// Splits an absolute URL of this web into site, sub-host and path with query.
    pub(crate) fn split<'a>(&self, url: &'a str) -> Option<(usize, Sub, &'a str)> {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
        let slash = rest.find('/')?;
        let (site, sub) = self.find(&rest[..slash])?;
        Some((site, sub, &rest[slash..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_header_finds_its_site() {
        let names = Names { hosts: 12_000, suffix: "test".into(), scheme: Scheme::Http };
        let cases = [
            ("h0042.test", Some((42, Sub::Bare))),
            ("H0042.TEST:8080", Some((42, Sub::Bare))),
            ("www.h0042.test.", Some((42, Sub::Www))),
            ("cdn.h11999.test", Some((11_999, Sub::Cdn))),
            ("xn--bcher-kva.h0001.test", Some((1, Sub::Idn))),
            ("h12000.test", None),
            ("h42.test", None),
            ("h0042.example", None),
            ("mail.h0042.test", None),
            ("h+042.test", None),
            ("", None),
        ];
        for (host, expected) in cases {
            assert_eq!(names.find(host), expected, "{host}");
        }
        assert_eq!(names.split("http://cdn.h0001.test/a?b=/c"), Some((1, Sub::Cdn, "/a?b=/c")));
    }
}
