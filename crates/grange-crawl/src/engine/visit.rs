//! One URL from claim to delivery: what must be known first, the fetch, the links, the records.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;
use url::{Position, Url};
use warc::write::Truncated;

use super::changes::{self, Mark};
use super::commit::Delivery;
use super::contacts::Backoff;
use super::cut_responses::{CutResponse, is_cut};
use super::hosts::{authority, other_scheme};
use super::shared::{Shared, VisitError};
use super::waits::{describe_scheme, reason};
use super::{gate, links, pack};
use crate::candidate::{Candidate, bare};
use crate::extract::{Role, never_has_links};
use crate::fetch::{DnsAnswer, DnsSource, Fetched, ProblemKind, Request, Validators};
use crate::frontier::{Claim, Finished, FrontierError, Outcome};
use crate::hops::Hop;
use crate::log::{AlertLevel, Annotations, CrawlLine, Note, alert, nonfatal_error};
use crate::politeness::{Visit, retry_after};
use crate::record::capture::Form;
use crate::record::oracle::History;
use crate::record::recorder::Ready;
use crate::robots::{self, Answer, Extent, HostRobots, Policy, Standing};
use crate::scope::{Observation, SessionPaths};
use crate::status::FetchStatus;

/// A robots.txt may lead elsewhere this often (RFC 9309 §2.3.1.2).
pub(super) const ROBOTS_REDIRECTS_MAX: usize = 5;

/// How long a URL waits at most for a server that others of its queue do not wait for, in retry delays.
const WAIT_APART_MAX: u32 = 5;

/// The annotation of a URL that is not tried again, because its host fails and only such hosts are waited for.
const GIVEN_UP: &str = "externalHostUnreachable";

/// The annotation of a URL that is not tried again, because its server could not be reached for as long as servers are
/// waited for, while another server of the same queue answered.
const SERVER_GIVEN_UP: &str = "serverUnreachable";

/// Works on one URL. The answer is committed; an error is a fault of our own, and comes with the claim.
pub(super) async fn visit(
    crawl: &Shared,
    claim: Claim,
    worker: u32,
) -> Result<Delivery, (Box<Claim>, VisitError)> {
    let mut way = Way {
        crawl,
        worker,
        waiting: Vec::new(),
        permit: None,
        captures: Vec::new(),
        lines: Vec::new(),
        discovered: Vec::new(),
        marks: Vec::new(),
    };
    let (outcome, mut links) = match way.go(&claim).await {
        Ok(went) => went,
        Err(error) => return Err((Box::new(claim), error)),
    };
    let Way { captures, lines, mut discovered, marks, permit, .. } = way;
    discovered.append(&mut links);
    Ok(Delivery { captures, lines, marks, permit, finished: Finished { claim, outcome, discovered } })
}

/// What is gathered on the way.
pub(super) struct Way<'a> {
    pub(super) crawl: &'a Shared,
    pub(super) worker: u32,
    /// Answers that are not packed yet, because more is asked for: the ticket of a file keeps its chunk open and must
    /// not be held while a server is waited for.
    waiting: Vec<Unpacked>,
    permit: Option<OwnedSemaphorePermit>,
    pub(super) captures: Vec<Ready>,
    pub(super) lines: Vec<(&'static str, Vec<u8>)>,
    /// Where answers on the way to the one that was asked for lead.
    pub(super) discovered: Vec<Candidate>,
    /// Kept over restarts, together with the captures.
    pub(super) marks: Vec<Mark>,
}

enum Unpacked {
    Name { asked_for: Candidate, answer: Arc<DnsAnswer> },
    Response(Box<UnpackedResponse>),
}

struct UnpackedResponse {
    candidate: Candidate,
    fetched: Fetched,
    form: Form,
    annotations: Annotations,
    found: links::Found,
}

type Went = (Outcome, Vec<Candidate>);

impl Way<'_> {
    async fn go(&mut self, claim: &Claim) -> Result<Went, VisitError> {
        let went = match claim.candidate.url.scheme() {
            _ if let Some(status) = claim.given_up => {
                let host = claim.candidate.url.host_str().unwrap_or_default();
                let why = if self.crawl.is_own(host) { SERVER_GIVEN_UP } else { GIVEN_UP };
                self.left_alone(claim, status, why).await?
            }
            "http" | "https" if claim.is_prerequisite() => self.robots(claim).await?,
            "http" | "https" => self.page(claim).await?,
            _ => self.left_alone(claim, FetchStatus::ILLEGAL_URI, "").await?,
        };
        if !self.waiting.is_empty() {
            self.begin_packing().await?;
        }
        Ok(went)
    }

    /// Packs what waits. Nothing is asked of any server from here on.
    async fn begin_packing(&mut self) -> Result<(), VisitError> {
        // It is never closed.
        self.permit = Arc::clone(&self.crawl.packing).acquire_owned().await.ok();
        for unpacked in std::mem::take(&mut self.waiting) {
            match unpacked {
                Unpacked::Name { asked_for, answer } => {
                    let ready = pack::name(self.crawl, self.worker, &asked_for, &answer, &self.captures)?;
                    self.captures.push(ready);
                }
                Unpacked::Response(response) => {
                    let UnpackedResponse { candidate, fetched, form, annotations, found } = *response;
                    self.pack(&candidate, fetched, form, annotations, &found)?;
                }
            }
        }
        Ok(())
    }

    /// An ordinary URL.
    async fn page(&mut self, claim: &Claim) -> Result<Went, VisitError> {
        let crawl = self.crawl;
        let candidate = &claim.candidate;
        if crawl.scope.current().is_rejected_by_order(&candidate.url) {
            return self.left_alone(claim, FetchStatus::BLOCKED_BY_OPERATOR, "").await;
        }
        // Before robots.txt, which is at the same address.
        if let Some(reason) = crawl.fetcher.refusal(&candidate.url).await {
            return self.refused_address(claim, &reason).await;
        }
        let now = crawl.clock.now();
        let authority = authority(&candidate.url);
        let settings = &crawl.template.robots;
        let copy = crawl.hosts.robots(&crawl.frontier, &authority)?;
        if let Some(due) = copy.waits_until(now, &settings.cache, settings.policy) {
            // Its scheme is out of reach; other URLs of the queue have their turn.
            return Ok((self.wait_apart(due, now), Vec::new()));
        }
        if copy.must_ask(now, &settings.cache, settings.policy) {
            let may_ask = crawl.hosts.may_ask_robots(&authority, now, &settings.cache);
            if may_ask {
                return Ok((Outcome::Defer { prerequisites: vec![robots_of(candidate)] }, Vec::new()));
            }
            let unknown = copy.standing(now, &settings.cache) == Standing::Unknown;
            if unknown && settings.policy != Policy::Ignore {
                return Ok((Outcome::Wait { after: crawl.hosts.robots_wait(&authority, now) }, Vec::new()));
            }
        }
        let path = &candidate.url[Position::BeforePath..Position::AfterQuery];
        let mut annotations = Annotations::new();
        let mut crawl_delay = None;
        match copy.standing(now, &settings.cache) {
            Standing::Rules(robots) => {
                crawl_delay = robots.crawl_delay();
                let decision = settings.policy.decide(robots.allows(path), &candidate.hops);
                if !decision.fetch {
                    return self.left_alone(claim, FetchStatus::ROBOTS, "").await;
                }
                if let Some(word) = decision.annotation {
                    annotations.add(word);
                }
            }
            Standing::DisallowAll if settings.policy != Policy::Ignore => {
                return match copy.unreachable() {
                    Some(status) => self.out_of_reach(claim, status).await,
                    None => self.left_alone(claim, FetchStatus::ROBOTS, "robotsUnreachable").await,
                };
            }
            Standing::DisallowAll | Standing::Unknown => {}
        }
        if settings.policy == Policy::Ignore {
            crawl_delay = None;
        }
        let queue = crawl.frontier.queue_name(&candidate.url);
        match crawl.contacts.backoff(&queue, &authority, &crawl.template.frontier, now) {
            Backoff::None => {}
            Backoff::Until(due) => return Ok((self.wait_apart(due, now), Vec::new())),
            Backoff::Exhausted(status) => return self.out_of_reach(claim, status).await,
        }
        // Behind all that puts a URL off: it is asked once for each, and what was begun is brought to its end.
        let may_be_left_alone = claim.tries == 0 && !candidate.hops.is_seed();
        if may_be_left_alone {
            let (left_alone, mark) = crawl.leaves_session_alone(&candidate.url);
            self.marks.extend(mark);
            if left_alone {
                return self.left_alone(claim, FetchStatus::CHAFF, SessionPaths::ANNOTATION).await;
            }
        }
        self.look_up(claim).await?;
        let history = self.history(&candidate.target_uri());
        let mut request = Request::get(candidate.url.clone());
        request.referer = candidate.via.as_deref().map(str::to_owned);
        request.conditional = history.as_ref().map(validators);
        let mut fetched = self.fetch_with_login(claim, request).await?;
        if let (Some(host), Some(ip)) = (candidate.url.host_str(), fetched.ip) {
            crawl.frontier.set_address(host, ip);
        }
        if crawl.is_outage(&candidate.url, &fetched).await? {
            if may_be_left_alone {
                crawl.put_session_back(&candidate.url);
            }
            return Ok((Outcome::Defer { prerequisites: Vec::new() }, Vec::new()));
        }
        let infected = gate::scan(crawl, &mut fetched, &mut annotations).await?;
        self.begin_packing().await?;
        self.arrived(claim, fetched, history, infected, annotations, crawl_delay)
    }

    /// A URL whose answer is there.
    fn arrived(
        &mut self,
        claim: &Claim,
        mut fetched: Fetched,
        history: Option<History>,
        mut infected: Option<String>,
        mut annotations: Annotations,
        crawl_delay: Option<Duration>,
    ) -> Result<Went, VisitError> {
        let crawl = self.crawl;
        let mut visit = seen(&fetched, crawl);
        visit.crawl_delay = crawl_delay;
        visit.is_apart = self.note_contact(claim, fetched.status)?;
        let url = claim.candidate.url.as_str();
        let cut = is_cut(&fetched, crawl.template.fetch.total_timeout.0);
        let retry = crawl.template.frontier.retry(fetched.status, cut, claim.tries);
        if let Some(after) = retry {
            let retry = Outcome::Retry { visit, after };
            if !cut {
                return Ok((retry, Vec::new()));
            }
            let spare = crawl.fetcher.spare_disk_bytes(crawl.template.engine.min_free.0);
            match crawl.cut_responses.keep(url, CutResponse { fetched, infected, annotations }, spare) {
                Ok(()) => return Ok((retry, Vec::new())),
                Err(kept) => CutResponse { fetched, infected, annotations } = *kept,
            }
        } else if let Some(earlier) = crawl.cut_responses.take(url)
            && earlier.is_better_than(&fetched)
        {
            // A part of the page says more than the failure of the last try, and a long part more than a short one.
            CutResponse { fetched, infected, annotations } = earlier;
            visit = Visit { crawl_delay, ..seen(&fetched, crawl) };
        }
        annotations.tries(claim.tries + 1);
        self.deliver(claim, fetched, history, infected, annotations, visit)
    }

    /// A response that is the last one of its URL.
    fn deliver(
        &mut self,
        claim: &Claim,
        mut fetched: Fetched,
        history: Option<History>,
        infected: Option<String>,
        mut annotations: Annotations,
        visit: Visit,
    ) -> Result<Went, VisitError> {
        let crawl = self.crawl;
        let problems: Vec<_> = fetched.problems.iter().map(ToString::to_string).collect();
        let problems = problems.join("; ");
        let candidate = &claim.candidate;
        let form = match infected {
            Some(found) => Form::Viral(found),
            None => pack::form(crawl, &candidate.target_uri(), &fetched, history, &mut annotations),
        };
        let mut found = links::find(crawl, candidate, &mut fetched, role(candidate))?;
        self.note_session_path(std::mem::take(&mut found.session_path));
        for word in &found.annotations {
            annotations.add(word);
        }
        self.pack(candidate, fetched, form, annotations, &found)?;
        if let Some(ready) = self.captures.last().filter(|_| !problems.is_empty()) {
            let mut line = Vec::new();
            nonfatal_error(&ready.line, &problems, &mut line);
            self.lines.push(("nonfatal-errors.log", line));
        }
        let discovered = links::choose(crawl, candidate, found, &mut self.lines)?;
        Ok((Outcome::Done(visit), discovered))
    }

    /// The robots.txt of a host, wherever it leads.
    async fn robots(&mut self, claim: &Claim) -> Result<Went, VisitError> {
        let crawl = self.crawl;
        let asked = &claim.candidate;
        let settings = &crawl.template.robots;
        let authority = authority(&asked.url);
        let now = crawl.clock.now();
        if !crawl.hosts.may_ask_robots(&authority, now, &settings.cache) {
            // The whole queue waits with it.
            let visit = Visit::new(FetchStatus::ROBOTS_PREREQUISITE, 0, Duration::ZERO);
            let after = crawl.hosts.robots_wait(&authority, now);
            return Ok((Outcome::Retry { visit, after }, Vec::new()));
        }
        self.look_up(claim).await?;
        let mut at = asked.clone();
        let mut discovered = Vec::new();
        let mut copy = (*crawl.hosts.robots(&crawl.frontier, &authority)?).clone();
        let mut visit = None;
        for step in 0..=ROBOTS_REDIRECTS_MAX {
            let mut fetched = crawl.fetch(&Request::get(at.url.clone())).await?;
            if crawl.is_outage(&at.url, &fetched).await? {
                return Ok((Outcome::Defer { prerequisites: Vec::new() }, Vec::new()));
            }
            if step == 0 {
                // Only now: the probes of an outage do not count.
                crawl.hosts.note_robots_asked(&authority, now);
            }
            visit.get_or_insert_with(|| seen(&fetched, crawl));
            let status = fetched.status;
            let elsewhere = redirect(&fetched, &at);
            let found = links::find(crawl, &at, &mut fetched, Role::Robots)?;
            let now = crawl.clock.now();
            let extent = extent(&fetched);
            let body = fetched.content_bytes(robots::READ_BYTES_MAX as u64 + 1)?;
            let answer = match (status.http(), &elsewhere) {
                (Some(_), Some(_)) if step == ROBOTS_REDIRECTS_MAX => Some(Answer::LostInRedirects),
                (Some(_), Some(_)) => None,
                (status, _) => Some(robots::answer(status, extent, &body)),
            };
            if let Some(answer) = answer {
                copy.learn(answer, &crawl.product_token, now, &settings.cache);
                // As for the contact: a server that leads elsewhere answers.
                copy.note_status(visit.as_ref().map_or(status, |first| first.status));
            }
            drop(body);
            let settled = elsewhere.is_none() || step == ROBOTS_REDIRECTS_MAX;
            let failed = settled && copy.standing(now, &settings.cache) == Standing::Unknown;
            if !failed || settings.policy == Policy::Ignore {
                let mut annotations = Annotations::new();
                annotations.tries(claim.tries + 1);
                let form = pack::form(crawl, &at.target_uri(), &fetched, None, &mut annotations);
                self.take_in(&at, fetched, form, annotations, &found);
            }
            if settled {
                discovered = links::choose(crawl, &at, found, &mut self.lines)?;
                break;
            }
            let Some(next) = elsewhere else { break };
            at = Candidate { url: next, hops: at.hops.and(Hop::Redirect), ..at };
        }
        let now = crawl.clock.now();
        let ask_at = copy.ask_at(&settings.cache);
        let unknown = copy.standing(now, &settings.cache) == Standing::Unknown;
        let mut visit = visit.unwrap_or(Visit::new(FetchStatus::NEVER_TRIED, 0, Duration::ZERO));
        self.share_dns_failure(&asked.url, visit.status, &copy)?;
        visit.is_apart = self.note_contact(claim, visit.status)?;
        crawl.hosts.set_robots(&crawl.frontier, &authority, copy)?;
        if unknown && settings.policy != Policy::Ignore {
            if visit.is_apart {
                self.report_wait(&authority, visit.status, ask_at, now);
                return Ok((Outcome::Done(visit), Vec::new()));
            }
            let after = Duration::try_from(ask_at.duration_since(now)).unwrap_or_default();
            return Ok((Outcome::Retry { visit, after }, Vec::new()));
        }
        Ok((Outcome::Done(visit), discovered))
    }

    /// A name that cannot be resolved is the same for the other scheme.
    fn share_dns_failure(
        &self,
        url: &Url,
        status: FetchStatus,
        copy: &HostRobots,
    ) -> Result<(), FrontierError> {
        let Some(other) = other_scheme(url).filter(|_| status == FetchStatus::DNS_FAILED) else {
            return Ok(());
        };
        let crawl = self.crawl;
        let mut known = (*crawl.hosts.robots(&crawl.frontier, &other)?).clone();
        known.share_failures(copy);
        crawl.hosts.set_robots(&crawl.frontier, &other, known)
    }

    /// Notes whether the server of a URL responded. True if it did not, and its queue has URLs of other servers that may:
    /// the queue need not wait with it.
    fn note_contact(&mut self, claim: &Claim, status: FetchStatus) -> Result<bool, FrontierError> {
        let crawl = self.crawl;
        let now = crawl.clock.now();
        let url = &claim.candidate.url;
        let (queue, server) = (crawl.frontier.queue_name(url), authority(url));
        if !status.is_unreachable() {
            if status.is_success() {
                crawl.contacts.note_reached(&queue, &server, now);
            }
            return Ok(false);
        }
        crawl.contacts.note_failed(&queue, &server, status, now);
        if let Some(other) = other_scheme(url).filter(|_| status == FetchStatus::DNS_FAILED) {
            crawl.contacts.note_failed(&queue, &other, status, now);
        }
        // In a long queue it may be one of a server that is known.
        let is_apart = match self.has_others(&queue, &server)? {
            Some(has_others) => has_others,
            None => crawl.contacts.knows_others(&queue, &crawl.contacts.silent(&queue, &server)),
        };
        crawl.contacts.set_apart(&queue, &server, is_apart);
        if let Backoff::Until(until) = crawl.contacts.backoff(&queue, &server, &crawl.template.frontier, now)
        {
            self.report_wait(&server, status, until, now);
        }
        Ok(is_apart)
    }

    /// Whether a queue has anything for a server other than this one, which fails. None if it is too long to be seen.
    fn has_others(&self, queue: &str, server: &str) -> Result<Option<bool>, FrontierError> {
        let crawl = self.crawl;
        if crawl.contacts.answers_elsewhere(queue, server) {
            return Ok(Some(true));
        }
        let silent = crawl.contacts.silent(queue, server);
        crawl
            .frontier
            .any_in_queue(queue, &|url| Url::parse(url).is_ok_and(|url| !silent.contains(&*authority(&url))))
    }

    /// Puts a URL off whose server is not to be asked before `due`, and for some minutes at most: the server may be revived
    /// meanwhile. Not for less either, or the URLs of a long queue that wait would take the turns of the others.
    fn wait_apart(&self, due: Timestamp, now: Timestamp) -> Outcome {
        let after = Duration::try_from(due.duration_since(now)).unwrap_or_default();
        Outcome::Wait {
            after: after.min(self.crawl.template.frontier.retry_delay.0.saturating_mul(WAIT_APART_MAX)),
        }
    }

    /// A URL whose server could not be reached for as long as servers are waited for.
    async fn out_of_reach(&mut self, claim: &Claim, status: FetchStatus) -> Result<Went, VisitError> {
        let crawl = self.crawl;
        let url = &claim.candidate.url;
        if !crawl.is_own(url.host_str().unwrap_or_default()) {
            return self.left_alone(claim, status, GIVEN_UP).await;
        }
        let (queue, server) = (crawl.frontier.queue_name(url), authority(url));
        if crawl.contacts.answers_elsewhere(&queue, &server) {
            return self.left_alone(claim, status, SERVER_GIVEN_UP).await;
        }
        // If it cannot be seen: others have had the time in which this server was waited for.
        if self.has_others(&queue, &server)? == Some(true) {
            // They are tried first: what they do decides.
            return Ok((Outcome::Wait { after: crawl.template.frontier.retry_delay.0 }, Vec::new()));
        }
        let text = format!(
            "host {queue} cannot be reached ({}): its URLs stay queued; resume the crawl or revive the queue to try again",
            reason(status, false)
        );
        tracing::warn!("{text}");
        let mut line = Vec::new();
        alert(crawl.clock.now(), AlertLevel::Warning, "frontier", &text, &mut line);
        self.lines.push(("alerts.log", line));
        Ok((Outcome::Retire, Vec::new()))
    }

    /// Reports that URLs of one scheme wait while others of their queue do not.
    fn report_wait(&mut self, authority: &str, status: FetchStatus, until: Timestamp, now: Timestamp) {
        let Some(text) = describe_scheme(authority, status, until, now) else { return };
        tracing::info!("{text}");
        let mut line = Vec::new();
        Note::Running(&text).write(now, &mut line);
        self.lines.push(("progress-statistics.log", line));
    }

    /// Keeps an answer, to be packed when nothing more is asked for.
    pub(super) fn take_in(
        &mut self,
        candidate: &Candidate,
        fetched: Fetched,
        form: Form,
        annotations: Annotations,
        found: &links::Found,
    ) {
        let (candidate, found) = (candidate.clone(), found.clone());
        let response = UnpackedResponse { candidate, fetched, form, annotations, found };
        self.waiting.push(Unpacked::Response(Box::new(response)));
    }

    /// Packs an answer, to be delivered with what was packed before it.
    fn pack(
        &mut self,
        candidate: &Candidate,
        fetched: Fetched,
        form: Form,
        annotations: Annotations,
        found: &links::Found,
    ) -> Result<(), VisitError> {
        let Way { crawl, worker, captures, .. } = self;
        let ready = pack::pack(crawl, *worker, candidate, fetched, form, annotations, found, captures)?;
        captures.push(ready);
        Ok(())
    }

    /// Looks the name of a host up, once, and keeps what the name servers said.
    async fn look_up(&mut self, claim: &Claim) -> Result<(), VisitError> {
        let crawl = self.crawl;
        let candidate = &claim.candidate;
        let Some(host) = candidate.url.host_str() else { return Ok(()) };
        if crawl.hosts.is_found(host) || !crawl.template.fetch.proxy.is_empty() {
            return Ok(());
        }
        // A robots.txt is asked for at its own times, each time as if it had never been.
        if claim.tries > 0 || claim.is_prerequisite() {
            crawl.fetcher.forget_failure(host);
        }
        let answer = crawl.fetcher.resolve(host).await;
        if answer.addresses.is_ok() {
            crawl.hosts.set_found(host);
            if matches!(answer.source, DnsSource::Servers | DnsSource::System) {
                self.waiting.push(Unpacked::Name { asked_for: candidate.clone(), answer });
            }
        }
        Ok(())
    }

    fn history(&self, url: &str) -> Option<History> {
        let history = self.crawl.template.dedup.conditional.then(|| self.crawl.oracle.history(url)).flatten();
        history.filter(|history| never_has_links(&history.content_type))
    }

    /// Keeps what a response says of URLs with session ids, and reports a shape that is left alone from now on.
    fn note_session_path(&mut self, seen: Observation) {
        self.marks.extend(seen.record.map(|(hash, record)| changes::shape(hash, &record)));
        let Some((shape, repetitions)) = seen.trap else { return };
        let text = format!(
            "{repetitions} URLs of the shape {shape} were the same page: further ones are not fetched; \
             scope.max_session_repetitions = 0 fetches them all"
        );
        tracing::warn!("{text}");
        let mut line = Vec::new();
        alert(self.crawl.clock.now(), AlertLevel::Warning, "scope", &text, &mut line);
        self.lines.push(("alerts.log", line));
    }

    /// Notes a URL whose host is at an address that must not be reached.
    async fn refused_address(&mut self, claim: &Claim, reason: &str) -> Result<Went, VisitError> {
        let word = ProblemKind::AddressRefused.annotation();
        let went = self.left_alone(claim, FetchStatus::BLOCKED_BY_ADDRESS, word).await?;
        if let Some(ready) = self.captures.last() {
            let mut line = Vec::new();
            nonfatal_error(&ready.line, reason, &mut line);
            self.lines.push(("nonfatal-errors.log", line));
        }
        Ok(went)
    }

    /// Notes a URL that is not fetched, or not again: a part of the page that came earlier is kept.
    async fn left_alone(
        &mut self,
        claim: &Claim,
        status: FetchStatus,
        why: &str,
    ) -> Result<Went, VisitError> {
        let crawl = self.crawl;
        let Some(earlier) = crawl.cut_responses.take(claim.candidate.url.as_str()) else {
            let line = unfetched(crawl.clock.now(), &claim.candidate, self.worker, status, why);
            self.captures.push(Ready { records: None, line, extracted: None });
            return Ok((Outcome::Done(Visit::new(status, 0, Duration::ZERO)), Vec::new()));
        };
        let CutResponse { fetched, infected, mut annotations } = earlier;
        annotations.tries(claim.tries);
        self.begin_packing().await?;
        let visit = seen(&fetched, crawl);
        self.deliver(claim, fetched, None, infected, annotations, visit)
    }
}

/// The line of a URL without a response. `why` is its annotation.
pub(super) fn unfetched(
    now: Timestamp,
    candidate: &Candidate,
    worker: u32,
    status: FetchStatus,
    why: &str,
) -> CrawlLine<'static> {
    let mut annotations = Annotations::new();
    if !why.is_empty() {
        annotations.add(why);
    }
    CrawlLine {
        logged: now,
        status,
        size: None,
        url: Cow::Owned(candidate.target_uri().into_owned()),
        hops: Cow::Owned(candidate.hops.clone()),
        via: candidate.via.as_deref().map(|via| Cow::Owned(via.to_owned())),
        mime: Cow::Borrowed("unknown"),
        worker,
        fetched: None,
        digest: None,
        source: candidate.source.as_deref().map(|source| Cow::Owned(source.to_owned())),
        annotations: Cow::Owned(annotations.as_str().to_owned()),
        extra: None,
    }
}

/// What the frontier learns from an answer.
pub(super) fn seen(fetched: &Fetched, crawl: &Shared) -> Visit {
    let mut visit = Visit::new(fetched.status, fetched.wire_length, fetched.duration);
    visit.retry_after = fetched.header("Retry-After").and_then(|text| retry_after(&text, crawl.clock.now()));
    visit
}

/// The robots.txt that speaks for a candidate.
fn robots_of(candidate: &Candidate) -> Candidate {
    // No user and password: the file is for everybody.
    let mut url = bare(candidate.url.clone());
    url.set_path("/robots.txt");
    url.set_query(None);
    Candidate {
        url,
        via: Some(Arc::from(&*candidate.target_uri())),
        hops: candidate.hops.and(Hop::Prerequisite),
        source: candidate.source.clone(),
        force: true,
    }
}

/// How much of a robots.txt has come.
pub(super) fn extent(fetched: &Fetched) -> Extent {
    match fetched.truncated {
        None => Extent::Whole,
        Some(Truncated::Length) if !fetched.has_problem(ProblemKind::HeadTruncated) => Extent::CutByOurLimit,
        Some(_) => Extent::CutOff,
    }
}

/// Where an answer sends us.
pub(super) fn redirect(fetched: &Fetched, at: &Candidate) -> Option<Url> {
    if !matches!(fetched.status.0, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let place = fetched.header("Location")?;
    let to = at.url.join(place.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    // No user and password: the file is for everybody.
    Some(bare(to))
}

fn validators(history: &History) -> Validators {
    Validators { etag: history.etag.clone(), last_modified: history.last_modified.clone() }
}

/// What a URL is by the way we came to it.
fn role(candidate: &Candidate) -> Role {
    let mut back = candidate.hops.back();
    if (back.next(), back.next()) == (Some(Hop::Manifest), Some(Hop::Prerequisite)) {
        Role::Sitemap
    } else {
        Role::Any
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is learned from the robots.txt of a URL is found again for the URL, so that it is asked for once.
        #[test]
        fn the_precondition_of_a_precondition_is_satisfied(
            scheme in "https?",
            user in "([a-z%@:]{0,5}@)?",
            host in "([a-zA-Z0-9.-]{1,12}|[0-9]{1,10}|\\[::[0-9a-f]{1,4}\\]|[äöü東]{1,3}\\.example)",
            port in "(:[0-9]{0,5})?",
            rest in "[/?#\\\\][ -~]{0,20}|",
        ) {
            let text = format!("{scheme}://{user}{host}{port}{rest}");
            let Ok(url) = Url::parse(&text) else { return Ok(()) };
            let candidate = Candidate::seed(url);
            let robots = robots_of(&candidate);
            prop_assert_eq!(authority(&robots.url), authority(&candidate.url), "{}", text);
            let own = robots_of(&robots);
            prop_assert_eq!(&own.url, &robots.url, "{}", text);
            let target = own.target_uri();
            prop_assert_eq!(own.url.as_str(), &*target);
        }

        #[test]
        fn any_url_has_the_authority_of_its_robots_txt(text in "\\PC{0,40}") {
            for text in [text.clone(), format!("http://{text}"), format!("https://{text}/")] {
                let Ok(url) = Url::parse(&text) else { continue };
                if !matches!(url.scheme(), "http" | "https") { continue }
                let candidate = Candidate::seed(url);
                let robots = robots_of(&candidate);
                prop_assert_eq!(authority(&robots.url), authority(&candidate.url), "{}", text);
            }
        }
    }
}
