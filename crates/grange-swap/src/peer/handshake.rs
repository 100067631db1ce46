//! Both ends prove that they know the key, without saying it, and agree on a key of their own for this connection.

use std::io::{self, ErrorKind};
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use crate::access::Key;
use crate::peer::frame::Seal;

/// Longest handshake: a round trip and some arithmetic.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest line of it, bytes.
const MAX_LINE_BYTES: u64 = 4096;

#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    base: String,
    nonce: String,
    /// Of the answering side, over both nonces.
    #[serde(default)]
    proof: String,
}

/// A proven connection.
#[derive(Debug)]
pub(crate) struct Proven<S> {
    pub stream: BufReader<S>,
    /// The other's announced URL.
    pub base: String,
    pub inbound: Seal,
    pub outbound: Seal,
}

fn nonce() -> String {
    HEXLOWER.encode(&rand::random::<[u8; 32]>())
}

fn proof(key: &Key, side: &[u8], caller: &Hello, answerer: &Hello) -> String {
    let parts = [
        side,
        caller.base.as_bytes(),
        caller.nonce.as_bytes(),
        answerer.base.as_bytes(),
        answerer.nonce.as_bytes(),
    ];
    HEXLOWER.encode(&key.proof(&parts))
}

fn check(expected: &str, given: &str) -> io::Result<()> {
    if bool::from(expected.as_bytes().ct_eq(given.as_bytes())) {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::PermissionDenied, "the other side does not know our key"))
}

/// Frames of this connection are proven by a key nobody used before.
fn session(key: &Key, caller: &Hello, answerer: &Hello) -> Key {
    Key::new(proof(key, b"session", caller, answerer).into_bytes())
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.flush().await
}

async fn receive<T: for<'a> Deserialize<'a>, S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
) -> io::Result<T> {
    use tokio::io::AsyncReadExt as _;
    let mut line = Vec::new();
    stream.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
    if !line.ends_with(b"\n") {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

/// The side that called.
pub(crate) async fn call<S: AsyncRead + AsyncWrite + Unpin>(
    stream: BufReader<S>,
    key: &Key,
    base: &str,
) -> io::Result<Proven<S>> {
    timeout(PATIENCE, async {
        let mut stream = stream;
        let ours = Hello { base: base.to_owned(), nonce: nonce(), proof: String::new() };
        send(&mut stream, &ours).await?;
        let theirs: Hello = receive(&mut stream).await?;
        check(&proof(key, b"answerer", &ours, &theirs), &theirs.proof)?;
        send(&mut stream, &proof(key, b"caller", &ours, &theirs)).await?;
        let session = session(key, &ours, &theirs);
        let (inbound, outbound) = (Seal::new(session.clone(), b"answer"), Seal::new(session, b"call"));
        Ok(Proven { stream, base: theirs.base, inbound, outbound })
    })
    .await?
}

/// The side that was called.
pub(crate) async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: BufReader<S>,
    key: &Key,
    base: &str,
) -> io::Result<Proven<S>> {
    timeout(PATIENCE, async {
        let mut stream = stream;
        let theirs: Hello = receive(&mut stream).await?;
        let mut ours = Hello { base: base.to_owned(), nonce: nonce(), proof: String::new() };
        ours.proof = proof(key, b"answerer", &theirs, &ours);
        send(&mut stream, &ours).await?;
        let given: String = receive(&mut stream).await?;
        check(&proof(key, b"caller", &theirs, &ours), &given)?;
        let session = session(key, &theirs, &ours);
        let (inbound, outbound) = (Seal::new(session.clone(), b"call"), Seal::new(session, b"answer"));
        Ok(Proven { stream, base: theirs.base, inbound, outbound })
    })
    .await?
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shake(one: &str, two: &str) -> (io::Result<()>, io::Result<()>) {
        let (near, far) = tokio::io::duplex(4096);
        let (one, two) = (Key::new(one.into()), Key::new(two.into()));
        let caller = async {
            let mut proven = call(BufReader::new(near), &one, "http://one").await?;
            assert_eq!(proven.base, "http://two");
            proven.outbound.write(&mut proven.stream, &1).await?;
            assert_eq!(proven.inbound.read::<u32>(&mut proven.stream).await?, 2);
            Ok(())
        };
        let answerer = async {
            let mut proven = answer(BufReader::new(far), &two, "http://two").await?;
            assert_eq!(proven.base, "http://one");
            assert_eq!(proven.inbound.read::<u32>(&mut proven.stream).await?, 1);
            proven.outbound.write(&mut proven.stream, &2).await
        };
        tokio::join!(caller, answerer)
    }

    #[tokio::test]
    async fn only_who_knows_the_key_is_believed() {
        let (caller, answerer) = shake("0123456789abcdef", "0123456789abcdef").await;
        caller.unwrap();
        answerer.unwrap();
        let (caller, answerer) = shake("0123456789abcdef", "0123456789abcdeX").await;
        assert_eq!(caller.unwrap_err().kind(), ErrorKind::PermissionDenied);
        // The caller hangs up before it would have proven anything.
        assert_eq!(answerer.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
