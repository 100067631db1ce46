//! The facts of metadata harvesting, a file per noun.

mod dispatch;
mod history;
mod holdings;
mod jobs;
mod page;
mod records;
mod recurring;
mod repositories;
mod supervision;

pub use dispatch::{ClaimedHarvest, Ending, OaiClaim, OaiHeartbeat};
pub use history::{OaiHistory, OaiHistoryFilter};
pub use holdings::{OaiHoldings, ServeFilter, Served};
pub use jobs::{NewOaiJob, OaiJobs};
pub use records::OaiRecords;
pub use recurring::{NewRecurring, OaiRecurring};
pub use repositories::OaiRepositories;
pub use supervision::{OaiDeadJobs, OaiPolicy};

/// `''` in a column stands for no set.
fn set_or_none(text: String) -> Option<String> {
    Some(text).filter(|set| !set.is_empty())
}
