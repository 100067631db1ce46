//! The orders to a crawl that last: seeds, rejections, limits and pace. The frontier keeps them over restarts. A copy of them
//! elsewhere serves a crawl that is continued without its folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::changes::{self, AddedSeed, CrawlChanges, Mark, SeedOrigin};
use crate::candidate::without_user_info;

/// The lasting orders of people, by the names of the frontier's marks. URLs are without user names and passwords, and private
/// addresses are left out: only those who order them on the machine of the crawl may reach them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LastingOrders(BTreeMap<String, serde_json::Value>);

impl LastingOrders {
    /// Those among the marks of a frontier.
    pub(super) fn among<'a>(marks: impl IntoIterator<Item = (&'a String, &'a Vec<u8>)>) -> LastingOrders {
        let mut orders = LastingOrders::default();
        for (name, value) in marks {
            orders.add(name, value);
        }
        orders
    }

    /// Adds a mark if it is that of a lasting order.
    pub(super) fn add(&mut self, name: &str, value: &[u8]) {
        let kind = name.split_once('/').map_or(name, |(kind, _)| kind);
        let Ok(mut json) = serde_json::from_slice(value) else { return };
        let mut name = name.to_owned();
        match kind {
            "seed" => {
                let Ok(AddedSeed { url, origin: SeedOrigin::Order }) = serde_json::from_value(json) else {
                    return;
                };
                let (public, bytes) = changes::seed(&without_user_info(&url), SeedOrigin::Order);
                name = public;
                json = serde_json::from_slice(&bytes).unwrap_or_default();
            }
            "reject" | "limits" | "pace" => {}
            _ => return,
        }
        self.0.insert(name, json);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As marks of a frontier, and what they say. Orders of a newer version that cannot be read are left out, with a warning.
    pub(super) fn read(&self) -> (Vec<Mark>, CrawlChanges) {
        let (mut marks, mut kept) = (Vec::new(), LastingOrders::default());
        for (name, json) in &self.0 {
            let bytes = serde_json::to_vec(json).unwrap_or_default();
            match CrawlChanges::from_marks(&BTreeMap::from([(name.clone(), bytes.clone())])) {
                Ok(_) => kept.add(name, &bytes),
                Err(reason) => tracing::warn!(reason, "an order to the crawl is left out: it cannot be read"),
            }
        }
        marks.extend(
            kept.0.iter().map(|(name, json)| (name.clone(), serde_json::to_vec(json).unwrap_or_default())),
        );
        let changes = CrawlChanges::from_marks(&marks.iter().cloned().collect()).unwrap_or_default();
        (marks, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Budgets, Limits};

    #[test]
    fn lasting_orders_come_back_without_secrets_and_private_addresses() {
        let limits = Limits { max_objects: 5, ..Limits::default() };
        let ordered = Budgets { crawl: limits, ..Budgets::default() };
        let marks: BTreeMap<_, _> = [
            changes::started(jiff::Timestamp::UNIX_EPOCH),
            changes::seed("http://user:secret@e.org/", SeedOrigin::Order),
            changes::seed("http://www.e.org/", SeedOrigin::Redirect),
            changes::reject(".*x"),
            changes::limits(&Budgets::default(), &ordered),
            changes::pace(0.5),
            changes::cookies("e.org", "a"),
            changes::endpoint(&"127.0.0.1:80".parse().unwrap()),
        ]
        .into_iter()
        .collect();
        let text = serde_json::to_string(&LastingOrders::among(&marks)).unwrap();
        assert!(!text.contains("secret") && !text.contains("127.0.0.1"), "{text}");
        let mut orders: LastingOrders = serde_json::from_str(&text).unwrap();
        orders.0.insert("limits".to_owned() + "/later", serde_json::json!("of a newer version"));
        let (marks, changes) = orders.read();
        assert_eq!(marks.len(), 4);
        assert_eq!(changes.ordered_seeds().collect::<Vec<_>>(), ["http://e.org/"]);
        assert_eq!((&changes.rejects[..], changes.pace_factor), (&[".*x".to_owned()][..], Some(0.5)));
        assert_eq!(changes.budgets(&Budgets::default()), ordered);
        assert_eq!((changes.started, changes.endpoints.len()), (None, 0));
    }
}
