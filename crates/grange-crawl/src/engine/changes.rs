//! What a crawl has learned since its job was written: orders that changed it, seeds gained by redirects, cookies,
//! log-ins. All of it is kept among the frontier's marks, so that a crawl that was killed resumes with it.
//!
//! ```text
//! started           the time the crawl began; the calendar rule of its scope counts from it
//! seed/HASH         a seed that is not in the job, and where it came from
//! reject/HASH       an expression that an operator rejected
//! limits            the budgets of the job, and those that orders made of them
//! pace              the factor of an operator
//! cookies/DOMAIN    the cookies of a domain, as cookies.txt has them
//! login/HASH        a form that was sent and let us in
//! login-trouble/HASH  a log-in that was refused or whose session ended
//! auth/AUTHORITY    the challenge of a server that asked for a password
//! endpoint/ADDRESS  a private address, with its port, of a seed that an operator added
//! shape/HASH        what came under URLs that differ only in session ids
//! ```
//!
//! A mark is written before or together with the first thing that is decided by it, never after.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::login_session::LoginTrouble;
use crate::fetch::login::FormLogin;
use crate::job::{Budgets, Limits};
use crate::scope::ShapeRecord;

/// A name and its bytes among the frontier's marks.
pub(super) type Mark = (String, Vec<u8>);

/// Where a seed that is not in the job came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SeedOrigin {
    Order,
    Redirect,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AddedSeed {
    pub(super) url: String,
    pub(super) origin: SeedOrigin,
}

/// Budgets that orders changed, beside those of the job at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LimitChange {
    job: Budgets,
    ordered: Budgets,
}

/// Everything that earlier runs kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CrawlChanges {
    pub(super) started: Option<Timestamp>,
    pub(super) seeds: Vec<AddedSeed>,
    pub(super) rejects: Vec<String>,
    pub(super) limits: Option<LimitChange>,
    pub(super) pace_factor: Option<f64>,
    /// By domain.
    pub(super) cookies: BTreeMap<String, String>,
    /// The names of the marks.
    pub(super) logins: Vec<String>,
    pub(super) login_troubles: Vec<LoginTrouble>,
    /// The values of `WWW-Authenticate` by scheme, host and port.
    pub(super) challenges: BTreeMap<String, Vec<String>>,
    /// Private addresses of seeds that an operator added.
    pub(super) endpoints: Vec<SocketAddr>,
    /// By the hash of the shape.
    pub(super) shapes: BTreeMap<u64, ShapeRecord>,
}

impl CrawlChanges {
    /// Reads the marks of a frontier. The name of a mark that cannot be read is the error.
    pub(super) fn from_marks(marks: &BTreeMap<String, Vec<u8>>) -> Result<CrawlChanges, String> {
        let mut changes = CrawlChanges::default();
        for (name, value) in marks {
            match name.split_once('/').unwrap_or((name.as_str(), "")) {
                ("started", _) => changes.started = Some(read(name, value)?),
                ("seed", _) => changes.seeds.push(read(name, value)?),
                ("reject", _) => changes.rejects.push(read(name, value)?),
                ("limits", _) => changes.limits = Some(read(name, value)?),
                ("pace", _) => changes.pace_factor = Some(read(name, value)?),
                ("cookies", domain) => {
                    changes.cookies.insert(domain.to_owned(), String::from_utf8_lossy(value).into_owned());
                }
                ("login", _) => changes.logins.push(name.clone()),
                ("login-trouble", _) => changes.login_troubles.push(read(name, value)?),
                ("auth", authority) => {
                    changes.challenges.insert(authority.to_owned(), read(name, value)?);
                }
                ("endpoint", _) => changes.endpoints.push(read(name, value)?),
                ("shape", hash) => {
                    if let Ok(hash) = u64::from_str_radix(hash, 16) {
                        changes.shapes.insert(hash, read(name, value)?);
                    }
                }
                _ => {}
            }
        }
        Ok(changes)
    }

    /// The budgets of a crawl that is resumed with those of `job`: orders hold, except where the job was changed since
    /// they were given.
    pub(super) fn budgets(&self, job: &Budgets) -> Budgets {
        self.limits.as_ref().map_or_else(|| job.clone(), |change| change.applied_to(job))
    }

    /// Seeds that an operator added.
    pub(super) fn ordered_seeds(&self) -> impl Iterator<Item = &str> {
        let ordered = self.seeds.iter().filter(|seed| seed.origin == SeedOrigin::Order);
        ordered.map(|seed| seed.url.as_str())
    }

    pub(super) fn has_login(&self, form: &FormLogin) -> bool {
        self.logins.contains(&login_name(form))
    }
}

impl LimitChange {
    fn applied_to(&self, job: &Budgets) -> Budgets {
        let mut budgets = job.clone();
        budgets.crawl = newer(&self.job.crawl, &self.ordered.crawl, &job.crawl);
        let of = |budgets: &Budgets, domain: &str| {
            budgets.domains.get(domain).unwrap_or(&budgets.other_domains).limits
        };
        for (domain, ordered) in &self.ordered.domains {
            let limits = newer(&of(&self.job, domain), &ordered.limits, &of(job, domain));
            budgets.domains.entry(domain.clone()).or_insert(job.other_domains).limits = limits;
        }
        budgets
    }
}

/// Each limit as the job has it if the job was changed since `base`, and as it was ordered otherwise.
fn newer(base: &Limits, ordered: &Limits, job: &Limits) -> Limits {
    let pick = |base: i64, ordered: i64, job: i64| if job == base { ordered } else { job };
    Limits {
        max_objects: pick(base.max_objects, ordered.max_objects, job.max_objects),
        max_bytes: pick(base.max_bytes, ordered.max_bytes, job.max_bytes),
        max_seconds: pick(base.max_seconds, ordered.max_seconds, job.max_seconds),
    }
}

fn read<T: DeserializeOwned>(name: &str, value: &[u8]) -> Result<T, String> {
    serde_json::from_slice(value).map_err(|error| format!("cannot read the mark {name:?}: {error}"))
}

fn mark(name: String, value: &impl Serialize) -> Mark {
    // Plain data: writing it to memory cannot fail.
    (name, serde_json::to_vec(value).unwrap_or_default())
}

/// A name of bounded length for a text of any length.
fn hashed(kind: &str, text: &str) -> String {
    format!("{kind}/{}", &blake3::hash(text.as_bytes()).to_hex()[..32])
}

fn login_name(form: &FormLogin) -> String {
    hashed("login", &form.login_url)
}

pub(super) fn started(at: Timestamp) -> Mark {
    mark("started".to_owned(), &at)
}

pub(super) fn seed(url: &str, origin: SeedOrigin) -> Mark {
    mark(hashed("seed", url), &AddedSeed { url: url.to_owned(), origin })
}

pub(super) fn reject(pattern: &str) -> Mark {
    mark(hashed("reject", pattern), &pattern)
}

pub(super) fn limits(job: &Budgets, ordered: &Budgets) -> Mark {
    mark("limits".to_owned(), &LimitChange { job: job.clone(), ordered: ordered.clone() })
}

pub(super) fn pace(factor: f64) -> Mark {
    mark("pace".to_owned(), &factor)
}

pub(super) fn cookies_name(domain: &str) -> String {
    format!("cookies/{domain}")
}

pub(super) fn cookies(domain: &str, text: &str) -> Mark {
    (cookies_name(domain), text.as_bytes().to_vec())
}

pub(super) fn login(form: &FormLogin) -> Mark {
    (login_name(form), Vec::new())
}

pub(super) fn login_trouble(trouble: &LoginTrouble) -> Mark {
    mark(hashed("login-trouble", &trouble.at), trouble)
}

pub(super) fn challenge(authority: &str, values: &[String]) -> Mark {
    mark(format!("auth/{authority}"), &values)
}

pub(super) fn endpoint(address: &SocketAddr) -> Mark {
    mark(format!("endpoint/{address}"), address)
}

pub(super) fn shape(hash: u64, record: &ShapeRecord) -> Mark {
    mark(format!("shape/{hash:016x}"), record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::DomainBudget;

    fn limited(objects: i64, bytes: i64) -> Limits {
        Limits { max_objects: objects, max_bytes: bytes, max_seconds: -1 }
    }

    #[test]
    fn all_that_was_kept_comes_back() {
        let budgets = Budgets { crawl: limited(5, -1), ..Budgets::default() };
        let marks = [
            started(Timestamp::UNIX_EPOCH),
            seed("http://e.org/", SeedOrigin::Order),
            reject(".*x"),
            limits(&Budgets::default(), &budgets),
            pace(0.5),
            cookies("e.org", "a\tb"),
            login_trouble(&LoginTrouble { pages: 3, ..LoginTrouble::default() }),
            challenge("http://e.org", &["Basic".to_owned()]),
            endpoint(&"[::1]:8080".parse().unwrap()),
            shape(u64::MAX - 1, &ShapeRecord::default()),
            ("recorder".to_owned(), b"{}".to_vec()),
        ];
        let changes = CrawlChanges::from_marks(&marks.into_iter().collect()).unwrap();
        assert_eq!(changes.started, Some(Timestamp::UNIX_EPOCH));
        assert_eq!(changes.seeds[0], AddedSeed { url: "http://e.org/".into(), origin: SeedOrigin::Order });
        assert_eq!((&changes.rejects[..], changes.pace_factor), (&[".*x".to_owned()][..], Some(0.5)));
        assert_eq!(changes.cookies["e.org"], "a\tb");
        assert_eq!(changes.login_troubles, [LoginTrouble { pages: 3, ..LoginTrouble::default() }]);
        assert_eq!(changes.challenges["http://e.org"], ["Basic"]);
        assert_eq!(changes.endpoints, ["[::1]:8080".parse().unwrap()]);
        assert_eq!(changes.shapes, BTreeMap::from([(u64::MAX - 1, ShapeRecord::default())]));
        assert_eq!(changes.budgets(&Budgets::default()), budgets);
        let damaged = BTreeMap::from([("limits".to_owned(), b"{".to_vec())]);
        assert!(CrawlChanges::from_marks(&damaged).unwrap_err().contains("limits"));
    }

    #[test]
    fn orders_hold_except_where_the_job_was_changed_since() {
        let of = |limits| DomainBudget { limits, ..DomainBudget::default() };
        let before = Budgets { crawl: limited(10, 100), ..Budgets::default() };
        let mut ordered = Budgets { crawl: limited(20, 200), ..Budgets::default() };
        ordered.domains.insert("e.org".to_owned(), of(limited(3, -1)));
        let change = LimitChange { job: before.clone(), ordered: ordered.clone() };
        assert_eq!(change.applied_to(&before), ordered);
        let mut later = Budgets { crawl: limited(40, 100), ..Budgets::default() };
        let mut expected = ordered.clone();
        expected.crawl = limited(40, 200);
        assert_eq!(change.applied_to(&later), expected);
        later.domains.insert("e.org".to_owned(), of(limited(7, -1)));
        assert_eq!(change.applied_to(&later).domains["e.org"].limits, limited(7, -1));
    }
}
