//! Clients that are too slow lose their place, and leave nothing behind.

use std::time::Duration;

use grange_base::{Period, Size};
use grange_testkit::wait::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::bed::Bed;
use crate::settings::Settings;

/// A limit that a test can wait for, and that nobody who does as he should runs into on a busy machine.
const SHORT: Period = Period::from_secs(1);
/// Between two letters of a client that is slow but never silent.
const DRIP: Duration = Duration::from_millis(20);

/// Only the limit that a test is about is short.
async fn bed(tune: fn(&mut Settings)) -> Bed {
    let bed = Bed::tuned(1, 1, tune).await;
    bed.create("c", 1, true).await;
    bed
}

async fn connect(bed: &Bed) -> TcpStream {
    TcpStream::connect(&bed.addresses[0]).await.unwrap()
}

/// What the server says until it hangs up; that it does is the point.
async fn last_words(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    // A reset is a way to hang up, too.
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

/// Sends one letter after another until the server answers or hangs up; what it said.
async fn drip(stream: &mut TcpStream, letter: u8) -> String {
    while stream.write_all(&[letter]).await.is_ok() {
        if timeout(DRIP, stream.readable()).await.is_ok() {
            break;
        }
    }
    last_words(stream).await
}

fn left_over(bed: &Bed) -> Vec<String> {
    let mut names: Vec<_> = bed.copied("c").into_keys().collect();
    let aside = std::fs::read_dir(bed.partition(0, 0).join(crate::partition::TEMP)).into_iter().flatten();
    names.extend(aside.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_is_hung_up_on() {
    let bed = bed(|settings| settings.patience.idle = SHORT).await;
    let mut silent = connect(&bed).await;
    assert_eq!(last_words(&mut silent).await, "");
    // A connection that was used and then rests is no different.
    let mut resting = connect(&bed).await;
    resting.write_all(b"GET /get/c/none HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(last_words(&mut resting).await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_drips_is_answered_with_408() {
    let bed = bed(|settings| settings.patience.head = SHORT).await;
    let mut slow = connect(&bed).await;
    slow.write_all(b"GET /get/c/none HTTP/1.1\r\nHost: x\r\nX-Long: ").await.unwrap();
    let said = drip(&mut slow, b'y').await;
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
}

const UPLOAD: &[u8] = b"PUT /put/c/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_stops_leaves_nothing() {
    let bed = bed(|settings| settings.patience.silence = SHORT).await;
    let mut stops = connect(&bed).await;
    stops.write_all(UPLOAD).await.unwrap();
    stops.write_all(&[1; 1000]).await.unwrap();
    assert_eq!(last_words(&mut stops).await, "");
    until("nothing is left of it", async || left_over(&bed).is_empty()).await;
    assert_eq!(bed.put(0, "c", "slow", b"in time").await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_crawls_leaves_nothing() {
    let bed = bed(|settings| {
        settings.patience.slowest = Size(1 << 20);
        settings.patience.grace = SHORT;
    })
    .await;
    let mut crawls = connect(&bed).await;
    crawls.write_all(UPLOAD).await.unwrap();
    assert_eq!(drip(&mut crawls, b'z').await, "");
    until("nothing is left of it", async || left_over(&bed).is_empty()).await;
    assert_eq!(bed.put(0, "c", "slow", b"in time").await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_an_answer_is_hung_up_on() {
    let bed = bed(|settings| settings.patience.silence = SHORT).await;
    let large = vec![7; 16 << 20];
    assert_eq!(bed.put(0, "c", "large", &large).await, 201);
    let mut lazy = connect(&bed).await;
    lazy.write_all(b"GET /get/c/large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    // Whoever writes to a connection that the other side has left is told so.
    until("the server hangs up", async || lazy.write_all(b"\r\n").await.is_err()).await;
    let mut got = Vec::new();
    let _ = lazy.read_to_end(&mut got).await;
    assert!(got.len() < large.len(), "all {} bytes came after all", got.len());
    assert_eq!(bed.get(0, "c", "large").await, Ok(large));
}
