//! Measures CDX lookups over HTTP: `cdx_http FOLDER LINES.cdxj [CONNECTIONS [SECONDS]]`.
//!
//! Serves the index in FOLDER on loopback and asks for URLs of LINES over connections that are kept open, one question at a
//! time on each. Client and server share the machine and the process, so the numbers are what both together can do.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grange_base::Trigger;
use grange_replay::cdx::{self, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// As the program itself has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// URLs to ask for, taken from all over the file.
const URLS: usize = 100_000;

fn urls(path: &str) -> std::io::Result<Vec<String>> {
    let size = std::fs::metadata(path)?.len();
    let step = (size / 350 / URLS as u64).max(1);
    let lines = BufReader::with_capacity(1 << 20, File::open(path)?).lines();
    let mut urls = Vec::with_capacity(URLS);
    for (number, line) in lines.enumerate() {
        let line = line?;
        if (number as u64).is_multiple_of(step)
            && let Some(url) = line.split("\"url\": \"").nth(1).and_then(|rest| rest.split('"').next())
        {
            let escaped = url.replace('%', "%25").replace('&', "%26").replace('+', "%2B").replace('#', "%23");
            urls.push(escaped);
        }
    }
    // The same order every time, and not that of the index.
    let mut state = 7u64;
    for at in (1..urls.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        urls.swap(at, (state >> 33) as usize % (at + 1));
    }
    Ok(urls)
}

/// Asks until the time is over. Gives how long each answer took, in microseconds.
async fn ask(
    address: SocketAddr,
    name: String,
    urls: Arc<Vec<String>>,
    mut at: usize,
    until: Instant,
) -> std::io::Result<Vec<u32>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut took = Vec::new();
    let mut buffer = vec![0; 1 << 20];
    while Instant::now() < until {
        let url = &urls[at % urls.len()];
        at += 1;
        let request = format!("GET /{name}/cdx/ia?url={url} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let start = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        let mut len = 0;
        loop {
            let read = stream.read(&mut buffer[len..]).await?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            len += read;
            let text = &buffer[..len];
            let Some(head) = text.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head_text = String::from_utf8_lossy(&text[..head]).to_ascii_lowercase();
            assert!(head_text.starts_with("http/1.1 200"), "{head_text}");
            let body = head_text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            let body: usize = body.and_then(|text| text.trim().parse().ok()).expect("a length");
            assert!(body > 0, "{url} is not there");
            if len >= head + 4 + body {
                break;
            }
        }
        took.push(start.elapsed().as_micros() as u32);
    }
    Ok(took)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, folder, lines, rest @ ..] = words.as_slice() else {
        eprintln!("cdx_http FOLDER LINES.cdxj [CONNECTIONS [SECONDS]]");
        return Ok(());
    };
    let number = |at: usize, default: u64| rest.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (connections, seconds) = (number(0, 16), number(1, 10));
    let urls = Arc::new(urls(lines)?);
    let collections = cdx::open(&[PathBuf::from(folder)], &PathBuf::new(), false)?;
    let name = collections.all()[0].name.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let took = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let end = Trigger::new();
        let server = tokio::spawn(cdx::serve(listener, collections, Options::default(), end.listener()));
        let until = Instant::now() + Duration::from_secs(seconds);
        let asking: Vec<_> = (0..connections as usize)
            .map(|one| {
                let start = one * urls.len() / connections as usize;
                tokio::spawn(ask(address, name.clone(), Arc::clone(&urls), start, until))
            })
            .collect();
        let mut took = Vec::new();
        for one in asking {
            took.extend(one.await??);
        }
        end.pull();
        server.abort();
        Ok::<_, Box<dyn std::error::Error>>(took)
    })?;
    let mut took = took;
    took.sort_unstable();
    let at = |share: f64| f64::from(took[((took.len() - 1) as f64 * share) as usize]) / 1000.0;
    println!(
        "{connections} connections, {} lookups in {seconds} s: {:.0}/s; p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms",
        took.len(),
        took.len() as f64 / seconds as f64,
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}
