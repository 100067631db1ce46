//! The role oai, what it lends to the acts, and OAI-PMH served on a port of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use grange_api::Client;
use grange_api::client::segment;
use grange_app::OaiPort;
use grange_archive::ArchiveClient;
use grange_base::worker::Hint;
use grange_base::{Clock, Shutdown, Worker};
use grange_db::Db;
pub use grange_harvest::oai::filter_wants;
use grange_harvest::oai::{OaiAnswers, OaiWorker, Provider, folder_of, friends, probe};
use grange_model::HighestNumbers;
use grange_model::oai::{HarvestSpec, Identified, RepositoryId, RepositoryRules};
use tokio::net::TcpListener;

use crate::settings::{Settings, below};
use crate::supervise::Parts;

/// How often an idle harvester looks for work that nobody hinted at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Requests at most when a repository is asked who it is while a person waits: one may fail by chance.
const PROBE_ATTEMPTS_MAX: u32 = 2;

/// How often kept answers are looked for: nobody waits for them, and a replica that is away is not asked all the time.
const ANSWERS_EVERY: Duration = Duration::from_secs(30);

/// Starts the role: several harvesters, the manager, and who brings kept answers home.
pub fn role(parts: &mut Parts, worker: &OaiWorker, answers: OaiAnswers, clock: &Clock, hint: &Hint) {
    let own = clock.clone();
    parts.start("oai answers", move |shutdown| async move {
        let (name, hint) = ("oai answers".to_owned(), Hint::new());
        let work = Worker { name, interval: ANSWERS_EVERY, clock: own, shutdown, hint };
        work.run(|| answers.step()).await
    });
    let count = worker.settings().repositories_at_once.clamp(1, 64);
    let mut hints = Vec::new();
    for number in 1..=count {
        let (worker, clock, wake) = (worker.clone(), clock.clone(), Hint::new());
        hints.push(wake.clone());
        let name = format!("oai {number}");
        parts.start(&name.clone(), move |shutdown| run(worker, name, LOOK_EVERY, clock, shutdown, wake));
    }
    let (worker, clock, hint) = (worker.clone(), clock.clone(), hint.clone());
    parts.start("oai jobs", move |shutdown| async move {
        let work = Worker { name: "oai jobs".to_owned(), interval: LOOK_EVERY, clock, shutdown, hint };
        work.run(|| async {
            let step = worker.manage_step().await;
            // A hint is about new work as well as about new plans; the harvesters hear it once it is planned.
            hints.iter().for_each(Hint::wake);
            step
        })
        .await
    });
}

async fn run(
    worker: OaiWorker,
    name: String,
    interval: Duration,
    clock: Clock,
    shutdown: Shutdown,
    hint: Hint,
) -> Result<(), grange_base::worker::WorkerError> {
    let stop = shutdown.clone();
    let work = Worker { name, interval, clock, shutdown, hint };
    work.run(|| worker.work_step(&stop)).await
}

/// Who harvests: the worker of this node, named by it.
pub fn worker(settings: &Settings, data: &Path, db: &Db, clock: &Clock, owner: &str) -> OaiWorker {
    let mut own = settings.oai.clone();
    own.schemas = below(data, &own.schemas);
    OaiWorker::new(db.clone(), clock.clone(), own, root(settings, data), owner)
}

/// Who brings kept answers of this node home.
pub fn answers(
    settings: &Settings,
    data: &Path,
    db: &Db,
    archive: Arc<dyn ArchiveClient>,
    by: &str,
) -> OaiAnswers {
    OaiAnswers::new(db.clone(), archive, root(settings, data), by)
}

fn root(settings: &Settings, data: &Path) -> PathBuf {
    below(data, &settings.oai.folder)
}

/// The numbers in the names of folders of repositories and of the files of responses that wait there: a database that
/// forgot them gives them to nobody else.
pub fn numbers_of_folders(settings: &Settings, data: &Path) -> HighestNumbers {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let (root, mut highest) = (root(settings, data), HighestNumbers::default());
    for name in names(&root) {
        highest.see_repository_folder(&name);
        let responses = grange_harvest::oai::answers_below(&root.join(&name));
        for file in names(&responses) {
            highest.see_file(file.trim_end_matches(".open"));
        }
    }
    highest
}

/// What the acts of metadata harvesting use.
#[derive(Debug)]
pub struct Port {
    settings: Settings,
    root: PathBuf,
    clock: Clock,
    provider: Provider,
    hint: Hint,
    /// For commands without a node: works while somebody waits.
    alone: Option<OaiWorker>,
    working: AtomicBool,
}

/// A command that was killed leaves its job to the next one after so long.
const ALONE_LEASE: Duration = Duration::from_secs(10);

impl Port {
    /// For a node, where the role does the work and hears the hint.
    pub fn of_node(settings: &Settings, data: &Path, db: &Db, clock: &Clock, hint: Hint) -> Self {
        let root = root(settings, data);
        let provider = Provider::new(db.clone(), clock.clone(), root.clone(), &settings.oai);
        let (settings, clock) = (settings.clone(), clock.clone());
        Self { settings, root, clock, provider, hint, alone: None, working: AtomicBool::new(false) }
    }

    /// For a command, which does the work itself while it waits for it.
    pub fn of_command(settings: &Settings, data: &Path, db: &Db, clock: &Clock) -> Self {
        let mut own = settings.clone();
        own.oai.lease.0 = own.oai.lease.0.min(ALONE_LEASE);
        let alone = worker(&own, data, db, clock, &format!("command {}", std::process::id()));
        Self { alone: Some(alone), ..Self::of_node(settings, data, db, clock, Hint::new()) }
    }
}

#[async_trait]
impl OaiPort for Port {
    async fn probe(&self, base_url: &str) -> Result<Identified, String> {
        // A person waits for the answer, and a wrong URL stays wrong: a harvest has more patience.
        let attempts = self.settings.oai.attempts.min(PROBE_ATTEMPTS_MAX);
        let settings = grange_harvest::oai::Settings { attempts, ..self.settings.oai.clone() };
        let probed = probe(base_url, &settings, &self.clock, &Shutdown::never()).await;
        probed.map_err(|error| format!("{error}; check the URL, and whether the repository is up"))
    }

    async fn friends(&self, text: Option<&str>, url: Option<&str>) -> Result<Vec<String>, String> {
        if let Some(text) = text {
            return Ok(friends(text));
        }
        let url = url.ok_or("a list of repositories is a text or lies at an address")?;
        grange_harvest::oai::fetch_friends(url, &self.settings.oai).await
    }

    fn check(&self, spec: &HarvestSpec) -> Result<(), String> {
        grange_harvest::oai::check(spec)
    }

    async fn provide(
        &self,
        base_url: &str,
        arguments: Vec<(String, String)>,
    ) -> Result<String, grange_app::Error> {
        Ok(self.provider.answer(base_url, arguments).await?)
    }

    fn wake(&self) {
        self.hint.wake();
    }

    fn attend(&self) {
        let Some(worker) = &self.alone else { return };
        if self.working.swap(true, Ordering::Relaxed) {
            return;
        }
        // Both end with the process; what they leave is taken up by whoever comes next.
        let (clock, work) = (self.clock.clone(), worker.clone());
        let soon = Duration::from_millis(100);
        tokio::spawn(run(work, "oai".to_owned(), soon, clock, Shutdown::never(), Hint::new()));
        let (clock, worker) = (self.clock.clone(), worker.clone());
        tokio::spawn(async move {
            let (name, shutdown, hint) = ("oai jobs".to_owned(), Shutdown::never(), Hint::new());
            let work = Worker { name, interval: Duration::from_secs(1), clock, shutdown, hint };
            let _ = work.run(|| worker.manage_step()).await;
        });
    }

    fn folder(&self, id: RepositoryId, rules: &RepositoryRules) -> PathBuf {
        folder_of(&self.root, id, rules)
    }
}

/// A request's arguments are short; identifiers and tokens have some hundred bytes.
const FORM_BYTES_MAX: usize = 64 << 10;

/// Serves OAI-PMH at every path of a port, over whatever the client reaches.
pub async fn serve(client: Client, listener: TcpListener, shutdown: Shutdown) -> std::io::Result<()> {
    let routes = Router::new()
        .fallback(answer)
        .layer(axum::extract::DefaultBodyLimit::max(FORM_BYTES_MAX))
        .with_state(client);
    crate::serve::serve(listener, routes, shutdown).await
}

async fn answer(
    State(client): State<Client>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let form = String::from_utf8_lossy(&body);
    let query = match method {
        Method::GET | Method::HEAD => uri.query().unwrap_or_default(),
        Method::POST => form.trim(),
        _ => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let base_url = format!("http://{host}{}", uri.path());
    let path = format!("/oai/provide?base_url={}&query={}", segment(&base_url), segment(query));
    match client.get_bytes(&path).await {
        Ok((_, body)) => {
            let kind = HeaderValue::from_static("text/xml; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], axum::body::Body::new(body)).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "an OAI-PMH request could not be answered");
            // Harvesters wait and ask again.
            (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "30")], error.to_string())
                .into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database that was restored by hand, or lost, has forgotten the repositories; their folders have not.
    #[test]
    fn folders_of_repositories_and_responses_that_wait_there_keep_their_numbers() {
        let (settings, data) = (Settings::default(), tempfile::tempdir().unwrap());
        assert!(numbers_of_folders(&settings, data.path()).is_empty(), "there is no folder yet");
        let root = root(&settings, data.path());
        for (repository, file) in
            [("4", "oai-9-20260101120000-00000.warc.gz"), ("17", "oai-12-20260101120000-00000.warc.gz.open")]
        {
            let responses = grange_harvest::oai::answers_below(&root.join(repository));
            std::fs::create_dir_all(&responses).unwrap();
            std::fs::write(responses.join(file), b"").unwrap();
        }
        std::fs::create_dir_all(root.join("+journal")).unwrap();
        let seen = HighestNumbers { oai_job: 12, oai_repository: 17, ..HighestNumbers::default() };
        assert_eq!(numbers_of_folders(&settings, data.path()), seen);
    }
}
