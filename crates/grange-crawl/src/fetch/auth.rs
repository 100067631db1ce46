//! Log-in by HTTP: from the challenge of a 401 and a password to the value of `Authorization`.
//!
//! ```text
//! let challenge = strongest(&challenges(head.all("WWW-Authenticate")));
//! request.authorization = Session::new(challenge, credentials).authorization("GET", "/path?query");
//! ```
//! A [`Session`] may answer any number of requests, until the server sends another challenge.

use std::fmt::Write as _;

use data_encoding::{BASE64, HEXLOWER};
use md5::Digest as _;
use url::Url;

/// How many challenges of an answer are read, and how many parameters of each; more are nonsense.
const CHALLENGES_MAX: usize = 16;
const PARAMETERS_MAX: usize = 32;

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl Credentials {
    /// Those in a URL, if there are any.
    pub fn of_url(url: &Url) -> Option<Credentials> {
        let decoded = |text| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => {
                Some(Credentials { user: decoded(user), password: decoded(password.unwrap_or_default()) })
            }
        }
    }
}

/// Without the password: logs are read by many.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What a server asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    Basic { realm: String },
    Digest(DigestChallenge),
}

/// The parameters of a `Digest` challenge that can be met (RFC 7616).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestChallenge {
    pub realm: String,
    pub nonce: String,
    pub opaque: Option<String>,
    pub algorithm: DigestAlgorithm,
    /// Whether `qop=auth` is offered; without it the older scheme of RFC 2069 is used.
    pub qop_auth: bool,
    /// The server says that the password was right and only the nonce was old.
    pub stale: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DigestAlgorithm {
    Md5,
    Md5Sess,
    Sha256,
    Sha256Sess,
}

impl DigestAlgorithm {
    fn parse(name: &str) -> Option<DigestAlgorithm> {
        Some(match name.to_ascii_lowercase().as_str() {
            "md5" => DigestAlgorithm::Md5,
            "md5-sess" => DigestAlgorithm::Md5Sess,
            "sha-256" => DigestAlgorithm::Sha256,
            "sha-256-sess" => DigestAlgorithm::Sha256Sess,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            DigestAlgorithm::Md5 => "MD5",
            DigestAlgorithm::Md5Sess => "MD5-sess",
            DigestAlgorithm::Sha256 => "SHA-256",
            DigestAlgorithm::Sha256Sess => "SHA-256-sess",
        }
    }

    const fn is_session(self) -> bool {
        matches!(self, DigestAlgorithm::Md5Sess | DigestAlgorithm::Sha256Sess)
    }

    fn hash(self, text: &str) -> String {
        match self {
            DigestAlgorithm::Md5 | DigestAlgorithm::Md5Sess => HEXLOWER.encode(&md5::Md5::digest(text)),
            DigestAlgorithm::Sha256 | DigestAlgorithm::Sha256Sess => {
                HEXLOWER.encode(&sha2::Sha256::digest(text))
            }
        }
    }
}

/// `Basic` (RFC 7617).
pub fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes()))
}

/// `Basic` with the user and password in `url`, if it has any.
pub fn basic_of_url(url: &Url) -> Option<String> {
    Credentials::of_url(url).map(|own| basic(&own.user, &own.password))
}

/// The challenges in the values of `WWW-Authenticate` that can be met, in their order.
pub fn challenges<'a>(values: impl Iterator<Item = &'a [u8]>) -> Vec<Challenge> {
    let mut found = Vec::new();
    for value in values.take(CHALLENGES_MAX) {
        let value = String::from_utf8_lossy(value);
        let mut schemes: Vec<(String, Vec<(String, String)>)> = Vec::new();
        for item in items(&value) {
            match item {
                Item::Scheme(name) if schemes.len() < CHALLENGES_MAX => schemes.push((name, Vec::new())),
                Item::Scheme(_) => break,
                Item::Parameter(name, value) => {
                    if let Some((_, list)) =
                        schemes.last_mut().filter(|(_, list)| list.len() < PARAMETERS_MAX)
                    {
                        list.push((name, value));
                    }
                }
            }
        }
        found.extend(schemes.into_iter().filter_map(|(scheme, list)| challenge(&scheme, &list)));
    }
    found
}

/// The challenge that gives the least away: digest before basic, SHA-256 before MD5.
pub fn strongest(challenges: &[Challenge]) -> Option<&Challenge> {
    challenges.iter().max_by_key(|challenge| match challenge {
        Challenge::Basic { .. } => None,
        Challenge::Digest(digest) => Some(digest.algorithm),
    })
}

fn challenge(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let get = |name: &str| parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic { realm: get("realm").unwrap_or_default() });
    }
    if !scheme.eq_ignore_ascii_case("digest") {
        return None;
    }
    let qop = get("qop");
    let qop_auth = qop
        .as_ref()
        .is_some_and(|qop| qop.split([',', ' ']).any(|option| option.trim().eq_ignore_ascii_case("auth")));
    if qop.is_some() && !qop_auth {
        // Only auth-int is offered, which nobody implements.
        return None;
    }
    Some(Challenge::Digest(DigestChallenge {
        realm: get("realm").unwrap_or_default(),
        nonce: get("nonce")?,
        opaque: get("opaque"),
        algorithm: get("algorithm")
            .map_or(Some(DigestAlgorithm::Md5), |name| DigestAlgorithm::parse(&name))?,
        qop_auth,
        stale: get("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
    }))
}

enum Item {
    Scheme(String),
    /// The name in lower case, and the value without its quotes.
    Parameter(String, String),
}

/// The words of a challenge header: a token followed by `=` is a parameter, any other one a scheme.
fn items(value: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        let after_blank = after.trim_start_matches([' ', '\t']);
        if token.is_empty() {
            // A lone `=`, or the end.
            let Some(next) = rest.strip_prefix('=') else { return items };
            rest = next;
            continue;
        }
        let Some(raw) = after_blank.strip_prefix('=').map(|raw| raw.trim_start_matches([' ', '\t'])) else {
            items.push(Item::Scheme(token.to_owned()));
            rest = after;
            continue;
        };
        let (text, next) = if let Some(quoted) = raw.strip_prefix('"') {
            unquote(quoted)
        } else {
            let end = raw.find([' ', '\t', ',']).unwrap_or(raw.len());
            (raw[..end].to_owned(), &raw[end..])
        };
        items.push(Item::Parameter(token.to_ascii_lowercase(), text));
        rest = next;
    }
}

/// The text up to the closing quote, and what follows it.
fn unquote(quoted: &str) -> (String, &str) {
    let mut text = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &quoted[at + 1..]),
            '\\' => text.extend(chars.next().map(|(_, c)| c)),
            _ => text.push(c),
        }
    }
    (text, "")
}

/// Credentials for one challenge, used again for every request below it.
#[derive(Debug)]
pub struct Session {
    challenge: Challenge,
    credentials: Credentials,
    cnonce: String,
    /// How often the nonce has been used.
    count: u32,
}

impl Session {
    pub fn new(challenge: Challenge, credentials: Credentials) -> Session {
        Session::with_cnonce(challenge, credentials, HEXLOWER.encode(&rand::random::<[u8; 16]>()))
    }

    fn with_cnonce(challenge: Challenge, credentials: Credentials, cnonce: String) -> Session {
        Session { challenge, credentials, cnonce, count: 0 }
    }

    /// The value of `Authorization` for a request; `target` is path and query as they are sent.
    pub fn authorization(&mut self, method: &str, target: &str) -> String {
        let Credentials { user, password } = &self.credentials;
        let digest = match &self.challenge {
            Challenge::Basic { .. } => return basic(user, password),
            Challenge::Digest(digest) => digest,
        };
        self.count = self.count.saturating_add(1);
        let count = format!("{:08x}", self.count);
        let DigestChallenge { realm, nonce, algorithm, .. } = digest;
        let cnonce = &self.cnonce;
        let mut ha1 = algorithm.hash(&format!("{user}:{realm}:{password}"));
        if algorithm.is_session() {
            ha1 = algorithm.hash(&format!("{ha1}:{nonce}:{cnonce}"));
        }
        let ha2 = algorithm.hash(&format!("{method}:{target}"));
        let response = if digest.qop_auth {
            algorithm.hash(&format!("{ha1}:{nonce}:{count}:{cnonce}:auth:{ha2}"))
        } else {
            algorithm.hash(&format!("{ha1}:{nonce}:{ha2}"))
        };
        let mut out = format!(
            "Digest username={}, realm={}, nonce={}, uri={}, algorithm={}, response=\"{response}\"",
            quote(user),
            quote(realm),
            quote(nonce),
            quote(target),
            algorithm.name(),
        );
        if digest.qop_auth {
            let _ = write!(out, ", qop=auth, nc={count}, cnonce={}", quote(cnonce));
        } else if algorithm.is_session() {
            let _ = write!(out, ", cnonce={}", quote(cnonce));
        }
        if let Some(opaque) = &digest.opaque {
            let _ = write!(out, ", opaque={}", quote(opaque));
        }
        out
    }
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Vec<Challenge> {
        challenges(std::iter::once(value.as_bytes()))
    }

    #[test]
    fn challenges_of_every_form() {
        let basic = |realm: &str| Challenge::Basic { realm: realm.to_owned() };
        for (value, expected) in [
            ("Basic realm=\"a, \\\"b\\\"\"", vec![basic("a, \"b\"")]),
            ("basic REALM=x", vec![basic("x")]),
            ("Basic", vec![basic("")]),
            ("Negotiate, Basic realm = \"x\" , charset=\"UTF-8\"", vec![basic("x")]),
            ("Negotiate dG9rZW4=, Basic realm=\"x\"", vec![basic("x")]),
            ("Basic realm=\"open", vec![basic("open")]),
            ("Bearer", vec![]),
            ("Digest realm=\"x\"", vec![]),
            ("Digest realm=\"x\", nonce=\"n\", algorithm=SHA-512-256", vec![]),
            ("Digest realm=\"x\", nonce=\"n\", qop=\"auth-int\"", vec![]),
            ("", vec![]),
            ("===,,,", vec![]),
        ] {
            assert_eq!(read(value), expected, "{value}");
        }
        let both =
            read("Basic realm=\"x\", Digest realm=\"x\", nonce=\"n\", qop=\"auth,auth-int\", stale=TRUE");
        assert_eq!(both.len(), 2);
        let Some(Challenge::Digest(digest)) = strongest(&both) else { panic!("{both:?}") };
        assert!(digest.qop_auth && digest.stale && digest.algorithm == DigestAlgorithm::Md5);
    }

    /// The example of RFC 7616 3.9.1, with both algorithms, and that of RFC 2617 3.5.
    #[test]
    fn the_examples_of_the_standards() {
        let rfc7616 = |algorithm: &str| {
            format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={algorithm}, \
                nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            )
        };
        let rfc2617 = "Digest realm=\"testrealm@host.com\", qop=\"auth,auth-int\", \
            nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"";
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        for (value, password, cnonce, response) in [
            (rfc7616("MD5"), "Circle of Life", cnonce, "8ca523f5e9506fed4657c9700eebdbec"),
            (
                rfc7616("SHA-256"),
                "Circle of Life",
                cnonce,
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
            (rfc2617.to_owned(), "Circle Of Life", "0a4f113b", "6629fae49393a05397450978507c4ef1"),
        ] {
            let challenge = read(&value).remove(0);
            let credentials = Credentials { user: "Mufasa".to_owned(), password: password.to_owned() };
            let mut session = Session::with_cnonce(challenge, credentials, cnonce.to_owned());
            let header = session.authorization("GET", "/dir/index.html");
            assert!(header.contains(&format!("response=\"{response}\"")), "{header}");
            assert!(header.contains("qop=auth, nc=00000001"), "{header}");
            assert!(session.authorization("GET", "/").contains("nc=00000002"));
        }
    }

    #[test]
    fn the_older_scheme_has_no_counter() {
        let challenge = read("Digest realm=\"r\", nonce=\"n\"").remove(0);
        let credentials = Credentials { user: "u\"".to_owned(), password: "p".to_owned() };
        let header = Session::new(challenge, credentials).authorization("GET", "/");
        let ha1 = DigestAlgorithm::Md5.hash("u\":r:p");
        let ha2 = DigestAlgorithm::Md5.hash("GET:/");
        let response = DigestAlgorithm::Md5.hash(&format!("{ha1}:n:{ha2}"));
        assert_eq!(
            header,
            format!(
                "Digest username=\"u\\\"\", realm=\"r\", nonce=\"n\", uri=\"/\", algorithm=MD5, response=\"{response}\""
            )
        );
    }
}
