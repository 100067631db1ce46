//! One stored capture, entered as if it had been fetched a moment ago.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::captures::{StoredAnswer, StoredCapture, StoredHttp};
use super::notes::CaptureNotes;
use super::{BATCH, TakeOver, TakeOverError};
use crate::candidate::Candidate;
use crate::engine::changes::{self, SeedOrigin};
use crate::engine::hosts::authority;
use crate::engine::links::{follows_seed, wants_cookie_back};
use crate::engine::login::is_of;
use crate::engine::visit::{ROBOTS_REDIRECTS_MAX, extent, redirect};
use crate::extract::Format;
use crate::frontier::EarlierVisit;
use crate::hops::{Hop, Hops};
use crate::job::CredentialKind;
use crate::link::Link;
use crate::log::{Annotations, CrawlLine, Extra, Fetched as FetchTime};
use crate::politeness::Visit;
use crate::record::recorder::Ready;
use crate::robots::{self, Answer};
use crate::status::FetchStatus;

/// What a capture was for the crawl that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A URL of the frontier.
    Page,
    /// The robots.txt of a host; the frontier counts it as a prerequisite.
    Robots,
    /// Where a robots.txt redirected to.
    RobotsRedirect,
    /// The answer to a form that was sent.
    Form,
    /// An answer 401, after which the same URL was asked for again with a password.
    Refusal,
    /// An answer 401 to which the answer with the password is missing.
    Unanswered,
}

fn purpose(hops: &Hops, is_refusal: bool) -> Purpose {
    let mut back = hops.back().skip_while(|hop| *hop == Hop::Redirect);
    match (hops.last(), back.next()) {
        _ if is_refusal => Purpose::Refusal,
        (Some(Hop::Prerequisite), _) => Purpose::Robots,
        (Some(Hop::Redirect), Some(Hop::Prerequisite)) => Purpose::RobotsRedirect,
        (Some(Hop::Submit), _) => Purpose::Form,
        _ => Purpose::Page,
    }
}

/// The way to a URL, as a number.
pub(super) fn way(candidate: &Candidate) -> u64 {
    way_to(candidate.url.as_str(), &candidate.hops)
}

fn way_to(url: &str, hops: &Hops) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((url, hops))
}

impl TakeOver {
    /// Enters a capture; `next` is the one behind it in the file.
    pub(super) fn enter(
        &mut self,
        file: &str,
        capture: StoredCapture,
        next: Option<&StoredCapture>,
    ) -> Result<(), TakeOverError> {
        let StoredCapture { url, offset, date, answer } = capture;
        let refused = self.refused.take();
        let place = Extra {
            warc_filename: Some(Cow::Owned(file.to_owned())),
            warc_file_offset: Some(offset),
            ..Extra::default()
        };
        match answer {
            StoredAnswer::Name { size, digest } => {
                let line = name_line(url, date, size, digest, next);
                let extra = Some(Extra { content_size: Some(size), ..place });
                self.log(CrawlLine { extra, ..line }, None)
            }
            StoredAnswer::Http(mut http) => {
                let (Some(notes), Ok(parsed)) = (http.notes.take(), Url::parse(&url)) else {
                    self.counts.unexplained += 1;
                    return Ok(());
                };
                let is_refusal =
                    http.fetched.status.0 == 401 && next.is_some_and(|next| is_answer_to(next, &url, &notes));
                let way = way_to(&url, &notes.hops);
                let mut purpose = purpose(&notes.hops, is_refusal);
                if is_refusal {
                    self.refused = Some(way);
                } else if purpose == Purpose::Page
                    && http.fetched.status.0 == 401
                    && refused != Some(way)
                    && self.logins.answer(&parsed, &http.fetched).is_some()
                {
                    purpose = Purpose::Unanswered;
                }
                let line = line(url, date, &http, &notes, place);
                self.log(line, extractor(&notes))?;
                self.worked.add(date, http.fetched.duration);
                self.learn(parsed, *http, notes, purpose)
            }
        }
    }

    fn log(
        &mut self,
        line: CrawlLine<'static>,
        extracted: Option<(&'static str, u64)>,
    ) -> Result<(), TakeOverError> {
        let logged = line.logged;
        self.recorder.take(&mut Ready { records: None, line, extracted }, logged)?;
        self.counts.captures += 1;
        Ok(())
    }

    /// Takes in what the crawl that made the capture learned from it.
    fn learn(
        &mut self,
        url: Url,
        mut http: StoredHttp,
        notes: CaptureNotes,
        purpose: Purpose,
    ) -> Result<(), TakeOverError> {
        let CaptureNotes { hops, via, source, links, .. } = notes;
        let candidate =
            Candidate { url, via: via.map(Arc::from), hops, source: source.map(Arc::from), force: false };
        if matches!(purpose, Purpose::Page | Purpose::Robots) {
            let fetched = &http.fetched;
            self.visits.push(EarlierVisit {
                url: candidate.url.clone(),
                visit: Visit::new(fetched.status, fetched.wire_length, fetched.duration),
                is_prerequisite: purpose == Purpose::Robots,
                began: self.worked.ran_at(fetched.started),
            });
        }
        let sets_cookie = self.learn_cookies(&candidate.url, &http);
        let leads_on = match purpose {
            Purpose::Robots | Purpose::RobotsRedirect => self.learn_robots(&mut http, &candidate)?,
            Purpose::Refusal | Purpose::Unanswered => {
                let asks =
                    http.fetched.http.as_ref().into_iter().flat_map(|head| head.all("WWW-Authenticate"));
                let asks: Vec<_> = asks.map(|value| String::from_utf8_lossy(value).into_owned()).collect();
                let (server, date) = (authority(&candidate.url).into_owned(), http.fetched.started);
                if self.challenges.get(&server).is_none_or(|(known, _)| *known <= date) {
                    self.challenges.insert(server, (date, asks));
                }
                if purpose == Purpose::Unanswered {
                    // It was to be asked for again; where a later file has the answer, the URL is seen and not queued.
                    self.candidates.add(&candidate)?;
                    return Ok(());
                }
                false
            }
            Purpose::Page | Purpose::Form => true,
        };
        if candidate.hops.last() == Some(Hop::Redirect)
            && candidate.via.as_deref() == Some(&*candidate.target_uri())
        {
            self.returned.insert(way(&candidate));
        }
        if leads_on {
            self.follow(&candidate, links, sets_cookie)?;
        }
        if self.visits.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Whether the answer set a cookie. Those of a domain with a form to log in are not kept: the form is sent again.
    fn learn_cookies(&mut self, url: &Url, http: &StoredHttp) -> bool {
        let Some(head) = &http.fetched.http else { return false };
        let logs_in = self
            .job
            .credentials
            .iter()
            .any(|login| matches!(login.kind, CredentialKind::Form(_)) && is_of(url, &login.domain));
        if self.job.template.fetch.cookies && !logs_in {
            let (date, newest) = (http.fetched.started, &mut self.newest_cookies);
            let cookies = head.all("Set-Cookie").filter(|cookie| newest.takes(url, cookie, date));
            self.cookies.store(url, cookies, date);
        }
        head.get("Set-Cookie").is_some()
    }

    /// Takes in the rules of a host. False if the answer only leads to the one that has them.
    fn learn_robots(&mut self, http: &mut StoredHttp, at: &Candidate) -> Result<bool, TakeOverError> {
        let steps = at.hops.back().take_while(|hop| *hop == Hop::Redirect).count();
        let elsewhere = redirect(&http.fetched, at).is_some();
        if elsewhere && steps < ROBOTS_REDIRECTS_MAX {
            return Ok(false);
        }
        let Some(via) = at.via.as_deref().and_then(|via| Url::parse(via).ok()) else { return Ok(true) };
        let fetched = &mut http.fetched;
        // Without its bytes the file is asked for again.
        if http.is_revisit || fetched.response.len() != fetched.wire_length {
            return Ok(true);
        }
        let (settings, date) = (&self.job.template.robots, fetched.started);
        let (status, extent) = (fetched.status.http(), extent(fetched));
        let Ok(body) = fetched.content_bytes(robots::READ_BYTES_MAX as u64 + 1) else { return Ok(true) };
        let answer = if elsewhere { Answer::LostInRedirects } else { robots::answer(status, extent, &body) };
        let authority = authority(&via);
        let mut copy = (*self.hosts.robots(&self.frontier, &authority)?).clone();
        if copy.answered_at().is_some_and(|known| known > date) {
            return Ok(true);
        }
        copy.learn(answer, &settings.product_token, date, &settings.cache);
        self.hosts.set_robots(&self.frontier, &authority, copy)?;
        Ok(true)
    }

    /// Notes where a capture leads, and takes what a seed redirects to as a seed.
    fn follow(&mut self, from: &Candidate, links: Vec<Link>, sets_cookie: bool) -> Result<(), TakeOverError> {
        let via: Arc<str> = Arc::from(&*from.target_uri());
        for link in links {
            let redirect = link.hop == Hop::Redirect;
            let mut candidate = from.next(link, &via);
            if redirect {
                if follows_seed(&candidate, self.job.template.engine.seed_redirects)
                    && self.scope.takes_redirected_seed(&from.url, &candidate.url)
                    && self.gained_seeds.insert(candidate.url.to_string())
                {
                    self.marks.push(changes::seed(candidate.url.as_str(), SeedOrigin::Redirect));
                }
                candidate.force = wants_cookie_back(&candidate, from, sets_cookie);
            }
            self.candidates.add(&candidate)?;
        }
        Ok(())
    }
}

/// Whether `next` is the answer to the same request, sent again with a password.
fn is_answer_to(next: &StoredCapture, url: &str, notes: &CaptureNotes) -> bool {
    let StoredAnswer::Http(http) = &next.answer else { return false };
    next.url == url && http.notes.as_ref().is_some_and(|next| next.hops == notes.hops)
}

fn after(began: Timestamp, duration: Duration) -> Timestamp {
    began.checked_add(duration).unwrap_or(began)
}

fn extractor(notes: &CaptureNotes) -> Option<(&'static str, u64)> {
    let name = Format::extractor_named(notes.extractor.as_deref()?)?;
    Some((name, notes.links.len() as u64))
}

/// The line of a capture, as its crawl wrote it.
fn line(
    url: String,
    date: Timestamp,
    http: &StoredHttp,
    notes: &CaptureNotes,
    place: Extra<'static>,
) -> CrawlLine<'static> {
    let fetched = &http.fetched;
    let mut annotations = Annotations::new();
    if notes.annotations.is_empty() && http.is_revisit {
        // A file of an earlier version: its record says no more.
        if fetched.status.0 == 304 { annotations.not_modified() } else { annotations.duplicate(None) }
    }
    let annotations =
        if annotations.is_empty() { notes.annotations.clone() } else { annotations.as_str().to_owned() };
    let original_url = http.original_url.clone().filter(|original| *original != url).map(Cow::Owned);
    CrawlLine {
        logged: after(date, fetched.duration),
        status: fetched.status,
        size: Some(fetched.payload_length).filter(|_| fetched.status.is_success()),
        url: Cow::Owned(url),
        hops: Cow::Owned(notes.hops.clone()),
        via: notes.via.clone().map(Cow::Owned),
        mime: fetched.mime().map_or(Cow::Borrowed("unknown"), Cow::Owned),
        // It was a worker of another machine.
        worker: 0,
        fetched: Some(FetchTime { began: date, millis: fetched.duration.as_millis() as u64 }),
        digest: fetched.status.is_success().then(|| Cow::Owned(http.digest.clone())),
        source: notes.source.clone().map(Cow::Owned),
        annotations: Cow::Owned(annotations),
        extra: Some(Extra { content_size: Some(fetched.wire_length), original_url, ..place }),
    }
}

/// The line of a name that was looked up for the capture behind it.
fn name_line(
    url: String,
    date: Timestamp,
    size: u64,
    digest: Option<String>,
    next: Option<&StoredCapture>,
) -> CrawlLine<'static> {
    let host = url.trim_start_matches("dns:");
    let asked_for = next.and_then(|next| {
        let StoredAnswer::Http(http) = &next.answer else { return None };
        let parsed = Url::parse(&next.url).ok()?;
        (parsed.host_str() == Some(host)).then_some((next.url.clone(), http.notes.as_ref()?))
    });
    let (via, hops, source) = match asked_for {
        Some((via, notes)) => (Some(via), notes.hops.clone(), notes.source.clone()),
        None => (None, Hops::seed(), None),
    };
    CrawlLine {
        logged: date,
        status: FetchStatus::DNS_OK,
        size: Some(size),
        url: Cow::Owned(url),
        hops: Cow::Owned(hops.and(Hop::Prerequisite)),
        via: via.map(Cow::Owned),
        mime: Cow::Borrowed("text/dns"),
        worker: 0,
        fetched: Some(FetchTime { began: date, millis: 0 }),
        digest: digest.map(Cow::Owned),
        source: source.map(Cow::Owned),
        annotations: Cow::Borrowed(""),
        extra: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_capture_says_what_it_was_for() {
        use Purpose::{Form, Page, Refusal, Robots, RobotsRedirect};
        for (hops, is_refusal, expected) in [
            ("", false, Page),
            ("LLE", false, Page),
            ("LR", false, Page),
            ("P", false, Robots),
            ("LLP", false, Robots),
            ("LPRR", false, RobotsRedirect),
            ("PM", false, Page),
            ("PMR", false, Page),
            ("LS", false, Form),
            ("LSR", false, Page),
            ("L", true, Refusal),
        ] {
            assert_eq!(purpose(&hops.parse().unwrap(), is_refusal), expected, "{hops}");
        }
    }
}
