//! 4 KiB ranges per second from a disk store: directly, and from a node over loopback HTTP.
//!
//! `cargo run --release -p grange-blob --example range_reads -- [FOLDER] [READS]`

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use futures_util::{StreamExt, stream};
use grange_base::{Clock, Size};
use grange_blob::peer::serve::Served;
use grange_blob::{Blob, Disk, DiskSettings, Peer, PeerAuth, SignedRequest, Source, mount};
use grange_model::FileName;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const FILE_BYTES: u64 = 64 << 20;
const RANGE_BYTES: usize = 4096;
const AT_ONCE: usize = 32;

/// Believes everybody; what a signature costs is measured elsewhere.
#[derive(Debug)]
struct Trusting;

impl PeerAuth for Trusting {
    fn sign(&self, _: &str, _: &str) -> SignedRequest {
        SignedRequest { authorization: "none".to_owned(), nonce: String::new() }
    }

    fn proven(&self, _: &str, _: u16, _: &str) -> bool {
        true
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let reads: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let folder = folder.join(format!("grange-ranges-{}", std::process::id()));
    let mut settings = DiskSettings::new([folder.clone()]);
    settings.min_space_left = Size(0);
    let disk: Arc<dyn Blob> = Arc::new(Disk::open(settings, Clock::system()).expect("a store"));
    let name: FileName = "a.warc".parse().expect("a name");
    let bytes: Vec<u8> = (0..FILE_BYTES).map(|n| ((n * 31) >> 3) as u8).collect();
    disk.put(&name, Source::from(&bytes[..]), None).await.expect("put");

    measure("from the disk store", disk.as_ref(), &name, reads).await;
    let address = serve(Arc::clone(&disk)).await;
    let peer = Peer::new(&address, &mount("one"), Arc::new(Trusting), Clock::system()).expect("a client");
    measure("from a node over loopback", &peer, &name, reads).await;
    std::fs::remove_dir_all(folder).expect("clean up");
}

async fn measure(what: &str, blob: &dyn Blob, name: &FileName, reads: u64) {
    let start = Instant::now();
    stream::iter(0..reads)
        .for_each_concurrent(AT_ONCE, async |number| {
            // Scattered over the file.
            let offset = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (FILE_BYTES - RANGE_BYTES as u64);
            let read = blob.read_at(name, offset, RANGE_BYTES).await.expect("a range");
            assert_eq!(read.len(), RANGE_BYTES);
        })
        .await;
    println!("{what:28} {:8.0} ranges of 4 KiB per second", reads as f64 / start.elapsed().as_secs_f64());
}

async fn serve(blob: Arc<dyn Blob>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let served = Served::new(blob, None);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let served = served.clone();
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let served = served.clone();
                async move {
                    let path = request.uri().path().trim_start_matches(&mount("one")).to_owned();
                    Ok::<_, Infallible>(served.answer(&path, request).await)
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}
