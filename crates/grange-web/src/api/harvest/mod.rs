//! The curators' part of the API, by noun.

mod domains;
mod harvests;
mod jobs;
mod lanes;
mod recipes;

use axum::Router;
use axum::response::Response;
use axum::routing::{delete, get, post, put};

use crate::Web;
use crate::error::Refusal;

/// Answers are the nouns of the model, which say what they hold.
type Shown = Result<Response, Refusal>;

/// More rows than anybody reads; a program takes the next page.
const PAGE_MAX: u32 = 10_000;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/domains", get(domains::list).post(domains::create))
        .route("/domains/{name}", get(domains::show).patch(domains::change))
        .route("/domains/{name}/history", get(domains::history))
        .route("/domains/{name}/configurations", post(domains::add_configuration))
        .route(
            "/domains/{name}/configurations/{configuration}",
            axum::routing::patch(domains::change_configuration).delete(domains::delete_configuration),
        )
        .route("/domains/{name}/seeds", get(domains::seed_lists))
        .route("/domains/{name}/seeds/{list}", put(domains::save_seeds).delete(domains::delete_seeds))
        .route("/domains/{name}/logins", get(domains::logins))
        .route("/domains/{name}/logins/{login}", put(domains::save_login).delete(domains::delete_login))
        .route("/aliases", get(domains::aliases))
        .route("/schedules", get(recipes::schedules).put(recipes::save_schedule))
        .route("/schedules/{name}", get(recipes::schedule).delete(recipes::delete_schedule))
        .route("/schedules/{name}/dates", get(recipes::schedule_dates))
        .route("/templates", get(recipes::templates))
        .route(
            "/templates/{name}",
            get(recipes::template).put(recipes::put_template).patch(recipes::activate_template),
        )
        .route("/traps", get(recipes::trap_lists))
        .route(
            "/traps/{name}",
            get(recipes::trap_list)
                .put(recipes::save_traps)
                .patch(recipes::activate_traps)
                .delete(recipes::delete_traps),
        )
        .route("/fields/{noun}", get(recipes::fields).put(recipes::save_field))
        .route("/fields/{noun}/{name}", delete(recipes::delete_field))
        .route("/harvests", get(harvests::list).post(harvests::create))
        .route("/harvests/{name}", get(harvests::show).patch(harvests::change))
        .route("/harvests/{name}/active", put(harvests::activate))
        .route("/harvests/{name}/now", post(harvests::run_now))
        .route("/harvests/{name}/domains", get(harvests::members).post(harvests::add))
        .route("/harvests/{name}/domains/remove", post(harvests::remove))
        .route("/harvests/{name}/runs", get(harvests::runs))
        .route("/jobs", get(jobs::list))
        .route("/jobs/resubmit", post(jobs::resubmit))
        .route("/jobs/{id}", get(jobs::show))
        .route("/jobs/{id}/progress", get(jobs::progress))
        .route("/jobs/{id}/reject", post(jobs::reject).delete(jobs::unreject))
        .route("/jobs/{id}/cancel", post(jobs::cancel))
        .route("/channels", get(lanes::channels).post(lanes::create))
        .route("/channels/{name}", delete(lanes::delete))
        .route("/channels/{name}/default", post(lanes::set_default))
        .route("/harvesters", get(lanes::harvesters))
}

/// Acts that read every domain or carry whole files.
pub(super) fn long_routes() -> Router<Web> {
    Router::new()
        .route("/domain-counts", get(domains::counts))
        .route("/harvests/{name}/preview", get(harvests::preview))
        .route("/harvests/{name}/seeds", post(harvests::add_seeds))
        .route("/trap-test", post(recipes::test_traps))
        .route("/jobs/{id}/configurations", get(jobs::configurations))
}
