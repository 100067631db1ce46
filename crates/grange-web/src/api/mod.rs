//! The JSON API, by noun.

mod changes;
mod session;
mod system;
mod users;

use axum::Router;
use axum::routing::{delete, get, post};
use grange_api::BASE;

use crate::Web;

pub(crate) fn routes() -> Router<Web> {
    let routes = Router::new()
        .route("/about", get(system::about))
        .route("/nodes", get(system::nodes))
        .route("/database", get(system::database))
        .route("/database/backups", post(system::backup))
        .route("/session", post(session::log_in).delete(session::log_out))
        .route("/users", get(users::list).post(users::add))
        .route("/users/{name}", get(users::show).patch(users::change))
        .route("/users/{name}/password", post(users::password))
        .route("/users/{name}/tokens", get(users::tokens).post(users::make_token))
        .route("/tokens/{id}", delete(users::revoke_token))
        .route("/changes", get(changes::list));
    Router::new().nest(BASE, routes)
}
