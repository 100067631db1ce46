//! The roles a node can play. Each is one function below that starts it; starting order is this file's order.

use std::sync::Arc;

use grange_app::App;
use grange_model::node::NodeRole;
use tokio::net::TcpListener;

use crate::health::{self, Health};
use crate::serve;
use crate::supervise::Parts;

/// The roles this version has. Others of the design are refused by name until their code is there.
pub const AVAILABLE: &[NodeRole] = &[NodeRole::Admin];

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
