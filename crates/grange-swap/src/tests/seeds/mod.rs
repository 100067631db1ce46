//! Real servers in one process, driven by a seed: `make swap-seeds`.
//!
//! Each seed starts two or three servers on folders of their own, sends them requests, several at a time, and crashes servers,
//! cuts lines and fails syncs meanwhile. Between rounds all lines are mended and all servers started; when they have come to rest, every
//! file is read, listed and looked for on the disks. One [`oracle::Oracle`] judges every answer.
//!
//! Everything of a run happens on one thread, by the paused clock of its runtime. The seed decides the requests, the faults,
//! all ids, the waits between pieces of blocking work and before peers are dialled. Not decided by the seed: the ports of the
//! servers, and the moments at which the kernel reports sockets as ready.

mod network;
mod oracle;
mod program;
mod rest;
mod scenarios;
mod syncs;

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Once;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use self::network::Network;
use self::oracle::{Broken, Oracle};
use self::program::{Fault, Operation, Step};
use crate::simulation::seeded::{self, SeededRandom, SyncFaults};

/// Rounds of a run, and steps of a round.
const ROUNDS: usize = 3;
const STEPS: usize = 9;
/// Seeds of an ordinary run of the tests: some seconds.
const USUAL_SEEDS: u64 = 60;

/// What happened in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    steps: u64,
    requests: u64,
    puts_acknowledged: u64,
    deletes_acknowledged: u64,
    collections_created: u64,
    collections_removed: u64,
    moves_begun: u64,
    crashes: u64,
    cuts: u64,
    rotten_bytes: u64,
    failed_syncs: u64,
    distrusted_partitions: u64,
}

impl Tally {
    fn count(&mut self, step: &Step, replies: &[program::Replies]) {
        self.steps += 1;
        for (request, replies) in step.requests.iter().zip(replies) {
            self.requests += 1;
            let status = |status: u16| replies.iter().flatten().any(|reply| reply.status == status);
            *(match request.operation {
                Operation::Put { .. } if status(201) || status(200) => &mut self.puts_acknowledged,
                Operation::Delete { .. } if status(204) => &mut self.deletes_acknowledged,
                Operation::Create { .. } if status(200) => &mut self.collections_created,
                Operation::Remove { .. } if status(200) => &mut self.collections_removed,
                Operation::Double | Operation::Halve if status(200) => &mut self.moves_begun,
                _ => continue,
            }) += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.requests += other.requests;
        self.puts_acknowledged += other.puts_acknowledged;
        self.deletes_acknowledged += other.deletes_acknowledged;
        self.collections_created += other.collections_created;
        self.collections_removed += other.collections_removed;
        self.moves_begun += other.moves_begun;
        self.crashes += other.crashes;
        self.cuts += other.cuts;
        self.rotten_bytes += other.rotten_bytes;
        self.failed_syncs += other.failed_syncs;
        self.distrusted_partitions += other.distrusted_partitions;
    }
}

/// A run: its servers, its promises, and what happened so far.
struct Run {
    random: SeededRandom,
    network: Network,
    oracle: Oracle,
    tally: Tally,
    log: String,
}

impl Run {
    async fn play(&mut self) -> Result<(), Broken> {
        for round in 0..ROUNDS {
            self.rest().await?;
            if round > 0 {
                self.rot();
            }
            for _ in 0..STEPS {
                self.step().await?;
            }
        }
        self.rest().await
    }

    async fn rest(&mut self) -> Result<(), Broken> {
        self.tally.distrusted_partitions += self.network.trust_disks_again().await;
        rest::come_to_rest(&mut self.network).await?;
        rest::judge(&mut self.random, &self.network, &mut self.oracle).await
    }

    async fn step(&mut self) -> Result<(), Broken> {
        let step = program::choose_step(&mut self.random, &self.network, &mut self.oracle);
        let _ = writeln!(self.log, "{step}");
        if step.mend {
            seeded::mend_all();
        }
        if let Some(server) = step.start {
            self.network.start_server(server).await;
        }
        if !self.random.one_in(3) {
            tokio::time::sleep(Duration::from_millis(self.random.below(1500) as u64)).await;
        }
        let addresses = self.network.addresses.clone();
        let delay = Duration::from_millis(self.random.below(60) as u64);
        let requests = join_all(step.requests.iter().map(|request| program::send(&addresses, request)));
        let fault = meet(&mut self.network, step.fault.as_ref(), delay, &mut self.tally);
        let (replies, ()) = tokio::join!(requests, fault);
        for replies in &replies {
            for reply in replies {
                let _ = match reply {
                    Some(reply) if reply.status == 200 || reply.status == 201 => {
                        writeln!(self.log, "    {}", reply.status)
                    }
                    Some(reply) => writeln!(self.log, "    {} {}", reply.status, reply.text()),
                    None => writeln!(self.log, "    no answer"),
                };
            }
        }
        self.tally.count(&step, &replies);
        rest::one_living_record_each(&self.network)?;
        program::judge(&mut self.oracle, &step, &replies)
    }

    /// Changes a byte of a stored file, now and then.
    fn rot(&mut self) {
        if !self.random.one_in(3) {
            return;
        }
        let namespace = *self.random.pick(&oracle::NAMESPACES);
        let name = *self.random.pick(&oracle::FILES);
        let file = &self.oracle.collection(namespace).files[name];
        if file.rotten || !matches!(file.certain(), Some(Some(_))) {
            return;
        }
        for (_, partition) in self.network.all_partitions() {
            let path = partition.join(namespace).join(name);
            if let Ok(bytes) = std::fs::read(&path) {
                // In place: the attribute with the checksum stays.
                let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                std::io::Write::write_all(&mut file, &oracle::rotten(bytes)).unwrap();
                let _ = writeln!(self.log, "rot {}", path.display());
                self.oracle.mark_rotten(namespace, name);
                self.tally.rotten_bytes += 1;
            }
        }
    }
}

async fn meet(network: &mut Network, fault: Option<&Fault>, delay: Duration, tally: &mut Tally) {
    match fault {
        None => return,
        Some(Fault::Cut { one, two }) => {
            tokio::time::sleep(delay).await;
            tally.cuts += 1;
            let (one, two) = (network.addresses[*one].to_string(), network.addresses[*two].to_string());
            seeded::cut(&one, &two);
            return;
        }
        Some(Fault::Crash { server }) => {
            tokio::time::sleep(delay).await;
            network.crash(*server).await;
        }
        Some(Fault::CrashAfterChanges { server, changes }) => {
            let died = seeded::kill_disks(network.partitions_of(*server), *changes);
            let _ = tokio::time::timeout(delay * 20, died.notified()).await;
            network.crash(*server).await;
            seeded::revive_disks();
        }
        Some(Fault::FailSyncs { server, succeed, fail }) => {
            let faults = network.sync_faults(*server);
            for disk in &faults {
                disk.plan(*succeed, *fail);
            }
            tokio::time::sleep(delay * 20).await;
            let left: usize = faults.iter().map(SyncFaults::left).sum();
            tally.failed_syncs += (faults.len() * fail - left) as u64;
            for disk in &faults {
                disk.plan(0, 0);
            }
            return;
        }
    }
    tally.crashes += 1;
}

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// A panic in a task of a server is not seen by clients; here it ends the run.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            before(info);
        }));
    });
}

/// Runs something as a simulated run.
fn simulate<T>(seed: u64, run: impl Future<Output = T>) -> T {
    seeded::begin(seed);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let result = runtime.block_on(run);
    drop(runtime);
    seeded::end();
    result
}

/// Plays one seed; what happened, and all steps of it.
fn play(seed: u64) -> Result<(Tally, String), String> {
    count_panics();
    let played = simulate(seed, async {
        let network = Network::start(2 + (seed % 2) as usize).await;
        let random = SeededRandom::new(!seed);
        let mut run =
            Run { random, network, oracle: Oracle::new(), tally: Tally::default(), log: String::new() };
        let result = run.play().await;
        for server in 0..run.network.servers.len() {
            run.network.crash(server).await;
        }
        match result {
            Ok(()) => Ok((run.tally, run.log)),
            Err(broken) => Err(format!("seed {seed}: {broken}\n{}", run.log)),
        }
    });
    if PANICS.take() > 0 {
        return Err(format!("seed {seed}: a task panicked"));
    }
    played
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().filter(|text| !text.is_empty()).map(|text| text.parse().unwrap())
}

/// `SEEDS` is how many are played, `FIRST_SEED` the first one; with one seed its steps are printed.
#[test]
fn every_seed_keeps_what_it_promised() {
    let (seeds, first) = (number("SEEDS").unwrap_or(USUAL_SEEDS), number("FIRST_SEED").unwrap_or(0));
    let (mut tally, mut failed, start) = (Tally::default(), Vec::new(), Instant::now());
    for seed in first..first + seeds {
        match play(seed) {
            Ok((run, log)) => {
                tally.add(&run);
                if seeds == 1 {
                    println!("{log}");
                }
            }
            Err(broken) => {
                println!("{broken}\nplay it again: make swap-seeds SEEDS=1 FIRST_SEED={seed}");
                failed.push(seed);
            }
        }
        if (seed - first + 1) % 1000 == 0 {
            println!("{} seeds after {:.0} s", seed - first + 1, start.elapsed().as_secs_f64());
        }
    }
    println!("{seeds} seeds from {first}, {} failed: {failed:?}\n{tally:#?}", failed.len());
    assert!(failed.is_empty(), "{failed:?}");
    assert!(seeds < USUAL_SEEDS || (tally.puts_acknowledged > 0 && tally.moves_begun > 0), "{tally:?}");
}
