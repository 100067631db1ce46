//! Long work on bodies: it holds nobody up, and it ends with its budget, its client and its server.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use grange_base::{Shutdown, Size, Trigger};
use http_body_util::BodyExt as _;
use tokio::sync::Semaphore;

use super::*;
use crate::rewrite::work;

/// What no test waits for in vain.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for word from outside, as work does that takes long.
#[derive(Debug)]
struct Waits(Receiver<()>);

impl Transform for Waits {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        self.0.recv_timeout(PATIENCE).expect("others run meanwhile");
        out.extend_from_slice(input);
    }

    fn held(&self) -> usize {
        0
    }

    fn finish(self: Box<Self>, _out: &mut Vec<u8>) {}
}

/// Works until it is told that it is over, and says when it begins and when it ends.
#[derive(Debug)]
struct Endless(Sender<&'static str>);

impl Transform for Endless {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        self.0.send("begun").unwrap();
        while !work::is_over() {
            work::spend(1 << 20);
        }
        out.extend_from_slice(input);
        let _ = self.0.send("ended");
    }

    fn held(&self) -> usize {
        0
    }

    fn finish(self: Box<Self>, _out: &mut Vec<u8>) {}
}

fn long() -> Body {
    Body::Whole(vec![b'x'; INLINE_BYTES_MAX + 1].into())
}

fn pool(budget: Size) -> (RewritePool, Trigger) {
    let trigger = Trigger::new();
    (RewritePool::new(budget, trigger.listener()), trigger)
}

/// A test has one async thread: what computes on it keeps everything else from running.
#[tokio::test]
async fn long_bodies_are_rewritten_off_the_threads_that_answer() {
    let (pool, _trigger) = pool(Size::gib(1));
    let (tell, told) = channel();
    let rewriting = rewritten(long(), Box::new(Waits(told)), &pool, "http://e.org/");
    let others = async { tell.send(()).unwrap() };
    let (body, ()) = tokio::join!(rewriting, others);
    assert_eq!(body.unwrap().collect().await.unwrap().to_bytes().len(), INLINE_BYTES_MAX + 1);
}

#[tokio::test]
async fn work_ends_when_its_client_has_left() {
    let (pool, _trigger) = pool(Size(u64::MAX));
    let (say, said) = channel();
    let rewriting = rewritten(long(), Box::new(Endless(say)), &pool, "http://e.org/");
    // Polled once, then dropped: a connection that broke off.
    assert!(tokio::time::timeout(Duration::ZERO, rewriting).await.is_err());
    let words =
        tokio::task::spawn_blocking(move || [said.recv_timeout(PATIENCE), said.recv_timeout(PATIENCE)]);
    assert_eq!(words.await.unwrap(), [Ok("begun"), Ok("ended")]);
    // The threads are free again.
    let cores = u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
    let _all = tokio::time::timeout(PATIENCE, pool.permits.acquire_many(cores)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_stops_waits_for_no_long_work() {
    let (pool, trigger) = pool(Size(u64::MAX));
    let (say, said) = channel();
    let stop = tokio::task::spawn_blocking(move || {
        assert_eq!(said.recv_timeout(PATIENCE), Ok("begun"));
        trigger.pull();
    });
    let body = rewritten(long(), Box::new(Endless(say)), &pool, "http://e.org/").await;
    assert!(matches!(body, Err(BodyError::Stopping)), "{body:?}");
    stop.await.unwrap();
    // Nor for a turn.
    let busy = RewritePool { permits: Arc::new(Semaphore::new(0)), ..pool };
    let (_tell, told) = channel();
    let body = rewritten(long(), Box::new(Waits(told)), &busy, "http://e.org/").await;
    assert!(matches!(body, Err(BodyError::Stopping)), "{body:?}");
}

/// Small work is done to its end.
#[tokio::test]
async fn a_server_that_stops_finishes_small_bodies() {
    let (pool, trigger) = pool(Size::gib(1));
    trigger.pull();
    let (tell, told) = channel();
    tell.send(()).unwrap();
    let body =
        rewritten(Body::Whole(Bytes::from_static(b"x")), Box::new(Waits(told)), &pool, "http://e.org/");
    assert_eq!(body.await.unwrap().collect().await.unwrap().to_bytes(), "x");
}

#[tokio::test]
async fn work_ends_with_its_budget() {
    let pool = RewritePool::new(Size::mib(64), Shutdown::never());
    let (say, said) = channel();
    let body = rewritten(long(), Box::new(Endless(say)), &pool, "http://e.org/").await.unwrap();
    assert_eq!(body.collect().await.unwrap().to_bytes().len(), INLINE_BYTES_MAX + 1);
    assert_eq!(said.iter().collect::<Vec<_>>(), ["begun", "ended"]);
}
