//! What an operator sees: log lines on standard error, metrics in Prometheus text.
//!
//! Levels by what a person must do: error = act, warn = we coped, info = life events (never per URL),
//! debug = per URL. Cookies, credentials and bodies are never logged.

use std::io::IsTerminal;
use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// One readable line per event.
    Human,
    /// One JSON object per line, for log collectors.
    Json,
}

/// The log filter could not be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "log filter \"{filter}\" is not understood: write a level (info) or levels per part (info,grange_db=debug)"
)]
pub struct FilterError {
    filter: String,
    #[source]
    source: tracing_subscriber::filter::ParseError,
}

/// Starts logging to standard error. A second call changes nothing (tests start many nodes in one process).
pub fn start_logging(filter: &str, format: LogFormat) -> Result<(), FilterError> {
    let parsed = EnvFilter::builder()
        .parse(filter)
        .map_err(|source| FilterError { filter: filter.to_owned(), source })?;
    let terminal = std::io::stderr().is_terminal();
    let json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Human => false,
        LogFormat::Json => true,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_span_events(FmtSpan::NONE)
        // Its reader may be gone, and to report that there would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .with_ansi(terminal);
    // The only failure is "already set", which is the wanted state.
    let _ = if json { builder.json().flatten_event(true).try_init() } else { builder.try_init() };
    Ok(())
}

static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Seconds; from a fast SQL act to a slow upload.
const DURATION_BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0];

/// Starts collecting metrics, once per process.
pub fn start_metrics() {
    METRICS.get_or_init(|| {
        PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &DURATION_BUCKETS)
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|error| tracing::warn!(%error, "metrics are off"))
            .ok()
    });
}

/// All metrics as Prometheus text; empty when collection was never started.
pub fn render_metrics() -> String {
    METRICS.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_filter_is_refused_with_an_example() {
        let error = start_logging("grange=loudly", LogFormat::Human).unwrap_err().to_string();
        assert!(error.contains("grange=loudly") && error.contains("info,grange_db=debug"), "{error}");
    }

    #[test]
    fn what_is_counted_is_rendered() {
        start_metrics();
        metrics::counter!("grange_test_total").increment(2);
        assert!(render_metrics().contains("grange_test_total 2"));
    }
}
