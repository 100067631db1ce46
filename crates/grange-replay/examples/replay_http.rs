//! Measures replay over HTTP: `replay_http FILE PATH [CONNECTIONS [SECONDS]]`, such as
//! `replay_http x.warc.gz /local/20140103030321id_/http://example.com/ 8 10`.
//!
//! Indexes FILE aside, serves it on loopback and asks for PATH over connections that are kept open, one question at a time on
//! each. Client and server share the machine and the process, so the numbers are what both together can do.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grange_base::Trigger;
use grange_replay::cdx::Options;
use grange_replay::holdings::{Holdings, LocalFiles};
use grange_replay::{Collection, Collections, Index, IndexSettings, local};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// As the program itself has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Times to the first byte and the bytes received.
#[derive(Default)]
struct Asked {
    first: Vec<u32>,
    bytes: u64,
}

async fn ask(address: SocketAddr, path: String, until: Instant) -> std::io::Result<Asked> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut asked = Asked::default();
    let mut buffer = vec![0; 4 << 20];
    while Instant::now() < until {
        let start = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        let mut have = stream.read(&mut buffer).await?;
        asked.first.push(start.elapsed().as_micros() as u32);
        let head = loop {
            match buffer[..have].windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => have += stream.read(&mut buffer[have..]).await?,
            }
        };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let len = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        let Some(len) = len.filter(|_| text.starts_with("http/1.1 200")) else {
            return Err(std::io::Error::other(format!("not an answer to measure: {text}")));
        };
        while have < head + len {
            have += stream.read(&mut buffer[have..]).await?;
        }
        asked.bytes += len as u64;
    }
    Ok(asked)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, path, rest @ ..] = args.as_slice() else {
        return Err("usage: replay_http FILE PATH [CONNECTIONS [SECONDS]]".into());
    };
    let connections: usize = rest.first().map_or(Ok(8), |text| text.parse())?;
    let seconds: u64 = rest.get(1).map_or(Ok(5), |text| text.parse())?;
    let aside = std::env::temp_dir().join(format!("replay_http-{}", std::process::id()));
    let index = Arc::new(Index::open(&aside, IndexSettings::default())?);
    let files = Arc::new(LocalFiles::default());
    local::add(Path::new(file), &index, &files)?;
    let holdings: Arc<dyn Holdings> = files;
    let collections = Collections::default();
    collections.add(Collection::new("local", index, holdings));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let end = Trigger::new();
    let routes = grange_replay::routes(collections, Options::default());
    let server = tokio::spawn(grange_replay::serve(listener, routes, end.listener()));
    let until = Instant::now() + Duration::from_secs(seconds);
    let askers: Vec<_> = (0..connections).map(|_| tokio::spawn(ask(address, path.clone(), until))).collect();
    let mut all = Asked::default();
    for asker in askers {
        let asked = asker.await??;
        all.first.extend(asked.first);
        all.bytes += asked.bytes;
    }
    all.first.sort_unstable();
    let at = |share: f64| all.first[((all.first.len() - 1) as f64 * share) as usize];
    println!(
        "{} requests/s, {} MB/s, first byte p50 {} µs, p99 {} µs",
        all.first.len() as u64 / seconds,
        all.bytes / seconds / 1_000_000,
        at(0.5),
        at(0.99)
    );
    end.pull();
    server.await??;
    std::fs::remove_dir_all(aside)?;
    Ok(())
}
