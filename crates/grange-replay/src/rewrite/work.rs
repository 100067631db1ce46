//! How much work a rewriter has done, and when it must stop.
//!
//! Work is counted in bytes examined; a byte that is looked at twice counts twice. The count depends on the text alone,
//! so a body that is within its budget on one machine is within it on every machine. Whatever walks over text calls
//! [`spend`]: the tests hold every rewriter to a count that grows with its input and no faster.
//!
//! Past its budget ([`is_over`]) a rewriter changes nothing more and passes on what is left as it was captured. The count
//! belongs to the thread: one body is rewritten at a time on it, and rewriters call each other too deep down to hand
//! a counter along.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grange_base::Shutdown;

/// How often a thread looks whether its work is still wanted: a few milliseconds of work, so that stopping is prompt and
/// looking costs nothing.
const LOOK_BYTES: u64 = 1 << 20;

/// Whether anybody still waits for a piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    /// Set when the client has left.
    abandoned: Arc<AtomicBool>,
    shutdown: Shutdown,
}

impl Demand {
    pub(crate) fn new(shutdown: Shutdown) -> Self {
        Self { abandoned: Arc::default(), shutdown }
    }

    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || self.shutdown.requested()
    }
}

struct Meter {
    spent: Cell<u64>,
    /// Nothing needs to be asked before `spent` reaches this.
    until: Cell<u64>,
    over: Cell<bool>,
}

/// The end of the budget, as a value of [`Meter::spent`], and for whom the work is done.
struct Allowance {
    end: u64,
    demand: Demand,
}

thread_local! {
    static METER: Meter =
        const { Meter { spent: Cell::new(0), until: Cell::new(u64::MAX), over: Cell::new(false) } };
    static ALLOWANCE: RefCell<Option<Allowance>> = const { RefCell::new(None) };
}

/// Counts bytes that are examined or written.
pub(crate) fn spend(bytes: usize) {
    METER.with(|meter| {
        let spent = meter.spent.get().saturating_add(bytes as u64);
        meter.spent.set(spent);
        if spent >= meter.until.get() {
            meter.look();
        }
    });
}

/// The budget is used up, or nobody waits any more.
pub(crate) fn is_over() -> bool {
    METER.with(|meter| meter.over.get())
}

/// Bytes counted on this thread so far.
pub(crate) fn spent() -> u64 {
    METER.with(|meter| meter.spent.get())
}

impl Meter {
    fn look(&self) {
        ALLOWANCE.with_borrow(|allowance| {
            let Some(allowance) = allowance else { return self.until.set(u64::MAX) };
            let spent = self.spent.get();
            if spent >= allowance.end || allowance.demand.is_gone() {
                self.over.set(true);
                self.until.set(u64::MAX);
            } else {
                self.until.set(allowance.end.min(spent.saturating_add(LOOK_BYTES)));
            }
        });
    }
}

/// What a piece of work took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) bytes: u64,
    /// It gave up before its end.
    pub(crate) over: bool,
}

/// Runs `work` with a budget of bytes. Without this around it, work has no bound.
pub(crate) fn within<T>(budget: u64, demand: Demand, work: impl FnOnce() -> T) -> (T, Used) {
    /// Also after a panic: the thread belongs to others then.
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            ALLOWANCE.set(None);
            METER.with(|meter| {
                meter.until.set(u64::MAX);
                meter.over.set(false);
            });
        }
    }
    let started = spent();
    let _reset = Reset;
    let end = started.saturating_add(budget);
    ALLOWANCE.set(Some(Allowance { end, demand }));
    METER.with(|meter| {
        meter.over.set(budget == 0);
        // Small pieces of work are done to their end, also for a server that stops.
        meter.until.set(end.min(started.saturating_add(LOOK_BYTES)));
    });
    let value = work();
    (value, Used { bytes: spent() - started, over: is_over() })
}

/// How much longer a text may become by rewriting, besides this many bytes. Texts of pages grow by some percent; one made
/// of nothing but short links to a long address would grow to gigabytes, and texts are rewritten in memory.
const GROWTH_FACTOR_MAX: usize = 4;
const GROWTH_BYTES_MAX: usize = 4 << 20;

/// A text of `before` bytes has become too long to be rewritten, which ends the work on its body.
pub(crate) fn is_outgrown(before: usize, after: usize) -> bool {
    let is_outgrown = after > before.saturating_mul(GROWTH_FACTOR_MAX).saturating_add(GROWTH_BYTES_MAX);
    if is_outgrown {
        // Only where somebody asks afterwards.
        METER.with(|meter| meter.over.set(ALLOWANCE.with_borrow(Option::is_some)));
    }
    is_outgrown
}

#[cfg(test)]
mod tests {
    use grange_base::Trigger;

    use super::*;

    fn demand() -> Demand {
        Demand::new(Shutdown::never())
    }

    #[test]
    fn work_is_over_with_its_budget() {
        let ((first, second), used) = within(10, demand(), || {
            spend(9);
            let first = is_over();
            spend(1);
            (first, is_over())
        });
        assert_eq!((first, second, used), (false, true, Used { bytes: 10, over: true }));
        assert!(!is_over(), "the thread is free for other work");
        assert!(within(0, demand(), is_over).0, "no budget, no work");
    }

    #[test]
    fn work_that_nobody_waits_for_is_over() {
        let trigger = Trigger::new();
        let (client, server) = (demand(), Demand::new(trigger.listener()));
        for (demand, leave) in [
            (client.clone(), Box::new(move || client.abandon()) as Box<dyn Fn()>),
            (server, Box::new(move || trigger.pull())),
        ] {
            let (over, _) = within(u64::MAX, demand, || {
                spend(1);
                let before = is_over();
                leave();
                spend(LOOK_BYTES as usize);
                (before, is_over())
            });
            assert_eq!(over, (false, true));
        }
    }

    #[test]
    fn a_text_may_grow_but_not_without_end() {
        let ((grown, outgrown), used) = within(u64::MAX, demand(), || {
            (is_outgrown(1 << 20, 8 << 20), is_outgrown(1 << 20, (8 << 20) + 1))
        });
        assert_eq!((grown, outgrown, used.over), (false, true, true));
        assert!(is_outgrown(0, usize::MAX) && !is_over(), "nobody asks");
    }

    #[test]
    fn a_panic_leaves_no_budget_behind() {
        let panicked = std::panic::catch_unwind(|| {
            within(0, demand(), || {
                assert!(!is_over());
            })
        });
        assert!(panicked.is_err());
        assert!(!is_over());
    }
}
