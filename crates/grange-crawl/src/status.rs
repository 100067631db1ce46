//! What became of a URL, in the numbers of Heritrix's crawl.log, so that its readers understand ours.

use std::fmt;

/// An HTTP status, or one of the numbers below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FetchStatus(pub i32);

impl FetchStatus {
    /// A name was found.
    pub const DNS_OK: FetchStatus = FetchStatus(1);
    pub const NEVER_TRIED: FetchStatus = FetchStatus(0);
    pub const DNS_FAILED: FetchStatus = FetchStatus(-1);
    pub const CONNECT_FAILED: FetchStatus = FetchStatus(-2);
    pub const CONNECT_LOST: FetchStatus = FetchStatus(-3);
    pub const TIMEOUT: FetchStatus = FetchStatus(-4);
    /// A fault of our own; never the server's.
    pub const RUNTIME: FetchStatus = FetchStatus(-5);
    pub const DNS_PREREQUISITE: FetchStatus = FetchStatus(-6);
    pub const ILLEGAL_URI: FetchStatus = FetchStatus(-7);
    pub const TOO_MANY_RETRIES: FetchStatus = FetchStatus(-8);
    pub const ROBOTS_PREREQUISITE: FetchStatus = FetchStatus(-61);
    pub const OTHER_PREREQUISITE: FetchStatus = FetchStatus(-62);
    pub const SERIOUS: FetchStatus = FetchStatus(-3000);
    /// A crawler trap: not fetched.
    pub const CHAFF: FetchStatus = FetchStatus(-4000);
    pub const OUT_OF_SCOPE: FetchStatus = FetchStatus(-5000);
    pub const BLOCKED_BY_OPERATOR: FetchStatus = FetchStatus(-5001);
    pub const BLOCKED_BY_PROCESSOR: FetchStatus = FetchStatus(-5002);
    pub const BLOCKED_BY_QUOTA: FetchStatus = FetchStatus(-5003);
    pub const BLOCKED_BY_RUNTIME: FetchStatus = FetchStatus(-5004);
    /// The address is private and not allowed. Heritrix has no number for it; its next free one.
    pub const BLOCKED_BY_ADDRESS: FetchStatus = FetchStatus(-5005);
    pub const DELETED: FetchStatus = FetchStatus(-6000);
    pub const ROBOTS: FetchStatus = FetchStatus(-9998);

    /// An answer was had, whatever it says.
    pub const fn is_success(self) -> bool {
        self.0 > 0
    }

    /// Left alone on purpose: neither success nor failure, and no budget is charged for it.
    pub const fn is_disregarded(self) -> bool {
        matches!(self.0, -9998 | -4000 | -5005 | -5002 | -5000 | -5001 | -4001 | -4002 | -6000)
    }

    pub const fn is_failure(self) -> bool {
        self.0 <= 0 && !self.is_disregarded()
    }

    /// There was no response: no name, no connection, a connection that broke, or a server that kept silent.
    pub const fn is_unreachable(self) -> bool {
        matches!(self.0, -4..=-1)
    }

    /// The HTTP status, if it is one.
    pub const fn http(self) -> Option<u16> {
        if self.0 >= 100 && self.0 <= 999 { Some(self.0 as u16) } else { None }
    }
}

impl fmt::Display for FetchStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_one_of_three() {
        for code in -10_000..=999 {
            let status = FetchStatus(code);
            let kinds = [status.is_success(), status.is_disregarded(), status.is_failure()];
            assert_eq!(kinds.iter().filter(|kind| **kind).count(), 1, "{code}");
        }
        assert!(FetchStatus(404).is_success() && FetchStatus::DNS_OK.is_success());
        assert!(FetchStatus::ROBOTS.is_disregarded() && FetchStatus::BLOCKED_BY_QUOTA.is_failure());
        assert_eq!(FetchStatus(999).http(), Some(999));
        assert_eq!(FetchStatus::DNS_OK.http(), None);
    }
}
