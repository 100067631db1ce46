//! Access rules: kept, taken away, tried out.

use std::net::IpAddr;
use std::time::Duration;

use grange_base::Chain;
use grange_db::AccessRow;
use grange_index::access::{Asked, Decision, Reader, Rule, Verdict, judge};
use grange_index::{Stamp, key, rule_prefixes};
use grange_model::account::Permission;
use serde_json::Value;

use crate::{App, Error, Who};

/// How long a change of rules waits for the replicas: a person sits there, and the archiver tries again.
const KEEP_WITHIN: Duration = Duration::from_secs(10);

/// A rule as people say it.
#[derive(Clone, Debug, Default)]
pub struct RuleDraft {
    pub surt_prefix: Option<String>,
    pub url: Option<String>,
    /// exact, prefix, host or domain; prefix if absent.
    pub matches: Option<String>,
    pub collection: Option<String>,
    pub mime: Option<String>,
    pub captured_from: Option<String>,
    pub captured_to: Option<String>,
    pub decision: Value,
}

/// Who asks for what.
#[derive(Clone, Debug, Default)]
pub struct AccessTest {
    pub url: String,
    pub collection: String,
    pub captured: Option<String>,
    pub mime: Option<String>,
    pub address: Option<String>,
    pub user: Option<String>,
}

/// Whether it is shown, else by which rule it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    Visible,
    Hidden { rule: i64, message: Option<String> },
}

impl App {
    /// All rules, oldest first. They say what is hidden and why, so not everybody reads them.
    pub async fn access_rules(&self, who: &Who) -> Result<Vec<AccessRow>, Error> {
        who.needs(Permission::ReadSystem)?;
        Ok(self.db.access_rules().list().await?)
    }

    /// Keeps what a draft says: one rule, or several together for a host or a domain.
    pub async fn add_access_rule(
        &self,
        who: &Who,
        draft: &RuleDraft,
        note: &str,
    ) -> Result<Vec<AccessRow>, Error> {
        who.needs(Permission::EditHarvests)?;
        let rules = draft.rules().map_err(Error::Invalid)?;
        let values = rules.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        let values = values.map_err(|error| Error::Invalid(error.to_string()))?;
        let made = self.db.access_rules().add(values, note, &who.actor()).await?;
        self.keep_access_rules().await;
        Ok(made)
    }

    pub async fn remove_access_rule(&self, who: &Who, id: i64) -> Result<AccessRow, Error> {
        who.needs(Permission::EditHarvests)?;
        let gone = self.db.access_rules().remove(id, &who.actor()).await?;
        self.keep_access_rules().await;
        Ok(gone)
    }

    /// Keeps the rules beside the bits at once. Replicas that are away get them later, from the archiver.
    async fn keep_access_rules(&self) {
        let kept = async { Ok::<_, Error>(self.archive.get().await?.keep_access_rules().await?) };
        match tokio::time::timeout(KEEP_WITHIN, kept).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %Chain(&error), "cannot keep the access rules beside the bits yet");
            }
            Err(_) => {
                tracing::warn!("the replicas are slow: the access rules are kept beside the bits later");
            }
        }
    }

    /// What the rules as they are would say to somebody who asks.
    pub async fn test_access(&self, who: &Who, test: &AccessTest) -> Result<Access, Error> {
        let rows = self.access_rules(who).await?;
        let now = Stamp::parse(self.clock.now().strftime("%Y%m%d%H%M%S").to_string()).unwrap_or_default();
        let stamp = |text: &String| {
            Stamp::earliest(text)
                .ok_or_else(|| Error::Invalid(format!("\"{text}\" is no time: 1 to 14 digits")))
        };
        let time = test.captured.as_ref().map(stamp).transpose()?.unwrap_or(now);
        let address = test.address.as_ref().map(|text| {
            text.parse::<IpAddr>().map_err(|_| Error::Invalid(format!("\"{text}\" is no IP address")))
        });
        let surt = key(&test.url);
        let asked =
            Asked { collection: &test.collection, surt: surt.as_bytes(), time, mime: test.mime.as_deref() };
        let reader = Reader { address: address.transpose()?, user: test.user.as_deref(), now };
        let rules: Vec<Rule> =
            rows.iter().filter_map(|row| serde_json::from_value(row.rule.clone()).ok()).collect();
        let Verdict::Hidden(found) = judge(&rules, &asked, &reader) else { return Ok(Access::Visible) };
        let same = |row: &&AccessRow| {
            serde_json::from_value::<Rule>(row.rule.clone()).is_ok_and(|rule| rule == *found)
        };
        let rule = rows.iter().find(same).map(|row| row.id).unwrap_or_default();
        let message = match &found.decision {
            Decision::Block { message } => Some(message.clone()),
            _ => None,
        };
        Ok(Access::Hidden { rule, message })
    }
}

impl RuleDraft {
    /// The rules, if everything about it can be understood: a rule that nothing ever meets hides nothing, and nobody
    /// would notice.
    fn rules(&self) -> Result<Vec<Rule>, String> {
        let matches = self.matches.as_deref();
        let (prefixes, exact) = match (&self.surt_prefix, &self.url) {
            (Some(prefix), None) => match matches {
                None | Some("prefix") => (vec![prefix.clone()], false),
                Some("exact") => (vec![prefix.clone()], true),
                Some(other) => {
                    return Err(format!(
                        "\"{other}\" needs a URL; a SURT prefix is matched as prefix or exact"
                    ));
                }
            },
            (None, Some(url)) => match matches {
                Some("exact") => (vec![key(url)], true),
                kind => (rule_prefixes(url, kind.unwrap_or("prefix"))?, false),
            },
            (None, None) => (vec![String::new()], false),
            (Some(_), Some(_)) => return Err("say either a SURT prefix or a URL".to_owned()),
        };
        let decision: Decision = serde_json::from_value(self.decision.clone())
            .map_err(|error| format!("the decision cannot be understood: {error}"))?;
        if let Decision::Networks { networks } = &decision {
            networks.iter().try_for_each(|network| check_network(network))?;
        }
        for time in [&self.captured_from, &self.captured_to].into_iter().flatten() {
            Stamp::earliest(time)
                .ok_or_else(|| format!("\"{time}\" is no time: 1 to 14 digits, from the year on"))?;
        }
        let rule = |surt_prefix| Rule {
            surt_prefix,
            exact,
            collection: self.collection.clone(),
            mime: self.mime.clone(),
            captured_from: self.captured_from.clone(),
            captured_to: self.captured_to.clone(),
            decision: decision.clone(),
        };
        Ok(prefixes.into_iter().map(rule).collect())
    }
}

fn check_network(network: &str) -> Result<(), String> {
    let (base, bits) = network.split_once('/').map_or((network, None), |(base, bits)| (base, Some(bits)));
    let address = base.parse::<IpAddr>().ok();
    let width = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let fits = |bits: &str, address| bits.parse::<u32>().is_ok_and(|bits| bits <= width(address));
    match address {
        Some(address) if bits.is_none_or(|bits| fits(bits, address)) => Ok(()),
        _ => Err(format!("\"{network}\" is no network: write 192.0.2.0/24 or 2001:db8::/32")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drafts_become_rules_or_are_told_what_is_wrong() {
        let block = json!({ "block": { "message": "no" } });
        let draft = |url: &str, matches: &str| RuleDraft {
            url: Some(url.to_owned()),
            matches: Some(matches.to_owned()),
            decision: block.clone(),
            ..RuleDraft::default()
        };
        for (url, matches, prefixes, exact) in [
            ("http://www.example.com/private", "prefix", &["com,example)/private"][..], false),
            ("example.com/x", "exact", &["com,example)/x"], true),
            ("example.com", "host", &["com,example)", "com,example:"], false),
            ("*.example.com", "domain", &["com,example)", "com,example:", "com,example,"], false),
        ] {
            let rules = draft(url, matches).rules().unwrap();
            let found: Vec<_> = rules.iter().map(|rule| rule.surt_prefix.as_str()).collect();
            assert_eq!((found.as_slice(), rules[0].exact), (prefixes, exact), "{url} {matches}");
        }
        let with = |decision: Value| RuleDraft { decision, ..RuleDraft::default() };
        assert!(with(json!("allow")).rules().is_ok());
        assert!(with(json!({ "embargo": { "seconds": 5 } })).rules().is_ok());
        for bad in [
            with(json!("maybe")),
            with(json!({ "networks": { "networks": ["10.0.0.0/33"] } })),
            RuleDraft { captured_from: Some("soon".to_owned()), ..with(json!("allow")) },
            RuleDraft { surt_prefix: Some("com,".to_owned()), ..draft("a.com", "prefix") },
            draft("a.com", "sideways"),
        ] {
            assert!(bad.rules().is_err(), "{bad:?}");
        }
    }
}
