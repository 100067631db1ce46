//! Announcing findings: one log line, one event and one count for each, whichever node comes first; and the number that
//! is open, for monitors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grange_base::worker::{Hint, Step};
use grange_base::{Clock, Shutdown, Worker, WorkerError};
use grange_bus::Announcer;
use grange_db::{Db, Error, Finding};
use grange_model::FindingKind;
use grange_model::ids::NodeId;
use serde_json::json;

/// How often the rows are looked at: an operator hears of a finding within seconds, and a dozen small statements from
/// each node are nothing to a database.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Longer than writing a hundred lines takes. A node killed in the midst of it holds up the rest for so long.
const ANNOUNCE_LEASE: Duration = Duration::from_secs(30);

/// The kind of the events on the channel ERROR.
pub const FINDING_EVENT: &str = "finding";

/// How many findings of each kind are open, as the last look saw it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OpenFindings(Arc<Mutex<BTreeMap<FindingKind, u64>>>);

impl OpenFindings {
    /// Kinds of which none is open are left out.
    pub fn counts(&self) -> BTreeMap<FindingKind, u64> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().filter(|(_, count)| **count > 0).map(|(kind, count)| (*kind, *count)).collect()
    }

    fn set(&self, counts: BTreeMap<FindingKind, u64>) {
        for (kind, count) in &counts {
            metrics::gauge!("grange_findings_open", "kind" => kind.as_str()).set(*count as f64);
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}

/// Looks for findings and announces them, on every node: one alone must notice that the others are lost.
pub async fn watch(
    db: Db,
    announcer: Announcer,
    node: NodeId,
    lost_after: Duration,
    open: OpenFindings,
    clock: Clock,
    shutdown: Shutdown,
) -> Result<(), WorkerError> {
    let (name, hint) = ("findings".to_owned(), Hint::new());
    let worker = Worker { name, interval: LOOK_EVERY, clock, shutdown, hint };
    let (db, announcer, open, owner) = (&db, &announcer, &open, &node.to_string());
    worker
        .run(|| async move {
            let look = db.findings().look(lost_after).await?;
            open.set(look.counts);
            let claimed = db.findings().claim_unannounced(owner, ANNOUNCE_LEASE).await?;
            if claimed.is_empty() {
                return Ok::<_, Error>(Step::Idle);
            }
            for finding in &claimed {
                announce(announcer, finding).await;
            }
            // Only now: a node killed before this leaves them to the next.
            db.findings().announced(owner, claimed.iter().map(|finding| finding.id).collect()).await?;
            Ok(Step::More)
        })
        .await
}

async fn announce(announcer: &Announcer, finding: &Finding) {
    let Finding { id, kind, subject, detail, .. } = finding;
    let advice = kind.advice();
    tracing::error!(
        finding = id,
        kind = kind.as_str(),
        subject,
        "{kind}: {subject}{}{detail}; {advice}",
        if detail.is_empty() { "" } else { ": " }
    );
    metrics::counter!("grange_findings_total", "kind" => kind.as_str()).increment(1);
    let body = json!({ "finding": id, "kind": kind, "detail": detail, "advice": advice });
    announcer.event(&announcer.channels().error(), FINDING_EVENT, subject, body).await;
}
