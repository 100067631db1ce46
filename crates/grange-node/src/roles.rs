//! The roles a node can play. Each is one function below that starts it; starting order is this file's order.

use std::sync::Arc;
use std::time::Duration;

use grange_app::App;
use grange_archive::Archive;
use grange_base::worker::Hint;
use grange_base::{Clock, Worker};
use grange_model::node::NodeRole;
use tokio::net::TcpListener;

use crate::health::{self, Health};
use crate::serve;
use crate::supervise::Parts;

/// The roles this version has. Others of the design are refused by name until their code is there.
pub const AVAILABLE: &[NodeRole] = &[NodeRole::Bitarchive, NodeRole::Archiver, NodeRole::Admin];

/// A role was asked for that cannot be played.
#[derive(Debug, thiserror::Error)]
#[error("this version of Grange does not have the role {role} yet; it has {}", names(AVAILABLE))]
pub struct RoleError {
    role: NodeRole,
}

fn names(roles: &[NodeRole]) -> String {
    roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The roles to play: what was asked for, each once, in starting order; everything when nothing was asked.
pub fn chosen(asked: &[NodeRole]) -> Result<Vec<NodeRole>, RoleError> {
    if let Some(role) = asked.iter().find(|role| !AVAILABLE.contains(role)) {
        return Err(RoleError { role: *role });
    }
    Ok(AVAILABLE.iter().copied().filter(|role| asked.is_empty() || asked.contains(role)).collect())
}

/// How often an idle archiver looks for work that nobody hinted at.
const ARCHIVE_EVERY: Duration = Duration::from_secs(5);
/// How often the calendar of checks is looked at.
const CALENDAR_EVERY: Duration = Duration::from_secs(60);

/// Archiver: stores that are not proven yet, checks, and the calendar of both.
pub fn archiver(parts: &mut Parts, archive: &Archive, clock: &Clock) {
    let worker = |name: &str, interval, hint| {
        let (name, clock) = (name.to_owned(), clock.clone());
        move |shutdown| Worker { name, interval, clock, shutdown, hint }
    };
    let (files, work) = (worker("archive", ARCHIVE_EVERY, archive.hint().clone()), archive.clone());
    parts.start("archiver", |shutdown| async move { files(shutdown).run(|| work.work_step()).await });
    let (calendar, archive) = (worker("calendar", CALENDAR_EVERY, Hint::new()), archive.clone());
    parts.start("calendar", |shutdown| async move { calendar(shutdown).run(|| archive.tick()).await });
}

/// Admin: the pages and the JSON API.
pub fn admin(
    parts: &mut Parts,
    listener: TcpListener,
    app: App,
    local: Arc<grange_web::LocalToken>,
    health: Health,
) {
    let web = grange_web::Web { app, local: Some(local), version: crate::VERSION };
    let routes = grange_web::site(web).merge(health::public(health));
    parts.start("admin", |shutdown| serve::serve(listener, routes, shutdown));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_played_once() {
        assert_eq!(chosen(&[]).unwrap(), AVAILABLE);
        assert_eq!(chosen(&[NodeRole::Admin, NodeRole::Admin]).unwrap(), [NodeRole::Admin]);
    }
}
