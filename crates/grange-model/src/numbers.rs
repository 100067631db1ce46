//! Numbers that are part of the names of files: read back from names, so that none of them is given twice.
//!
//! ```text
//! <job>-<harvest>-<timestamp>-….warc.gz    captures of a crawl job
//! <job>-metadata-<attempt>.warc.gz         metadata of a crawl job
//! oai-<oai job>-<timestamp>-….warc.gz      responses of an OAI-PMH job
//! ```

use crate::collection::FileKind;

/// The longest number that is taken for one of ours. A longer one is a timestamp (`202601011200`) or a foreign identifier:
/// numbers of jobs do not come near it.
const DIGITS_MAX: usize = 10;

/// The highest number that is taken for one of ours. Counting on from the highest of ten digits would make every later name
/// unreadable.
const NUMBER_MAX: i64 = 8_999_999_999;

/// The shortest timestamp in the name of a file with captures: a date.
const DATE_DIGITS: usize = 8;

/// The highest numbers seen so far; 0 where none was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HighestNumbers {
    pub job: i64,
    pub harvest: i64,
    pub oai_job: i64,
    pub oai_repository: i64,
}

impl HighestNumbers {
    /// Takes the numbers in the name of a file into account.
    pub fn see_file(&mut self, name: &str) {
        if FileKind::of(name) != FileKind::Records {
            return;
        }
        let mut parts = name.split('-');
        let (first, second, third) = (parts.next(), parts.next(), parts.next());
        let (Some(first), Some(second), Some(third)) = (first, second, third) else { return };
        if first == "oai" {
            if let (Some(job), true) = (number(second), is_timestamp(third)) {
                self.oai_job = self.oai_job.max(job);
            }
            return;
        }
        let Some(job) = number(first) else { return };
        if metadata_number(name).is_some() {
            self.job = self.job.max(job);
        } else if let (Some(harvest), true) = (number(second), is_timestamp(third)) {
            self.job = self.job.max(job);
            self.harvest = self.harvest.max(harvest);
        }
    }

    /// Takes the name of a job folder into account: `<job>_<timestamp>`.
    pub fn see_job_folder(&mut self, name: &str) {
        if let Some(job) = name.split_once('_').and_then(|(job, _)| number(job)) {
            self.job = self.job.max(job);
        }
    }

    /// Takes the folder of an OAI-PMH repository into account: its number.
    pub fn see_repository_folder(&mut self, name: &str) {
        if let Some(repository) = number(name) {
            self.oai_repository = self.oai_repository.max(repository);
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The attempt in `<job>-metadata-<attempt>.warc.gz`.
pub fn metadata_number(name: &str) -> Option<u32> {
    let (job, rest) = name.split_once("-metadata-")?;
    number(job)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let ends = rest.get(digits.len()..).is_some_and(|rest| rest.starts_with('.'));
    digits.parse().ok().filter(|_| ends && FileKind::of(name) == FileKind::Records)
}

fn number(text: &str) -> Option<i64> {
    let fits = !text.is_empty() && text.len() <= DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten().filter(|number| *number <= NUMBER_MAX)
}

fn is_timestamp(text: &str) -> bool {
    text.len() >= DATE_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_their_numbers_and_foreign_names_give_none() {
        let none = HighestNumbers::default();
        for (name, seen) in [
            ("7-3-20260101120000123-00000-h.warc.gz", HighestNumbers { job: 7, harvest: 3, ..none }),
            ("12-metadata-1.warc.gz", HighestNumbers { job: 12, ..none }),
            ("12-metadata-1.warc", HighestNumbers { job: 12, ..none }),
            ("oai-5-20260101120000-00000.warc.gz", HighestNumbers { oai_job: 5, ..none }),
            // A longer number is a timestamp of somebody else.
            ("20260101120000-metadata-1.warc.gz", none),
            ("202601011200-metadata-1.warc.gz", none),
            ("202601011200-3-20260101120000123-00000-h.warc.gz", none),
            ("9999999999-metadata-1.warc.gz", none),
            ("2026010112-metadata-1.warc.gz", HighestNumbers { job: 2_026_010_112, ..none }),
            ("7-3-notes-20260101.warc.gz", none),
            ("2019-12-31-news.warc.gz", none),
            ("7-metadata-x.warc.gz", none),
            ("7-metadata-1x.warc.gz", none),
            ("7-metadata-1.txt", none),
            ("7-3-20260101120000123.txt", none),
            ("-3-20260101.warc.gz", none),
            ("x-3-20260101.warc.gz", none),
            ("oai-x-20260101.warc.gz", none),
            ("oai-5-x.warc.gz", none),
            ("", none),
        ] {
            let mut highest = none;
            highest.see_file(name);
            assert_eq!(highest, seen, "{name}");
        }
    }

    #[test]
    fn numbers_only_grow() {
        let mut highest = HighestNumbers::default();
        assert!(highest.is_empty());
        for name in ["9-metadata-1.warc.gz", "7-8-20260101120000123-0.warc.gz", "2-1-20260101-0.warc"] {
            highest.see_file(name);
        }
        highest.see_job_folder("11_20260101120000123");
        highest.see_job_folder(".new-99");
        highest.see_job_folder("+journal");
        highest.see_repository_folder("4");
        highest.see_repository_folder("+x");
        assert_eq!(highest, HighestNumbers { job: 11, harvest: 8, oai_job: 0, oai_repository: 4 });
    }

    #[test]
    fn the_attempt_is_read_from_metadata_files_only() {
        for (name, attempt) in [
            ("7-metadata-3.warc.gz", Some(3)),
            ("7-metadata-30.arc", Some(30)),
            ("x-metadata-3.warc.gz", None),
            ("7-metadata-.warc.gz", None),
            ("7-3-20260101120000123-0.warc.gz", None),
        ] {
            assert_eq!(metadata_number(name), attempt, "{name}");
        }
    }
}
