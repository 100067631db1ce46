//! The session of a form: whether it still lasts, and when the form is sent again.
//!
//! A session has ended when a page of its domain is refused (401 or 403), leads to the log-in page, or holds the mark of a
//! failed log-in, after the form had let us in. The form is then sent again and the page fetched again. A page that is refused
//! all the same is not for this account: pages of its folder are no sign any more, unless others of the folder came. However a
//! site behaves, the form is sent a few times in an hour only, and once in an hour after it was refused, since servers lock
//! accounts after some wrong passwords.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use url::{Position, Url};

use crate::fetch::Fetched;
use crate::fetch::login::FormLogin;

/// Log-ins by one form within an hour, so that a site that ends sessions all the time is not kept busy by them.
const HOURLY_MAX: usize = 4;
/// Log-ins by one form in one run: a day in which every session lasts a quarter of an hour.
const TOTAL_MAX: u32 = 100;
/// Refused log-ins of one form in one run. A password that was changed does not become right again.
const REFUSED_MAX: u32 = 3;
const HOUR: Duration = Duration::from_secs(3600);
/// Folders remembered. Of more, the rest is not told apart, which costs some log-ins.
const FOLDERS_MAX: usize = 1000;
/// How much of a page is searched for the mark of a failed log-in.
const SEARCHED_BYTES_MAX: u64 = 1 << 20;

/// A log-in that did not work as it should, as far as the end of the crawl knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginTrouble {
    /// The registrable domain that the log-in is for.
    pub domain: String,
    /// Where the form is sent, or the server that asks for a password.
    pub at: String,
    /// Why the last log-in was refused; none if it was not.
    pub refused: Option<String>,
    /// Pages that came as everybody sees them because there was no session.
    pub pages: u64,
}

/// What happened with a form in this run.
#[derive(Debug, Default)]
pub(super) struct LoginHistory {
    /// Counts log-ins, an earlier run's included.
    number: u32,
    /// The form has let us in, in this run or in an earlier one.
    had_session: bool,
    is_in: bool,
    /// Within the last hour.
    sent: VecDeque<Timestamp>,
    total: u32,
    last_refused: Option<Timestamp>,
    refused: u32,
    /// It was reported that the form is not sent again; until it is.
    is_reported: bool,
    /// Folders with pages that came in a session.
    open: BTreeSet<String>,
    /// Folders with pages that were refused although the form had just let us in.
    closed: BTreeSet<String>,
}

impl LoginHistory {
    /// A log-in of an earlier run, whose session may have ended.
    pub(super) fn kept() -> LoginHistory {
        LoginHistory { number: 1, had_session: true, is_in: true, ..LoginHistory::default() }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn is_in(&self) -> bool {
        self.is_in
    }

    /// Takes note that the form is sent, before any response.
    pub(super) fn note_sent(&mut self, now: Timestamp) {
        self.sent.push_back(now);
        self.total += 1;
        self.is_reported = false;
    }

    pub(super) fn note_response(&mut self, lets_in: bool, now: Timestamp) {
        self.number += 1;
        self.is_in = lets_in;
        self.had_session |= lets_in;
        self.last_refused = (!lets_in).then_some(now);
        self.refused += u32::from(!lets_in);
    }

    /// Whether a form whose session has ended is to be sent again.
    pub(super) fn may_repeat(&mut self, now: Timestamp) -> bool {
        let is_recent =
            |at: Timestamp| Duration::try_from(now.duration_since(at)).is_ok_and(|age| age < HOUR);
        self.sent.retain(|at| is_recent(*at));
        self.had_session
            && self.sent.len() < HOURLY_MAX
            && self.total < TOTAL_MAX
            && self.refused < REFUSED_MAX
            && !self.last_refused.is_some_and(is_recent)
    }

    /// Why a form whose session has ended is not sent again, if that is news.
    pub(super) fn report_rest(&mut self) -> Option<&'static str> {
        // The refusal of the first log-in was reported.
        let is_news = self.had_session && !std::mem::replace(&mut self.is_reported, true);
        is_news.then_some(match self.last_refused {
            Some(_) => "its last log-in was refused",
            None => "it was begun too often",
        })
    }

    /// Takes note of a page that came in a session.
    pub(super) fn note_open(&mut self, url: &Url) {
        let folder = folder(url);
        self.closed.remove(folder);
        if self.is_in && self.open.len() < FOLDERS_MAX && !self.open.contains(folder) {
            self.open.insert(folder.to_owned());
        }
    }

    /// Takes note of a page that did not come although the form had just let us in.
    pub(super) fn note_closed(&mut self, url: &Url) {
        let folder = folder(url);
        if !self.open.contains(folder) && self.closed.len() < FOLDERS_MAX {
            self.closed.insert(folder.to_owned());
        }
    }

    /// Whether pages like this one are not for the account.
    pub(super) fn is_closed(&self, url: &Url) -> bool {
        self.is_in && self.closed.contains(folder(url))
    }
}

/// Scheme, host and path without the last segment.
fn folder(url: &Url) -> &str {
    let text = &url[..Position::AfterPath];
    text.rfind('/').map_or(text, |end| &text[..=end])
}

/// A form, and what happened with it.
#[derive(Debug)]
pub(super) struct FormSession {
    pub(super) domain: String,
    pub(super) form: FormLogin,
    /// The form is sent once for all, by whoever comes first; the others wait.
    pub(super) begun: OnceCell<()>,
    /// Held by whoever sends the form again; the others wait.
    pub(super) repeating: tokio::sync::Mutex<()>,
    history: Mutex<LoginHistory>,
    /// Where the form is and where it is sent: neither is a sign of the end of a session.
    pages: Vec<Url>,
    /// The mark of a failed log-in.
    mark: Option<Regex>,
}

impl FormSession {
    pub(super) fn new(domain: String, form: FormLogin, is_kept: bool) -> FormSession {
        let pages = [Some(&form.login_url), form.page_url.as_ref()].into_iter().flatten();
        FormSession {
            pages: pages.filter_map(|url| Url::parse(url).ok()).collect(),
            // One that cannot be read is refused before a crawl begins.
            mark: form.success.page_lacks.as_deref().and_then(|pattern| Regex::new(pattern).ok()),
            begun: OnceCell::new_with(is_kept.then_some(())),
            repeating: tokio::sync::Mutex::default(),
            history: Mutex::new(if is_kept { LoginHistory::kept() } else { LoginHistory::default() }),
            domain,
            form,
        }
    }

    pub(super) fn history(&self) -> MutexGuard<'_, LoginHistory> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_login_page(&self, url: &Url) -> bool {
        let page = |url: &Url| url[Position::BeforeHost..Position::AfterPath].to_owned();
        self.pages.iter().any(|known| page(known) == page(url))
    }

    /// Whether a response to a URL is for those who are not logged in.
    pub(super) fn lacks_session(&self, url: &Url, fetched: &mut Fetched) -> bool {
        if self.is_login_page(url) {
            return false;
        }
        match fetched.status.http() {
            Some(401 | 403) => true,
            Some(301 | 302 | 303 | 307 | 308) => {
                let to = fetched.header("Location").and_then(|to| url.join(to.trim()).ok());
                to.is_some_and(|to| self.is_login_page(&to))
            }
            Some(200..=299) if fetched.mime().is_some_and(|mime| mime.contains("html")) => {
                let Some(mark) = &self.mark else { return false };
                // A page that cannot be read says nothing.
                fetched.content_bytes(SEARCHED_BYTES_MAX).is_ok_and(|page| mark.is_match(&page))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// How often a form is sent within so many seconds if every page is refused, and each log-in is answered so.
    fn log_ins(mut history: LoginHistory, lets_in: bool, seconds: i64) -> usize {
        let mut sent = 0;
        for second in (0..seconds).step_by(10) {
            if history.may_repeat(at(second)) {
                history.note_sent(at(second));
                history.note_response(lets_in, at(second));
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn a_site_that_always_refuses_costs_a_bounded_number_of_log_ins() {
        const DAY: i64 = 86_400;
        for (lets_in, seconds, sent) in [
            (true, 3600, 4),
            (true, 7200, 8),
            (true, DAY, 96),
            (true, 10 * DAY, 100),
            (false, 3600, 1),
            (false, 7200, 2),
            (false, 10 * DAY, 3),
        ] {
            assert_eq!(log_ins(LoginHistory::kept(), lets_in, seconds), sent, "{lets_in} {seconds}");
        }
        assert_eq!(log_ins(LoginHistory::default(), true, DAY), 0, "it never let us in");
        let mut wrong = LoginHistory::default();
        wrong.note_sent(at(0));
        wrong.note_response(false, at(0));
        assert_eq!(log_ins(wrong, true, DAY), 0, "the password is wrong");
    }

    #[test]
    fn a_form_that_is_not_answered_is_counted_too() {
        let mut history = LoginHistory::kept();
        let sent = (0..100).filter(|second| {
            history.may_repeat(at(*second)) && {
                history.note_sent(at(*second));
                true
            }
        });
        assert_eq!(sent.count(), 4);
    }

    #[test]
    fn folders_that_stay_closed_in_a_session_are_no_sign_of_its_end() {
        let url = |path: &str| Url::parse(&format!("http://e.org{path}")).unwrap();
        let mut history = LoginHistory::kept();
        history.note_open(&url("/members/1"));
        history.note_closed(&url("/members/secret"));
        history.note_closed(&url("/admin/?x=/y/"));
        for (path, closed) in
            [("/members/2", false), ("/admin/users", true), ("/admin", false), ("/admin/deep/x", false)]
        {
            assert_eq!(history.is_closed(&url(path)), closed, "{path}");
        }
        history.note_open(&url("/admin/help"));
        assert!(!history.is_closed(&url("/admin/users")), "another account, or a page for all");
    }
}
