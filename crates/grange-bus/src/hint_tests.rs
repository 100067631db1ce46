//! The promise of the whole design: with every message lost the work is done all the same, by the interval.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grange_base::worker::{Step, Worker};
use grange_base::{Clock, TestClock, Trigger};
use grange_testkit::until;
use jiff::Timestamp;

use super::*;
use crate::announce::Announcer;
use crate::channels::Channels;
use crate::deaf::Deaf;
use crate::local::Local;

/// Stands for the table of a role: rows to do, rows done.
#[derive(Clone, Default)]
struct Rows(Arc<Mutex<(VecDeque<u32>, Vec<u32>)>>);

impl Rows {
    fn insert(&self, row: u32) {
        self.0.lock().unwrap().0.push_back(row);
    }

    fn step(&self) -> Step {
        let mut rows = self.0.lock().unwrap();
        let Some(row) = rows.0.pop_front() else {
            return Step::Idle;
        };
        rows.1.push(row);
        Step::More
    }

    fn done(&self) -> Vec<u32> {
        self.0.lock().unwrap().1.clone()
    }
}

struct Bench {
    rows: Rows,
    announcer: Announcer,
    hand: TestClock,
    trigger: Trigger,
    running: JoinHandle<Result<(), grange_base::WorkerError>>,
    _waker: Waker,
}

async fn bench(bus: Arc<dyn Bus>) -> Bench {
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let (trigger, hint, rows) = (Trigger::new(), Hint::new(), Rows::default());
    let channels = Channels::new("TEST").unwrap();
    let waker = wake(bus.as_ref(), &channels.the_repos(), &hint).await.unwrap();
    let worker = Worker {
        name: "archiver".into(),
        interval: Duration::from_mins(1),
        clock: clock.clone(),
        shutdown: trigger.listener(),
        hint,
    };
    let table = rows.clone();
    let running = tokio::spawn(worker.run(move || {
        let step = table.step();
        async move { Ok::<_, String>(step) }
    }));
    let bench = Bench {
        rows,
        announcer: Announcer::new(bus, channels, clock, "test"),
        hand,
        trigger,
        running,
        _waker: waker,
    };
    let hand = bench.hand.clone();
    until("the worker is asleep", || async { hand.sleepers() == 1 }).await;
    bench
}

impl Bench {
    async fn insert_and_tell(&self, row: u32) {
        self.rows.insert(row);
        let channel = self.announcer.channels().the_repos();
        self.announcer.hint(&channel, "file-deposited", &format!("file/{row}")).await;
    }

    async fn end(self) {
        self.trigger.pull();
        self.running.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn with_a_deaf_bus_all_work_is_done_by_the_interval() {
    let bench = bench(Arc::new(Deaf::new())).await;
    for round in 0..5 {
        for row in 0..10 {
            bench.insert_and_tell(round * 10 + row).await;
        }
        assert_eq!(bench.rows.done().len() as u32, round * 10, "nothing is heard");
        bench.hand.advance(Duration::from_secs(67));
        let (rows, hand) = (bench.rows.clone(), bench.hand.clone());
        until("the round is done and the worker asleep again", || async {
            rows.done().len() as u32 == (round + 1) * 10 && hand.sleepers() == 1
        })
        .await;
    }
    assert_eq!(bench.rows.done(), (0..50).collect::<Vec<_>>());
    bench.end().await;
}

#[tokio::test]
async fn with_a_hearing_bus_the_clock_need_not_move() {
    let bench = bench(Arc::new(Local::new())).await;
    for row in 0..10 {
        bench.insert_and_tell(row).await;
        let rows = bench.rows.clone();
        until("the row is done", || async { rows.done().len() as u32 == row + 1 }).await;
    }
    bench.end().await;
}

#[tokio::test]
async fn a_worker_is_woken_after_an_outage() {
    let (state, states) = watch::channel(State::Connected);
    let channel = Channels::new("TEST").unwrap().the_repos();
    let (_feed, subscription) = crate::subscription::pair(&channel, 1);
    let hint = Hint::new();
    let _waker = Waker(tokio::spawn(carry(subscription, states, hint.clone())));
    state.send_replace(State::Reconnecting { since: Timestamp::UNIX_EPOCH });
    state.send_replace(State::Connected);
    tokio::time::timeout(Duration::from_mins(1), hint.wait()).await.unwrap();
}
