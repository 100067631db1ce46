//! `/healthz`: the process answers. `/readyz`: it can do its work. `/metrics`: Prometheus text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use grange_base::Chain;
use grange_base::telemetry::render_metrics;
use grange_bus::{Bus, State as BusState};
use grange_db::Db;
use serde::Serialize;

use crate::findings::OpenFindings;

/// What readiness is judged by, and what is shown beside it.
#[derive(Clone, Debug)]
pub struct Health {
    pub db: Db,
    pub bus: Arc<dyn Bus>,
    /// Set once every role has started.
    pub started: Arc<AtomicBool>,
    /// Shown on the node port; a finding does not make a node unready.
    pub findings: OpenFindings,
}

/// One thing readiness depends on.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    /// A bus that is away makes Grange slower, not unready.
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
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

async fn ready(State(health): State<Health>) -> impl IntoResponse {
    let (status, checks) = readiness(&health).await;
    (status, Json(checks))
}

async fn ready_with_findings(State(health): State<Health>) -> impl IntoResponse {
    let (status, mut checks) = readiness(&health).await;
    checks["findings"] = serde_json::json!(health.findings.counts());
    (status, Json(checks))
}

async fn readiness(health: &Health) -> (StatusCode, serde_json::Value) {
    let db = health.db.ping().await;
    let bus = match health.bus.state() {
        BusState::Connected => None,
        BusState::Reconnecting { since } => Some(format!("not connected since {since}")),
    };
    let started = health.started.load(Ordering::Acquire);
    let checks = [
        Check { name: "started", ok: started, required: true, reason: None },
        Check {
            name: "database",
            ok: db.is_ok(),
            required: true,
            reason: db.err().map(|error| Chain(&error).to_string()),
        },
        Check { name: "bus", ok: bus.is_none(), required: false, reason: bus },
    ];
    let ok = checks.iter().all(|check| check.ok || !check.required);
    let status = if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, serde_json::json!({ "ready": ok, "checks": checks }))
}

async fn metrics() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render_metrics())
}
