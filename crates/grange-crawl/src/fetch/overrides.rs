//! Hosts that are sent somewhere else than their name says.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use super::settings::{BadSetting, Settings};

/// An address, and a port if it differs from the URL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) ip: IpAddr,
    pub(super) port: Option<u16>,
}

/// The table of `resolve` and `all_hosts_to`.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    hosts: HashMap<String, Vec<(Option<u16>, Place)>>,
    all: Option<Place>,
}

impl Overrides {
    pub(super) fn new(settings: &Settings) -> Result<Overrides, BadSetting> {
        let mut hosts: HashMap<String, Vec<(Option<u16>, Place)>> = HashMap::new();
        for rule in &settings.resolve {
            let (host, port, place) = parse_rule(rule).ok_or_else(|| {
                BadSetting::new(
                    "resolve",
                    format!("{rule:?} is not HOST:PORT:ADDR, such as example.org:80:127.0.0.1"),
                )
            })?;
            hosts.entry(host).or_default().push((port, place));
        }
        let all = match settings.all_hosts_to.as_str() {
            "" => None,
            text => Some(parse_place(text).ok_or_else(|| {
                BadSetting::new("all_hosts_to", format!("{text:?} is neither ip nor ip:port"))
            })?),
        };
        Ok(Overrides { hosts, all })
    }

    /// Where `host:port` is sent, if not where its name says.
    pub(super) fn find(&self, host: &str, port: u16) -> Option<Place> {
        let rules = if self.hosts.is_empty() { None } else { self.hosts.get(host) };
        let rule = rules.into_iter().flatten().find(|(only, _)| only.is_none_or(|only| only == port));
        rule.map(|(_, place)| *place).or(self.all)
    }

    /// Where `host` is sent on any port.
    pub(super) fn find_host(&self, host: &str) -> Option<Place> {
        self.hosts.get(host).and_then(|rules| rules.first()).map(|(_, place)| *place).or(self.all)
    }
}

fn parse_rule(rule: &str) -> Option<(String, Option<u16>, Place)> {
    let (host, rest) = rule.split_once(':')?;
    let (port, place) = rest.split_once(':')?;
    let port = if port == "*" { None } else { Some(port.parse().ok()?) };
    let host = urlkey::host_to_ascii(host)?;
    (!host.is_empty()).then_some((host, port, parse_place(place)?))
}

/// Reads `ip`, `ip:port`, `[ip6]` or `[ip6]:port`.
pub(super) fn parse_place(text: &str) -> Option<Place> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(Place { ip: address.ip(), port: Some(address.port()) });
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().map(|ip| Place { ip, port: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_wins_and_all_hosts_comes_last() {
        let settings = Settings {
            resolve: ["a.example:80:127.0.0.2", "A.example:*:[::1]:8080", "münchen.example:443:127.0.0.3:9"]
                .map(str::to_owned)
                .to_vec(),
            all_hosts_to: "127.0.0.9:8000".to_owned(),
            ..Settings::default()
        };
        let overrides = Overrides::new(&settings).unwrap();
        for (host, port, expected) in [
            ("a.example", 80, "127.0.0.2"),
            ("a.example", 443, "[::1]:8080"),
            ("xn--mnchen-3ya.example", 443, "127.0.0.3:9"),
            ("xn--mnchen-3ya.example", 80, "127.0.0.9:8000"),
            ("other.example", 80, "127.0.0.9:8000"),
        ] {
            assert_eq!(overrides.find(host, port), parse_place(expected), "{host}:{port}");
        }
        assert_eq!(Overrides::default().find("a.example", 80), None);
    }
}
