//! Settings that decide where requests go and what is trusted. They belong to the operator of a node.
//!
//! A curator's template could otherwise send a site's stored password to another host, or the responses to a scanner of
//! the curator's choice. `grange crawl` on the command line has no such separation: who runs it is the operator.

use std::path::PathBuf;

use grange_base::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Template;

/// How crawls of this node reach the web. Templates cannot set these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// Networks beside the public ones that crawls may reach, such as `10.0.0.0/8`. Any page can lead to an address; without
    /// an entry here loopback, private, link-local and other special addresses are refused, and logged with status -5005.
    pub allow_networks: Vec<Network>,

    /// Name servers as `ip` or `ip:port`. Empty: those of the machine.
    pub dns_servers: Vec<String>,

    /// `HOST:PORT:ADDR` sends requests for HOST:PORT to ADDR, as curl's `--resolve` does; `*` for PORT means every port.
    pub resolve: Vec<String>,

    /// Sends every request to this one `ip` or `ip:port`. Empty: requests go where their URLs say. For tests on a synthetic
    /// web.
    pub all_hosts_to: String,

    /// `http://[user:password@]host:port` or `socks5://host:port`. Empty: connections are direct. Names are resolved by the
    /// proxy, which must itself refuse private networks.
    pub proxy: String,

    /// A PEM file of further CA certificates. Empty: none.
    pub extra_roots: PathBuf,

    /// Where clamd listens: `tcp:127.0.0.1:3310` or `unix:/run/clamav/clamd.ctl`. Empty: responses are not scanned.
    pub clamd: String,
}

impl NetworkSettings {
    /// Replaces the operator's settings of a template by these. Returns the keys of the template that had another value.
    pub fn apply(&self, template: &mut Template) -> Vec<&'static str> {
        let ignored = template.operator_keys();
        let fetch = &mut template.fetch;
        fetch.allow_networks.clone_from(&self.allow_networks);
        fetch.allow_endpoints.clear();
        fetch.allow_ordered_endpoints = false;
        fetch.dns.servers.clone_from(&self.dns_servers);
        fetch.resolve.clone_from(&self.resolve);
        fetch.all_hosts_to.clone_from(&self.all_hosts_to);
        fetch.proxy.clone_from(&self.proxy);
        fetch.extra_roots.clone_from(&self.extra_roots);
        template.virus.clamd.clone_from(&self.clamd);
        ignored
    }

    /// The setting that cannot be used and why, if there is one.
    pub fn problem(&self) -> Option<(String, String)> {
        let mut template = Template::default();
        "operator@grange.invalid".clone_into(&mut template.fetch.user_agent);
        self.apply(&mut template);
        if let Err(bad) = template.fetch.check() {
            let key = if bad.field == "dns.servers" { "dns_servers" } else { bad.field };
            return Some((key.to_owned(), bad.why));
        }
        let scanner = crate::virus::Scanner::new(&template.virus);
        scanner.err().map(|error| ("clamd".to_owned(), error.to_string()))
    }
}

impl Template {
    /// The keys set here that belong to the operator of a node.
    pub fn operator_keys(&self) -> Vec<&'static str> {
        let fetch = &self.fetch;
        let set = [
            ("fetch.allow_networks", !fetch.allow_networks.is_empty()),
            ("fetch.allow_endpoints", !fetch.allow_endpoints.is_empty()),
            ("fetch.allow_ordered_endpoints", fetch.allow_ordered_endpoints),
            ("fetch.dns.servers", !fetch.dns.servers.is_empty()),
            ("fetch.resolve", !fetch.resolve.is_empty()),
            ("fetch.all_hosts_to", !fetch.all_hosts_to.is_empty()),
            ("fetch.proxy", !fetch.proxy.is_empty()),
            ("fetch.extra_roots", !fetch.extra_roots.as_os_str().is_empty()),
            ("virus.clamd", !self.virus.clamd.is_empty()),
        ];
        set.into_iter().filter_map(|(key, is_set)| is_set.then_some(key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::parse;

    #[test]
    fn what_a_template_says_of_the_network_gives_way_to_the_operator() {
        let keys = [
            ("fetch", "allow_networks = [\"10.0.0.0/8\"]", "fetch.allow_networks"),
            ("fetch", "allow_endpoints = [\"127.0.0.1:80\"]", "fetch.allow_endpoints"),
            ("fetch", "allow_ordered_endpoints = true", "fetch.allow_ordered_endpoints"),
            ("fetch.dns", "servers = [\"192.0.2.53\"]", "fetch.dns.servers"),
            ("fetch", "resolve = [\"a.dk:443:192.0.2.1\"]", "fetch.resolve"),
            ("fetch", "all_hosts_to = \"192.0.2.1\"", "fetch.all_hosts_to"),
            ("fetch", "proxy = \"http://192.0.2.1:3128\"", "fetch.proxy"),
            ("fetch", "extra_roots = \"/tmp/roots.pem\"", "fetch.extra_roots"),
            ("virus", "clamd = \"tcp:192.0.2.1:3310\"", "virus.clamd"),
        ];
        let none = NetworkSettings::default();
        for (table, line, key) in keys {
            let mut template = parse(&format!("name = \"x\"\n[{table}]\n{line}\n")).unwrap();
            assert_eq!(none.apply(&mut template), [key], "{line}");
            assert!(template.operator_keys().is_empty(), "{line}");
        }
        let own = NetworkSettings { all_hosts_to: "127.0.0.1:80".to_owned(), ..NetworkSettings::default() };
        let mut template = parse("name = \"x\"\n[fetch]\nproxy = \"http://192.0.2.1:3128\"\n").unwrap();
        own.apply(&mut template);
        assert_eq!(template.operator_keys(), ["fetch.all_hosts_to"]);
    }

    #[test]
    fn settings_that_cannot_be_used_are_named() {
        let default = NetworkSettings::default;
        for (settings, key) in [
            (default(), None),
            (NetworkSettings { proxy: "ftp://x".to_owned(), ..default() }, Some("proxy")),
            (NetworkSettings { all_hosts_to: "here".to_owned(), ..default() }, Some("all_hosts_to")),
            (NetworkSettings { dns_servers: vec!["dns".to_owned()], ..default() }, Some("dns_servers")),
            (NetworkSettings { clamd: "nowhere".to_owned(), ..default() }, Some("clamd")),
        ] {
            assert_eq!(settings.problem().map(|(key, _)| key).as_deref(), key, "{settings:?}");
        }
    }
}
