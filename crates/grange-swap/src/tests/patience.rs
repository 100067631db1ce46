//! Clients that are too slow lose their place, and leave nothing behind.

use std::time::Duration;

use grange_base::{Period, Size};
use grange_testkit::wait::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::bed::Bed;

/// Short, so that a test need not wait; a client that does as it should is served within them all the same.
async fn bed() -> Bed {
    let bed = Bed::tuned(1, 1, |settings| {
        settings.patience.idle = Period::from_millis(400);
        settings.patience.head = Period::from_millis(400);
        settings.patience.silence = Period::from_millis(400);
        settings.patience.slowest = Size(1 << 20);
        settings.patience.grace = Period::from_millis(800);
    })
    .await;
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

fn left_over(bed: &Bed) -> Vec<String> {
    let mut names: Vec<_> = bed.copied("c").into_keys().collect();
    let aside = std::fs::read_dir(bed.partition(0, 0).join(crate::partition::TEMP)).into_iter().flatten();
    names.extend(aside.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_is_hung_up_on() {
    let bed = bed().await;
    let mut silent = connect(&bed).await;
    assert_eq!(last_words(&mut silent).await, "");
    // A connection that was used and then rests is no different.
    let mut resting = connect(&bed).await;
    resting.write_all(b"GET /get/c/none HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(last_words(&mut resting).await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_drips_is_answered_with_408() {
    let bed = bed().await;
    let (mut reader, mut writer) = connect(&bed).await.into_split();
    let drip = tokio::spawn(async move {
        for byte in b"GET /get/c/none HTTP/1.1\r\nHost: x\r\nX-Long: ".iter().chain(std::iter::repeat(&b'y'))
        {
            if writer.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut said = Vec::new();
    let _ = reader.read_to_end(&mut said).await;
    assert!(said.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&said));
    drip.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_stops_or_crawls_leaves_nothing() {
    let bed = bed().await;
    let head = b"PUT /put/c/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
    let mut stops = connect(&bed).await;
    stops.write_all(head).await.unwrap();
    stops.write_all(&[1; 1000]).await.unwrap();
    let said = last_words(&mut stops).await;
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 408 "), "{said}");
    // Never silent for long, and still too slow to ever end.
    let (mut reader, mut writer) = connect(&bed).await.into_split();
    let crawl = tokio::spawn(async move {
        writer.write_all(head).await.unwrap();
        while writer.write_all(b"z").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut said = Vec::new();
    let _ = reader.read_to_end(&mut said).await;
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&said));
    crawl.await.unwrap();
    until("nothing is left of them", async || left_over(&bed).is_empty()).await;
    assert_eq!(bed.put(0, "c", "slow", b"in time").await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_an_answer_is_hung_up_on() {
    let bed = bed().await;
    let large = vec![7; 16 << 20];
    assert_eq!(bed.put(0, "c", "large", &large).await, 201);
    let mut lazy = connect(&bed).await;
    lazy.write_all(b"GET /get/c/large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    // Longer than its patience: what the server could not send it never will.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let mut got = Vec::new();
    let _ = lazy.read_to_end(&mut got).await;
    assert!(got.len() < large.len(), "all {} bytes came after all", got.len());
    assert_eq!(bed.get(0, "c", "large").await, Ok(large));
}
