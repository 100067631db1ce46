//! Loads a SWAP server for measurements.
//!   swap_load create ADDR NAMESPACE SLICES        a public collection
//!   swap_load put ADDR NAMESPACE COUNT BYTES CLIENTS PREFIX   durable uploads per second
//!   swap_load idle ADDR COUNT                     holds idle connections until standard input ends

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use grange_swap::admin::{Client, NewCollection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| words.get(at).cloned().ok_or("words are missing");
    match word(0)?.as_str() {
        "create" => {
            let (namespace, slices) = (word(2)?, word(3)?.parse()?);
            let new = NewCollection { namespace, slices, public: true, mixed_disks: false };
            Client::new(&word(1)?, None)?.create(&new).await?;
        }
        "put" => {
            let (count, bytes, clients): (u64, usize, u64) =
                (word(3)?.parse()?, word(4)?.parse()?, word(5)?.parse()?);
            let (address, path) = (word(1)?, format!("/put/{}/{}", word(2)?, word(6)?));
            let next = Arc::new(AtomicU64::new(0));
            let start = Instant::now();
            let tasks = (0..clients).map(|_| {
                let (next, address, path) = (Arc::clone(&next), address.clone(), path.clone());
                tokio::spawn(async move { put(&address, &path, &next, count, bytes).await })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await??;
            }
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{:.0} uploads/s ({count} of {bytes} bytes by {clients} clients in {seconds:.2} s)",
                count as f64 / seconds
            );
        }
        "idle" => {
            let mut held = Vec::new();
            for _ in 0..word(2)?.parse::<usize>()? {
                held.push(TcpStream::connect(word(1)?).await?);
            }
            println!("{} connections", held.len());
            let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
        }
        _ => return Err("say create, put or idle".into()),
    }
    Ok(())
}

async fn put(address: &str, path: &str, next: &AtomicU64, count: u64, bytes: usize) -> Result<(), Failed> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut answer = vec![0; 2048];
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return Ok(());
        }
        let mut request =
            format!("PUT {path}/{:02}/{number} HTTP/1.1\r\nContent-Length: {bytes}\r\n\r\n", number % 100)
                .into_bytes();
        request.resize(request.len() + bytes, (number % 251) as u8);
        stream.write_all(&request).await?;
        let read = stream.read(&mut answer).await?;
        if !answer[..read].starts_with(b"HTTP/1.1 201") {
            return Err(String::from_utf8_lossy(&answer[..read]).into_owned().into());
        }
    }
}
