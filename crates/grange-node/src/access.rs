//! How a command reaches the acts: through a running node, or straight into the store of a data folder, with the
//! same client either way.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use grange_api::{ApiError, Body as ApiBody, Client, HttpTransport, Transport};
use grange_app::{OpenArchive, Who};
use grange_base::worker::Hint;
use grange_base::{Chain, Clock, Shutdown, Worker};
use grange_db::Db;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::data::{Access, DataFolder};
use crate::node::StartError;
use crate::settings::Settings;
use crate::{oai, open};

/// A client for the data folder: asks the node that runs there, or opens the store when none does.
pub async fn client(settings: &Settings, data: &Path, user: &str) -> Result<Client, StartError> {
    match DataFolder::access(data)? {
        Access::Running(node) => {
            let transport = HttpTransport::new(&node.url, &node.token, Some(user.to_owned()))?;
            Ok(Client::new(transport))
        }
        Access::Direct(folder) => {
            let db = open::db(settings, folder.path(), Clock::system()).await?;
            let archive = working_archive(settings, folder.path(), &db);
            let port = oai::Port::of_command(settings, folder.path(), &db, &Clock::system());
            let app = open::app(settings, &folder, db, Clock::system(), archive.clone(), None).await?;
            let app = app.with_oai(Arc::new(port));
            let web = grange_web::Web { app, local: None, version: crate::VERSION };
            let server = format!("the store in {}", folder.path().display());
            Ok(Client::new(InProcess {
                routes: grange_web::api(web),
                who: Who::local(user),
                server,
                archive,
                sealed: AtomicBool::new(false),
                _folder: folder,
            }))
        }
    }
}

/// The archive for a command without a node: opened when it is asked for, its work done by this process meanwhile.
pub(crate) fn working_archive(settings: &Settings, data: &Path, db: &Db) -> OpenArchive {
    let (settings, data, db) = (settings.clone(), data.to_owned(), db.clone());
    OpenArchive::new(move || {
        let (settings, data, db) = (settings.clone(), data.clone(), db.clone());
        Box::pin(async move {
            let archive =
                open::archive(settings, data, db, Clock::system(), "command".to_owned(), None, None).await?;
            let worker = |name: &str, hint: &Hint| Worker {
                name: name.to_owned(),
                interval: Duration::from_millis(250),
                clock: Clock::system(),
                shutdown: Shutdown::never(),
                hint: hint.clone(),
            };
            // They end with the process; the next one resumes what they leave.
            let (files, work) = (worker("archive", archive.hint()), archive.clone());
            tokio::spawn(async move { files.run(|| work.store_step()).await });
            let (audits, work) = (worker("audits", archive.audit_hint()), archive.clone());
            tokio::spawn(async move {
                let never = Shutdown::never();
                audits.run(|| work.audit_step(&never)).await
            });
            Ok(archive)
        })
    })
}

/// Calls the API's routes inside this process, vouching for who asks. Holds the data folder meanwhile.
struct InProcess {
    routes: Router,
    who: Who,
    server: String,
    archive: OpenArchive,
    /// The log was signed, as far as that was due, since something was done.
    sealed: AtomicBool,
    _folder: DataFolder,
}

impl InProcess {
    /// What a node does by the calendar, for archives that are only ever used by commands: once per command.
    async fn seal(&self) {
        let Some(archive) = self.archive.opened() else { return };
        if self.sealed.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(error) = archive.seal().await {
            tracing::warn!(error = %Chain(&error), "the log could not be signed; the next command tries again");
        }
    }
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

    async fn send(&self, request: Request<ApiBody>) -> Result<Response<ApiBody>, ApiError> {
        let acts = request.method() != Method::GET;
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.who.clone());
        let Ok(response) = self.routes.clone().oneshot(request).await;
        if acts && response.status().is_success() {
            self.seal().await;
        }
        Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
    }
}
