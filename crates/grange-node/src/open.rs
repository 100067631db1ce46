//! Settings become opened handles here; nothing else constructs a backend.

use std::path::Path;
use std::sync::Arc;

use grange_app::App;
use grange_base::{Clock, Shutdown};
use grange_bus::Bus;
use grange_db::Db;

use crate::data::DataFolder;
use crate::settings::Settings;

pub async fn db(settings: &Settings, data: &Path, clock: Clock) -> Result<Db, grange_db::Error> {
    Db::open(&settings.db, data, clock).await
}

pub async fn bus(
    settings: &Settings,
    data: &Path,
    clock: &Clock,
    shutdown: &Shutdown,
) -> Result<Arc<dyn Bus>, grange_bus::Error> {
    let database = match grange_db::Target::read(&settings.db, data) {
        Ok(grange_db::Target::Postgres { url }) => Some(url.to_string()),
        _ => None,
    };
    grange_bus::open(&settings.bus, database.as_deref(), clock, shutdown).await
}

/// Takes the missing migrations and gives their names.
pub async fn migrate(
    settings: &Settings,
    data: &Path,
    clock: &Clock,
) -> Result<Vec<String>, grange_db::Error> {
    Db::migrate(&settings.db, data, clock).await
}

pub async fn app(
    settings: &Settings,
    data: &DataFolder,
    db: Db,
    clock: Clock,
) -> Result<App, grange_db::Error> {
    let database = Db::status(&settings.db, data.path()).await?;
    Ok(App::new(
        db,
        clock,
        grange_app::Rules {
            session_lifetime: settings.web.session_lifetime.0,
            session_idle: settings.web.session_idle.0,
            secure_cookies: settings.web.secure_cookies,
            lost_after: settings.node.heartbeat.0 * 3,
            backups: data.backups(),
            database,
        },
    ))
}
