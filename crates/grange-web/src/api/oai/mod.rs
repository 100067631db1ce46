//! The API of metadata harvesting, by noun.

mod export;
mod jobs;
mod repositories;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};

use crate::Web;
use crate::error::Refusal;

/// Answers are the nouns of the model, which say what they hold.
type Shown = Result<Response, Refusal>;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route(
            "/oai/repositories/{id}",
            get(repositories::show).patch(repositories::change).delete(repositories::delete),
        )
        .route("/oai/repositories/{id}/harvest", post(jobs::harvest))
        .route("/oai/jobs", get(jobs::list))
        .route("/oai/jobs/{id}", get(jobs::show).delete(jobs::delete))
        .route("/oai/schedules", get(jobs::schedules).post(jobs::add_schedule))
        .route("/oai/schedules/{id}", axum::routing::put(jobs::change_schedule).delete(jobs::delete_schedule))
        .route("/oai/history", get(jobs::history))
        .route("/oai/history/delete", post(jobs::delete_history))
}

/// Acts that ask repositories, or carry everything that is held of one.
pub(super) fn long_routes() -> Router<Web> {
    Router::new()
        .route("/oai/repositories", get(repositories::list).post(repositories::add))
        .route("/oai/repositories/{id}/refresh", post(repositories::refresh))
        .route("/oai/repositories/{id}/export", get(export::export))
        .route("/oai/friends", post(repositories::friends))
        .route("/oai/provide", get(export::provide))
}
