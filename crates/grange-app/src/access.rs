//! Access rules: kept, taken away, tried out.

use std::net::IpAddr;
use std::time::Duration;

use grange_archive::check_rule_length;
use grange_base::Chain;
use grange_db::AccessRow;
use grange_index::access::{
    Audience, CaptureFacts, CapturedUrl, Decision, Effect, MediaType, Reader, Rule, RuleSet,
};
use grange_index::{RuleKeys, Stamp, line_key, rule_keys};
use grange_model::UserName;
use grange_model::account::Permission;
use serde_json::Value;

use crate::{App, Error, Who, access_csv, access_terms};

/// Refuses a rule that is too long for the file in which every replica keeps it.
fn kept_length(rule: &Value, note: &str, who: &Who) -> Result<(), Error> {
    let about = rule["surt_prefix"].as_str().unwrap_or_default();
    let shown: String = about.chars().take(SURT_SHOWN_CHARS).collect();
    check_rule_length(rule, note, &who.actor().who).map_err(|error| {
        Error::Invalid(format!("cannot keep the access rule about \"{shown}\": {error}; no rule was added"))
    })
}

/// Of a SURT prefix in a message: longer ones fill the screen.
const SURT_SHOWN_CHARS: usize = 200;

/// How long a change of rules waits for the replicas: a person sits there, and the archiver tries again.
const KEEP_WITHIN: Duration = Duration::from_secs(10);

/// A rule as people say it.
#[derive(Clone, Debug, Default)]
pub struct RuleDraft {
    pub surt_prefix: Option<String>,
    pub url: Option<String>,
    /// exact, prefix, host or domain; if absent prefix, and domain for `*.host`.
    pub matches: Option<String>,
    pub collection: Option<String>,
    pub mime: Option<String>,
    pub captured_from: Option<String>,
    pub captured_to: Option<String>,
    pub decision: Value,
    /// Whom it is for: staff, role:NAME, user:NAME, network:ADDRESS/BITS. Empty: everybody.
    pub audience: Vec<String>,
    /// Has to be said of a rule that nothing narrows.
    pub everything: bool,
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

/// Whether it is shown, and what every rule about it did; the one that decides first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub visible: bool,
    /// What the rule that decides says to those who ask by name.
    pub message: Option<String>,
    pub rules: Vec<RulePart>,
}

/// What one rule did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePart {
    /// `None`: the rule that is always there, which hides the documentation of crawls.
    pub id: Option<i64>,
    pub rule: Value,
    /// `hides`, `lifted`, `lets-through`, `allows`, `for-others`, or `depends-on-type`: it is about a MIME type, and the question
    /// names none.
    pub effect: &'static str,
    /// The rule that lifted it.
    pub lifted_by: Option<i64>,
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
        let values = rules.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
        let values = values.map_err(|error| Error::Invalid(error.to_string()))?;
        for value in &values {
            kept_length(value, note, who)?;
        }
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
        let kept = async { Ok::<_, Error>(self.archive.get().await?.keep_changed_access_rules().await?) };
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

    /// Keeps all rules of a table that are not there yet, or none. Gives how many were made, and how many the table has.
    pub async fn import_access_rules(&self, who: &Who, table: &str) -> Result<(u64, u64), Error> {
        who.needs(Permission::EditHarvests)?;
        let rules = access_csv::read(table).map_err(Error::Invalid)?;
        let all = rules.len() as u64;
        let stored = rules.into_iter().map(|(rule, note)| access_csv::stored(&rule).map(|rule| (rule, note)));
        let stored = stored.collect::<Result<Vec<_>, _>>().map_err(Error::Invalid)?;
        for (rule, note) in &stored {
            kept_length(rule, note, who)?;
        }
        let made = self.db.access_rules().import(stored, &who.actor()).await?;
        self.keep_access_rules().await;
        Ok((made, all))
    }

    /// All rules as a table.
    pub async fn export_access_rules(&self, who: &Who) -> Result<String, Error> {
        access_csv::write(&self.access_rules(who).await?).map_err(Error::Invalid)
    }

    /// What the rules as they are would say to somebody who asks, and why.
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
        let account = match test.user.as_ref().and_then(|name| name.parse::<UserName>().ok()) {
            Some(name) => self.db.users().get(&name).await?.filter(|user| user.disabled_at.is_none()),
            None => None,
        };
        if test.url.contains('*') {
            let reason =
                format!("\"{}\" has a star: a test is about one URL, with %2A for a star in it", test.url);
            return Err(Error::Invalid(reason));
        }
        let surt = line_key(&test.url);
        let facts = CaptureFacts {
            collection: &test.collection,
            surt: surt.as_bytes(),
            url: CapturedUrl::Unknown,
            time,
            media_type: MediaType::Of(test.mime.as_deref()),
        };
        let reader = Reader {
            address: address.transpose()?,
            user: test.user.as_deref(),
            role: account.as_ref().map(|user| user.role.as_str()),
            staff: account.as_ref().is_some_and(|user| user.role.is_staff()),
            now,
        };
        let read = |row: &AccessRow| {
            let rule = serde_json::from_value(row.rule.clone());
            // Rules that cannot be read block what they are about, as they do for readers.
            let blocked = || Rule::new(row.rule["surt_prefix"].as_str().unwrap_or_default(), unreadable());
            (row.id, rule.unwrap_or_else(|_| blocked()))
        };
        let rules = RuleSet::new(rows.iter().map(read).collect());
        let effects = rules.explain(&facts, &reader);
        // Rules about a type say nothing of a URL alone, but a capture of it may be of that type.
        let of_any_type = |row: &AccessRow| {
            let (id, rule) = read(row);
            (id, Rule { mime: None, ..rule })
        };
        let any_type = RuleSet::new(rows.iter().map(of_any_type).collect());
        let depends =
            |id: Option<i64>| test.mime.is_none() && !effects.iter().any(|known| known.rule.id == id);
        let typed: Vec<RulePart> = any_type
            .explain(&facts, &reader)
            .into_iter()
            .filter(|one| depends(one.rule.id))
            .map(|one| RulePart {
                id: one.rule.id,
                rule: rows
                    .iter()
                    .find(|row| Some(row.id) == one.rule.id)
                    .map(|row| row.rule.clone())
                    .unwrap_or_default(),
                effect: if matches!(one.effect, Effect::ForOthers) {
                    "for-others"
                } else {
                    "depends-on-type"
                },
                lifted_by: None,
            })
            .collect();
        let part = |one: &grange_index::access::RuleEffect<'_>| {
            let (effect, lifted_by) = match one.effect {
                Effect::Hides => ("hides", None),
                Effect::LiftedBy(by) => ("lifted", by.id),
                Effect::LetsThrough => ("lets-through", None),
                Effect::Allows => ("allows", None),
                Effect::ForOthers => ("for-others", None),
            };
            let rule = serde_json::to_value(&one.rule.rule).unwrap_or_default();
            RulePart { id: one.rule.id, rule, effect, lifted_by }
        };
        let visible = !effects.iter().any(|one| matches!(one.effect, Effect::Hides));
        let message = match effects.first().map(|one| &one.rule.rule.decision) {
            Some(Decision::Block { message }) if !visible && !message.is_empty() => Some(message.clone()),
            _ => None,
        };
        Ok(Access { visible, message, rules: effects.iter().map(part).chain(typed).collect() })
    }
}

fn unreadable() -> Decision {
    Decision::Block { message: "this rule cannot be read by this version".to_owned() }
}

impl RuleDraft {
    /// The rules, if everything about it can be understood: a rule that nothing ever meets hides nothing, and nobody
    /// would notice.
    pub(crate) fn rules(&self) -> Result<Vec<Rule>, String> {
        let matches = self.matches.as_deref();
        let keys = match (&self.surt_prefix, &self.url) {
            (Some(prefix), None) => {
                access_terms::check_surt(prefix)?;
                let exact = match matches {
                    None | Some("prefix") => false,
                    Some("exact") => true,
                    Some(other) => {
                        return Err(format!(
                            "\"{other}\" needs a URL; a SURT prefix is matched as prefix or exact"
                        ));
                    }
                };
                if exact && prefix.is_empty() {
                    return Err("an exact key is not empty: no URL would ever have it".to_owned());
                }
                vec![RuleKeys { prefix: prefix.clone(), exact }]
            }
            (None, Some(url)) => rule_keys(url, matches)?,
            (None, None) => vec![RuleKeys { prefix: String::new(), exact: false }],
            (Some(_), Some(_)) => return Err("say either a SURT prefix or a URL".to_owned()),
        };
        let narrowed = [&self.collection, &self.mime, &self.captured_from, &self.captured_to];
        let is_about_all = keys.iter().any(|keys| keys.prefix.is_empty() && !keys.exact);
        if is_about_all && !self.everything && narrowed.iter().all(|one| one.is_none()) {
            return Err(
                "the rule is about everything: name a URL, or say that it is meant (--everything)".to_owned()
            );
        }
        if self.everything && !is_about_all {
            return Err("a rule about everything names no URL and no SURT prefix".to_owned());
        }
        let audience = self.audience.iter().map(|text| text.parse::<Audience>());
        let audience = audience.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let decision: Decision = serde_json::from_value(self.decision.clone())
            .map_err(|error| format!("the decision cannot be understood: {error}"))?;
        access_terms::check_times(self.captured_from.as_deref(), self.captured_to.as_deref())?;
        access_terms::check_decision(&decision)?;
        audience.iter().try_for_each(access_terms::check_audience)?;
        self.mime.as_deref().map(access_terms::check_mime).transpose()?;
        self.collection.as_deref().map(grange_model::collection::check_name).transpose()?;
        let rule = |keys: RuleKeys| Rule {
            surt_prefix: keys.prefix,
            exact: keys.exact,
            collection: self.collection.clone(),
            mime: self.mime.clone(),
            captured_from: self.captured_from.clone(),
            captured_to: self.captured_to.clone(),
            decision: decision.clone(),
            audience: audience.clone(),
        };
        Ok(keys.into_iter().map(rule).collect())
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
            ("*.example.com", "", &["com,example)", "com,example:", "com,example,"], false),
            ("example.com:8080", "", &["com,example:8080)/"], false),
        ] {
            let draft = draft(url, matches);
            let matches = draft.matches.clone().filter(|kind| !kind.is_empty());
            let rules = RuleDraft { matches, ..draft }.rules().unwrap();
            let found: Vec<_> = rules.iter().map(|rule| rule.surt_prefix.as_str()).collect();
            assert_eq!((found.as_slice(), rules[0].exact), (prefixes, exact), "{url}");
        }
        let with = |decision: Value| RuleDraft { decision, everything: true, ..RuleDraft::default() };
        assert!(with(json!("allow")).rules().is_ok());
        assert!(with(json!({ "embargo": { "seconds": 5 } })).rules().is_ok());
        let narrow = RuleDraft { everything: false, mime: Some("video/*".to_owned()), ..with(block.clone()) };
        assert!(narrow.rules().is_ok(), "it is about videos and not about everything");
        for bad in [
            with(json!("maybe")),
            with(json!({ "networks": { "networks": ["10.0.0.0/33"] } })),
            RuleDraft { captured_from: Some("soon".to_owned()), ..with(json!("allow")) },
            RuleDraft { surt_prefix: Some("com,".to_owned()), ..draft("a.com", "prefix") },
            RuleDraft { surt_prefix: Some("com,Example)/".to_owned()), ..with(json!("allow")) },
            RuleDraft { everything: false, ..with(block.clone()) },
            RuleDraft { everything: true, ..draft("a.com", "prefix") },
            RuleDraft { audience: vec!["moon".to_owned()], ..with(json!("allow")) },
            draft("a.com", "sideways"),
        ] {
            assert!(bad.rules().is_err(), "{bad:?}");
        }
    }
}
