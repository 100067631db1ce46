//! Protected areas: what must be shown to get in, and what is said to those who do not show it.
//!
//! Nobody is remembered: a cookie or a digest proves itself.

use data_encoding::{BASE64, HEXLOWER};
use md5::{Digest, Md5};

use super::answer::{Answer, Gate, RETRY_AFTER_S};
use super::{PASSWORD, USER};

/// The page with the log-in form.
pub(crate) const FORM: &str = "/login/form.html";
/// Where the form is sent.
pub(crate) const ENTER: &str = "/login/enter";
/// Where those go who were let in.
pub(crate) const HOME: &str = "/login/in/home.html";

pub(crate) const COOKIE: &str = "taste=oatmeal";
const SESSION: &str = "session=let-me-in";
const REALM: &str = "synth";
const NONCE: &str = "c3ludGhldGljIHdlYg";

/// What a request shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown<'a> {
    pub method: &'a str,
    pub cookie: &'a str,
    pub authorization: &'a str,
    pub body: &'a [u8],
}

/// Whether a request gets in. Busy pages are not decided here: they count.
pub(crate) fn admits(gate: Gate, shown: Shown<'_>) -> bool {
    match gate {
        Gate::Open | Gate::Busy { .. } => true,
        Gate::Cookie => has_cookie(shown.cookie, COOKIE),
        Gate::Session => has_cookie(shown.cookie, SESSION),
        Gate::Basic => {
            let words = BASE64.encode(format!("{USER}:{PASSWORD}").as_bytes());
            shown
                .authorization
                .split_once(' ')
                .is_some_and(|(scheme, given)| scheme.eq_ignore_ascii_case("basic") && given.trim() == words)
        }
        Gate::Digest => digest_is_right(shown),
        Gate::LogIn => {
            let form = String::from_utf8_lossy(shown.body);
            let field = |wanted: String| form.split('&').any(|field| field == wanted);
            shown.method == "POST" && field(format!("user={USER}")) && field(format!("password={PASSWORD}"))
        }
    }
}

/// The answer at a closed gate.
pub(crate) fn closed(gate: Gate) -> Answer {
    let page =
        |status, text: &str| Answer::new(status, "text/html", format!("<html><body>{text}</body></html>\n"));
    match gate {
        Gate::Open | Gate::Cookie => page(403, "A cookie is wanted here."),
        Gate::Basic => page(401, "Who are you?")
            .header("WWW-Authenticate", format!("Basic realm=\"{REALM}\", charset=\"UTF-8\"")),
        Gate::Digest => page(401, "Who are you, exactly?").header(
            "WWW-Authenticate",
            format!("Digest realm=\"{REALM}\", qop=\"auth\", algorithm=MD5, nonce=\"{NONCE}\", opaque=\"o\""),
        ),
        Gate::Session => Answer::redirect(302, FORM),
        Gate::LogIn => page(403, "These words do not open the door."),
        Gate::Busy { status, .. } => {
            page(status, "Too much at once.").header("Retry-After", RETRY_AFTER_S.to_string())
        }
    }
}

/// The answer to the right words.
pub(crate) fn welcome() -> Answer {
    Answer::redirect(303, HOME).header("Set-Cookie", format!("{SESSION}; Path=/login/; HttpOnly"))
}

fn has_cookie(header: &str, wanted: &str) -> bool {
    header.split(';').any(|cookie| cookie.trim() == wanted)
}

/// RFC 7616 with MD5, with and without `qop=auth`.
fn digest_is_right(shown: Shown<'_>) -> bool {
    let Some(fields) = shown.authorization.strip_prefix("Digest ") else { return false };
    let field = |wanted: &str| {
        fields.split(',').find_map(|field| {
            let (name, value) = field.trim().split_once('=')?;
            (name == wanted).then(|| value.trim_matches('"'))
        })
    };
    let md5 = |text: String| HEXLOWER.encode(&Md5::digest(text.as_bytes()));
    let (Some(uri), Some(response)) = (field("uri"), field("response")) else { return false };
    let user = md5(format!("{USER}:{REALM}:{PASSWORD}"));
    let request = md5(format!("{}:{uri}", shown.method));
    let expected = match (field("qop"), field("nc"), field("cnonce")) {
        (Some(qop), Some(count), Some(own)) => md5(format!("{user}:{NONCE}:{count}:{own}:{qop}:{request}")),
        _ => md5(format!("{user}:{NONCE}:{request}")),
    };
    field("username") == Some(USER) && field("nonce") == Some(NONCE) && response == expected
}
