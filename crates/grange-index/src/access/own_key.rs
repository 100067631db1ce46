//! Rows whose URL is the one that their key suggests and whose key is that of the URL: nearly all. Making the key of each again
//! would cost more than all else that rules do.

use crate::address;

/// Whether a key is surely the one of the URL that it and the code of the address suggest. Only ordinary keys are recognized:
/// of any other this is false, and the key of the URL has to be made.
pub(super) fn is_own_key(surt: &[u8], code: u8) -> bool {
    if code & (address::DIFFERS | address::ABSENT) != 0 {
        return false;
    }
    let Some(close) = memchr::memchr(b')', surt) else { return false };
    is_plain_host(&surt[..close]) && is_plain_tail(&surt[close + 1..], code & address::SLASH != 0)
}

/// `com,example`: names without a port, a `www` that a key loses, or a number that may be an address.
fn is_plain_host(host: &[u8]) -> bool {
    let mut end = 0;
    let mut is_name = false;
    for (at, byte) in host.iter().enumerate() {
        match byte {
            b',' if at > end => end = at + 1,
            b'a'..=b'z' => is_name = true,
            b'0'..=b'9' | b'-' | b'_' => {}
            _ => return false,
        }
    }
    is_name && end > 0 && end < host.len() && !host[end..].starts_with(b"www")
}

/// Path and query in lower case, without anything that a key loses: a closing or second slash, a segment of dots, an escape, a
/// session id, an argument out of order, a body. `slash`: the URL has one more at its end.
fn is_plain_tail(tail: &[u8], slash: bool) -> bool {
    let path = &tail[..memchr::memchr(b'?', tail).unwrap_or(tail.len())];
    let query = tail.get(path.len() + 1..);
    let [b'/', ..] = path else { return false };
    let mut before = 0;
    for byte in path {
        let is_plain = match byte {
            b'/' => before != b'/',
            b'.' => before != b'/',
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b',' | b'!' | b'+' | b'=' | b'@' | b':' => true,
            _ => false,
        };
        if !is_plain {
            return false;
        }
        before = *byte;
    }
    let ends_plain = path.len() == 1 || before != b'/';
    ends_plain && query.is_none_or(|query| !slash && is_plain_query(query))
}

fn is_plain_query(query: &[u8]) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'.' | b',' | b'!' | b'+' | b'=' | b'&' | b'/' | b':');
    if query.is_empty() || !query.iter().all(is_plain) {
        return false;
    }
    // Names of bodies have two of these; those of session ids end with these or stand in the midst.
    let has = |text: &[u8]| memchr::memmem::find(query, text).is_some();
    if has(b"__") || has(b"sid=") || has(b"session") || has(b"cftoken") {
        return false;
    }
    let mut last: Option<(&[u8], &[u8])> = None;
    for argument in query.split(|byte| *byte == b'&') {
        let name = memchr::memchr(b'=', argument).unwrap_or(argument.len());
        let argument = argument.split_at(name);
        if last.is_some_and(|last| last > argument) {
            return false;
        }
        last = Some(argument);
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn suggested(surt: &str, code: u8) -> String {
        let mut url = Vec::new();
        assert!(address::decode(surt.as_bytes(), code, &[], &mut 0, &mut url).unwrap());
        String::from_utf8(url).unwrap()
    }

    #[test]
    fn only_ordinary_keys_are_recognized() {
        for (surt, code, expected) in [
            ("com,example)/", 0, true),
            ("com,example)/", address::WWW | address::HTTPS, true),
            ("com,example,shop)/a/b.html", address::SLASH, true),
            ("dk,h00001)/7?a=1&b=/x.y", 0, true),
            ("com,example,www2)/x", 0, false),
            ("com,example,wwwx)/x", 0, false),
            ("com,example)/A", 0, false),
            ("com,Example)/", 0, false),
            ("com,example:8080)/", 0, false),
            ("127,0,0,1)/", 0, false),
            ("localhost)/", 0, false),
            ("com,,example)/", 0, false),
            ("com,)/", 0, false),
            ("com,example)", 0, false),
            ("com,example)/a/", 0, false),
            ("com,example)/a//b", 0, false),
            ("com,example)/a/../b", 0, false),
            ("com,example)/%41", 0, false),
            ("com,example)/a;jsessionid=1", 0, false),
            ("com,example)/?", 0, false),
            ("com,example)/?a=1", address::SLASH, false),
            ("com,example)/?b=1&a=1", 0, false),
            ("com,example)/?sid=1", 0, false),
            ("com,example)/?phpsessid=1", 0, false),
            ("com,example)/?__wb_method=post", 0, false),
            ("dns:example.com", 0, false),
            ("com,example)/", address::DIFFERS, false),
            ("com,example)/", address::ABSENT, false),
        ] {
            assert_eq!(is_own_key(surt.as_bytes(), code), expected, "{surt} {code}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

        /// Never is a key taken for that of its URL which it is not.
        #[test]
        fn a_key_that_is_recognized_is_the_one_of_its_url(
            surt in "(com|[a-z0-9]{1,3}|www|1)(,(example|www2?|[a-z0-9_-]{1,4}|[A-Z,.])){0,3}(:[0-9]{1,4})?\\)(/[a-z0-9]{0,3}|/[ -~]{0,6}|/\\.{1,2}){0,3}(\\?([a-c]{1,2}=?[0-9a-z/.-]{0,2}&?|(php|j)?s(ess)?(ion)?id=[0-9a-f]{32}&?|cfid=1&cftoken=2|[ -~]{0,5}){0,3})?",
            code in 0u8..8,
        ) {
            if is_own_key(surt.as_bytes(), code) {
                let url = suggested(&surt, code);
                prop_assert_eq!(crate::key::line_key(&url), surt, "{} {}", url, code);
            }
        }

        /// Keys that this crate makes are mostly recognized: else nothing is gained.
        #[test]
        fn ordinary_urls_have_keys_that_are_recognized(
            url in "https?://(www\\.)?[a-v][a-z0-9]{1,8}\\.(com|dk|org)(/[a-z0-9][a-z0-9._-]{0,8}){1,4}(\\?[a-h]{1,3}=[0-9]{1,4}(&[i-q]{1,3}=[0-9]{1,4})?)?",
        ) {
            let surt = crate::key::line_key(&url);
            let mut literals = Vec::new();
            let code = address::encode(surt.as_bytes(), Some(&url), &mut literals, &mut Vec::new());
            prop_assert!(is_own_key(surt.as_bytes(), code), "{} {}", surt, code);
        }
    }
}
