//! The JSON API, by noun.

mod archive;
mod changes;
mod collections;
mod harvest;
mod oai;
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
        .route("/nodes/{name}", delete(system::forget_node))
        .route("/findings", get(system::findings))
        .route("/database", get(system::database))
        .route("/database/backups", post(system::backup))
        .route("/session", post(session::log_in).delete(session::log_out))
        .route("/users", get(users::list).post(users::add))
        .route("/users/{name}", get(users::show).patch(users::change))
        .route("/users/{name}/password", post(users::password))
        .route("/users/{name}/tokens", get(users::tokens).post(users::make_token))
        .route("/tokens/{id}", delete(users::revoke_token))
        .route("/changes", get(changes::list))
        .merge(collections::routes())
        .merge(harvest::routes())
        .merge(oai::routes());
    Router::new().nest(BASE, routes)
}

/// Routes that carry whole files or read whole replicas: neither their size nor their time has the usual bounds.
pub(crate) fn long_routes() -> Router<Web> {
    let routes = Router::new()
        .route("/files", get(archive::list).post(archive::store_path))
        .route("/files/{name}", get(archive::show).put(archive::store_bytes))
        .route("/files/{name}/content", get(archive::content))
        .route("/files/{name}/record", get(archive::record))
        .route("/files/{name}/proof", get(archive::proof))
        .route("/replicas", get(archive::replicas))
        .route("/replicas/{name}/adopt", post(archive::adopt_replica))
        .route("/audits", get(archive::audits).post(archive::start_audits))
        .route("/strays", get(archive::strays))
        .route("/deposits", get(archive::deposits))
        .route("/repairs", get(archive::repairs).post(archive::repair_all))
        .route("/repairs/{id}/confirm", post(archive::confirm))
        .route("/repairs/{id}/withdraw", post(archive::withdraw_repair))
        .route("/files/{name}/decide", post(archive::decide))
        .route("/files/{name}/withdraw", post(archive::withdraw_deposit))
        .route("/log/verify", get(archive::verify_log))
        .route("/log/keys", get(archive::log_keys).post(archive::rotate_log_key))
        .route("/archive/rebuild", post(archive::rebuild))
        .merge(collections::long_routes())
        .merge(harvest::long_routes())
        .merge(oai::long_routes());
    Router::new().nest(BASE, routes)
}
