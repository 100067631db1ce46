//! How a command reaches the acts: through a running node, or straight into the store of a data folder, with the
//! same client either way.

use std::fmt;
use std::path::Path;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use grange_api::{ApiError, Client, HttpTransport, Transport};
use grange_app::Who;
use grange_base::Clock;
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::data::{Access, DataFolder};
use crate::node::StartError;
use crate::open;
use crate::settings::Settings;

/// A client for the data folder: asks the node that runs there, or opens the store when none does.
pub async fn client(settings: &Settings, data: &Path, user: &str) -> Result<Client, StartError> {
    match DataFolder::access(data)? {
        Access::Running(node) => {
            let transport = HttpTransport::new(&node.url, &node.token, Some(user.to_owned()))?;
            Ok(Client::new(transport))
        }
        Access::Direct(folder) => {
            let db = open::db(settings, folder.path(), Clock::system()).await?;
            let app = open::app(settings, &folder, db, Clock::system()).await?;
            let web = grange_web::Web { app, local: None, version: crate::VERSION };
            let server = format!("the store in {}", folder.path().display());
            Ok(Client::new(InProcess {
                routes: grange_web::api(web),
                who: Who::local(user),
                server,
                _folder: folder,
            }))
        }
    }
}

/// Calls the API's routes inside this process, vouching for who asks. Holds the data folder meanwhile.
struct InProcess {
    routes: Router,
    who: Who,
    server: String,
    _folder: DataFolder,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("server", &self.server).finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for InProcess {
    fn server(&self) -> &str {
        &self.server
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        let mut request = request.map(Body::from);
        request.extensions_mut().insert(self.who.clone());
        let Ok(response) = self.routes.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| ApiError::Request(error.into()))?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}
