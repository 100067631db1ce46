//! What can be asked of a running crawl, and what it answers. The same words go over the control socket.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::candidate::without_user_info;
use crate::job::LimitsChange;

/// An order to a running crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Tell how it goes.
    Status,
    /// Fetch nothing new. What is under way ends.
    Pause,
    Resume,
    /// End the crawl in order: what is queued stays unfinished.
    Stop,
    /// Close the chunk being written and begin another.
    Rotate,
    /// Start from more URLs.
    AddSeeds {
        urls: Vec<String>,
        /// Their addresses that are not public, each with its port.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        endpoints: Vec<SocketAddr>,
    },
    /// Take no URL that matches any more, and drop those that wait.
    Reject {
        regex: String,
    },
    /// Change limits of the whole crawl, or of one domain. Those that are not named stay.
    SetLimits {
        #[serde(default)]
        domain: Option<String>,
        limits: LimitsChange,
    },
    /// Multiply all waiting times: 2 is half as fast, 0.5 twice as fast.
    SetPace {
        factor: f64,
    },
    /// List queues, after the one with this cursor.
    Queues {
        #[serde(default)]
        after: Option<u32>,
        limit: usize,
    },
    /// Show what waits in a queue.
    Peek {
        queue: String,
        limit: usize,
    },
    /// Drop what waits in a queue.
    DeleteQueue {
        queue: String,
    },
    /// Try hosts again at once that could not be reached: one queue, or all.
    Revive {
        #[serde(default)]
        queue: Option<String>,
    },
    /// Drop what waits and matches, without rejecting it for ever.
    Delete {
        regex: String,
    },
}

impl Order {
    /// Whether it changes anything; such orders are written to control.log.
    pub fn is_change(&self) -> bool {
        !matches!(self, Order::Status | Order::Queues { .. } | Order::Peek { .. })
    }

    /// As control.log names it: without user names and passwords of URLs.
    pub(super) fn for_the_log(&self) -> Order {
        match self {
            Order::AddSeeds { urls, endpoints } => {
                let urls = urls.iter().map(|url| without_user_info(url).into_owned()).collect();
                Order::AddSeeds { urls, endpoints: endpoints.clone() }
            }
            other => other.clone(),
        }
    }
}

/// An order with the name of who gives it, as it goes over the socket: one line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub who: String,
    pub order: Order,
}

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    #[error("{0}")]
    Bad(String),
    #[error("the crawl has ended")]
    Ended,
    #[error("the crawl could not do it: {0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_one_line_of_json() {
        for (text, order) in [
            (r#"{"do":"pause"}"#, Order::Pause),
            (
                r#"{"do":"add-seeds","urls":["http://e.org/"]}"#,
                Order::AddSeeds { urls: vec!["http://e.org/".into()], endpoints: Vec::new() },
            ),
            (
                r#"{"do":"add-seeds","urls":["http://[::1]/"],"endpoints":["[::1]:80"]}"#,
                Order::AddSeeds {
                    urls: vec!["http://[::1]/".into()],
                    endpoints: vec!["[::1]:80".parse().unwrap()],
                },
            ),
            (
                r#"{"do":"set-limits","domain":null,"limits":{"max_objects":5}}"#,
                Order::SetLimits {
                    domain: None,
                    limits: LimitsChange { max_objects: Some(5), ..LimitsChange::default() },
                },
            ),
            (r#"{"do":"queues","after":null,"limit":10}"#, Order::Queues { after: None, limit: 10 }),
        ] {
            assert_eq!(serde_json::from_str::<Order>(text).unwrap(), order);
            assert_eq!(serde_json::to_string(&order).unwrap(), text);
        }
        assert!(serde_json::from_str::<Order>(r#"{"do":"explode"}"#).is_err());
    }
}
