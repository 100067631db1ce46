//! Budgets as arithmetic: what was spent, what is left, and why one stops.

use crate::job::{ByteLimitFrom, DomainBudget, Limits, StopReason};

/// What was charged to a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) objects: u64,
    pub(super) bytes: u64,
    /// The running time of the crawl, in milliseconds, when the first URL was handed out.
    pub(super) began: Option<u64>,
}

/// A record larger than any so far may come when the end of a byte budget is near: at least so much is kept free for
/// each one in flight.
const LEAST_ROOM_BYTES: u64 = 1 << 20;

fn limit(number: i64) -> Option<u64> {
    u64::try_from(number).ok()
}

/// The limit that is reached, if one is. `ran` is the crawl's running time in milliseconds.
pub(super) fn reached(limits: &Limits, spent: &Spent, ran: u64) -> Option<StopReason> {
    if limit(limits.max_objects).is_some_and(|most| spent.objects >= most) {
        return Some(StopReason::ObjectLimit);
    }
    if limit(limits.max_bytes).is_some_and(|most| spent.bytes >= most) {
        return Some(StopReason::SizeLimit);
    }
    if deadline(limits, spent, ran).is_some_and(|end| ran >= end) {
        return Some(StopReason::TimeLimit);
    }
    None
}

/// The running time at which the time is over.
pub(super) fn deadline(limits: &Limits, spent: &Spent, ran: u64) -> Option<u64> {
    let seconds = limit(limits.max_seconds)?;
    Some(spent.began.unwrap_or(ran).saturating_add(seconds.saturating_mul(1000)))
}

/// The same for a domain, in the words of the harvest database.
pub(super) fn domain_reached(budget: &DomainBudget, spent: &Spent, ran: u64) -> Option<StopReason> {
    match reached(&budget.limits, spent, ran) {
        Some(StopReason::SizeLimit) if budget.bytes_from == ByteLimitFrom::Configuration => {
            Some(StopReason::ConfigSizeLimit)
        }
        reason => reason,
    }
}

/// Whether one more URL of a domain may be in flight. With a byte limit it is one at a time, so that the first record
/// that reaches the limit is the last one.
pub(super) fn domain_has_room(budget: &DomainBudget, spent: &Spent, in_flight: u64) -> bool {
    let objects = limit(budget.limits.max_objects).is_none_or(|most| spent.objects + in_flight < most);
    objects && (budget.limits.max_bytes < 0 || in_flight == 0)
}

/// Whether one more URL of the whole crawl may be in flight. For bytes: all in flight but the last must fit if none is
/// larger than the `largest` so far, so that at most one record goes over the limit.
pub(super) fn crawl_has_room(limits: &Limits, spent: &Spent, in_flight: u64, largest: u64) -> bool {
    let objects = limit(limits.max_objects).is_none_or(|most| spent.objects + in_flight < most);
    let room = in_flight.saturating_mul(largest.max(LEAST_ROOM_BYTES));
    let bytes =
        limit(limits.max_bytes).is_none_or(|most| in_flight == 0 || spent.bytes.saturating_add(room) < most);
    objects && bytes
}

/// Why a domain's harvest ended if the crawl ends now. A domain with nothing left is completed, even if that is
/// exactly its limit.
pub(super) fn stop_reason(remaining: u64, own: Option<StopReason>, crawl: Option<StopReason>) -> StopReason {
    match (remaining, own, crawl) {
        (0, ..) => StopReason::Completed,
        (_, Some(own), _) => own,
        // The time of the job is every domain's time; its other limits say nothing about a single domain.
        (_, None, Some(StopReason::TimeLimit)) => StopReason::TimeLimit,
        _ => StopReason::Unfinished,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Limits = Limits { max_objects: -1, max_bytes: -1, max_seconds: -1 };

    #[test]
    fn limits_are_reached_exactly() {
        let spent = Spent { objects: 10, bytes: 1000, began: Some(5_000) };
        for (limits, ran, reason) in [
            (NONE, u64::MAX, None),
            (Limits { max_objects: 11, ..NONE }, 0, None),
            (Limits { max_objects: 10, ..NONE }, 0, Some(StopReason::ObjectLimit)),
            (Limits { max_bytes: 1001, ..NONE }, 0, None),
            (Limits { max_bytes: 1000, ..NONE }, 0, Some(StopReason::SizeLimit)),
            (Limits { max_seconds: 3, ..NONE }, 7_999, None),
            (Limits { max_seconds: 3, ..NONE }, 8_000, Some(StopReason::TimeLimit)),
            (
                Limits { max_objects: 10, max_bytes: 1000, max_seconds: 0 },
                8_000,
                Some(StopReason::ObjectLimit),
            ),
        ] {
            assert_eq!(reached(&limits, &spent, ran), reason, "{limits:?} at {ran}");
        }
        let nothing = Spent::default();
        for zero in [
            Limits { max_objects: 0, ..NONE },
            Limits { max_bytes: 0, ..NONE },
            Limits { max_seconds: 0, ..NONE },
        ] {
            assert!(reached(&zero, &nothing, 77).is_some(), "{zero:?}");
        }
        assert_eq!(reached(&Limits { max_seconds: 1, ..NONE }, &nothing, 1 << 40), None, "not begun");
    }

    #[test]
    fn room_counts_what_is_in_flight() {
        let spent = Spent { objects: 3, bytes: 10 << 20, began: None };
        let domain = |limits| DomainBudget { limits, bytes_from: ByteLimitFrom::Harvest };
        for (limits, in_flight, room) in [
            (NONE, 1 << 40, true),
            (Limits { max_objects: 5, ..NONE }, 1, true),
            (Limits { max_objects: 5, ..NONE }, 2, false),
            (Limits { max_bytes: 1 << 40, ..NONE }, 0, true),
            (Limits { max_bytes: 1 << 40, ..NONE }, 1, false),
        ] {
            assert_eq!(domain_has_room(&domain(limits), &spent, in_flight), room, "{limits:?} {in_flight}");
        }
        for (max_bytes, in_flight, largest, room) in [
            (-1, 100, 1 << 30, true),
            (20 << 20, 9, 0, true),
            (20 << 20, 10, 0, false),
            (20 << 20, 4, 2 << 20, true),
            (20 << 20, 5, 2 << 20, false),
            (11 << 20, 0, 5 << 20, true),
        ] {
            let limits = Limits { max_bytes, ..NONE };
            assert_eq!(crawl_has_room(&limits, &spent, in_flight, largest), room, "{max_bytes} {in_flight}");
        }
    }

    #[test]
    fn reasons_are_the_domains_own_first() {
        use StopReason::{Completed, ObjectLimit, TimeLimit, Unfinished};
        for (remaining, own, crawl, reason) in [
            (0, Some(ObjectLimit), Some(TimeLimit), Completed),
            (1, Some(ObjectLimit), Some(TimeLimit), ObjectLimit),
            (1, None, Some(TimeLimit), TimeLimit),
            (1, None, Some(ObjectLimit), Unfinished),
            (1, None, None, Unfinished),
        ] {
            assert_eq!(stop_reason(remaining, own, crawl), reason);
        }
        let config = DomainBudget {
            limits: Limits { max_bytes: 5, ..NONE },
            bytes_from: ByteLimitFrom::Configuration,
        };
        let spent = Spent { bytes: 5, ..Spent::default() };
        assert_eq!(domain_reached(&config, &spent, 0), Some(StopReason::ConfigSizeLimit));
    }
}
