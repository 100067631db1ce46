//! One job, from its claim to an empty folder.

use std::io;
use std::path::PathBuf;

use grange_base::{Chain, Vault};
use grange_db::{JobClaim, JobReport};
use grange_model::harvest::JobSpec;
use tokio::sync::{mpsc, watch};

use crate::crawling::{Watch, Watched};
use crate::dedup;
use crate::deposit::{Depositor, closed};
use crate::engine::{ClosedFile, Engine, EngineError, Login, OracleHandle, Order, Outcome, Run, Wish};
use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Error, Harvester, Parts};
use crate::metadata;
use crate::papers::JobPapers;
use crate::pulse::Pulse;
use crate::report::{Cause, Ending, UploadFailure, report};
use crate::statistics;
use crate::watchdog::Patience;

/// Where the ending of a crawl is kept in its folder.
const OUTCOME: &str = "outcome.json";
/// What the names of files being written end in.
const OPEN: &str = "open";

impl Harvester {
    /// A job that was just claimed: makes its folder, and goes on from there.
    pub(crate) async fn new_job(&self, claim: JobClaim) -> Result<(), Error> {
        let Parts { db, settings, alias_lifetime, .. } = self.parts();
        let spec = db.jobs().spec(claim.job, *alias_lifetime).await?;
        let folder = match self.prepare(&claim, spec) {
            Ok(folder) => folder,
            Err(EngineError::Job(reason)) => {
                // It would fail anywhere: there is nothing to store, and a person must look at it.
                tracing::warn!(job = %claim.job, reason, "the job cannot be crawled");
                let report = JobReport { harvest_errors: Some(reason), ..JobReport::default() };
                db.jobs().finish(&claim, report).await?;
                self.tell_ended(&claim).await;
                return Ok(());
            }
            Err(error) => {
                tracing::error!(job = %claim.job, error = %Chain(&error), "the job cannot be prepared here");
                db.jobs().release(&claim).await?;
                return Ok(());
            }
        };
        db.jobs().start(&claim, settings.lease.0).await?;
        self.bring_home(folder, Some(claim)).await
    }

    /// Makes the folder of a job. If that fails there is none.
    fn prepare(&self, claim: &JobClaim, spec: JobSpec) -> Result<JobFolder, EngineError> {
        let Parts { clock, folder: base, name, settings, .. } = self.parts();
        let engine = self.engine_for(&spec.template_text)?;
        let logins = self.logins(&spec)?;
        let info = HarvestInfo {
            version: HarvestInfo::VERSION,
            harvest_comments: spec.harvest_comments.clone(),
            audience: spec.audience.clone(),
            schedule: spec.schedule.clone(),
            operator: settings.operator.clone(),
            file_prefix: spec.file_prefix(),
            metadata_number: claim.attempt.max(1),
            aliases: spec.aliases.clone(),
            duplicate_reduction_jobs: spec.duplicate_reduction_jobs.clone(),
            harvester: name.clone(),
            claim_token: claim.token,
            job: spec.job.clone(),
        };
        let failed = |path: PathBuf| move |source| EngineError::Io { doing: "make", path, source };
        let folder = JobFolder::create(base, &info, clock.now()).map_err(failed(base.clone()))?;
        let prepared = || {
            let seeds = spec.seeds().join("\n") + "\n";
            folder.write("seeds.txt", seeds.as_bytes()).map_err(failed(folder.seeds()))?;
            folder
                .write("template.toml", spec.template_text.as_bytes())
                .map_err(failed(folder.template()))?;
            engine.prepare(&folder, &Order { spec, logins, who: self.operator() })
        };
        if let Err(error) = prepared() {
            // Nothing was fetched into it.
            let _ = folder.remove();
            return Err(error);
        }
        Ok(folder)
    }

    /// Brings a folder as far as it goes: crawl, papers, deposit, report. Without a claim what is there is only closed,
    /// documented and stored. Every step can be repeated.
    pub(crate) async fn bring_home(&self, folder: JobFolder, claim: Option<JobClaim>) -> Result<(), Error> {
        let Parts { db, clock, settings, .. } = self.parts();
        let info = folder.info().map_err(Error::io("read", folder.root()))?;
        let (tell, signs) = watch::channel(None);
        let pulse = claim
            .clone()
            .map(|claim| Pulse::start(db.clone(), clock.clone(), settings, claim, signs.clone()));
        let ending = match folder.load::<Ending>(OUTCOME) {
            Ok(ending) => ending,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(ending) = self.crawl(&folder, &info, pulse.as_ref(), &tell).await? else {
                    return Ok(());
                };
                folder.save(OUTCOME, &ending).map_err(Error::io("write", folder.root()))?;
                ending
            }
            Err(error) => return Err(Error::io("read", folder.root())(error)),
        };
        // From here on the harvester lives, but there is no crawl to tell of.
        tell.send_replace(None);
        let stored = self.0.shutdown.or(self.store_all(&folder, &info)).await;
        let Some(Stored { files, failures, papers }) = stored else { return Ok(()) };
        drop(pulse);
        if let Some(claim) = claim.filter(|_| !folder.is_reported()) {
            let cancelled = match ending.cause {
                Some(Cause::Cancelled) => db.jobs().get(claim.job).await?.and_then(|job| job.harvest_errors),
                _ => None,
            };
            let report = report(&ending, cancelled.as_deref(), papers.as_deref(), files, &failures);
            match db.jobs().finish(&claim, report).await {
                Ok(reported) => tracing::info!(job = %claim.job, done = reported.done, "the job is reported"),
                // What was captured is stored all the same.
                Err(grange_db::Error::LeaseLost { .. }) => {
                    tracing::warn!(job = %claim.job, "the job is somebody else's or over; nothing was reported");
                }
                Err(error) => return Err(error.into()),
            }
            self.tell_ended(&claim).await;
        }
        if failures.is_empty() && papers.is_none() {
            folder.remove().map_err(Error::io("remove", folder.root()))
        } else {
            folder.set_reported().map_err(Error::io("write", folder.root()))
        }
    }

    /// Crawls to an end. None if that is for later: this process ends, or the job was lost.
    async fn crawl(
        &self,
        folder: &JobFolder,
        info: &HarvestInfo,
        pulse: Option<&Pulse>,
        signs: &watch::Sender<Option<crate::engine::Sign>>,
    ) -> Result<Option<Ending>, Error> {
        let template =
            std::fs::read_to_string(folder.template()).map_err(Error::io("read", folder.root()))?;
        let engine = match self.engine_for(&template) {
            Ok(engine) => engine,
            Err(error) => {
                return Ok(Some(broken(folder, None, &error).map_err(Error::io("read", folder.root()))?));
            }
        };
        let Parts { archive, clock, settings, .. } = self.parts();
        let oracle = self.oracle(info).await;
        let (chunks, closed_chunks) = mpsc::unbounded_channel();
        let depositor = Depositor { archive: &**archive, clock, folder, by: self.parts().name.clone() };
        let mut depositing = std::pin::pin!(depositor.chunks(closed_chunks));
        let (wish, wanted) = watch::channel(if pulse.is_some() { Wish::Run } else { Wish::Stop });
        let run = Run { folder: folder.clone(), oracle, progress: signs.clone(), chunks, wish: wanted };
        let watch = Watch {
            clock,
            shutdown: &self.0.shutdown,
            patience: Patience {
                inactivity: settings.inactivity_timeout.0,
                no_response: settings.no_response_timeout.0,
            },
            stop_within: settings.stop_within.0,
            heard: pulse.map(Pulse::listen),
        };
        let mut all_deposited = false;
        let watched = {
            let mut crawling = std::pin::pin!(watch.over(&*engine, run, wish, signs.subscribe()));
            tokio::select! {
                watched = &mut crawling => watched,
                // Ends only when nobody closes chunks any more.
                () = &mut depositing => {
                    all_deposited = true;
                    crawling.await
                }
            }
        };
        if !all_deposited && self.0.shutdown.or(depositing).await.is_none() {
            return Ok(None);
        }
        let interrupted = || pulse.is_none().then_some(Cause::Interrupted);
        let ending = match watched {
            Watched::Suspended => return Ok(None),
            Watched::Ended(_, Some(Cause::LeaseLost))
            | Watched::Broke(_, Some(Cause::LeaseLost))
            | Watched::CutOff(Cause::LeaseLost) => {
                // Whoever looks at the folder next finds out whether the job can be had again.
                tracing::warn!(job = %info.job.id, "the lease of the job was lost; its crawl was stopped");
                self.look_again();
                return Ok(None);
            }
            Watched::Ended(outcome, cause) => ended(outcome, cause.or_else(interrupted)),
            Watched::Broke(error, cause) => {
                let Some(closed) = self.close(&*engine, folder).await else { return Ok(None) };
                Ending {
                    error: Some(Chain(&error).to_string()),
                    cause: cause.or_else(interrupted),
                    outcome: None,
                    domains: closed,
                }
            }
            Watched::CutOff(cause) => {
                let Some(closed) = self.close(&*engine, folder).await else { return Ok(None) };
                Ending { error: None, cause: Some(cause), outcome: None, domains: closed }
            }
        };
        Ok(Some(ending))
    }

    /// Closes the files of a crawl that broke off, and counts what it has. None if this process ends.
    async fn close(
        &self,
        engine: &dyn Engine,
        folder: &JobFolder,
    ) -> Option<Vec<grange_model::harvest::DomainReport>> {
        let (progress, _) = watch::channel(None);
        let (chunks, _) = mpsc::unbounded_channel();
        let (_wish, wanted) = watch::channel(Wish::Stop);
        let oracle = OracleHandle(std::sync::Arc::new(grange_crawl::record::NoOracle));
        let run = Run { folder: folder.clone(), oracle, progress, chunks, wish: wanted };
        match self.0.shutdown.or(engine.run(run)).await? {
            Ok(outcome) => Some(outcome.domains),
            Err(error) => {
                tracing::error!(folder = folder.name(), error = %Chain(&error), "the crawl cannot be closed in order; its files are mended");
                Some(statistics::of_logs(&folder.logs(), &[]).unwrap_or_default().domains)
            }
        }
    }

    /// Documents a crawl that ended, and deposits everything that is still here.
    async fn store_all(&self, folder: &JobFolder, info: &HarvestInfo) -> Stored {
        let Parts { archive, clock, settings, software, host, .. } = self.parts();
        let depositor = Depositor { archive: &**archive, clock, folder, by: self.parts().name.clone() };
        let attempts = if folder.is_reported() { 1 } else { settings.upload_attempts };
        let known =
            self.engine_in(folder).and_then(|engine| engine.closed_files(folder).ok()).unwrap_or_default();
        let mut files = match closed_files(folder, &known) {
            Ok(files) => files,
            Err(error) => {
                let failure = UploadFailure { file: folder.name(), reason: error.to_string() };
                return Stored { files: 1, failures: vec![failure], papers: None };
            }
        };
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let papers = JobPapers {
            info: info.clone(),
            organization: settings.organization.clone(),
            software: software.clone(),
            host: host.clone(),
            ip: None,
            at: clock.now(),
        };
        // The papers need every file noted, and are made before any file goes.
        let (place, paths) = (folder.clone(), files.iter().map(|file| file.path.clone()).collect::<Vec<_>>());
        let written = tokio::task::spawn_blocking(move || {
            for path in &paths {
                metadata::note_file(&place, path)?;
            }
            metadata::write(&place, &papers)
        });
        let papers = match written.await {
            Ok(Ok(path)) => {
                if path.exists() {
                    files.push(closed(path));
                }
                None
            }
            Ok(Err(error)) => Some(format!("the metadata file cannot be written: {}", Chain(&error))),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let failures = depositor.all(&files, attempts).await;
        Stored { files: files.len(), failures, papers }
    }

    async fn oracle(&self, info: &HarvestInfo) -> OracleHandle {
        let Parts { archive, dedup_cache, .. } = self.parts();
        match dedup::oracle_for(&**archive, dedup_cache, &info.duplicate_reduction_jobs).await {
            Ok(prepared) => {
                if !prepared.missing.is_empty() {
                    let missing = &prepared.missing;
                    tracing::warn!(job = %info.job.id, ?missing, "nothing is known of jobs that this one continues from");
                }
                OracleHandle(prepared.oracle)
            }
            Err(error) => {
                tracing::warn!(job = %info.job.id, error = %Chain(&error), "crawling without duplicate reduction");
                OracleHandle(std::sync::Arc::new(grange_crawl::record::NoOracle))
            }
        }
    }

    fn engine_in(&self, folder: &JobFolder) -> Option<std::sync::Arc<dyn Engine>> {
        self.engine_for(&std::fs::read_to_string(folder.template()).ok()?).ok()
    }

    fn engine_for(&self, template: &str) -> Result<std::sync::Arc<dyn Engine>, EngineError> {
        let Parts { engines, .. } = self.parts();
        let found = engines.iter().find(|engine| engine.understands(template));
        found.cloned().ok_or_else(|| {
            let names: Vec<_> = engines.iter().map(|engine| engine.name()).collect();
            EngineError::Job(format!(
                "no engine here understands the template; there is {}",
                names.join(", ")
            ))
        })
    }

    fn logins(&self, spec: &JobSpec) -> Result<Vec<Login>, EngineError> {
        if spec.credentials.is_empty() {
            return Ok(Vec::new());
        }
        let path = &self.parts().vault;
        if !path.exists() {
            let reason = format!(
                "the job has logins, and {} is not on this machine: copy it from where logins are kept",
                path.display()
            );
            return Err(EngineError::Job(reason));
        }
        let told = |error: grange_base::VaultError| EngineError::Job(Chain(&error).to_string());
        let vault = Vault::open(path).map_err(told)?;
        let open = |sealed: &grange_model::harvest::job::SealedCredential| {
            let what = format!("credential {} {}", sealed.domain, sealed.name);
            Ok(Login {
                domain: sealed.domain.to_string(),
                realm: sealed.realm.clone(),
                user: sealed.username.clone(),
                password: vault.unseal(&what, &sealed.sealed).map_err(told)?,
            })
        };
        spec.credentials.iter().map(open).collect()
    }

    async fn tell_ended(&self, claim: &JobClaim) {
        if let Some(announcer) = &self.parts().announcer {
            announcer.hint(&announcer.channels().harvestmon(), "job-ended", &claim.job.to_string()).await;
        }
    }

    fn parts(&self) -> &Parts {
        &self.0.parts
    }
}

/// What became of the files of a folder.
struct Stored {
    files: usize,
    failures: Vec<UploadFailure>,
    /// Why the papers could not be made.
    papers: Option<String>,
}

fn ended(outcome: Outcome, cause: Option<Cause>) -> Ending {
    Ending { domains: outcome.domains.clone(), outcome: Some(outcome), cause, error: None }
}

fn broken(folder: &JobFolder, cause: Option<Cause>, error: &EngineError) -> io::Result<Ending> {
    let domains = statistics::of_logs(&folder.logs(), &[])?.domains;
    Ok(Ending { outcome: None, cause, error: Some(Chain(error).to_string()), domains })
}

/// Every WARC file that is still here, once the crawl has ended. One that was left open is cut at its last whole record.
/// Those that the engine closed itself are told as it knows them.
fn closed_files(folder: &JobFolder, known: &[ClosedFile]) -> io::Result<Vec<ClosedFile>> {
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(folder.warcs()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == OPEN) {
            let whole = path.with_extension("");
            if warc::write::recover(&path)?.records == 0 {
                std::fs::remove_file(&path)?;
                continue;
            }
            std::fs::rename(&path, &whole)?;
            files.push(closed(whole));
        } else {
            let told = known.iter().find(|file| file.path == path).cloned();
            files.push(told.unwrap_or_else(|| closed(path)));
        }
    }
    Ok(files)
}
