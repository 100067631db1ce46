//! The routes of a port, exchanged while it is listened on: a node answers from its first moment, first about its start,
//! then about everything.

use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use tower::ServiceExt;

/// What a port answers with now. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Front(Arc<RwLock<Router>>);

impl Front {
    pub fn new(first: Router) -> Self {
        Self(Arc::new(RwLock::new(first)))
    }

    /// Requests that come from now on are answered by these routes.
    pub fn show(&self, routes: Router) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = routes;
    }

    /// For the server.
    pub fn routes(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }
}

async fn answer(State(front): State<Front>, request: Request) -> Response {
    let routes = front.0.read().unwrap_or_else(PoisonError::into_inner).clone();
    let Ok(response) = routes.oneshot(request).await;
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::get;

    use super::*;

    #[tokio::test]
    async fn a_port_answers_by_the_routes_shown_last() {
        let front = Front::new(Router::new().route("/healthz", get(|| async { "starting" })));
        let served = front.routes();
        let status = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            served.clone().oneshot(request).await.unwrap().status()
        };
        assert_eq!(
            (status("/healthz").await, status("/acts").await),
            (StatusCode::OK, StatusCode::NOT_FOUND)
        );
        front.show(Router::new().route("/acts", get(|| async { "done" })));
        assert_eq!(
            (status("/healthz").await, status("/acts").await),
            (StatusCode::NOT_FOUND, StatusCode::OK)
        );
    }
}
