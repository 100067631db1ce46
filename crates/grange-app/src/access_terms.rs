//! The parts of an access rule, checked as people type them: a rule that meets nothing, or nobody, hides nothing, and nobody
//! would notice.

use grange_index::Stamp;
use grange_index::access::{Audience, Decision, Network};
use grange_model::account::Role;

/// The beginning of a key. URLs and bare hosts look like one and meet nothing.
pub(crate) fn check_surt(prefix: &str) -> Result<(), String> {
    if let Some(letter) = prefix.chars().find(|c| c.is_whitespace() || c.is_uppercase()) {
        return Err(format!("keys are in lower case and have no spaces: \"{letter}\" in \"{prefix}\""));
    }
    let is_url =
        ["http:", "https:", "ftp:", "ftps:", "ws:", "wss:"].iter().any(|scheme| prefix.starts_with(scheme));
    let host = prefix.split([')', ':', '/', '?', ',']).next().unwrap_or_default();
    let is_host = host.contains('.')
        && host.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !prefix.contains([',', ')', ':']);
    if is_url || is_host {
        return Err(format!(
            "\"{prefix}\" is a URL and not the beginning of a key such as com,example)/private: use --url {prefix}"
        ));
    }
    if prefix.contains('*') {
        return Err(format!(
            "\"{prefix}\" has a star: the beginning of a key covers all keys behind it without one"
        ));
    }
    Ok(())
}

/// A type and subtype, or `type/*`.
pub(crate) fn check_mime(mime: &str) -> Result<(), String> {
    let token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    match mime.trim().split_once('/') {
        Some((kind, subtype)) if token(kind) && (subtype == "*" || token(subtype)) => Ok(()),
        _ => Err(format!(
            "\"{mime}\" is not a MIME type: write one such as video/mp4, or video/* for all video"
        )),
    }
}

/// Times that can be read, the first not after the last.
pub(crate) fn check_times(since: Option<&str>, until: Option<&str>) -> Result<(), String> {
    let unreadable = |time: &str| format!("\"{time}\" is no time: 1 to 14 digits, from the year on");
    let from = since.map(|time| Stamp::earliest(time).ok_or_else(|| unreadable(time))).transpose()?;
    let to = until.map(|time| Stamp::latest(time).ok_or_else(|| unreadable(time))).transpose()?;
    match (from.zip(to), since.zip(until)) {
        (Some((from, to)), Some((since, until))) if from > to => {
            Err(format!("no capture is from {since} on and not after {until}: name the earlier time first"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_decision(decision: &Decision) -> Result<(), String> {
    match decision {
        Decision::Block { message } if message.trim().is_empty() => {
            Err("the message of the block is empty: name the reason that readers are shown".to_owned())
        }
        Decision::Networks { networks } if networks.is_empty() => {
            Err("the rule names no network: name one such as 192.0.2.0/24".to_owned())
        }
        Decision::Users { users } if users.iter().all(|user| user.trim().is_empty()) => {
            Err("the rule names no user: name one, or * for everybody who is signed in".to_owned())
        }
        Decision::Networks { networks } => networks
            .iter()
            .try_for_each(|network| network.parse::<Network>().map(drop).map_err(|error| error.to_string())),
        _ => Ok(()),
    }
}

/// A role that no account can have is nobody's.
pub(crate) fn check_audience(audience: &Audience) -> Result<(), String> {
    match audience {
        Audience::Role(role) => role.parse::<Role>().map(drop).map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::access::RuleDraft;

    #[test]
    fn parts_that_meet_nothing_are_refused_with_what_is_expected() {
        let draft = || RuleDraft {
            decision: json!({ "block": { "message": "no" } }),
            everything: true,
            ..RuleDraft::default()
        };
        let surt =
            |prefix: &str| RuleDraft { surt_prefix: Some(prefix.to_owned()), everything: false, ..draft() };
        let times = |since: &str, until: &str| RuleDraft {
            captured_from: Some(since.to_owned()),
            captured_to: Some(until.to_owned()),
            ..draft()
        };
        for (bad, advice) in [
            (surt("http://x"), "use --url http://x"),
            (surt("example.com/x"), "use --url example.com/x"),
            (surt("com,example,*"), "has a star"),
            (RuleDraft { mime: Some("video".to_owned()), ..draft() }, "video/*"),
            (RuleDraft { mime: Some("*/*".to_owned()), ..draft() }, "video/mp4"),
            (RuleDraft { collection: Some("No such".to_owned()), ..draft() }, "cannot be a collection"),
            (times("2020", "2019"), "no capture is from 2020 on and not after 2019"),
            (times("20190102", "20190101"), "name the earlier time first"),
            (RuleDraft { audience: vec!["role:king".to_owned()], ..draft() }, "viewer"),
            (
                RuleDraft { decision: json!({ "block": { "message": " " } }), ..draft() },
                "message of the block is empty",
            ),
            (RuleDraft { decision: json!({ "users": { "users": [] } }), ..draft() }, "names no user"),
            (
                RuleDraft { decision: json!({ "networks": { "networks": [] } }), ..draft() },
                "names no network",
            ),
        ] {
            let error = bad.rules().unwrap_err();
            assert!(error.contains(advice), "{bad:?}: {error}");
        }
        for good in [
            surt("com,example"),
            surt("com,example)/private"),
            surt("127.0.0."),
            surt("metadata:"),
            surt("urn:text:http://example.com/"),
            times("2019", "2019"),
            times("2019", "201901"),
            RuleDraft { mime: Some("Video/*".to_owned()), ..draft() },
            RuleDraft { mime: Some("image/svg+xml".to_owned()), ..draft() },
            RuleDraft { audience: vec!["role:viewer".to_owned()], ..draft() },
        ] {
            assert!(good.rules().is_ok(), "{good:?}: {:?}", good.rules());
        }
    }
}
