//! Files that go from the node that holds them to the node that keeps them, and not through whoever asks.

use std::sync::Arc;

use grange_base::Clock;
use grange_testkit::TcpFault;

use super::peer_node::{Node, Register, peer};
use super::{disk, file, noise, sums};
use crate::blob::{Blob, Stored, Taking};
use crate::disk::Disk;
use crate::memory::Memory;
use crate::peer::{At, Origin};

const LARGE: usize = 48 << 20;

/// A node that holds a file, a node that shall keep it, and between each two of the three parties a wire.
struct Three {
    held: Arc<Memory>,
    _holder: Node,
    _keeper: Node,
    kept: Arc<Disk>,
    /// From the keeper to the holder.
    between: TcpFault,
    /// From whoever asks to the holder and to the keeper.
    asking: [TcpFault; 2],
    register: Register,
    _folder: tempfile::TempDir,
}

impl Three {
    async fn with(bytes: &[u8]) -> Self {
        let held = Arc::new(Memory::new(Clock::system()));
        held.put(&file("a"), bytes.into(), None).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kept = Arc::new(disk(&folder, &["one"]));
        let register = Register::default();
        let holder = Node::named("holder", held.clone(), &register).await;
        let keeper = Node::named("keeper", kept.clone(), &register).await;
        let between = TcpFault::before(&holder.address.to_string()).await;
        register.enter("holder", between.address());
        let asking = [
            TcpFault::before(&holder.address.to_string()).await,
            TcpFault::before(&keeper.address.to_string()).await,
        ];
        Self { held, _holder: holder, _keeper: keeper, kept, between, asking, register, _folder: folder }
    }

    fn holder(&self) -> impl Blob + use<> {
        peer(self.asking[0].address(), "secret")
    }

    fn keeper(&self) -> impl Blob + use<> {
        peer(self.asking[1].address(), "secret")
    }

    /// Has the keeper fetch from an origin that somebody made up.
    async fn ask_for(&self, origin: &Origin, bytes: &[u8]) -> Option<Stored> {
        let keeper = peer(self.asking[1].address(), "secret");
        crate::peer::pull::ask(&keeper, &file("a"), origin, bytes.len() as u64, &sums(bytes)).await.unwrap()
    }

    /// Bytes that went through whoever asks, in any direction.
    fn through_the_asker(&self) -> u64 {
        self.asking.iter().map(TcpFault::carried).map(|(there, back)| there + back).sum()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_go_from_node_to_node_and_not_through_whoever_asks() {
    let bytes = noise(LARGE, 1);
    let three = Three::with(&bytes).await;
    let pulled = three.keeper().pull(&file("a"), &three.holder(), LARGE as u64, &sums(&bytes)).await;
    let stored = pulled.unwrap().unwrap();
    assert_eq!(
        (stored.size, stored.already, stored.checksums.sha512),
        (LARGE as u64, false, sums(&bytes).sha512)
    );
    assert!(three.through_the_asker() < 10_000, "{}", three.through_the_asker());
    assert!(three.between.carried().1 >= LARGE as u64);
    assert!(three.kept.read_at(&file("a"), 0, LARGE).await.unwrap() == bytes);
    // Once it is there nothing travels.
    let before = three.between.carried();
    let again = three.keeper().pull(&file("a"), &three.holder(), LARGE as u64, &sums(&bytes)).await;
    assert!(again.unwrap().unwrap().already);
    assert_eq!(three.between.carried(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_that_was_cut_goes_on_where_it_broke() {
    let bytes = noise(LARGE, 2);
    let three = Arc::new(Three::with(&bytes).await);
    let pulling = tokio::spawn({
        let (three, sums) = (Arc::clone(&three), sums(&bytes));
        async move { three.keeper().pull(&file("a"), &three.holder(), LARGE as u64, &sums).await }
    });
    for cut in 1..=3_u64 {
        grange_testkit::until("some of it has travelled", || async {
            three.between.carried().1 > cut * (8 << 20) || pulling.is_finished()
        })
        .await;
        three.between.cut();
        three.between.mend();
    }
    assert_eq!(pulling.await.unwrap().unwrap().unwrap().size, LARGE as u64);
    let (_, back) = three.between.carried();
    let again = back - LARGE as u64;
    // What lay in the sockets when they were cut is lost with them; the whole was never sent again.
    assert!(again < LARGE as u64 / 2, "{again} bytes were sent again after three cuts");
    assert!(three.kept.read_at(&file("a"), 0, LARGE).await.unwrap() == bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_lies_is_refused_and_nothing_is_kept() {
    let bytes = noise(1 << 20, 3);
    let three = Three::with(&bytes).await;
    let pull = |size: u64, sums| {
        let (keeper, holder) = (three.keeper(), three.holder());
        async move { keeper.pull(&file("a"), &holder, size, &sums).await.unwrap_err().code() }
    };
    assert_eq!(pull(1 << 20, sums(b"others")).await, "blob-wrong-checksum");
    assert_eq!(pull(1 << 19, sums(&bytes)).await, "blob-wrong-size");
    assert_eq!(pull(1 << 20, grange_model::Checksums::default()).await, "blob-no-checksum");
    // The copy went bad where it lies.
    three.held.damage(&file("a"), |bytes| bytes[9] ^= 1);
    assert_eq!(pull(1 << 20, sums(&bytes)).await, "blob-wrong-checksum");
    assert!(three.kept.list(None, 9).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_is_gone_is_an_answer_and_one_that_is_away_is_sent_instead() {
    let bytes = noise(1 << 20, 4);
    let three = Three::with(&bytes).await;
    let sums = sums(&bytes);
    let error = three.keeper().pull(&file("b"), &three.holder(), 5, &sums).await.unwrap_err();
    assert_eq!(error.code(), "blob-origin");
    assert!(error.to_string().contains("there is no file b"), "{error}");
    // A keeper that cannot get at the holder says so; whoever asked sends the bytes itself.
    three.between.cut();
    let pulled = three.keeper().pull(&file("a"), &three.holder(), 1 << 20, &sums).await.unwrap();
    assert_eq!(pulled, None);
    // So does one that does not know the node.
    let stranger = Node::named("stranger", three.held.clone(), &Register::default()).await;
    let pulled = three.keeper().pull(&file("a"), &stranger.peer(), 1 << 20, &sums).await.unwrap();
    assert_eq!(pulled, None);
    // And one that finds another node where the holder should be, such as itself.
    three.register.enter("holder", three.asking[1].address());
    let pulled = three.keeper().pull(&file("a"), &three.holder(), 1 << 20, &sums).await.unwrap();
    assert_eq!(pulled, None);
    assert!(three.kept.list(None, 9).await.unwrap().is_empty());
}

/// Nobody can have a node fetch from a place of his choosing: origins name nodes, and only stores and offers on them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keeper_fetches_only_from_nodes_it_knows() {
    let bytes = noise(1000, 5);
    let three = Three::with(&bytes).await;
    let trap = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = trap.local_addr().unwrap().to_string();
    for node in [address.as_str(), "127.0.0.1", "holder/../x", ""] {
        let origin = Origin { node: node.to_owned(), at: At::Store("one".to_owned()) };
        assert_eq!(three.ask_for(&origin, &bytes).await, None, "{node}");
    }
    for at in [At::Store("one/files/a?x=".to_owned()), At::Offer("..".to_owned()), At::Store(String::new())] {
        let origin = Origin { node: "holder".to_owned(), at };
        assert_eq!(three.ask_for(&origin, &bytes).await, None, "{origin}");
    }
    let nobody = tokio::time::timeout(std::time::Duration::ZERO, trap.accept()).await;
    assert!(nobody.is_err(), "the keeper went where it was told");
    let origin = Origin { node: "holder".to_owned(), at: At::Store("one".to_owned()) };
    assert!(three.ask_for(&origin, &bytes).await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_local_file_is_offered_for_as_long_as_it_is_fetched() {
    let bytes = noise(LARGE, 6);
    let three = Three::with(b"").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("incoming");
    std::fs::write(&path, &bytes).unwrap();
    let asker = Node::named("asker", Arc::new(Memory::new(Clock::system())), &three.register).await;
    let from_asker = TcpFault::before(&asker.address.to_string()).await;
    three.register.enter("asker", from_asker.address());
    let keeper = peer(three.asking[1].address(), "secret").offering(asker.offers.clone());
    let stored = keeper.put_file(&file("c"), &path, Taking::Copy, Some(&sums(&bytes))).await.unwrap();
    assert_eq!((stored.size, stored.already), (LARGE as u64, false));
    let (_, fetched) = from_asker.carried();
    assert!(fetched >= LARGE as u64 && three.through_the_asker() < 10_000, "fetched, not sent: {fetched}");
    assert!(asker.offers.is_empty(), "taken back");
    // What is on offer is given to who knows the token, the name and the offer.
    let offer = asker.offers.offer(&file("c"), &path);
    let At::Offer(id) = offer.origin().at else { panic!() };
    let at = |id: &str, secret| {
        let mount = format!("/peer/v1/offer/{id}");
        crate::Peer::new(
            &asker.address.to_string(),
            &mount,
            Arc::new(super::peer_node::Token(secret)),
            Clock::system(),
        )
        .unwrap()
    };
    assert_eq!(at(&id, "secret").get(&file("c")).await.unwrap().size, LARGE as u64);
    assert_eq!(at(&id, "another").get(&file("c")).await.unwrap_err().code(), "blob-unproven");
    assert_eq!(at(&id, "secret").get(&file("d")).await.unwrap_err().code(), "blob-not-found");
    assert_eq!(at("0123456789abcdef", "secret").get(&file("c")).await.unwrap_err().code(), "blob-not-found");
    assert!(at(&id, "secret").list(None, 9).await.is_err(), "an offer lists nothing");
    drop(offer);
    assert_eq!(at(&id, "secret").get(&file("c")).await.unwrap_err().code(), "blob-not-found");
    // Moved: gone once it is stored.
    std::fs::write(&path, b"moved").unwrap();
    keeper.put_file(&file("d"), &path, Taking::Move, None).await.unwrap();
    assert!(!path.exists());
    // A keeper that cannot reach us gets the bytes sent.
    from_asker.cut();
    std::fs::write(&path, b"sent").unwrap();
    keeper.put_file(&file("e"), &path, Taking::Copy, None).await.unwrap();
    assert_eq!(three.kept.read_at(&file("e"), 0, 9).await.unwrap(), "sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keeper_is_waited_for_as_long_as_it_lives() {
    let three = Three::with(b"bytes").await;
    let keeper = peer(three.asking[1].address(), "secret");
    let every = std::time::Duration::from_millis(20);
    // It lives, and takes long over the file.
    let slow = async {
        let asked = || async { three.asking[1].carried().1 > 1000 };
        grange_testkit::until("the keeper was asked a few times", asked).await;
        Ok("fetched")
    };
    assert_eq!(keeper.while_alive(slow, every, std::time::Duration::from_secs(30)).await.unwrap(), "fetched");
    // It says nothing any more.
    three.asking[1].silence();
    let error = keeper.while_alive(std::future::pending::<Result<(), _>>(), every, every).await;
    assert_eq!(error.unwrap_err().code(), "blob-unreachable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_without_bytes_needs_no_transfer() {
    let three = Three::with(b"").await;
    three.between.cut();
    let stored = three.keeper().pull(&file("a"), &three.holder(), 0, &sums(b"")).await.unwrap().unwrap();
    assert_eq!((stored.size, three.between.carried()), (0, (0, 0)));
    assert_eq!(three.kept.stat(&file("a")).await.unwrap().unwrap().size, 0);
}
