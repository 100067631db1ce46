//! A SWAP server for measurements: `swap_server LISTEN PARTITION… [-- PEER…]`, one worker, without the rest of Grange.
//! The key is read from the file named by SWAP_KEY_FILE. Prints its address and runs until it is killed.

use std::path::PathBuf;

use grange_base::{Clock, Shutdown};
use grange_swap::{Server, Settings};

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let listen = words.next().ok_or("name the address to listen on")?.parse()?;
    let words: Vec<String> = words.collect();
    let split = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let settings = Settings {
        partitions: words[..split].iter().map(PathBuf::from).collect(),
        listen,
        peers: words.iter().skip(split + 1).cloned().collect(),
        key_file: std::env::var_os("SWAP_KEY_FILE").map(PathBuf::from),
        workers: 1,
        ..Settings::default()
    };
    for partition in &settings.partitions {
        if !partition.join("partition.properties").exists() {
            grange_swap::Partition::init(partition, "bench")?;
        }
    }
    let server = Server::start(settings, Clock::system(), &Shutdown::never()).await?;
    println!("{}", server.address());
    server.join().await;
    Ok(())
}
