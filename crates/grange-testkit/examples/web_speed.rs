//! How many requests one core of the synthetic web answers (profile plain).
//!
//! `cargo run --release -p grange-testkit --example web_speed`. The server runs on one thread of this process; the load
//! comes from a child process, whose work is not counted: the rate is requests per CPU second of the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use grange_testkit::web::{Options, Profile, ServeOptions, Web};

const CONNECTIONS: usize = 4;
const TIME: Duration = Duration::from_secs(5);
const HOSTS: usize = 100;
const PAGES: usize = 1_000;

fn main() {
    if let Some(address) = std::env::args().nth(1) {
        load(address.parse().expect("an address"));
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let web = Web::new(Options { hosts: HOSTS, pages: PAGES, profile: Profile::Plain, ..Options::default() });
        let options = ServeOptions { log: false, ..ServeOptions::default() };
        let server =
            web.serve_with("127.0.0.1:0", None::<SocketAddr>, options).await.expect("a port of loopback");
        let (start, before) = (Instant::now(), cpu_seconds());
        let child = Command::new(std::env::current_exe().expect("this program"))
            .arg(server.addr().to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the load starts");
        let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await;
        let output = output.expect("the wait ends").expect("the load ends");
        let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - before);
        let requests: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a count");
        println!(
            "{requests} requests in {wall:.2} s wall, {cpu:.2} s CPU of the server: {:.0}/s wall, {:.0} per CPU second",
            requests / wall,
            requests / cpu
        );
    });
}

/// Asks on a few kept connections for as long as it is told, and prints how often.
fn load(address: SocketAddr) {
    let end = Instant::now() + TIME;
    let threads: Vec<_> =
        (0..CONNECTIONS).map(|number| std::thread::spawn(move || ask(address, number, end))).collect();
    let total: u64 = threads.into_iter().map(|thread| thread.join().expect("a thread ends")).sum();
    println!("{total}");
}

fn ask(address: SocketAddr, number: usize, end: Instant) -> u64 {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    let mut reader = BufReader::with_capacity(64 * 1024, stream.try_clone().expect("a second handle"));
    let (mut body, mut line) = (Vec::new(), String::new());
    let mut count = 0;
    while Instant::now() < end {
        let page = 1 + (number * 7_919 + count as usize * 31) % (PAGES - 1);
        let host = count as usize % HOSTS;
        let text =
            format!("GET /p/{page}.html HTTP/1.1\r\nHost: h{host:04}.test\r\nUser-Agent: load\r\n\r\n");
        stream.write_all(text.as_bytes()).expect("the request goes out");
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line).expect("a line comes back");
            if let Some(value) = line.strip_prefix("Content-Length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body).expect("the body comes back");
        count += 1;
    }
    count
}

/// User and system time of this process (proc(5): fields 14 and 15, in hundredths of a second).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}
