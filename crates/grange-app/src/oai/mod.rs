//! The acts of metadata harvesting: repositories, harvests, schedules, history, export, and serving it all again.

mod export;
mod jobs;
mod repositories;
mod schedules;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use grange_model::oai::{HarvestSpec, Identified, RepositoryId, RepositoryRules};

use crate::{App, Error};

/// What a node lends to these acts: the network, and somebody who works.
#[async_trait]
pub trait OaiPort: fmt::Debug + Send + Sync {
    /// Asks a repository who it is; the error is a sentence.
    async fn probe(&self, base_url: &str) -> Result<Identified, String>;

    /// The base URLs in a list of repositories, which is a text or lies at an address.
    async fn friends(&self, text: Option<&str>, url: Option<&str>) -> Result<Vec<String>, String>;

    /// Whether a job can be run as it says; the error is a sentence.
    fn check(&self, spec: &HarvestSpec) -> Result<(), String>;

    /// Answers an OAI-PMH request over what was harvested.
    async fn provide(&self, base_url: &str, arguments: Vec<(String, String)>) -> Result<String, Error>;

    /// There is work: whoever does it need not wait for its hour.
    fn wake(&self);

    /// Somebody waits for work to be done: where nobody does it, do it here.
    fn attend(&self);

    /// Where a repository's files are.
    fn folder(&self, id: RepositoryId, rules: &RepositoryRules) -> PathBuf;
}

impl App {
    /// With the means to harvest metadata; without it those acts are refused.
    #[must_use]
    pub fn with_oai(self, oai: Arc<dyn OaiPort>) -> Self {
        Self { oai: Some(oai), ..self }
    }

    fn oai(&self) -> Result<&dyn OaiPort, Error> {
        self.oai.as_deref().ok_or_else(|| Error::Invalid("metadata cannot be harvested here".to_owned()))
    }

    /// The answer to an OAI-PMH request. Whoever may look may ask.
    pub async fn oai_provide(
        &self,
        who: &crate::Who,
        base_url: &str,
        arguments: Vec<(String, String)>,
    ) -> Result<String, Error> {
        who.needs(grange_model::Permission::View)?;
        self.oai()?.provide(base_url, arguments).await
    }
}
