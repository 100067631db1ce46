//! Where crawls connect to. The operator of a machine decides that, not a template: whoever may write templates could
//! otherwise send the stored password of a site to a server of his own, or stream every response anywhere.

use std::path::PathBuf;

use grange_crawl::template::Template;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the crawls of this machine connect to. Laid over the template of every job; templates cannot set it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSettings {
    /// Proxy of all requests: `http://[user:password@]host:port` or `socks5://host:port`. Empty connects directly.
    pub proxy: String,

    /// `HOST:PORT:ADDR` sends requests for HOST:PORT to ADDR, as curl's `--resolve` does; `*` for PORT means every port.
    /// ADDR is `ip`, `ip:port` or `[ip6]:port`.
    pub resolve: Vec<String>,

    /// Sends every request to this one `ip` or `ip:port`; empty for none. For tests on a synthetic web.
    pub all_hosts_to: String,

    /// A PEM file of further CA certificates, for sites whose CA is not publicly known. Empty for none.
    pub extra_roots: PathBuf,

    /// Name servers as `ip` or `ip:port`. Without any, those of the machine are asked.
    pub dns_servers: Vec<String>,

    /// Address of the clamd that scans every response: `tcp:127.0.0.1:3310` or `unix:/run/clamav/clamd.ctl`. Empty: nothing
    /// is scanned.
    pub clamd: String,
}

impl NetworkSettings {
    /// Lays these settings over a template, whatever it says itself.
    pub fn lay_over(&self, template: &mut Template) {
        let NetworkSettings { proxy, resolve, all_hosts_to, extra_roots, dns_servers, clamd } = self.clone();
        template.fetch.proxy = proxy;
        template.fetch.resolve = resolve;
        template.fetch.all_hosts_to = all_hosts_to;
        template.fetch.extra_roots = extra_roots;
        template.fetch.dns.servers = dns_servers;
        template.virus.clamd = clamd;
    }
}

/// The keys of a template that only an operator may set, as far as it sets them.
pub fn operator_keys(template: &Template) -> Vec<&'static str> {
    let keys = [
        ("fetch.proxy", !template.fetch.proxy.is_empty()),
        ("fetch.resolve", !template.fetch.resolve.is_empty()),
        ("fetch.all_hosts_to", !template.fetch.all_hosts_to.is_empty()),
        ("fetch.extra_roots", !template.fetch.extra_roots.as_os_str().is_empty()),
        ("fetch.dns.servers", !template.fetch.dns.servers.is_empty()),
        ("virus.clamd", !template.virus.clamd.is_empty()),
    ];
    keys.into_iter().filter_map(|(key, set)| set.then_some(key)).collect()
}

#[cfg(test)]
mod tests {
    use grange_crawl::template::{parse, shipped};

    use super::*;

    /// Every key that only an operator may set, each with a value.
    const ALL: &str = "name = \"x\"\n\
         [fetch]\nproxy = \"http://127.0.0.1:1\"\nresolve = [\"a.dk:80:127.0.0.1\"]\nall_hosts_to = \"127.0.0.1:2\"\n\
         extra_roots = \"/tmp/ca.pem\"\n[fetch.dns]\nservers = [\"127.0.0.1\"]\n\
         [virus]\nclamd = \"tcp:127.0.0.1:3\"\n";

    #[test]
    fn keys_of_the_operator_are_found_and_laid_over() {
        let mut template = parse(ALL).unwrap();
        let all = [
            "fetch.proxy",
            "fetch.resolve",
            "fetch.all_hosts_to",
            "fetch.extra_roots",
            "fetch.dns.servers",
            "virus.clamd",
        ];
        assert_eq!(operator_keys(&template), all);
        NetworkSettings::default().lay_over(&mut template);
        assert_eq!(operator_keys(&template), Vec::<&str>::new());
        let own = NetworkSettings { clamd: "tcp:127.0.0.1:9".to_owned(), ..NetworkSettings::default() };
        own.lay_over(&mut template);
        assert_eq!(operator_keys(&template), ["virus.clamd"]);
        assert_eq!(template.virus.clamd, "tcp:127.0.0.1:9");
        for (name, text) in shipped() {
            assert_eq!(operator_keys(&parse(text).unwrap()), Vec::<&str>::new(), "{name}");
        }
    }

    #[test]
    fn a_template_that_sets_keys_of_the_operator_is_refused_with_the_reason() {
        let reason = crate::check_template(ALL).unwrap_err();
        for word in ["fetch.all_hosts_to", "virus.clamd", "harvest.network", "operator"] {
            assert!(reason.contains(word), "{word} in {reason}");
        }
        let one =
            crate::check_template("name = \"x\"\n[fetch]\nproxy = \"http://127.0.0.1:1\"\n").unwrap_err();
        assert!(one.contains("fetch.proxy") && !one.contains("clamd"), "{one}");
        assert_eq!(crate::check_template("name = \"x\"\n"), Ok(()));
    }
}
