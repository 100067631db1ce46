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
    worker.run(|| look(db, announcer, owner, lost_after, open)).await
}

/// One look: what is new is announced.
async fn look(
    db: &Db,
    announcer: &Announcer,
    owner: &str,
    lost_after: Duration,
    open: &OpenFindings,
) -> Result<Step, Error> {
    let look = db.findings().look(lost_after).await?;
    open.set(look.counts);
    let claimed = db.findings().claim_unannounced(owner, ANNOUNCE_LEASE).await?;
    if claimed.is_empty() {
        return Ok(Step::Idle);
    }
    for finding in &claimed {
        announce(announcer, finding).await;
    }
    // Only now: a node killed before this leaves them to the next.
    db.findings().announced(owner, claimed.iter().map(|finding| finding.id).collect()).await?;
    Ok(Step::More)
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

#[cfg(test)]
mod tests {
    use grange_bus::{Channels, Local};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_finding_is_one_event_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::system();
        let db = Db::open(&grange_db::Settings::default(), folder.path(), clock.clone()).await.unwrap();
        let channels = Channels::new("TEST").unwrap();
        let announcer = Announcer::new(Arc::new(Local::new()), channels, clock, "node1/node");
        let mut events = announcer.bus().subscribe(&announcer.channels().error()).await.unwrap();
        let kind = FindingKind::FailedLogVerification;
        let day = Duration::from_hours(24);
        let open = OpenFindings::default();
        let (one, two) = ("node1", "node2");
        db.findings().observe(kind, "the log of events", Some("leaf 7 is missing".to_owned())).await.unwrap();
        assert_eq!(look(&db, &announcer, one, day, &open).await.unwrap(), Step::More);
        // The same node and another one look again; then another finding comes.
        for owner in [one, two] {
            assert_eq!(look(&db, &announcer, owner, day, &open).await.unwrap(), Step::Idle);
        }
        assert_eq!(open.counts(), BTreeMap::from([(kind, 1)]));
        let other = FindingKind::DamagedAccessRule;
        db.findings().observe(other, "rules", Some("x on three".to_owned())).await.unwrap();
        assert_eq!(look(&db, &announcer, two, day, &open).await.unwrap(), Step::More);
        for (kind, subject, detail) in
            [(kind, "the log of events", "leaf 7 is missing"), (other, "rules", "x on three")]
        {
            let event = events.recv().await.unwrap();
            assert_eq!((event.kind.as_str(), event.subject.as_str()), (FINDING_EVENT, subject), "{event:?}");
            assert_eq!(event.body["advice"], kind.advice());
            assert_eq!(event.body["detail"], detail);
        }
        assert_eq!(events.waiting(), 0, "each once");
        db.close().await;
    }
}
