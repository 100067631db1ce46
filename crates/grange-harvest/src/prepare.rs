//! Making ready: who crawls a job, as whom, with which logins, and the folder it begins in.

use std::path::PathBuf;
use std::sync::Arc;

use grange_base::{Chain, Vault, VaultError};
use grange_crawl::candidate::without_user_info;
use grange_db::JobClaim;
use grange_model::harvest::JobSpec;
use grange_model::harvest::job::SealedCredential;

use crate::engine::{Engine, EngineError, Login, Operator, Order};
use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Harvester, Parts};
use crate::seed_owners::SeedOwners;

impl Harvester {
    /// Makes the folder of a job. If that fails there is none. `metadata_number` is in the name of its metadata file.
    pub(crate) fn prepare(
        &self,
        claim: &JobClaim,
        spec: JobSpec,
        metadata_number: u32,
    ) -> Result<JobFolder, EngineError> {
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
            metadata_number,
            earlier_attempts: metadata_number > 1,
            aliases: spec.aliases.clone(),
            duplicate_reduction_jobs: spec.duplicate_reduction_jobs.clone(),
            harvester: name.clone(),
            claim_token: claim.token,
            attempt: claim.attempt,
            job: spec.job.clone(),
        };
        let failed = |path: PathBuf, source| EngineError::Io { doing: "make", path, source };
        JobFolder::create(base, &info, clock.now(), failed, |folder| {
            // It becomes a record of the metadata file: no user names and passwords.
            let seeds: Vec<_> =
                spec.seeds().iter().map(|seed| without_user_info(seed).into_owned()).collect();
            let seeds = seeds.join("\n") + "\n";
            let at = |path: PathBuf| move |source| failed(path, source);
            folder.write("seeds.txt", seeds.as_bytes()).map_err(at(folder.seeds()))?;
            folder.write("template.toml", spec.template_text.as_bytes()).map_err(at(folder.template()))?;
            SeedOwners::save(folder, &spec).map_err(at(folder.root().to_owned()))?;
            engine.prepare(folder, &Order { spec, logins, who: self.operator() })
        })
    }

    /// The engine that a folder was made for.
    pub(crate) fn engine_in(&self, folder: &JobFolder) -> Option<Arc<dyn Engine>> {
        self.engine_for(&std::fs::read_to_string(folder.template()).ok()?).ok()
    }

    pub(crate) fn engine_for(&self, template: &str) -> Result<Arc<dyn Engine>, EngineError> {
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
        let told = |error: VaultError| EngineError::Job(Chain(&error).to_string());
        let vault = Vault::open(path).map_err(told)?;
        let open = |sealed: &SealedCredential| {
            let what = format!("credential {} {}", sealed.domain, sealed.name);
            Ok(Login {
                domain: sealed.domain.to_string(),
                realm: sealed.realm.clone(),
                user: sealed.username.clone(),
                password: vault.unseal(&what, &sealed.sealed).map_err(told)?,
                url: sealed.url.clone(),
                form: sealed.form.clone(),
            })
        };
        spec.credentials.iter().map(open).collect()
    }

    fn operator(&self) -> Operator {
        let Parts { settings, host, .. } = &self.0.parts;
        Operator {
            operator: settings.operator.clone(),
            organization: settings.organization.clone(),
            contact_url: settings.contact_url.clone(),
            from: settings.from.clone(),
            host: host.clone(),
        }
    }
}
