//! Access rules out of their rows.

use std::sync::Arc;

use grange_db::AccessRow;
use grange_index::access::{Decision, Rule, RuleSet};

/// The rules of these rows. One that cannot be read, such as one of a later version, blocks what it is about: rules fail
/// closed.
pub fn read_rules(rows: &[AccessRow]) -> Arc<RuleSet> {
    Arc::new(RuleSet::new(rows.iter().map(|row| (row.id, read_rule(row))).collect()))
}

fn read_rule(row: &AccessRow) -> Rule {
    serde_json::from_value(row.rule.clone()).unwrap_or_else(|error| {
        tracing::error!(rule = row.id, %error, "an access rule cannot be read: what it is about is blocked");
        let text = |name: &str| row.rule.get(name).and_then(|value| value.as_str());
        let blocked = Decision::Block { message: "this cannot be shown at the moment".to_owned() };
        let collection = text("collection").map(ToOwned::to_owned);
        Rule { collection, ..Rule::new(text("surt_prefix").unwrap_or_default(), blocked) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rule: serde_json::Value) -> AccessRow {
        let created_at = grange_base::Clock::system().now();
        AccessRow { id: 1, key: None, rule, note: String::new(), created_at, created_by: "anna".to_owned() }
    }

    #[test]
    fn an_unreadable_rule_blocks_what_it_is_about() {
        let good = serde_json::json!({ "surt_prefix": "com,a)/", "decision": "allow" });
        let odd = serde_json::json!({ "surt_prefix": "com,b)/", "decision": { "by-moonlight": 1 } });
        let rules: Vec<Rule> = [good, odd, serde_json::json!(7)].map(|rule| read_rule(&row(rule))).into();
        assert_eq!(rules[0].decision, Decision::Allow);
        assert_eq!(rules[1].surt_prefix, "com,b)/");
        assert!(matches!(rules[1].decision, Decision::Block { .. }));
        assert_eq!(rules[2].surt_prefix, "");
        assert!(matches!(rules[2].decision, Decision::Block { .. }));
    }
}
