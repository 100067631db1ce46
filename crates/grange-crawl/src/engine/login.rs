//! Log-ins: which credential is for which URL, and when it is used.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use url::{Position, Url};
use urlkey::{Suffixes, registrable_domain};

use super::changes::{self, CrawlChanges, Mark};
use super::links;
use super::links::Found;
use super::login_session::{FormSession, LoginTrouble};
use super::shared::VisitError;
use super::visit::Way;
use crate::candidate::{Candidate, bare, without_user_info};
use crate::extract::Role;
use crate::fetch::auth::{Challenge, Credentials, Session, challenges, strongest};
use crate::fetch::login::FormMethod;
use crate::fetch::{Fetched, ProblemKind, Request, Verdict};
use crate::frontier::Claim;
use crate::hops::Hop;
use crate::job::{Credential, CredentialKind};
use crate::log::{AlertLevel, Annotations, alert};
use crate::record::capture::Form;

/// The log-ins of a crawl.
#[derive(Debug, Default)]
pub(super) struct Logins {
    /// Those of the job, then those of seeds with a user name in their URL.
    http: Mutex<Vec<HttpLogin>>,
    forms: Vec<FormSession>,
    /// What servers asked for before, by scheme, host and port: the next request need not be refused first.
    sessions: Mutex<HashMap<String, Session>>,
    /// By where the log-in is sent.
    troubles: Mutex<BTreeMap<String, LoginTrouble>>,
}

/// A password that is given where a server asks for it by HTTP.
#[derive(Debug)]
struct HttpLogin {
    domain: String,
    origin: Option<String>,
    realm: Option<String>,
    credentials: Credentials,
}

impl HttpLogin {
    /// Whether it was entered for this URL and realm.
    fn is_for(&self, url: &Url, realm: &str) -> bool {
        is_of(url, &self.domain)
            && self.origin.as_deref().is_none_or(|origin| origin == &*super::hosts::authority(url))
            && self.realm.as_deref().is_none_or(|wanted| wanted == realm)
    }
}

impl Logins {
    /// The log-ins of a job, those that were done in an earlier run included.
    pub(super) fn new(credentials: &[Credential], seeds: &[String], kept: &CrawlChanges) -> Logins {
        let mut logins = Logins::default();
        let mut http = Vec::new();
        for Credential { domain, kind } in credentials.iter().cloned() {
            match kind {
                CredentialKind::Http { origin, realm, user, password } => {
                    let credentials = Credentials { user, password };
                    http.push(HttpLogin { domain, origin, realm, credentials });
                }
                CredentialKind::Form(form) => {
                    let is_kept = kept.has_login(&form);
                    logins.forms.push(FormSession::new(domain, form, is_kept));
                }
            }
        }
        logins.http = Mutex::new(http);
        let troubles = kept.login_troubles.iter().map(|trouble| (trouble.at.clone(), trouble.clone()));
        logins.troubles = Mutex::new(troubles.collect());
        logins.add_seeds(seeds.iter().map(String::as_str).chain(kept.ordered_seeds()));
        for (authority, values) in &kept.challenges {
            if let Ok(url) = Url::parse(authority) {
                logins.begin_session(&url, values.iter().map(String::as_bytes));
            }
        }
        logins
    }

    /// Keeps user names and passwords of seeds for the origins of those seeds, as browsers do: links do not have them.
    pub(super) fn add_seeds<'a>(&self, seeds: impl IntoIterator<Item = &'a str>) {
        let mut http = lock(&self.http);
        for url in seeds.into_iter().filter_map(|seed| Url::parse(seed).ok()) {
            if let (Some(credentials), Some(host)) = (Credentials::of_url(&url), url.host_str()) {
                let domain = registrable_domain(host, Suffixes::All).unwrap_or(host).to_owned();
                let origin = Some(super::hosts::authority(&url).into_owned());
                http.push(HttpLogin { domain, origin, realm: None, credentials });
            }
        }
    }

    /// The value of `Authorization` for a URL of a server that asked before.
    fn known(&self, url: &Url) -> Option<String> {
        lock(&self.sessions)
            .get_mut(&*super::hosts::authority(url))
            .map(|session| session.authorization("GET", target(url)))
    }

    /// The form that a page's session is of: one of the page's host, if there are several for its domain.
    fn form_for(&self, url: &Url) -> Option<&FormSession> {
        let is_of_host = |session: &&FormSession| {
            let at = Url::parse(&session.form.login_url);
            at.is_ok_and(|at| at.host_str() == url.host_str())
        };
        let of_domain = || self.forms.iter().filter(|session| is_of(url, &session.domain));
        of_domain().find(is_of_host).or_else(|| of_domain().next())
    }

    /// The log-ins that did not work, earlier runs included.
    pub(super) fn troubles(&self) -> Vec<LoginTrouble> {
        let troubles = lock(&self.troubles);
        troubles.values().filter(|one| one.refused.is_some() || one.pages > 0).cloned().collect()
    }

    /// Changes what is known of a log-in that does not work; true if that was nothing before. The mark keeps it.
    fn note_trouble(&self, domain: &str, at: &str, change: impl FnOnce(&mut LoginTrouble)) -> (bool, Mark) {
        let mut troubles = lock(&self.troubles);
        let is_new = !troubles.contains_key(at);
        let trouble = troubles.entry(at.to_owned()).or_default();
        (trouble.domain, trouble.at) = (domain.to_owned(), at.to_owned());
        change(trouble);
        (is_new, changes::login_trouble(trouble))
    }

    fn has_password_for(&self, url: &Url) -> bool {
        lock(&self.http).iter().any(|login| is_of(url, &login.domain))
    }

    /// The answer to a refusal, if there is a credential for it.
    pub(super) fn answer(&self, url: &Url, refused: &Fetched) -> Option<String> {
        self.begin_session(url, refused.http.as_ref()?.all("WWW-Authenticate"))?;
        self.known(url)
    }

    /// Takes up what a server asks for, given the values of `WWW-Authenticate`, if there is a credential for it.
    fn begin_session<'a>(&self, url: &Url, values: impl Iterator<Item = &'a [u8]>) -> Option<()> {
        let challenge = strongest(&challenges(values))?.clone();
        let realm = match &challenge {
            Challenge::Basic { realm } => realm.clone(),
            Challenge::Digest(digest) => digest.realm.clone(),
        };
        let credentials =
            lock(&self.http).iter().find(|login| login.is_for(url, &realm))?.credentials.clone();
        let session = Session::new(challenge, credentials);
        lock(&self.sessions).insert(super::hosts::authority(url).into_owned(), session);
        Some(())
    }
}

/// Why a form was not sent, so that it is sent again before the next page.
enum FormError {
    /// No server answered.
    NoAnswer(Box<Fetched>),
    Visit(VisitError),
}

impl From<VisitError> for FormError {
    fn from(error: VisitError) -> FormError {
        FormError::Visit(error)
    }
}

impl Way<'_> {
    /// Fetches, logging in where that is asked for and we can.
    pub(super) async fn fetch_with_login(
        &mut self,
        claim: &Claim,
        request: Request,
    ) -> Result<Fetched, VisitError> {
        let crawl = self.crawl;
        for session in &crawl.logins.forms {
            if is_of(&request.url, &session.domain) && !session.begun.initialized() {
                match session.begun.get_or_try_init(|| self.send_form(claim, session)).await {
                    Ok(()) => {}
                    // As if the page itself had not answered: it is tried again, and the form before it.
                    Err(FormError::NoAnswer(fetched)) => return Ok(*fetched),
                    Err(FormError::Visit(error)) => return Err(error),
                }
            }
        }
        let Some(session) = crawl.logins.form_for(&request.url) else {
            return self.fetch_with_password(claim, request).await;
        };
        let number = session.history().number();
        let mut fetched = self.fetch_with_password(claim, request.clone()).await?;
        if !session.lacks_session(&request.url, &mut fetched) {
            if fetched.status.is_success() {
                session.history().note_open(&request.url);
            }
            return Ok(fetched);
        }
        if session.history().is_closed(&request.url) {
            return Ok(fetched);
        }
        match self.log_in_again(claim, session, number).await {
            Ok(true) => {}
            Ok(false) => {
                self.note_trouble(&session.domain, &session.form.login_url, |trouble| trouble.pages += 1);
                return Ok(fetched);
            }
            Err(FormError::NoAnswer(fetched)) => return Ok(*fetched),
            Err(FormError::Visit(error)) => return Err(error),
        }
        let url = request.url.clone();
        let mut fetched = self.fetch_with_password(claim, request).await?;
        if session.lacks_session(&url, &mut fetched) {
            session.history().note_closed(&url);
        } else if fetched.status.is_success() {
            session.history().note_open(&url);
        }
        Ok(fetched)
    }

    /// Sends the form of a session that has ended, unless somebody did since the log-in of this `number`. True if the page is
    /// to be fetched again.
    async fn log_in_again(
        &mut self,
        claim: &Claim,
        session: &FormSession,
        number: u32,
    ) -> Result<bool, FormError> {
        let _repeating = session.repeating.lock().await;
        let (may_repeat, rests) = {
            let mut history = session.history();
            if history.number() != number {
                return Ok(history.is_in());
            }
            let may_repeat = history.may_repeat(self.crawl.clock.now());
            (may_repeat, if may_repeat { None } else { history.report_rest() })
        };
        let (page, at) = (claim.candidate.target_uri(), without_query(&session.form.login_url));
        if !may_repeat {
            if let Some(why) = rests {
                self.alert(&format!(
                    "the session of {at} has ended at {page} and is not begun again now: {why}"
                ));
            }
            return Ok(false);
        }
        self.alert(&format!("the session of {at} has ended at {page}: logging in again"));
        self.send_form(claim, session).await?;
        Ok(session.history().is_in())
    }

    /// Fetches, with a password where the server asks for one by HTTP and we have it.
    async fn fetch_with_password(
        &mut self,
        claim: &Claim,
        mut request: Request,
    ) -> Result<Fetched, VisitError> {
        let crawl = self.crawl;
        request.authorization = crawl.logins.known(&request.url);
        let mut fetched = crawl.fetch(&request).await?;
        let had_password = request.authorization.is_some() || Credentials::of_url(&request.url).is_some();
        if had_password && fetched.has_problem(ProblemKind::CertificateNotVerified) {
            // Nothing was sent. The page is archived as everybody sees it.
            request.url = bare(request.url);
            request.authorization = None;
            fetched = crawl.fetch(&request).await?;
        }
        withhold(&mut fetched.request);
        if fetched.status.0 != 401 {
            return Ok(fetched);
        }
        if fetched.tls.as_ref().is_some_and(|tls| tls.certificate != Verdict::Verified) {
            if crawl.logins.has_password_for(&request.url) {
                let server = super::hosts::authority(&request.url);
                self.alert(&format!("no password is sent to {server}: its certificate was not verified"));
            }
            return Ok(fetched);
        }
        let Some(authorization) = crawl.logins.answer(&request.url, &fetched) else { return Ok(fetched) };
        if request.authorization.as_ref() == Some(&authorization) {
            self.note_password_refused(&request.url);
            return Ok(fetched);
        }
        let asks = fetched.http.as_ref().into_iter().flat_map(|head| head.all("WWW-Authenticate"));
        let asks: Vec<_> = asks.map(|value| String::from_utf8_lossy(value).into_owned()).collect();
        self.marks.push(changes::challenge(&super::hosts::authority(&request.url), &asks));
        // The refusal is a capture too: it is what everybody else sees.
        let mut refused = fetched;
        let found = links::find(crawl, &claim.candidate, &mut refused, Role::Any)?;
        self.keep(&claim.candidate, refused, &found);
        request.authorization = Some(authorization);
        let mut fetched = crawl.fetch(&request).await?;
        withhold(&mut fetched.request);
        if fetched.status.0 == 401 {
            self.note_password_refused(&request.url);
        }
        Ok(fetched)
    }

    /// A server asks again for the password that it was given.
    fn note_password_refused(&mut self, url: &Url) {
        let server = super::hosts::authority(url);
        let host = url.host_str().unwrap_or_default();
        let domain = registrable_domain(host, Suffixes::All).unwrap_or(host);
        let is_new = self.note_trouble(domain, &server, |trouble| {
            trouble.refused = Some("the server refused the user name or the password".to_owned());
            trouble.pages += 1;
        });
        if is_new {
            self.alert(&format!(
                "logging in at {server} failed: the server refused the user name or the password"
            ));
        }
    }

    /// Takes note of a log-in that does not work; true if nothing was known of that.
    fn note_trouble(&mut self, domain: &str, at: &str, change: impl FnOnce(&mut LoginTrouble)) -> bool {
        let (is_new, mark) = self.crawl.logins.note_trouble(domain, &without_query(at), change);
        self.marks.push(mark);
        is_new
    }

    async fn send_form(&mut self, claim: &Claim, session: &FormSession) -> Result<(), FormError> {
        let (crawl, form) = (self.crawl, &session.form);
        let request = match form.request() {
            Ok(request) => request,
            Err(error) => {
                let why = format!("cannot log in: {error}");
                self.alert(&why);
                session.history().note_response(false, crawl.clock.now());
                self.note_trouble(&session.domain, &form.login_url, |trouble| trouble.refused = Some(why));
                return Ok(());
            }
        };
        // Sent by GET, the password is in the address: neither a record nor a Referer may name it.
        let in_address = form.method == FormMethod::Get;
        let mut url = request.url.clone();
        if in_address {
            url.set_query(None);
        }
        let candidate = Candidate {
            url,
            via: Some(Arc::from(&*claim.candidate.target_uri())),
            hops: claim.candidate.hops.and(Hop::Submit),
            source: claim.candidate.source.clone(),
            force: true,
        };
        session.history().note_sent(crawl.clock.now());
        let mut fetched = crawl.fetch(&request).await?;
        // A server that may not see the password is not asked again: its pages are fetched without a log-in.
        let is_refused = fetched.has_problem(ProblemKind::CertificateNotVerified);
        if fetched.status.http().is_none() && !is_refused {
            // It may hold the password.
            fetched.request.clear();
            return Err(FormError::NoAnswer(Box::new(fetched)));
        }
        let verdict = form.verdict(&mut fetched);
        session.history().note_response(verdict.is_ok(), crawl.clock.now());
        if verdict.is_ok() {
            self.marks.push(changes::login(form));
        }
        if let Err(why) = &verdict {
            self.alert(&format!("logging in at {} failed: {why}", candidate.target_uri()));
        }
        let refused = verdict.err();
        self.note_trouble(&session.domain, &form.login_url, |trouble| trouble.refused = refused);
        // The request holds the password and is not for the archive.
        fetched.request.clear();
        let found = links::find(crawl, &candidate, &mut fetched, Role::Any)?;
        if !in_address {
            self.keep(&candidate, fetched, &found);
        }
        // Where those are sent who were let in.
        let discovered = links::choose(crawl, &candidate, found, &mut self.lines)?;
        self.discovered.extend(discovered);
        Ok(())
    }

    fn alert(&mut self, text: &str) {
        let mut line = Vec::new();
        alert(self.crawl.clock.now(), AlertLevel::Warning, "login", text, &mut line);
        self.lines.push(("alerts.log", line));
    }

    /// Keeps an answer on the way to the one that was asked for.
    fn keep(&mut self, candidate: &Candidate, fetched: Fetched, found: &Found) {
        self.take_in(candidate, fetched, Form::Response, Annotations::new(), found);
    }
}

/// Takes the password out of a request that is to be archived: of every `Authorization` in its head, in any case. Everything
/// else stays as it was sent.
fn withhold(request: &mut Vec<u8>) {
    let head = memchr::memmem::find(request, b"\r\n\r\n").unwrap_or(request.len());
    let mut kept = Vec::with_capacity(request.len());
    for (number, line) in request[..head].split(|byte| *byte == b'\n').enumerate() {
        if number > 0 {
            kept.push(b'\n');
        }
        match memchr::memchr(b':', line) {
            Some(colon) if line[..colon].trim_ascii().eq_ignore_ascii_case(b"authorization") => {
                kept.extend_from_slice(&line[..=colon]);
                kept.extend_from_slice(b" withheld");
                kept.extend_from_slice(if line.ends_with(b"\r") { b"\r" } else { b"" });
            }
            _ => kept.extend_from_slice(line),
        }
    }
    kept.extend_from_slice(&request[head..]);
    *request = kept;
}

/// Where a form is sent, for people: the query of an address may hold what is nobody's business.
fn without_query(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return without_user_info(url).into_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // The path of a bare origin is not part of what servers are called.
    let url = bare(url);
    if url.path() == "/" { super::hosts::authority(&url).into_owned() } else { url.into() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn target(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

/// Whether a URL belongs to a registrable domain.
pub(super) fn is_of(url: &Url, domain: &str) -> bool {
    url.host_str().is_some_and(|host| registrable_domain(host, Suffixes::All).unwrap_or(host) == domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_is_withheld() {
        for (sent, kept) in [
            ("GET / HTTP/1.1\r\nHost: e.org\r\n\r\n", "GET / HTTP/1.1\r\nHost: e.org\r\n\r\n"),
            (
                "GET / HTTP/1.1\r\nAuthorization: Basic YTpi\r\nHost: e.org\r\n\r\n",
                "GET / HTTP/1.1\r\nAuthorization: withheld\r\nHost: e.org\r\n\r\n",
            ),
            // Every field of that name, in any case; a body is not looked into.
            (
                "POST / HTTP/1.1\r\nauthorization:x\r\nX-Authorization: y\r\nAuthorization: Basic YTpi\r\n\r\n\r\nAuthorization: z",
                "POST / HTTP/1.1\r\nauthorization: withheld\r\nX-Authorization: y\r\nAuthorization: withheld\r\n\r\n\r\nAuthorization: z",
            ),
            ("AUTHORIZATION: Basic YTpi", "AUTHORIZATION: withheld"),
        ] {
            let mut request = sent.as_bytes().to_vec();
            withhold(&mut request);
            assert_eq!(String::from_utf8(request).unwrap(), kept);
        }
    }

    #[test]
    fn a_password_is_for_the_origin_and_the_realm_it_was_entered_for() {
        let login = |origin: Option<&str>, realm: Option<&str>| HttpLogin {
            domain: "example.org".to_owned(),
            origin: origin.map(str::to_owned),
            realm: realm.map(str::to_owned),
            credentials: Credentials { user: "u".to_owned(), password: "p".to_owned() },
        };
        let secure = Some("https://www.example.org");
        for (origin, realm, url, fits) in [
            (None, None, "http://a.example.org/", true),
            (None, None, "http://example.com/", false),
            (None, Some("Members"), "http://example.org/", true),
            (None, Some("Others"), "http://example.org/", false),
            (secure, None, "https://www.example.org/x", true),
            (secure, None, "https://user@www.example.org:443/x", true),
            (secure, None, "http://www.example.org/x", false),
            (secure, None, "https://www.example.org:8443/x", false),
            (secure, None, "https://evil.example.org/x", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(login(origin, realm).is_for(&url, "Members"), fits, "{origin:?} {realm:?} {url}");
        }
    }
}
