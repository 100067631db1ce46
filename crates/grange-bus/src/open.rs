//! From settings to a running bus: the only place that names the backends.

use std::sync::Arc;

use grange_base::{Clock, Shutdown};

use crate::address::Address;
use crate::bus::Bus;
use crate::error::Error;
use crate::local::Local;
use crate::nats::Nats;
use crate::postgres::Postgres;
use crate::settings::Settings;

/// Opens the bus that `bus.url` names. `database_url` is the caller's own database, meant by `postgres:` alone.
///
/// A server that cannot be reached now is an error: whoever starts a node wants to know. Once open, the bus
/// reconnects by itself until `shutdown`, which ends its subscriptions.
pub async fn open(
    settings: &Settings,
    database_url: Option<&str>,
    clock: &Clock,
    shutdown: &Shutdown,
) -> Result<Arc<dyn Bus>, Error> {
    // A bad name would only show at the first channel made.
    settings.channels()?;
    Ok(match Address::read(&settings.url, database_url)? {
        Address::Local => Arc::new(Local::until(shutdown, settings.buffer())),
        Address::Postgres(url) => Arc::new(Postgres::open(&url, settings, clock, shutdown).await?),
        Address::Nats(servers) => Arc::new(Nats::open(servers, settings, clock, shutdown).await?),
    })
}
