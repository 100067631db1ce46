//! The client against a clamd of our own making, which speaks the protocol and misbehaves to order.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use grange_base::{Period, Size};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, UnixListener};

use super::*;

/// How the other side behaves.
#[derive(Clone, Copy, Debug)]
enum Clamd {
    /// Finds `EICAR` in the bytes.
    Honest,
    /// Refuses streams longer than this, at once, and hangs up.
    Limit(usize),
    Says(&'static [u8]),
    /// Takes everything and never answers.
    Silent,
    /// Hangs up after the first chunk.
    HangsUp,
    /// Says OK before it has seen anything.
    Hasty,
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, clamd: Clamd) -> io::Result<()> {
    let mut command = [0; 10];
    stream.read_exact(&mut command).await?;
    assert_eq!(&command, b"zINSTREAM\0");
    if let Clamd::Hasty = clamd {
        stream.write_all(b"stream: OK\0").await?;
        return stream.flush().await;
    }
    let mut seen = Vec::new();
    loop {
        let length = stream.read_u32().await? as usize;
        if length == 0 {
            break;
        }
        let start = seen.len();
        seen.resize(start + length, 0);
        stream.read_exact(&mut seen[start..]).await?;
        match clamd {
            Clamd::HangsUp => return Ok(()),
            Clamd::Limit(most) if seen.len() > most => {
                return stream.write_all(b"INSTREAM size limit exceeded. ERROR\0").await;
            }
            _ => {}
        }
    }
    match clamd {
        Clamd::Silent => std::future::pending().await,
        Clamd::Says(reply) => stream.write_all(reply).await,
        _ if seen.windows(5).any(|part| part == b"EICAR") => {
            stream.write_all(b"stream: Win.Test.EICAR_HDB-1 FOUND\0").await
        }
        _ => stream.write_all(b"stream: OK\0").await,
    }
}

async fn scanner(clamd: Clamd, settings: Settings) -> Scanner {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, clamd));
        }
    });
    Scanner::new(&Settings { clamd: address, ..settings }).unwrap().unwrap()
}

async fn verdict(clamd: Clamd, body: &[u8]) -> Verdict {
    scanner(clamd, Settings::default()).await.scan(body).await
}

#[tokio::test]
async fn clean_and_infected_are_told_apart() {
    assert_eq!(verdict(Clamd::Honest, b"a page").await, Verdict::Clean);
    assert_eq!(verdict(Clamd::Honest, b"").await, Verdict::Clean);
    assert_eq!(verdict(Clamd::Honest, b"x EICAR y").await, Verdict::Infected("Win.Test.EICAR_HDB-1".into()));
    // Over the border of two chunks.
    let mut long = vec![b'.'; (64 << 10) - 2];
    long.extend_from_slice(b"EICAR");
    assert!(matches!(verdict(Clamd::Honest, &long).await, Verdict::Infected(_)));
}

#[tokio::test]
async fn a_socket_of_the_file_system_will_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clamd.ctl");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream, Clamd::Honest).await
    });
    let settings = Settings { clamd: format!("unix:{}", path.display()), ..Settings::default() };
    let scanner = Scanner::new(&settings).unwrap().unwrap();
    assert!(matches!(scanner.scan(&b"EICAR"[..]).await, Verdict::Infected(_)));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(scanner.scan(&b""[..]).await, Verdict::Unscanned(Unscanned::Unreachable { .. })));
}

#[tokio::test]
async fn whatever_goes_wrong_is_never_clean() {
    let long = vec![b'.'; 1 << 20];
    for (clamd, body, word) in [
        (Clamd::Limit(100_000), long.as_slice(), "unscanned:refused"),
        (Clamd::Says(b"what?\0"), b"x", "unscanned:garbage"),
        (Clamd::Says(b""), b"x", "unscanned:broken"),
        (Clamd::Says(&[0xff; 9000]), b"x", "unscanned:garbage"),
        (Clamd::HangsUp, long.as_slice(), "unscanned:broken"),
    ] {
        let verdict = verdict(clamd, body).await;
        let annotation = verdict.annotation().unwrap();
        // A refusal can be lost when the connection is torn down under it; it is then a broken one.
        let lost = matches!(clamd, Clamd::Limit(_)) && annotation == "unscanned:broken";
        assert!(annotation == word || lost, "{clamd:?}: {verdict:?}");
        assert_eq!(verdict.place(OnUnscanned::Quarantine), Place::Quarantine);
    }
}

#[tokio::test]
async fn a_good_word_before_the_end_is_none() {
    // The body waits for ever, so the end is never shown.
    let (body, _kept_open) = tokio::io::duplex(1);
    let verdict = scanner(Clamd::Hasty, Settings::default()).await.scan(body).await;
    assert_eq!(verdict, Verdict::Unscanned(Unscanned::Garbage("OK before the end".into())));
}

#[tokio::test]
async fn a_scanner_that_is_down_is_told_by_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    drop(listener);
    let settings = Settings { clamd: address.clone(), ..Settings::default() };
    let Verdict::Unscanned(why) = Scanner::new(&settings).unwrap().unwrap().scan(&b"x"[..]).await else {
        panic!("nobody there to say so")
    };
    assert!(why.to_string().starts_with(&format!("clamd at {address} cannot be reached: ")), "{why}");
}

#[tokio::test]
async fn a_slow_scanner_is_not_waited_for() {
    let settings = Settings { timeout: Period::from_millis(50), ..Settings::default() };
    let verdict = scanner(Clamd::Silent, settings).await.scan(&b"x"[..]).await;
    assert_eq!(verdict, Verdict::Unscanned(Unscanned::Slow));
}

#[tokio::test]
async fn of_a_long_answer_the_beginning_is_shown() {
    let settings = || Settings { max_stream: Size(10), ..Settings::default() };
    for (body, expected) in [
        (&b"0123456789"[..], Verdict::Clean),
        (b"0123456789a", Verdict::Unscanned(Unscanned::TooLong(10))),
        (b"EICAR.......", Verdict::Infected("Win.Test.EICAR_HDB-1".into())),
        (b"..........EICAR", Verdict::Unscanned(Unscanned::TooLong(10))),
    ] {
        assert_eq!(scanner(Clamd::Honest, settings()).await.scan(body).await, expected);
    }
}

/// A body that cannot be read to its end.
struct Torn(bool);

impl AsyncRead for Torn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(Err(io::Error::other("disk on fire")));
        }
        out.put_slice(b"x");
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_not_clean() {
    let settings = Settings { timeout: Period::from_secs(20), ..Settings::default() };
    let verdict = scanner(Clamd::Honest, settings).await.scan(Torn(false)).await;
    assert_eq!(verdict, Verdict::Unscanned(Unscanned::Body("disk on fire".into())));
}

#[test]
fn addresses_are_checked_before_the_crawl() {
    for (clamd, fine) in [
        ("tcp:127.0.0.1:3310", true),
        ("tcp:[::1]:3310", true),
        ("unix:/run/clamd", true),
        ("127.0.0.1:3310", false),
        ("tcp:127.0.0.1", false),
        ("tcp::3310", false),
        ("unix:", false),
    ] {
        let settings = Settings { clamd: clamd.to_owned(), ..Settings::default() };
        assert_eq!(Scanner::new(&settings).is_ok(), fine, "{clamd}");
    }
    assert!(Scanner::new(&Settings::default()).unwrap().is_none());
}
