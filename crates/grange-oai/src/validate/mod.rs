//! Whether records are what their format says: XML Schema, from schemas at hand. Nothing is ever fetched.
//!
//! Schemas are found by namespace, not by the `schemaLocation` of records, which is wrong or dead more often than not.
//! Those of oai_dc and Dublin Core are shipped; others are read from a folder.

mod catalogue;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use catalogue::Catalogue;
use worker::Job;

/// Schemas that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSchemas {
    /// The folder or a file in it cannot be read.
    #[error("cannot read the schemas in {folder}: {reason}")]
    Unreadable {
        /// The folder.
        folder: String,
        /// Why.
        reason: String,
    },
    /// A schema is wrong, or needs another that is not at hand.
    #[error("the XML Schemas do not fit together: {0}")]
    Broken(String),
    /// The thread for validation could not be started.
    #[error("cannot start the thread that validates: {0}")]
    NoThread(String),
}

/// Why a record is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule of XML Schema, like `cvc-complex-type.2.4`.
    pub rule: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.rule)
    }
}

/// What validation says of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what its format says.
    Valid,
    /// It is not.
    Invalid(Vec<Violation>),
    /// No schema is at hand for the namespace of its root element.
    Unknown(String),
    /// It is no XML document at all.
    NotWellFormed(String),
}

/// Validates records against the schemas at hand. Cheap to clone; the clones share one thread.
#[derive(Clone, Debug)]
pub struct Validator {
    jobs: Sender<Job>,
    namespaces: Arc<[String]>,
}

impl Validator {
    /// With the schemas that are shipped.
    pub fn shipped() -> Result<Validator, BadSchemas> {
        Validator::of(Catalogue::shipped())
    }

    /// With the schemas that are shipped and all `*.xsd` of a folder, which win where both have a namespace.
    pub fn with_folder(folder: &Path) -> Result<Validator, BadSchemas> {
        let catalogue = Catalogue::shipped().with_folder(folder).map_err(|error| BadSchemas::Unreadable {
            folder: folder.display().to_string(),
            reason: error.to_string(),
        })?;
        Validator::of(catalogue)
    }

    fn of(catalogue: Catalogue) -> Result<Validator, BadSchemas> {
        let namespaces = catalogue.namespaces().into();
        let jobs = worker::start(catalogue)?;
        Ok(Validator { jobs, namespaces })
    }

    /// Whether records of this namespace can be validated.
    pub fn knows(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|known| known == namespace)
    }

    /// Validates one record.
    pub fn validate(&self, record_xml: &str) -> Verdict {
        let verdict = self.validate_all(vec![record_xml.to_owned()]).pop();
        verdict.unwrap_or_else(worker::failed)
    }

    /// Validates many records, which is faster than one by one. The verdicts are in the order of the records.
    pub fn validate_all(&self, records: Vec<String>) -> Vec<Verdict> {
        let count = records.len();
        let (answer, verdicts) = mpsc::channel();
        let sent = self.jobs.send(Job { records, namespaces: self.namespaces.clone(), answer });
        let mut verdicts = sent.ok().and_then(|()| verdicts.recv().ok()).unwrap_or_default();
        verdicts.resize_with(count, worker::failed);
        verdicts
    }
}

/// Whether a text is a well-formed document, with its namespaces.
pub fn well_formed(xml: &str) -> Result<(), String> {
    let options = roxmltree::ParsingOptions { allow_dtd: false, ..roxmltree::ParsingOptions::default() };
    roxmltree::Document::parse_with_options(xml, options).map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
