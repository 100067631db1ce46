//! Jobs: one crawl each, from the moment it is planned to what became of it.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::channel::ChannelName;
use super::domain_name::DomainName;
use super::limit::Limits;
use super::login::LoginForm;
use super::name::Name;
use crate::nearest::named;

macro_rules! number {
    ($name:ident, $noun:literal) => {
        #[doc = concat!("The number of a ", $noun, ". It is part of the names of files, so it is short and never used twice.")]
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                text.parse().map(Self).map_err(|_| format!("\"{text}\" is not the number of a {}", $noun))
            }
        }
    };
}

pub(crate) use number;

number!(JobId, "job");
number!(HarvestId, "harvest");

named! {
    /// Where a job stands.
    JobStatus, "job status" {
        /// Planned, and waiting for a harvester of its channel.
        New = "new",
        /// Taken by a harvester that has not begun to crawl.
        Submitted = "submitted",
        /// Being crawled.
        Started = "started",
        /// Crawled, documented and stored.
        Done = "done",
        Failed = "failed",
        /// Failed, and planned anew as another job.
        Resubmitted = "resubmitted",
        /// Failed, and a person said that this is the end of it.
        FailedRejected = "failed-rejected",
    }
}

/// What is to happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobEvent {
    /// A harvester takes it.
    Claim,
    /// A harvester gives it back, or died with it: another may take it.
    Release,
    Start,
    Finish,
    /// The crawl or the upload failed, it was cancelled, or its harvester died.
    Fail,
    Resubmit,
    Reject,
    Unreject,
}

impl JobStatus {
    /// The one table of legal transitions.
    pub const fn after(self, event: JobEvent) -> Option<Self> {
        use JobEvent as E;
        match (self, event) {
            (Self::New, E::Claim) => Some(Self::Submitted),
            (Self::Submitted | Self::Started, E::Release) => Some(Self::New),
            (Self::Submitted, E::Start) => Some(Self::Started),
            (Self::Started, E::Finish) => Some(Self::Done),
            (Self::New | Self::Submitted | Self::Started, E::Fail) => Some(Self::Failed),
            (Self::Failed, E::Resubmit) => Some(Self::Resubmitted),
            (Self::Failed, E::Reject) => Some(Self::FailedRejected),
            (Self::FailedRejected, E::Unreject) => Some(Self::Failed),
            _ => None,
        }
    }

    /// Whether nothing more happens by itself.
    pub const fn ended(self) -> bool {
        !matches!(self, Self::New | Self::Submitted | Self::Started)
    }
}

/// A job as people look at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    pub id: JobId,
    pub harvest: HarvestId,
    pub harvest_name: Name,
    /// Which run of the harvest, counted from 1.
    pub run: u64,
    pub status: JobStatus,
    pub channel: ChannelName,
    pub snapshot: bool,
    pub template: Name,
    pub template_version: u32,
    /// What the job holds every domain to.
    pub limits: Limits,
    /// How many configurations it has.
    pub configurations: u64,
    pub expected_objects: u64,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[schemars(with = "Option<String>")]
    pub submitted_at: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    /// Who has it, or had it last.
    pub harvester: Option<String>,
    #[schemars(with = "Option<String>")]
    pub lease_until: Option<Timestamp>,
    /// How often it was taken.
    pub attempts: u32,
    /// A person asked for its end.
    pub stop_wanted: bool,
    pub harvest_errors: Option<String>,
    pub harvest_error_details: Option<String>,
    pub upload_errors: Option<String>,
    pub upload_error_details: Option<String>,
    pub resubmitted_as: Option<JobId>,
    pub continuation_of: Option<JobId>,
    /// Files of the job that lie on harvesters and are not on every replica yet. The crawl has ended.
    #[serde(default)]
    pub waiting_files: u64,
    #[serde(default)]
    pub waiting_bytes: u64,
    /// Why the last attempt to deposit one of them failed.
    #[serde(default)]
    pub waiting_reason: Option<String>,
}

/// One configuration of a job, as it was when the job was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobConfiguration {
    pub domain: DomainName,
    pub configuration: Name,
    /// The configuration's own limits.
    pub limits: Limits,
    pub expected_objects: u64,
    pub seeds: Vec<String>,
    /// The domain's traps.
    pub traps: Vec<String>,
}

/// Everything a harvester needs to crawl a job. Frozen when the job was planned; only logins are as they are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    pub job: Job,
    pub template_text: String,
    pub harvest_comments: String,
    pub audience: String,
    /// The schedule's name, of a selective harvest.
    pub schedule: Option<Name>,
    pub configurations: Vec<JobConfiguration>,
    /// Traps of the active global lists, then of the harvest.
    pub traps: Vec<String>,
    /// `domain` shows the same site as its alias: the unexpired ones of the job's domains.
    pub aliases: Vec<(DomainName, DomainName)>,
    /// The jobs whose captures need not be stored again.
    pub duplicate_reduction_jobs: Vec<JobId>,
    pub credentials: Vec<SealedCredential>,
}

/// A login for a domain, its secret sealed with the key of this Grange.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedCredential {
    pub domain: DomainName,
    pub name: Name,
    pub url: String,
    pub realm: String,
    pub username: String,
    pub form: Option<LoginForm>,
    pub sealed: String,
}

impl fmt::Debug for SealedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedCredential({} of {})", self.name, self.domain)
    }
}

impl JobSpec {
    /// All seeds, each once, in the order of the domains.
    pub fn seeds(&self) -> Vec<&str> {
        let mut seen = std::collections::HashSet::new();
        let all = self.configurations.iter().flat_map(|configuration| &configuration.seeds);
        all.map(String::as_str).filter(|seed| seen.insert(*seed)).collect()
    }

    /// The beginning of the names of its files, as NetarchiveSuite has it.
    pub fn file_prefix(&self) -> String {
        format!("{}-{}", self.job.id, self.job.harvest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_legal_transitions_are_made() {
        use JobEvent as E;
        use JobStatus as S;
        let events =
            [E::Claim, E::Release, E::Start, E::Finish, E::Fail, E::Resubmit, E::Reject, E::Unreject];
        let legal = [
            (S::New, E::Claim, S::Submitted),
            (S::New, E::Fail, S::Failed),
            (S::Submitted, E::Release, S::New),
            (S::Submitted, E::Start, S::Started),
            (S::Submitted, E::Fail, S::Failed),
            (S::Started, E::Release, S::New),
            (S::Started, E::Finish, S::Done),
            (S::Started, E::Fail, S::Failed),
            (S::Failed, E::Resubmit, S::Resubmitted),
            (S::Failed, E::Reject, S::FailedRejected),
            (S::FailedRejected, E::Unreject, S::Failed),
        ];
        for status in S::ALL {
            for event in events {
                let expected =
                    legal.iter().find(|(from, by, _)| (from, by) == (status, &event)).map(|(_, _, to)| *to);
                assert_eq!(status.after(event), expected, "{status} {event:?}");
            }
        }
    }

    #[test]
    fn what_ended_is_never_taken_again() {
        for status in JobStatus::ALL {
            assert_eq!(status.ended(), status.after(JobEvent::Fail).is_none(), "{status}");
            assert!(!status.ended() || status.after(JobEvent::Claim).is_none(), "{status}");
        }
    }
}
