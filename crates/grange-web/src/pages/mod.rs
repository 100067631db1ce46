//! The pages. So far one: who answers here, and where to go on.

use axum::Router;
use axum::extract::State;
use axum::response::Html;
use axum::routing::get;

use crate::Web;

pub(crate) fn routes() -> Router<Web> {
    Router::new().route("/", get(home))
}

/// Says nothing that a stranger may not know: nobody is logged in here.
async fn home(State(web): State<Web>) -> Html<String> {
    Html(include_str!("home.html").replace("{version}", web.version))
}
