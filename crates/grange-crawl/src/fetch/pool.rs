//! Connections that wait for their next request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::connect::{Connection, Target};

/// How many idle connections to one server are kept. Queues ask it one by one; more belong to several queues.
const PER_TARGET_MAX: usize = 8;

/// Idle connections, each for a short time, all of them few.
#[derive(Debug)]
pub(super) struct Pool {
    most: usize,
    idle: Duration,
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    by_target: HashMap<Target, Vec<Idle>>,
    count: usize,
    next: u64,
    /// When each was put here, oldest first. Some are gone by now.
    order: VecDeque<(u64, Instant, Target)>,
}

#[derive(Debug)]
struct Idle {
    number: u64,
    connection: Connection,
}

impl Pool {
    pub(super) fn new(most: usize, idle: Duration) -> Pool {
        Pool { most, idle, shelf: Mutex::default() }
    }

    /// The connection to `target` that was used last, if there is one that is open and has nothing to read.
    pub(super) fn take(&self, target: &Target, now: Instant) -> Option<Connection> {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.drop_old(now, self.idle, self.most);
        loop {
            let mut idle = shelf.by_target.get_mut(target)?.pop()?;
            shelf.count -= 1;
            if idle.connection.stream.is_quiet() {
                return Some(idle.connection);
            }
        }
    }

    pub(super) fn put(&self, target: Target, connection: Connection, now: Instant) {
        if self.most == 0 {
            return;
        }
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = &mut *shelf;
        let number = shelf.next;
        shelf.next += 1;
        let idle = shelf.by_target.entry(target.clone()).or_default();
        if idle.len() >= PER_TARGET_MAX {
            idle.remove(0);
            shelf.count -= 1;
        }
        idle.push(Idle { number, connection });
        shelf.count += 1;
        shelf.order.push_back((number, now, target));
        shelf.drop_old(now, self.idle, self.most);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.shelf.lock().unwrap().count
    }
}

impl Shelf {
    fn drop_old(&mut self, now: Instant, idle: Duration, most: usize) {
        while let Some((number, since, target)) = self.order.front() {
            let gone = !self.holds(*number, target);
            if !gone && self.count <= most && now.saturating_duration_since(*since) < idle {
                break;
            }
            let (number, _, target) = (*number, *since, target.clone());
            self.order.pop_front();
            if let Some(list) = self.by_target.get_mut(&target) {
                let before = list.len();
                list.retain(|idle| idle.number != number);
                self.count -= before - list.len();
                if list.is_empty() {
                    self.by_target.remove(&target);
                }
            }
        }
        // Those behind a long-lived first one pile up otherwise.
        if self.order.len() > 2 * self.count + 64 {
            let by_target = &self.by_target;
            self.order.retain(|(number, _, target)| holds(by_target, *number, target));
        }
    }

    fn holds(&self, number: u64, target: &Target) -> bool {
        holds(&self.by_target, number, target)
    }
}

fn holds(by_target: &HashMap<Target, Vec<Idle>>, number: u64, target: &Target) -> bool {
    by_target.get(target).is_some_and(|list| list.iter().any(|idle| idle.number == number))
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::super::connect::Stream;
    use super::*;

    fn target(port: u16) -> Target {
        Target { host: "a.example".to_owned(), port, tls: false }
    }

    async fn connection(listener: &TcpListener) -> (Connection, TcpStream) {
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (other, _) = listener.accept().await.unwrap();
        (Connection { stream: Stream::Plain(stream), ip: None, tls: None }, other)
    }

    #[tokio::test]
    async fn idle_connections_are_few_and_leave_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pool = Pool::new(3, Duration::from_secs(10));
        let start = Instant::now();
        let mut others = Vec::new();
        for port in 0..5 {
            let (connection, other) = connection(&listener).await;
            others.push(other);
            pool.put(target(port), connection, start + Duration::from_secs(u64::from(port)));
        }
        assert_eq!(pool.len(), 3, "the oldest made room");
        let later = start + Duration::from_secs(5);
        assert!(pool.take(&target(0), later).is_none() && pool.take(&target(1), later).is_none());
        let taken = pool.take(&target(4), later).unwrap();
        pool.put(target(4), taken, start + Duration::from_secs(9));
        assert_eq!(pool.len(), 3);
        assert!(pool.take(&target(3), start + Duration::from_secs(13)).is_none(), "idle for 10 s");
        assert_eq!(pool.len(), 1, "the others too");
        assert!(pool.take(&target(4), start + Duration::from_secs(13)).is_some());
        assert_eq!(pool.len(), 0);
    }

    #[tokio::test]
    async fn the_books_stay_short_however_often_a_connection_comes_and_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pool = Pool::new(10, Duration::from_secs(1000));
        let now = Instant::now();
        let (first, _other) = connection(&listener).await;
        pool.put(target(1), first, now);
        let (mut moving, _another) = connection(&listener).await;
        for _ in 0..1000 {
            pool.put(target(2), moving, now);
            moving = pool.take(&target(2), now).unwrap();
        }
        let shelf = pool.shelf.lock().unwrap();
        assert!(shelf.order.len() < 100, "{}", shelf.order.len());
        assert_eq!(shelf.count, 1);
    }
}
