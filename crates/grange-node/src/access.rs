//! How a command reaches the acts: through a running node, or straight into the store of a data folder, with the
//! same client either way.

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use grange_api::{ApiError, Body as ApiBody, Client, HttpTransport, Transport};
use grange_app::{OpenArchive, Who};
use grange_base::worker::Hint;
use grange_base::{Chain, Clock, Shutdown, Worker};
use grange_db::Db;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::data::{Access, DataFolder, WAIT_MAX};
use crate::node::StartError;
use crate::open::Speaking;
use crate::peer::auth::NodeAuth;
use crate::peer::proof::NodeToken;
use crate::settings::{Settings, below};
use crate::{health, oai, open};

/// How often a node that is starting is asked again.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A client for the data folder: asks the node that runs there, or opens the store when none does. A node that is
/// starting is waited for.
pub async fn client(settings: &Settings, data: &Path, user: &str) -> Result<Client, StartError> {
    let database = open::database_file(settings, data);
    let start = Instant::now();
    let mut told = false;
    loop {
        let node = match DataFolder::access(data, database.as_deref()).await? {
            Access::Direct(folder) => return direct(settings, folder, user).await,
            Access::Running(node) => node,
        };
        let transport = HttpTransport::new(&node.url, &node.token, Some(user.to_owned()))?;
        let client = Client::new(transport);
        // A node that restarts has another key, and says so by refusing this one.
        let Some(reason) = not_yet(client.get::<serde_json::Value>("/about").await) else {
            return Ok(client);
        };
        let (pid, data) = (node.pid, data.to_owned());
        if start.elapsed() >= WAIT_MAX {
            return Err(StartError::NotYet { data, pid, reason });
        }
        if !told {
            told = true;
            let (most, data) = (WAIT_MAX.as_secs(), data.display());
            let _ = writeln!(
                std::io::stderr(),
                "grange: waits up to {most} s for the node on {data} (process {pid}): {reason}"
            );
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Why a node does not answer commands yet; `None` when it does, or refuses for a reason that waiting does not end.
fn not_yet(answer: Result<serde_json::Value, ApiError>) -> Option<String> {
    match answer {
        Err(ApiError::Refused { status: StatusCode::UNAUTHORIZED, .. }) => {
            Some("it does not take the key in run/node.json: it is restarting".to_owned())
        }
        Err(ApiError::Refused { body, .. }) if body.code == health::STARTING => Some(body.message),
        Err(error @ ApiError::Unreachable { .. }) => Some(Chain(&error).to_string()),
        _ => None,
    }
}

/// The acts inside this process, on the store of a folder that no node uses.
async fn direct(settings: &Settings, folder: DataFolder, user: &str) -> Result<Client, StartError> {
    let db = open::db(settings, folder.path(), Clock::system()).await?;
    let clock = db.clock();
    let speaking = speaking(settings, &folder, clock.clone()).await?;
    let archive = working_archive(settings, folder.path(), &db, speaking);
    let port = oai::Port::of_command(settings, folder.path(), &db, &clock);
    let app = open::app(settings, &folder, db, clock, archive.clone(), None).await?;
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

/// The archive for a command without a node: opened when it is asked for, its work done by this process meanwhile.
pub(crate) fn working_archive(settings: &Settings, data: &Path, db: &Db, speaking: Speaking) -> OpenArchive {
    let (settings, data, db) = (settings.clone(), data.to_owned(), db.clone());
    OpenArchive::new(move || {
        let (settings, data, db) = (settings.clone(), data.clone(), db.clone());
        let speaking = Some(speaking.clone());
        Box::pin(async move {
            let (clock, name) = (db.clock(), "command".to_owned());
            let archive = open::archive(settings, data, db, clock.clone(), name, speaking, None).await?;
            let worker = |name: &str, hint: &Hint| Worker {
                name: name.to_owned(),
                interval: Duration::from_millis(250),
                clock: clock.clone(),
                shutdown: Shutdown::never(),
                hint: hint.clone(),
            };
            // They end with the process; the next one resumes what they leave.
            let (files, work) = (worker("archive", archive.hint()), archive.clone());
            tokio::spawn(async move {
                let never = Shutdown::never();
                files.run(|| work.store_step(&never)).await
            });
            let (repairs, work) = (worker("repairs", &Hint::new()), archive.clone());
            tokio::spawn(async move {
                let never = Shutdown::never();
                repairs.run(|| work.repair_step(&never)).await
            });
            let (audits, work) = (worker("audits", archive.audit_hint()), archive.clone());
            tokio::spawn(async move {
                let never = Shutdown::never();
                audits.run(|| work.audit_step(&never)).await
            });
            Ok(archive)
        })
    })
}

/// Other nodes are asked in the name of the node whose folder a command uses.
pub(crate) async fn speaking(
    settings: &Settings,
    folder: &DataFolder,
    clock: Clock,
) -> Result<Speaking, StartError> {
    let path = below(folder.path(), &settings.node.token_file);
    let read = tokio::task::spawn_blocking(move || NodeToken::read_or_make(&path)).await;
    let token = read.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
    let auth = NodeAuth { node: folder.node_id()?.to_string(), token, clock };
    Ok(Speaking { auth: Arc::new(auth), offers: None })
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
