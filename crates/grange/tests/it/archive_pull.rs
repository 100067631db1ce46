//! Bytes go straight from the node that has them to the node that keeps them: machines with counting wires between them.

use std::net::SocketAddr;

use grange_testkit::web::Profile;
use grange_testkit::{ReservedPort, ReservedPorts, TcpFault, TestDatabase, until};

use crate::archive_bed::{audit, bytes_at, content, lying_in, machine, source};
use crate::harness::{Grange, RunningNode};
use crate::harvest_bed::{QUICK, Site, job_with, nothing_left};

/// What goes over a wire beside the bytes of files: questions, answers, proofs.
const TALK: u64 = 200_000;
const BYTES: usize = 40 << 20;

/// An archiver without any disk of its own, and two machines with a bitarchive each; the checksum replica lies on the
/// second. Every way that bytes can take goes over a wire of its own.
struct Three {
    archiver: Grange,
    keepers: [Grange; 2],
    /// From the archiver to each keeper.
    asking: [TcpFault; 2],
    /// How others find each machine.
    homes: Vec<TcpFault>,
    database: TestDatabase,
    _ports: ReservedPorts,
}

/// A machine that listens there, is found at its home by others, and finds the three replicas at these places.
fn built(database: &str, roles: &str, listen: SocketAddr, home: SocketAddr, places: &[String; 3]) -> Grange {
    let [one, two, three] = places;
    let sums = format!("[archive.replicas.three]\nkind = \"checksum\"\nat = [{{ url = \"{three}\" }}]\n");
    let settings = [bytes_at("one", &[one]), bytes_at("two", &[two]), sums].concat();
    let set = [
        format!("db.url={database}"),
        "bus.url=postgres:".to_owned(),
        format!("node.listen={listen}"),
        format!("node.advertise={home}"),
        format!("node.roles={roles}"),
    ];
    let set: Vec<_> = set.iter().map(String::as_str).chain(QUICK).collect();
    machine(&set, &settings)
}

impl Three {
    async fn new(roles: &str) -> Option<Self> {
        let database = TestDatabase::create().await?;
        let ports = ReservedPorts::new(3);
        let mut homes = Vec::new();
        for port in ports.iter() {
            homes.push(TcpFault::before(&port.to_string()).await);
        }
        let asking =
            [TcpFault::before(&ports[1].to_string()).await, TcpFault::before(&ports[2].to_string()).await];
        let build = |own: usize, roles: &str, places: [String; 3]| {
            built(&database.url, roles, ports[own], homes[own].address(), &places)
        };
        let peer = |address: SocketAddr, name: &str| format!("peer://{address}/{name}");
        let here = |name: &str| format!("file:replicas/{name}");
        let [a, b] = [&asking[0], &asking[1]].map(TcpFault::address);
        let archiver = build(0, roles, [peer(a, "one"), peer(b, "two"), peer(b, "three")]);
        let (one, two) = (ports[1], ports[2]);
        let keepers = [
            build(1, "[\"bitarchive\"]", [here("one"), peer(two, "two"), peer(two, "three")]),
            build(2, "[\"bitarchive\"]", [peer(one, "one"), here("two"), here("three")]),
        ];
        archiver.run(&["db", "migrate"]).ok();
        Some(Self { archiver, keepers, asking, homes, database, _ports: ports })
    }

    /// One more machine of the same archive.
    fn machine(&self, roles: &str, listen: SocketAddr, home: SocketAddr, places: &[String; 3]) -> Grange {
        built(&self.database.url, roles, listen, home, places)
    }

    fn up(&self) -> [RunningNode; 3] {
        [self.archiver.up(), self.keepers[0].up(), self.keepers[1].up()]
    }

    /// Bytes that went between the archiver and the keepers, in any direction.
    fn through_the_archiver(&self) -> u64 {
        self.asking.iter().map(TcpFault::carried).map(|(there, back)| there + back).sum()
    }

    /// Bytes that others fetched from a machine: the archiver is the first.
    fn fetched_from(&self, machine: usize) -> u64 {
        self.homes[machine].carried().1
    }

    fn copy(&self, keeper: usize, name: &str) -> std::path::PathBuf {
        let replica = ["one", "two"][keeper];
        self.keepers[keeper].data().join(format!("replicas/{replica}/filedir/{name}"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_are_fetched_from_the_archiver_and_repairs_go_from_node_to_node() {
    let Some(three) = Three::new("[\"archiver\", \"admin\"]").await else { return };
    let nodes = three.up();
    let (name, empty) = ("large.warc", "empty.warc");
    let path = source(&three.archiver, name, BYTES);
    three.archiver.run(&["store", path.to_str().unwrap()]).ok();
    assert!(three.fetched_from(0) >= 2 * BYTES as u64, "both keepers fetched it: {}", three.fetched_from(0));
    assert!(three.through_the_archiver() < TALK, "{} bytes were sent", three.through_the_archiver());
    for keeper in [0, 1] {
        assert!(std::fs::read(three.copy(keeper, name)).unwrap() == content(name, BYTES));
    }
    let nothing = source(&three.archiver, empty, 0);
    three.archiver.run(&["store", nothing.to_str().unwrap()]).ok();
    assert_eq!(audit(&three.archiver), [6, 0, 0, 0, 0], "also on the checksum replica of another node");
    let journal = three.keepers[1].data().join("replicas/three/checksums.journal");
    assert_eq!(std::fs::read_to_string(journal).unwrap().lines().count(), 2);

    // The copy on the second keeper goes, and the file it came from too: the first keeper has what is left.
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(three.copy(1, name)).unwrap();
    let (served, talked) = (three.fetched_from(0), three.through_the_archiver());
    assert_eq!(audit(&three.archiver), [5, 1, 0, 0, 0]);
    let done = three.archiver.run(&["repair", "--all", "--yes", "--json"]).ok().json();
    assert_eq!((done["done"].as_u64(), done["failed"].as_u64()), (Some(1), Some(0)), "{done}");
    assert!(std::fs::read(three.copy(1, name)).unwrap() == content(name, BYTES));
    assert!(three.fetched_from(1) >= BYTES as u64, "the keeper fetched it from the holder");
    assert!(three.through_the_archiver() - talked < TALK, "no byte of it went through the archiver");
    assert!(three.fetched_from(0) - served < TALK);

    // A corrupt one is replaced the same way.
    let mut bytes = std::fs::read(three.copy(0, name)).unwrap();
    bytes[9_000_000] ^= 1;
    std::fs::remove_file(three.copy(0, name)).unwrap();
    std::fs::write(three.copy(0, name), bytes).unwrap();
    assert_eq!(audit(&three.archiver), [5, 0, 1, 0, 0]);
    let talked = three.through_the_archiver();
    three.archiver.run(&["repair", "--all", "--yes"]).ok();
    assert!(three.fetched_from(2) >= BYTES as u64);
    assert!(three.through_the_archiver() - talked < TALK);
    assert_eq!(audit(&three.archiver), [6, 0, 0, 0, 0]);
    three.archiver.run(&["audit", "verify-log"]).ok();
    for node in nodes {
        assert_eq!(node.stop(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_is_cut_goes_on_where_it_was_and_the_store_succeeds() {
    let Some(three) = Three::new("[\"archiver\", \"admin\"]").await else { return };
    let nodes = three.up();
    let path = source(&three.archiver, "large.warc", BYTES);
    let ended = std::thread::scope(|scope| {
        let storing = scope.spawn(|| three.archiver.run(&["store", path.to_str().unwrap()]));
        for cut in 1..=3_u64 {
            while three.fetched_from(0) < cut * (15 << 20) && !storing.is_finished() {
                std::thread::yield_now();
            }
            three.homes[0].cut();
            three.homes[0].mend();
        }
        storing.join().unwrap()
    });
    ended.ok();
    assert!(three.homes[0].broken() >= 3, "each cut ended a transfer: {}", three.homes[0].broken());
    let again = three.fetched_from(0) - 2 * BYTES as u64;
    // What lay in the sockets of both transfers when they were cut is lost with them.
    assert!(again < BYTES as u64, "{again} bytes were sent again after three cuts");
    assert!(three.through_the_archiver() < TALK);
    for keeper in [0, 1] {
        assert!(std::fs::read(three.copy(keeper, "large.warc")).unwrap() == content("large.warc", BYTES));
    }
    assert_eq!(audit(&three.archiver), [3, 0, 0, 0, 0]);
    for node in nodes {
        assert_eq!(node.stop(), 0);
    }
}

/// Keepers that cannot reach the archiver get the bytes sent, and one that is away heals later from the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nodes_cannot_reach_each_other_bytes_are_sent() {
    let Some(three) = Three::new("[\"archiver\", \"admin\"]").await else { return };
    let nodes = three.up();
    three.homes[0].cut();
    let path = source(&three.archiver, "a.warc", BYTES);
    three.archiver.run(&["store", path.to_str().unwrap()]).ok();
    assert!(three.through_the_archiver() >= 2 * BYTES as u64);
    three.asking[1].cut();
    let path = source(&three.archiver, "b.warc", 1_000_000);
    assert_eq!(three.archiver.run(&["store", path.to_str().unwrap()]).code, 5);
    std::fs::remove_file(path).unwrap();
    three.asking[1].mend();
    until("the file is healed from the other keeper", async || three.copy(1, "b.warc").exists()).await;
    until("it is proven", async || {
        let shown = three.archiver.run(&["files", "show", "b.warc"]).ok().json();
        shown["holdings"].as_array().unwrap().iter().all(|one| one["state"] == "upload_completed")
    })
    .await;
    assert!(three.fetched_from(1) >= 1_000_000, "fetched from the holder");
    assert_eq!(lying_in(&three.keepers[1].data().join("replicas/two/filedir")).len(), 2);
    assert_eq!(audit(&three.archiver), [6, 0, 0, 0, 0]);
    for node in nodes {
        assert_eq!(node.stop(), 0);
    }
}

/// A harvest on a machine without an archiver, which others can reach or not. Gives the bytes stored on each replica,
/// the bytes fetched from the harvester, and those sent to the archiver.
async fn harvested(reachable: bool) -> Option<[u64; 3]> {
    let three = Three::new("[\"archiver\", \"scheduler\", \"admin\"]").await?;
    let site = Site::serve(3, 12, Profile::Deterministic).await;
    let reserved = ReservedPort::new();
    let port = reserved.address();
    let home = TcpFault::before(&port.to_string()).await;
    if !reachable {
        home.cut();
    }
    let places = ["one", "two", "three"].map(|name| {
        let keeper = usize::from(name != "one");
        format!("peer://{}/{name}", three.asking[keeper].address())
    });
    let harvester = three.machine("[\"harvester\"]", port, home.address(), &places);
    harvester.crawls_at(site.server.addr());
    let nodes = three.up();
    let harvest = harvester.up();
    site.harvest(&three.archiver, "news", "0s");
    site.asked(1);
    let id = job_with(&three.archiver, "news", "done")["id"].to_string();
    nothing_left(&harvester);
    let filedir = three.keepers[0].data().join("replicas/one/filedir");
    site.is_captured(&filedir, &id);
    let sizes =
        lying_in(&filedir).into_iter().map(|name| std::fs::metadata(filedir.join(name)).unwrap().len());
    let counted = [sizes.sum(), home.carried().1, three.homes[0].carried().0];
    let [ok, missing, corrupt, undecided, extra] = audit(&three.archiver);
    assert_eq!([missing, corrupt, undecided, extra], [0; 4], "{ok} good copies");
    assert_eq!(harvest.stop(), 0);
    for node in nodes {
        assert_eq!(node.stop(), 0);
    }
    Some(counted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_harvester_has_is_fetched_from_it_and_the_archiver_is_only_told() {
    let Some([stored, fetched, sent]) = harvested(true).await else { return };
    assert!(fetched >= 2 * stored, "both keepers fetched all {stored} bytes from the harvester: {fetched}");
    assert!(sent < stored, "the archiver was told of {stored} bytes and got {sent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_harvester_that_nobody_reaches_sends_what_it_has() {
    let Some([stored, fetched, sent]) = harvested(false).await else { return };
    assert_eq!(fetched, 0);
    assert!(sent >= stored, "{sent} of {stored} bytes");
}
