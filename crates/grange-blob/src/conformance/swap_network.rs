//! A SWAP network of two servers in this process, with one collection.

use std::path::Path;

use grange_base::{Clock, Shutdown, Size};
use grange_swap::admin::{Client, NewCollection};
use grange_swap::{Partition, Server, Settings};
use grange_testkit::until;

/// Starts the servers and makes the collection `library/warcs`; the address of one of them.
pub(super) async fn start(folder: &Path) -> String {
    let key_file = folder.join("swap.key");
    std::fs::write(&key_file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let mut addresses: Vec<String> = Vec::new();
    for name in ["swap-one", "swap-two"] {
        Partition::init(&folder.join(name), name).unwrap();
        let settings = Settings {
            partitions: vec![folder.join(name)],
            listen: "127.0.0.1:0".parse().unwrap(),
            peers: addresses.clone(),
            key_file: Some(key_file.clone()),
            workers: 1,
            trust_local: false,
            min_space_left: Size(1 << 20),
            ..Settings::default()
        };
        let server = Server::start(settings, Clock::system(), &Shutdown::never()).await.unwrap();
        addresses.push(server.address().to_string());
    }
    let clients: Vec<_> =
        addresses.iter().map(|address| Client::new(address, Some(&key_file)).unwrap()).collect();
    for client in &clients {
        until("the servers see each other", async || client.status().await.unwrap().servers.len() == 2).await;
    }
    let new =
        NewCollection { namespace: "library/warcs".into(), slices: 2, public: false, mixed_disks: false };
    clients[0].create(&new).await.unwrap();
    for client in &clients {
        until("both know the collection", async || {
            let known = client.collection("library/warcs").await;
            known.is_ok_and(|known| known.slices.iter().all(|slice| slice.alive))
        })
        .await;
    }
    addresses.swap_remove(0)
}
