//! What a scan found, and where the answer goes for it.

use super::settings::OnUnscanned;

/// What is known of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Clean,
    /// The name of what was found.
    Infected(Box<str>),
    Unscanned(Unscanned),
}

/// Why an answer was not scanned, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unscanned {
    #[error("clamd at {address} cannot be reached: {reason}")]
    Unreachable { address: Box<str>, reason: Box<str> },
    #[error("clamd gave no verdict in time")]
    Slow,
    #[error("clamd broke the connection off: {0}")]
    Broken(Box<str>),
    #[error("clamd refused: {0}")]
    Refused(Box<str>),
    #[error("clamd answered what is no verdict: {0:?}")]
    Garbage(Box<str>),
    #[error("only the first {0} bytes were shown to clamd")]
    TooLong(u64),
    #[error("the answer could not be read for the scan: {0}")]
    Body(Box<str>),
}

impl Unscanned {
    const fn word(&self) -> &'static str {
        match self {
            Unscanned::Unreachable { .. } => "unreachable",
            Unscanned::Slow => "slow",
            Unscanned::Broken(_) => "broken",
            Unscanned::Refused(_) => "refused",
            Unscanned::Garbage(_) => "garbage",
            Unscanned::TooLong(_) => "too-long",
            Unscanned::Body(_) => "body",
        }
    }
}

/// Where an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// With all others.
    Archive,
    /// To the `-VIRAL` file, turned.
    Quarantine,
}

impl Verdict {
    pub fn place(&self, on_unscanned: OnUnscanned) -> Place {
        match self {
            Verdict::Clean => Place::Archive,
            Verdict::Infected(_) => Place::Quarantine,
            Verdict::Unscanned(_) => match on_unscanned {
                OnUnscanned::Quarantine => Place::Quarantine,
                OnUnscanned::Flag => Place::Archive,
            },
        }
    }

    /// What the log line says; nothing of what is clean. Infected answers are named as UKWA's tools look for them
    /// (`stream:.+FOUND`).
    pub fn annotation(&self) -> Option<String> {
        match self {
            Verdict::Clean => None,
            Verdict::Infected(name) => Some(format!("stream:{name}_FOUND")),
            Verdict::Unscanned(why) => Some(format!("unscanned:{}", why.word())),
        }
    }

    /// Reads a line of clamd: `stream: OK`, `stream: NAME FOUND`, `… ERROR`.
    pub(super) fn of_reply(reply: &[u8]) -> Verdict {
        let text = String::from_utf8_lossy(reply);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        // The number of a session stands before its replies.
        let text = text.split_once(": stream:").map_or(text, |(_, rest)| rest);
        let text = text.strip_prefix("stream:").unwrap_or(text).trim();
        if text == "OK" {
            return Verdict::Clean;
        }
        if let Some(name) = text.strip_suffix(" FOUND") {
            return Verdict::Infected(name.trim().into());
        }
        if let Some(why) = text.strip_suffix("ERROR") {
            return Verdict::Unscanned(Unscanned::Refused(why.trim().into()));
        }
        Verdict::Unscanned(Unscanned::Garbage(text.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_understood() {
        let infected = |name: &str| Verdict::Infected(name.into());
        for (reply, verdict) in [
            ("stream: OK\0", Verdict::Clean),
            ("stream: OK\n", Verdict::Clean),
            ("1: stream: OK\0", Verdict::Clean),
            ("stream: Win.Test.EICAR_HDB-1 FOUND\0", infected("Win.Test.EICAR_HDB-1")),
            ("7: stream: Eicar FOUND", infected("Eicar")),
            (
                "INSTREAM size limit exceeded. ERROR\0",
                Verdict::Unscanned(Unscanned::Refused("INSTREAM size limit exceeded.".into())),
            ),
            ("", Verdict::Unscanned(Unscanned::Garbage("".into()))),
            ("BOOK", Verdict::Unscanned(Unscanned::Garbage("BOOK".into()))),
            ("stream: NOT OK", Verdict::Unscanned(Unscanned::Garbage("NOT OK".into()))),
            ("HTTP/1.1 200 OK\r\n", Verdict::Unscanned(Unscanned::Garbage("HTTP/1.1 200 OK".into()))),
        ] {
            assert_eq!(Verdict::of_reply(reply.as_bytes()), verdict, "{reply}");
        }
    }

    #[test]
    fn only_what_is_clean_goes_unmarked() {
        let unscanned = Verdict::Unscanned(Unscanned::Slow);
        for (verdict, closed, flagged, annotation) in [
            (Verdict::Clean, Place::Archive, Place::Archive, None),
            (Verdict::Infected("A B".into()), Place::Quarantine, Place::Quarantine, Some("stream:A B_FOUND")),
            (unscanned, Place::Quarantine, Place::Archive, Some("unscanned:slow")),
        ] {
            assert_eq!(verdict.place(OnUnscanned::Quarantine), closed);
            assert_eq!(verdict.place(OnUnscanned::Flag), flagged);
            assert_eq!(verdict.annotation().as_deref(), annotation);
        }
    }
}
