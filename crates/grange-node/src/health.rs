//! `/healthz`: the process answers. `/readyz`: it can do its work, or what it waits for. `/metrics`: Prometheus text.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, any, get};
use axum::{Json, Router};
use grange_api::ErrorBody;
use grange_base::Chain;
use grange_base::telemetry::render_metrics;
use grange_bus::{Bus, State as BusState};
use grange_db::Db;
use serde::Serialize;

use crate::findings::OpenFindings;

/// The stable code of answers that a node gives before it has started.
pub const STARTING: &str = "node-starting";

/// What readiness is judged by. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<HealthState>);

#[derive(Debug, Default)]
struct HealthState {
    opened: OnceLock<(Db, Arc<dyn Bus>)>,
    /// What the node waits for, and why it is not there.
    waiting: Mutex<BTreeMap<&'static str, String>>,
    /// What is wrong with the machine's clock.
    clock: Mutex<Option<String>>,
    /// Shown on the node port; a finding does not make a node unready.
    findings: OpenFindings,
    /// Set once every role has started.
    started: AtomicBool,
}

/// One thing readiness depends on.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    /// A bus that is away makes Grange slower, not unready; a wrong clock is a warning.
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Check {
    fn new(name: &'static str, required: bool, reason: Option<String>) -> Self {
        Self { name, ok: reason.is_none(), required, reason }
    }
}

impl Health {
    pub fn opened(&self, db: Db, bus: Arc<dyn Bus>) {
        let _ = self.0.opened.set((db, bus));
    }

    pub fn started(&self) {
        self.0.started.store(true, Ordering::Release);
    }

    /// The node waits for a backend, for this reason; `None`: it is there.
    pub fn waits_for(&self, backend: &'static str, reason: Option<String>) {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match reason {
            Some(reason) => waiting.insert(backend, reason),
            None => waiting.remove(backend),
        };
    }

    /// The machine's clock differs too much from the database's, or no longer does.
    pub fn clock_is_wrong(&self, reason: Option<String>) {
        *self.0.clock.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// What the node waits for now, in one line.
    pub fn waiting(&self) -> Option<String> {
        let waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<_> = waiting.iter().map(|(backend, reason)| format!("{backend}: {reason}")).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }

    /// States that need a person, as this node last counted them.
    pub fn findings(&self) -> &OpenFindings {
        &self.0.findings
    }

    async fn checks(&self) -> Vec<Check> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let started = self.0.started.load(Ordering::Acquire);
        let starting = || self.waiting().unwrap_or_else(|| "the roles are starting".to_owned());
        let mut checks = vec![Check::new("started", true, (!started).then(starting))];
        if let Some((db, bus)) = self.0.opened.get() {
            let reason = db.ping().await.err().map(|error| Chain(&error).to_string());
            checks.push(Check::new("database", true, reason));
            waiting.remove("database");
            let reason = match bus.state() {
                BusState::Connected => None,
                BusState::Reconnecting { since } => Some(format!("not connected since {since}")),
            };
            checks.push(Check::new("bus", false, reason));
        }
        checks.extend(waiting.into_iter().map(|(backend, reason)| Check::new(backend, true, Some(reason))));
        if let Some(reason) = self.0.clock.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            checks.push(Check::new("clock", false, Some(reason)));
        }
        checks
    }
}

/// Safe to show to everyone who can reach the port.
pub fn public(health: Health) -> Router {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready)).with_state(health)
}

/// For the operator's network only.
pub fn private(health: Health) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready_with_findings))
        .route("/metrics", get(metrics))
        .with_state(health)
}

/// What a port of a node that has not started answers to everything else: to come back.
pub fn not_started(health: Health) -> MethodRouter {
    any(starting).with_state(health)
}

async fn starting(State(health): State<Health>, uri: Uri) -> impl IntoResponse {
    tracing::debug!(path = uri.path(), "asked before the start was over");
    let waits = health.waiting().map_or_else(String::new, |reason| format!(" and waits for the {reason}"));
    let body = ErrorBody {
        code: STARTING.to_owned(),
        message: format!("the node is starting{waits}; try again when /readyz says that it is ready"),
    };
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], Json(body))
}

async fn ready(State(health): State<Health>) -> impl IntoResponse {
    let (status, checks) = readiness(&health).await;
    (status, Json(checks))
}

async fn ready_with_findings(State(health): State<Health>) -> impl IntoResponse {
    let (status, mut checks) = readiness(&health).await;
    checks["findings"] = serde_json::json!(health.findings().counts());
    (status, Json(checks))
}

async fn readiness(health: &Health) -> (StatusCode, serde_json::Value) {
    let checks = health.checks().await;
    let ok = checks.iter().all(|check| check.ok || !check.required);
    let status = if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, serde_json::json!({ "ready": ok, "checks": checks }))
}

async fn metrics() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render_metrics())
}
