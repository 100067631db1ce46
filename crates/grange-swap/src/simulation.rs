//! Where a simulated run takes the place of threads, chance, lines and disks. Outside of such a run, and in every build that is
//! not a test, these functions only pass through.
//!
//! A simulated run has several servers on one thread, by a clock of its own. Its seed decides how long each piece of blocking
//! work waits before it is done, when peers are dialled again, which lines are cut, and after which change of a disk a server
//! crashes. See [`crate::tests`].

#[cfg(not(test))]
pub(crate) use passing::{
    SyncFaults, active, disk, free_bytes, new_id, on_line, pause, share, spawn_blocking,
};
#[cfg(test)]
pub(crate) use seeded::{
    SyncFaults, active, disk, free_bytes, new_id, on_line, pause, share, spawn_blocking,
};

#[cfg(not(test))]
mod passing {
    use std::io;
    use std::path::{Path, PathBuf};

    use tokio::task::JoinHandle;
    use uuid::Uuid;

    pub(crate) fn active() -> bool {
        false
    }

    /// Between pieces of blocking work of a simulated run.
    pub(crate) async fn pause() {}

    /// Room on every disk of a simulated run.
    pub(crate) fn free_bytes() -> Option<u64> {
        None
    }

    /// A random id.
    pub(crate) fn new_id() -> Uuid {
        Uuid::new_v4()
    }

    /// A random number from 0 to 1.
    pub(crate) fn share() -> f64 {
        rand::random()
    }

    pub(crate) fn spawn_blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::task::spawn_blocking(work)
    }

    /// Work that needs the line from one server to another; fails when the line is cut.
    pub(crate) async fn on_line<T>(_from: &str, _to: &str, work: impl Future<Output = T>) -> io::Result<T> {
        Ok(work.await)
    }

    /// Syncs that fail on one partition.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct SyncFaults(());

    impl SyncFaults {
        /// At each sync; fails when that is planned.
        #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as the other one")]
        pub(crate) fn next(&self) -> io::Result<()> {
            Ok(())
        }

        /// A new name that was not synced.
        #[expect(clippy::unused_self, reason = "as the other one")]
        pub(crate) fn lose(&self, _path: PathBuf) {}

        /// That name was removed again.
        #[expect(clippy::unused_self, reason = "as the other one")]
        pub(crate) fn found(&self, _path: &Path) {}
    }

    /// Before a partition is changed; fails when its server has crashed.
    #[expect(clippy::unnecessary_wraps, reason = "as the other one")]
    pub(crate) fn disk(_partition: Uuid) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod seeded {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::io::{self, ErrorKind};
    use std::path::{Path, PathBuf};
    use std::rc::Rc;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use tokio::sync::{Notify, watch};
    use tokio::task::JoinHandle;
    use uuid::Uuid;

    /// SplitMix64: a seed means the same in every version of every library.
    #[derive(Clone, Debug)]
    pub(crate) struct SeededRandom(u64);

    impl SeededRandom {
        pub(crate) fn new(seed: u64) -> Self {
            Self(seed)
        }

        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }

        /// Less than `end`.
        pub(crate) fn below(&mut self, end: usize) -> usize {
            (self.next() % end as u64) as usize
        }

        pub(crate) fn one_in(&mut self, times: usize) -> bool {
            self.below(times) == 0
        }

        pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
            &from[self.below(from.len())]
        }
    }

    /// Syncs that fail on one partition. As on a real disk, a name whose sync failed is shown until the server crashes, and
    /// is lost then, whatever is synced later.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct SyncFaults(Arc<Mutex<PlannedFaults>>);

    #[derive(Debug, Default)]
    struct PlannedFaults {
        /// Syncs that still succeed, and those that fail after them.
        succeed: usize,
        fail: usize,
        lost: BTreeSet<PathBuf>,
    }

    impl SyncFaults {
        fn planned(&self) -> MutexGuard<'_, PlannedFaults> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn plan(&self, succeed: usize, fail: usize) {
            let mut planned = self.planned();
            (planned.succeed, planned.fail) = (succeed, fail);
        }

        /// How many planned failures have not happened yet.
        pub(crate) fn left(&self) -> usize {
            self.planned().fail
        }

        pub(crate) fn next(&self) -> io::Result<()> {
            let mut planned = self.planned();
            if planned.fail > 0 && planned.succeed > 0 {
                planned.succeed -= 1;
            } else if planned.fail > 0 {
                planned.fail -= 1;
                return Err(io::Error::from_raw_os_error(5));
            }
            Ok(())
        }

        pub(crate) fn lose(&self, path: PathBuf) {
            self.planned().lost.insert(path);
        }

        pub(crate) fn found(&self, path: &Path) {
            self.planned().lost.remove(path);
        }

        /// The crash: names that were not synced are gone.
        pub(crate) fn crash(&self) {
            for path in std::mem::take(&mut self.planned().lost) {
                let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
            }
        }
    }

    /// The disks of a server that is about to crash.
    struct DyingDisks {
        partitions: Vec<Uuid>,
        changes_left: usize,
        died: Rc<Notify>,
    }

    struct Run {
        random: SeededRandom,
        /// Addresses between which no connection can be made.
        cut: watch::Sender<BTreeSet<(String, String)>>,
        dying: Option<DyingDisks>,
    }

    thread_local! {
        static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
    }

    fn with<T>(act: impl FnOnce(&mut Run) -> T) -> Option<T> {
        RUN.with_borrow_mut(|run| run.as_mut().map(act))
    }

    /// Makes this thread a simulated run.
    pub(crate) fn begin(seed: u64) {
        let run = Run { random: SeededRandom::new(seed), cut: watch::Sender::default(), dying: None };
        RUN.set(Some(run));
    }

    pub(crate) fn end() {
        RUN.set(None);
    }

    pub(crate) fn active() -> bool {
        RUN.with_borrow(Option::is_some)
    }

    /// Mostly a few turns of other tasks, sometimes a while.
    pub(crate) async fn pause() {
        let Some(turns) = with(|run| run.random.below(16)) else { return };
        if turns > 13 {
            let milliseconds = with(|run| run.random.below(30)).unwrap_or_default() as u64;
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        } else {
            for _ in 0..turns % 5 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The same everywhere: new slices are put where most is free, and other runs use the same disk.
    pub(crate) fn free_bytes() -> Option<u64> {
        active().then_some(1 << 40)
    }

    pub(crate) fn new_id() -> Uuid {
        with(|run| Uuid::from_u64_pair(run.random.next(), run.random.next())).unwrap_or_else(Uuid::new_v4)
    }

    pub(crate) fn share() -> f64 {
        with(|run| run.random.below(1 << 20) as f64 / f64::from(1 << 20)).unwrap_or_else(rand::random)
    }

    pub(crate) fn spawn_blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        if !active() {
            return tokio::task::spawn_blocking(work);
        }
        // On a thread of its own, because such work may wait for others; but nothing else happens meanwhile.
        match std::thread::spawn(work).join() {
            Ok(result) => tokio::spawn(async { result }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn line(from: &str, to: &str) -> (String, String) {
        let (one, two) = (from.trim_start_matches("http://"), to.trim_start_matches("http://"));
        if one < two { (one.to_owned(), two.to_owned()) } else { (two.to_owned(), one.to_owned()) }
    }

    pub(crate) fn cut(from: &str, to: &str) {
        with(|run| {
            run.cut.send_modify(|cut| {
                cut.insert(line(from, to));
            });
        });
    }

    pub(crate) fn mend_all() {
        with(|run| run.cut.send_modify(BTreeSet::clear));
    }

    pub(crate) async fn on_line<T>(from: &str, to: &str, work: impl Future<Output = T>) -> io::Result<T> {
        let Some(mut lines) = with(|run| run.cut.subscribe()) else { return Ok(work.await) };
        let line = line(from, to);
        tokio::select! {
            biased;
            _ = lines.wait_for(|cut| cut.contains(&line)) => Err(ErrorKind::ConnectionReset.into()),
            done = work => Ok(done),
        }
    }

    /// Those partitions take that many more changes and then none until [`revive`]; tells when that begins.
    pub(crate) fn kill_disks(partitions: Vec<Uuid>, changes_left: usize) -> Rc<Notify> {
        let died = Rc::new(Notify::new());
        let dying = DyingDisks { partitions, changes_left, died: Rc::clone(&died) };
        with(|run| run.dying = Some(dying));
        died
    }

    pub(crate) fn revive_disks() {
        with(|run| run.dying = None);
    }

    pub(crate) fn disk(partition: Uuid) -> io::Result<()> {
        let dead = with(|run| {
            let Some(dying) = &mut run.dying else { return false };
            if !dying.partitions.contains(&partition) {
                return false;
            }
            if dying.changes_left == 0 {
                dying.died.notify_one();
                return true;
            }
            dying.changes_left -= 1;
            false
        });
        if dead == Some(true) { Err(io::Error::other("the server of this disk has crashed")) } else { Ok(()) }
    }
}
