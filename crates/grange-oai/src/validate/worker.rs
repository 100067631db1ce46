//! The thread that validates. Compiled schemas cannot be shared between threads, and what validates borrows them; on a
//! thread of their own both simply live on its stack.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use xsd_schema::SchemaSet;
use xsd_schema::validation::{
    SchemaValidator, ValidationError, ValidationFlags, ValidationSink, ValidationWarning, drive_quick_xml,
};

use super::catalogue::Catalogue;
use super::{BadSchemas, Verdict, Violation};

/// Violations told of one record; the first ones tell the story.
const VIOLATIONS_MAX: usize = 20;

/// Records after which the schemas are compiled anew. They remember every name they meet, and records of strangers
/// could bring a new one each.
const RECORDS_PER_COMPILATION: usize = 200_000;

/// Records to validate, and where their verdicts go.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) records: Vec<String>,
    pub(super) namespaces: Arc<[String]>,
    pub(super) answer: Sender<Vec<Verdict>>,
}

/// The verdict on a record that the validator itself failed on.
pub(super) fn failed() -> Verdict {
    Verdict::Invalid(vec![Violation {
        rule: "internal",
        message: "the validator failed on this record".into(),
    }])
}

/// Starts a thread that lives as long as somebody can send to it.
pub(super) fn start(catalogue: Catalogue) -> Result<Sender<Job>, BadSchemas> {
    let (jobs, work) = mpsc::channel();
    let (ready, state) = mpsc::channel();
    let spawned = std::thread::Builder::new().name("oai-validate".into()).spawn(move || {
        let mut first = Some(ready);
        loop {
            let compiled = catalogue.compile();
            let told = compiled.as_ref().map(|_| ()).map_err(|reason| BadSchemas::Broken(reason.clone()));
            if let Some(ready) = first.take() {
                // Nobody waiting means nobody will send.
                if ready.send(told).is_err() {
                    return;
                }
            }
            let Ok(schemas) = compiled else { return };
            if !serve(&schemas, &work) {
                return;
            }
        }
    });
    spawned.map_err(|error| BadSchemas::NoThread(error.to_string()))?;
    state.recv().unwrap_or_else(|_| Err(BadSchemas::Broken("the schemas cannot be compiled".into())))?;
    Ok(jobs)
}

/// Validates until the schemas should be compiled anew; `false` when nobody is left to send.
fn serve(schemas: &SchemaSet, work: &Receiver<Job>) -> bool {
    let validator = SchemaValidator::new(schemas, ValidationFlags::empty());
    let mut records = 0;
    while records < RECORDS_PER_COMPILATION {
        let Ok(job) = work.recv() else { return false };
        records += job.records.len();
        let verdict = |xml: &String| {
            catch_unwind(AssertUnwindSafe(|| validate(&validator, schemas, xml, &job.namespaces)))
                .unwrap_or_else(|_| failed())
        };
        // Whoever asked may have gone.
        _ = job.answer.send(job.records.iter().map(verdict).collect());
    }
    true
}

fn validate(
    validator: &SchemaValidator<'_>,
    schemas: &SchemaSet,
    xml: &str,
    namespaces: &[String],
) -> Verdict {
    let mut found = Found::default();
    let mut run = validator.start_run(&mut found);
    let driven = drive_quick_xml(xml.as_bytes(), &mut run, schemas);
    drop(run);
    if let Err(error) = driven {
        return Verdict::NotWellFormed(error.to_string());
    }
    if found.0.is_empty() {
        return Verdict::Valid;
    }
    // An unknown root is a gap in the schemas, not a fault of the record.
    match root_namespace(xml) {
        Some(namespace) if !namespaces.contains(&namespace) => Verdict::Unknown(namespace),
        _ => Verdict::Invalid(found.0),
    }
}

fn root_namespace(xml: &str) -> Option<String> {
    let document = roxmltree::Document::parse(xml).ok()?;
    Some(document.root_element().tag_name().namespace().unwrap_or_default().to_owned())
}

#[derive(Default)]
struct Found(Vec<Violation>);

impl ValidationSink for &mut Found {
    fn on_error(&mut self, error: ValidationError) {
        if self.0.len() < VIOLATIONS_MAX {
            self.0.push(Violation { rule: error.constraint, message: error.message });
        }
    }

    fn on_warning(&mut self, _warning: ValidationWarning) {}
}
