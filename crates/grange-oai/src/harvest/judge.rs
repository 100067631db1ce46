//! Whether a record is good enough, wanted, and what is stored of it.

use grange_model::oai::{HarvestSpec, Validation};
use oaipmh::{Level, Record};

/// A filter, normalizer or validation that cannot be used; a job with it does not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadRules(pub String);

/// What is done with a record that is not deleted.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Stored as these bytes; the text is a warning.
    Store(Vec<u8>, Option<String>),
    /// The filter does not want it.
    Unwanted,
    /// Skipped, with a warning.
    Bad(String),
    /// The harvest fails.
    Fatal(String),
}

/// The rules of one job.
#[derive(Debug)]
pub struct Judge {
    validation: Validation,
}

impl Judge {
    pub fn new(spec: &HarvestSpec) -> Result<Self, BadRules> {
        Ok(Self { validation: spec.validation })
    }

    pub fn judge(&self, record: &Record) -> Verdict {
        let loose = self.validation == Validation::Loose;
        let refuse = |text: String| if loose { Verdict::Bad(text) } else { Verdict::Fatal(text) };
        let level = record.level();
        let told = || {
            let problems: Vec<_> = record.problems.iter().take(3).map(ToString::to_string).collect();
            format!("{}: {}", name(record), problems.join(" "))
        };
        let Some(metadata) = &record.metadata else {
            let why = if record.problems.is_empty() {
                format!("{}: it has no metadata", name(record))
            } else {
                told()
            };
            return refuse(why);
        };
        if record.header.identifier.is_empty() {
            return refuse(told());
        }
        if !loose && level >= Some(Level::Repaired) {
            return Verdict::Fatal(told());
        }
        let warning = (level == Some(Level::Damage)).then(told);
        Verdict::Store(document(metadata), warning)
    }
}

/// What people call a record.
fn name(record: &Record) -> String {
    if record.header.identifier.is_empty() {
        format!("a record without identifier at byte {}", record.offset)
    } else {
        format!("record {}", record.header.identifier)
    }
}

/// The element as a file of its own.
fn document(metadata: &str) -> Vec<u8> {
    const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let mut content = Vec::with_capacity(DECLARATION.len() + metadata.len() + 1);
    content.extend_from_slice(DECLARATION.as_bytes());
    content.extend_from_slice(metadata.trim().as_bytes());
    content.push(b'\n');
    content
}
