//! What a job is reported with: errors of the harvest and of the upload apart. A pure function.

use std::time::Duration;

use grange_crawl::engine::LoginTrouble;
use grange_db::JobReport;
use grange_model::harvest::{DomainReport, StopReason};
use serde::{Deserialize, Serialize};

use crate::engine::{End, Outcome};

/// Why a crawl was ended from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A person wanted it.
    Cancelled,
    /// Nothing was finished for so long.
    Inactive(Duration),
    /// Nothing was heard for so long.
    NoResponse(Duration),
    /// The job belongs to somebody else now.
    LeaseLost,
    /// It was found after its harvester died, and could not go on.
    Interrupted,
}

/// How the crawl of a job ended; kept in its folder, so that nothing after it crawls again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// None when the crawl broke off.
    pub outcome: Option<Outcome>,
    pub cause: Option<Cause>,
    /// What the engine said when it broke off.
    pub error: Option<String>,
    /// Of every domain met.
    pub domains: Vec<DomainReport>,
}

/// A file that is not on every replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadFailure {
    pub file: String,
    pub reason: String,
}

/// How long texts of errors may be; NetarchiveSuite's bounds.
const DETAILS_CHARS_MAX: usize = 10_000;

/// The report of a job.
pub fn report(
    ending: &Ending,
    cancelled_by: Option<&str>,
    papers: Option<&str>,
    files: usize,
    failures: &[UploadFailure],
) -> JobReport {
    let mut harvest_error_details = None;
    let troubles = ending.outcome.as_ref().map_or(&[][..], |one| &one.login_troubles);
    let mut harvest_errors = match &ending.cause {
        Some(Cause::Cancelled) => Some(cancelled_by.unwrap_or("it was cancelled").to_owned()),
        Some(Cause::Inactive(patience)) => {
            Some(format!("the crawl was stopped: no document was finished for {} s", patience.as_secs()))
        }
        Some(Cause::NoResponse(patience)) => {
            Some(format!("the crawl was stopped: it gave no sign of life for {} s", patience.as_secs()))
        }
        Some(Cause::LeaseLost) => Some("the harvester lost the job".to_owned()),
        Some(Cause::Interrupted) => Some("the crawl was interrupted and could not go on".to_owned()),
        None => None,
    };
    if let Some(error) = &ending.error {
        harvest_errors.get_or_insert_with(|| "the crawl broke off".to_owned());
        harvest_error_details = Some(error.clone());
    } else if harvest_errors.is_none() && ending.outcome.as_ref().is_none_or(|one| one.end == End::Stopped) {
        // Somebody stopped the crawl by its own reins.
        harvest_errors = Some("the crawl was stopped before its end".to_owned());
    }
    if harvest_error_details.is_none()
        && ending.outcome.as_ref().is_some_and(|one| one.end == End::Unreachable)
    {
        // Not an error of the job: whatever could be reached is harvested.
        harvest_error_details = Some(unreachable(&ending.domains, troubles));
    }
    if let Some(text) = failed_log_ins(troubles) {
        // Neither: it has all that is there for everybody.
        let before = harvest_error_details.take().map(|text| text + "\n").unwrap_or_default();
        harvest_error_details = Some(format!("{before}{text}"));
    }
    if let Some(reason) = papers {
        harvest_errors.get_or_insert_with(|| "the crawl could not be documented".to_owned());
        let before = harvest_error_details.take().map(|text| text + "\n").unwrap_or_default();
        harvest_error_details = Some(format!("{before}{reason}"));
    }
    let upload_errors =
        (!failures.is_empty()).then(|| format!("{} of {files} files failed to upload", failures.len()));
    let lines = failures.iter().map(|one| format!("{}: {}", one.file, one.reason));
    let upload_error_details = (!failures.is_empty()).then(|| lines.collect::<Vec<_>>().join("\n"));
    let bounded = |text: String| text.chars().take(DETAILS_CHARS_MAX).collect();
    JobReport {
        harvest_errors,
        harvest_error_details: harvest_error_details.map(bounded),
        upload_errors,
        upload_error_details: upload_error_details.map(bounded),
        domains: ending.domains.clone(),
    }
}

/// As many names as somebody reads.
const NAMES_MAX: usize = 20;

/// The domains whose hosts could not be reached. Those whose log-in did not work are unfinished too, and named elsewhere.
fn unreachable(domains: &[DomainReport], troubles: &[LoginTrouble]) -> String {
    let has_trouble =
        |one: &DomainReport| troubles.iter().any(|trouble| trouble.domain == one.domain.as_str());
    let left = domains.iter().filter(|one| one.stop == StopReason::Unfinished && !has_trouble(one));
    let left: Vec<_> = left.map(|one| one.domain.to_string()).collect();
    let text = "hosts could not be reached and URLs of them were not fetched";
    if left.is_empty() {
        text.to_owned()
    } else {
        format!("{text}; unfinished domains: {}", named(&left, ", "))
    }
}

/// The log-ins that did not work.
fn failed_log_ins(troubles: &[LoginTrouble]) -> Option<String> {
    let lines: Vec<_> = troubles.iter().map(describe).collect();
    (!lines.is_empty()).then(|| named(&lines, "\n"))
}

fn describe(trouble: &LoginTrouble) -> String {
    let LoginTrouble { domain, at, refused, pages } = trouble;
    let why = match refused {
        Some(why) => format!("cannot log in to {domain} at {at}: {why}; check its login"),
        None => format!("sessions of {domain} at {at} ended more often than they were begun again"),
    };
    match pages {
        0 => why,
        1 => format!("{why}; 1 page came as for readers who are not logged in"),
        pages => format!("{why}; {pages} pages came as for readers who are not logged in"),
    }
}

fn named(all: &[String], between: &str) -> String {
    let names = all.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(between);
    match all.len().saturating_sub(NAMES_MAX) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// What is said of a job's folder that was found when the job was over or somebody else's.
pub fn found_afterwards(harvester: &str, attempt: u32, files: usize, failures: &[UploadFailure]) -> String {
    let files = match (files, failures.len()) {
        (0, _) => "there was nothing in it to store".to_owned(),
        (files, 0) => format!("its {files} files are stored"),
        (files, failed) => format!("of its {files} files {failed} are not stored yet"),
    };
    format!("the folder of attempt {attempt} was found by the harvester {harvester} afterwards: {files}")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn ended(end: Option<End>, cause: Option<Cause>, error: Option<&str>) -> Ending {
        let outcome = end.map(|end| Outcome {
            end,
            ended_at: Timestamp::UNIX_EPOCH,
            domains: Vec::new(),
            objects: 1,
            bytes: 2,
            login_troubles: Vec::new(),
        });
        Ending { outcome, cause, error: error.map(str::to_owned), domains: Vec::new() }
    }

    #[test]
    fn a_job_whose_hosts_could_not_be_reached_names_the_domains_and_did_not_fail() {
        let domain = |n: usize, stop| DomainReport {
            domain: format!("d{n:02}.dk").parse().unwrap(),
            objects: 1,
            bytes: 2,
            stop,
        };
        let mut domains = vec![domain(0, StopReason::Complete)];
        domains.extend((1..=22).map(|n| domain(n, StopReason::Unfinished)));
        let few = Ending { domains: domains[..3].to_vec(), ..ended(Some(End::Unreachable), None, None) };
        let many = Ending { domains, ..ended(Some(End::Unreachable), None, None) };
        for (ending, end_of_text) in [(few, "domains: d01.dk, d02.dk"), (many, "d19.dk, d20.dk and 2 more")] {
            let report = report(&ending, None, None, 3, &[]);
            assert_eq!((report.harvest_errors, report.upload_errors), (None, None));
            let details = report.harvest_error_details.unwrap();
            assert!(
                details.starts_with("hosts could not be reached") && details.ends_with(end_of_text),
                "{details}"
            );
        }
    }

    #[test]
    fn log_ins_that_did_not_work_are_in_the_details_of_a_job_that_did_not_fail() {
        let trouble = |refused: Option<&str>, pages| LoginTrouble {
            domain: "a.dk".to_owned(),
            at: "https://a.dk/login".to_owned(),
            refused: refused.map(str::to_owned),
            pages,
        };
        let at = "a.dk at https://a.dk/login";
        for (trouble, details) in [
            (
                trouble(Some("the status is 500"), 0),
                format!("cannot log in to {at}: the status is 500; check its login"),
            ),
            (
                trouble(Some("the page holds wrong"), 1),
                format!(
                    "cannot log in to {at}: the page holds wrong; check its login; 1 page came as for readers who are \
                     not logged in"
                ),
            ),
            (
                trouble(None, 86),
                format!(
                    "sessions of {at} ended more often than they were begun again; 86 pages came as for readers who are \
                     not logged in"
                ),
            ),
        ] {
            let mut ending = ended(Some(End::Finished), None, None);
            ending.outcome.as_mut().unwrap().login_troubles = vec![trouble];
            let reported = report(&ending, None, None, 3, &[]);
            assert_eq!(reported.harvest_errors, None);
            assert_eq!(reported.harvest_error_details, Some(details.clone()));
            ending.outcome.as_mut().unwrap().end = End::Unreachable;
            ending.domains = vec![
                DomainReport {
                    domain: "a.dk".parse().unwrap(),
                    objects: 1,
                    bytes: 2,
                    stop: StopReason::Unfinished,
                },
                DomainReport {
                    domain: "b.dk".parse().unwrap(),
                    objects: 0,
                    bytes: 0,
                    stop: StopReason::Unfinished,
                },
            ];
            let both = report(&ending, None, None, 3, &[]).harvest_error_details.unwrap();
            assert!(both.ends_with(&format!("unfinished domains: b.dk\n{details}")), "{both}");
        }
    }

    #[test]
    fn harvest_errors_and_upload_errors_are_kept_apart() {
        let failure = || UploadFailure { file: "a.warc.gz".into(), reason: "replica two is away".into() };
        let minutes = Duration::from_secs(1800);
        // Each case: the ending, failures of 3 files, a trouble with papers; harvest errors and upload errors.
        for (ending, failures, papers, harvest, upload) in [
            (ended(Some(End::Finished), None, None), vec![], None, None, None),
            (ended(Some(End::TimeLimit), None, None), vec![], None, None, None),
            (ended(Some(End::Limit), None, None), vec![], None, None, None),
            (
                ended(Some(End::Finished), None, None),
                vec![failure()],
                None,
                None,
                Some("1 of 3 files failed to upload"),
            ),
            (
                ended(Some(End::Stopped), None, None),
                vec![],
                None,
                Some("the crawl was stopped before its end"),
                None,
            ),
            (ended(Some(End::Stopped), Some(Cause::Cancelled), None), vec![], None, Some("by anna"), None),
            (
                ended(Some(End::Stopped), Some(Cause::Inactive(minutes)), None),
                vec![],
                None,
                Some("the crawl was stopped: no document was finished for 1800 s"),
                None,
            ),
            (
                ended(None, Some(Cause::NoResponse(minutes)), None),
                vec![],
                None,
                Some("the crawl was stopped: it gave no sign of life for 1800 s"),
                None,
            ),
            (
                ended(None, None, Some("disk full")),
                vec![failure(), failure()],
                None,
                Some("the crawl broke off"),
                Some("2 of 3 files failed to upload"),
            ),
            (
                ended(Some(End::Finished), None, None),
                vec![],
                Some("no log"),
                Some("the crawl could not be documented"),
                None,
            ),
        ] {
            let report = report(&ending, Some("by anna"), papers, 3, &failures);
            assert_eq!(report.harvest_errors.as_deref(), harvest, "{ending:?}");
            assert_eq!(report.upload_errors.as_deref(), upload, "{ending:?}");
            assert_eq!(report.upload_error_details.is_some(), upload.is_some());
        }
        let report = report(&ended(None, None, Some("disk full")), None, Some("no log"), 0, &[]);
        assert_eq!(report.harvest_error_details.as_deref(), Some("disk full\nno log"));
    }

    #[test]
    fn a_folder_that_was_found_is_told_with_its_files() {
        let failure = UploadFailure { file: "a.warc.gz".into(), reason: "replica two is away".into() };
        for (files, failures, told) in [
            (0, vec![], "there was nothing in it to store"),
            (3, vec![], "its 3 files are stored"),
            (3, vec![failure], "of its 3 files 1 are not stored yet"),
        ] {
            let text = found_afterwards("m1", 2, files, &failures);
            assert_eq!(
                text,
                format!("the folder of attempt 2 was found by the harvester m1 afterwards: {told}")
            );
        }
    }
}
