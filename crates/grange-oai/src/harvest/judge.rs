//! Whether a record is good enough, wanted, and what is stored of it.

use std::path::Path;

use grange_model::oai::{HarvestSpec, Validation};
use oaipmh::{Level, Record};

use crate::filter::Filter;
use crate::normalize::Normalizer;
use crate::rules::{Document, RuleError};
use crate::validate::{self, Validator};

/// A filter, normalizer or validation that cannot be used; a job with it does not start.
#[derive(Debug, thiserror::Error)]
#[error("the {what} cannot be used: {reason}")]
pub struct UnusableRules {
    what: &'static str,
    reason: String,
}

/// What is done with a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The repository says it is gone.
    Deleted,
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
    filter: Option<Filter>,
    normalizer: Option<Normalizer>,
    validator: Option<Validator>,
}

impl Judge {
    /// Reads the rules of a job. `namespace` is that of its format, where known; `schemas` a folder with further XML
    /// Schemas.
    pub fn new(
        spec: &HarvestSpec,
        namespace: Option<&str>,
        schemas: Option<&Path>,
    ) -> Result<Self, UnusableRules> {
        let unusable = |what, reason: String| UnusableRules { what, reason };
        let filter = spec.filter.as_deref().map(Filter::parse).transpose();
        let normalizer = spec.normalize.as_deref().map(Normalizer::parse).transpose();
        let validator = match spec.validation {
            Validation::VeryStrict => {
                let schemas = schemas.filter(|folder| folder.is_dir());
                let made = schemas.map_or_else(Validator::shipped, Validator::with_folder);
                Some(made.map_err(|error| unusable("validation", error.to_string()))?)
            }
            _ => None,
        };
        if let (Some(validator), Some(namespace)) = (&validator, namespace)
            && !validator.knows(namespace)
        {
            let reason =
                format!("no XML Schema is at hand for {namespace}; put it into the folder of schemas");
            return Err(unusable("validation", reason));
        }
        Ok(Self {
            validation: spec.validation,
            filter: filter.map_err(|error| unusable("filter", error.to_string()))?,
            normalizer: normalizer.map_err(|error| unusable("normalizer", error.to_string()))?,
            validator,
        })
    }

    /// Whether judging takes so long that it is nothing for a thread that others wait for.
    pub(super) fn is_costly(&self) -> bool {
        self.filter.is_some() || self.normalizer.is_some() || self.validator.is_some()
    }

    pub fn judge(&self, record: &Record) -> Verdict {
        let wrong = self.candidate(record).and_then(|metadata| {
            self.validator.as_ref().and_then(|validator| wrong(validator.validate(metadata)))
        });
        self.verdict(record, wrong)
    }

    /// The verdicts on many records, in their order: validating them together is faster.
    pub(super) fn judge_all(&self, records: &[Record]) -> Vec<Verdict> {
        let Some(validator) = &self.validator else {
            return records.iter().map(|record| self.verdict(record, None)).collect();
        };
        let candidates = records.iter().filter_map(|record| self.candidate(record));
        let mut validated = validator.validate_all(candidates.map(str::to_owned).collect()).into_iter();
        let judged = records.iter().map(|record| {
            let wrong = self.candidate(record).and_then(|_| validated.next()).and_then(wrong);
            self.verdict(record, wrong)
        });
        judged.collect()
    }

    /// The metadata of a record that is to be validated.
    fn candidate<'r>(&self, record: &'r Record) -> Option<&'r str> {
        self.validator.as_ref()?;
        record.metadata.as_deref().filter(|_| !is_deleted(record))
    }

    /// The verdict, where `wrong` is what XML Schema has against the record.
    fn verdict(&self, record: &Record, wrong: Option<String>) -> Verdict {
        if is_deleted(record) {
            return Verdict::Deleted;
        }
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
        if let Some(wrong) = wrong {
            return Verdict::Fatal(format!("{}: {wrong}", name(record)));
        }
        let warning = (level == Some(Level::Damage)).then(told);
        if self.filter.is_none() && self.normalizer.is_none() {
            return Verdict::Store(document(metadata), warning);
        }
        match self.ruled(metadata) {
            Ok(Some(content)) => Verdict::Store(content, warning),
            Ok(None) => Verdict::Unwanted,
            Err(error) => refuse(format!("{}: {error}", name(record))),
        }
    }

    /// What filter and normalizer make of a record; nothing if it is not wanted.
    fn ruled(&self, metadata: &str) -> Result<Option<Vec<u8>>, RuleError> {
        let parsed = Document::parse(metadata)?;
        if let Some(filter) = &self.filter
            && !filter.matches_document(&parsed)?
        {
            return Ok(None);
        }
        Ok(Some(match &self.normalizer {
            Some(normalizer) => document(&normalizer.apply_document(&parsed)?),
            None => document(metadata),
        }))
    }
}

/// Whether the repository says that a record is gone. One without a name cannot be.
fn is_deleted(record: &Record) -> bool {
    record.header.deleted && !record.header.identifier.is_empty()
}

/// What is wrong with a record by the XML Schema of its format.
fn wrong(verdict: validate::Verdict) -> Option<String> {
    match verdict {
        validate::Verdict::Valid => None,
        validate::Verdict::Invalid(violations) => {
            let told: Vec<_> = violations.iter().take(3).map(ToString::to_string).collect();
            Some(told.join("; "))
        }
        validate::Verdict::Unknown(namespace) => Some(format!("no XML Schema is at hand for {namespace}")),
        validate::Verdict::NotWellFormed(reason) => Some(reason),
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

#[cfg(test)]
mod tests {
    use oaipmh::{Limits, PageReader};

    use super::*;

    /// The first record of a page with this in its metadata.
    fn record(metadata: &str) -> Record {
        let page = format!(
            "<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><ListRecords><record><header><identifier>oai:x:1\
             </identifier><datestamp>2026-01-01</datestamp></header>{metadata}</record></ListRecords></OAI-PMH>"
        );
        PageReader::read(page.as_bytes(), Limits::default()).into_records().items.remove(0)
    }

    fn verdict(validation: Validation, filter: Option<&str>, metadata: &str) -> Verdict {
        let spec =
            HarvestSpec { validation, filter: filter.map(str::to_owned), ..HarvestSpec::all("oai_dc") };
        Judge::new(&spec, None, None).unwrap().judge(&record(metadata))
    }

    const DC: &str = "<metadata><oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/' \
                      xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>A</dc:title></oai_dc:dc></metadata>";

    #[test]
    fn each_level_judges_as_it_says() {
        use Validation::{Loose, Strict, VeryStrict};
        let broken = "<metadata><a>x & y</a></metadata>";
        let foreign = DC.replace("dc:title", "dc:tittle");
        for (level, metadata, expected) in [
            (Loose, DC, "store"),
            (Strict, DC, "store"),
            (VeryStrict, DC, "store"),
            (Loose, broken, "store"),
            (Strict, broken, "fatal"),
            (Loose, "", "bad"),
            (Strict, "", "fatal"),
            (Strict, foreign.as_str(), "store"),
            (VeryStrict, foreign.as_str(), "fatal"),
            (VeryStrict, "<metadata><a xmlns='urn:a'/></metadata>", "fatal"),
        ] {
            let got = match verdict(level, None, metadata) {
                Verdict::Store(content, _) => {
                    assert!(content.starts_with(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<"));
                    validate::well_formed(std::str::from_utf8(&content).unwrap()).unwrap();
                    "store"
                }
                Verdict::Deleted | Verdict::Unwanted => "unwanted",
                Verdict::Bad(_) => "bad",
                Verdict::Fatal(_) => "fatal",
            };
            assert_eq!(got, expected, "{level} {metadata}");
        }
    }

    #[test]
    fn rules_that_cannot_work_are_refused_before_the_first_request() {
        let spec =
            HarvestSpec { filter: Some("<filters><filter/></filters>".to_owned()), ..HarvestSpec::all("x") };
        assert!(
            Judge::new(&spec, None, None).unwrap_err().to_string().starts_with("the filter cannot be used")
        );
        let spec = HarvestSpec { validation: Validation::VeryStrict, ..HarvestSpec::all("x") };
        assert!(Judge::new(&spec, Some("urn:unknown"), None).is_err());
        let wanted = "<filters><filter xpath='//*' regexp='B'/></filters>";
        assert_eq!(verdict(Validation::Loose, Some(wanted), DC), Verdict::Unwanted);
    }
}
