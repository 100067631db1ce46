//! Who may: by the key, by a ticket made with it, or by being the very user this server runs as.
//!
//! The key is one secret that all servers of a network share; clients send it as `Authorization: Bearer`. Clients drop
//! that header when they are redirected to another host, so a redirect carries a ticket: the same permission for one
//! verb on one path, for a few minutes.
//!
//! A process of the same user on the same machine could read the key file anyway. It is let in without, so that
//! `curl -T` works as the paper prints it. Who comes through a proxy or from a web page is never taken for one.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::Error;

/// Shortest key taken, bytes: 128 bits of entropy when it is random.
const MIN_KEY_BYTES: usize = 16;
/// How long a ticket is good, seconds: a client follows a redirect at once; clocks of servers may differ a little.
const TICKET_SECONDS: u64 = 300;

/// What a ticket is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketState {
    Valid,
    /// Made with our key for this very act, and over since then; seconds since 1970.
    Expired {
        until: u64,
    },
    Wrong,
}

/// The secret of a network.
#[derive(Clone)]
pub struct Key {
    text: Vec<u8>,
    hash: [u8; 32],
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut text = Vec::new();
        let failed = |source| Error::Key { path: path.to_owned(), source };
        fs::File::open(path).map_err(failed)?.take(64 << 10).read_to_end(&mut text).map_err(failed)?;
        let text = text.trim_ascii().to_vec();
        if text.len() < MIN_KEY_BYTES {
            return Err(Error::ShortKey { path: path.to_owned(), bytes: text.len(), min: MIN_KEY_BYTES });
        }
        // Or no client could send it.
        if !text.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            return Err(Error::UnsendableKey { path: path.to_owned() });
        }
        Ok(Self::new(text))
    }

    /// One that nobody else knows: for a server without peers and tokens.
    pub fn random() -> Self {
        Self::new(HEXLOWER.encode(&rand::random::<[u8; 32]>()).into_bytes())
    }

    pub fn new(text: Vec<u8>) -> Self {
        let hash = Sha256::digest(&text).into();
        Self { text, hash }
    }

    /// The value of the `Authorization` header.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", String::from_utf8_lossy(&self.text))
    }

    /// Whether an `Authorization` header carries the key. Takes the same time for every wrong one.
    pub fn authorizes(&self, header: &str) -> bool {
        let Some((scheme, token)) = header.split_once(' ') else { return false };
        let hash: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        scheme.eq_ignore_ascii_case("bearer") && bool::from(hash.ct_eq(&self.hash))
    }

    /// A proof of the key over parts that nobody can shift against each other.
    pub fn proof(&self, parts: &[&[u8]]) -> [u8; 32] {
        // Any length is a key for HMAC.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.text) else { return [0; 32] };
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    pub fn ticket(&self, verb: &str, path: &str, now: u64) -> String {
        let until = now + TICKET_SECONDS;
        let proof = self.proof(&[b"ticket", verb.as_bytes(), path.as_bytes(), &until.to_be_bytes()]);
        let mut text = String::with_capacity(48);
        let _ = write!(text, "{until}.{}", HEXLOWER.encode(&proof[..16]));
        text
    }

    /// Compares a ticket with the act it is shown for. Takes the same time for every wrong one.
    pub fn ticket_state(&self, ticket: &str, verb: &str, path: &str, now: u64) -> TicketState {
        let Some((until, proof)) = ticket.split_once('.') else { return TicketState::Wrong };
        let Ok(until) = until.parse::<u64>() else { return TicketState::Wrong };
        let expected = self.proof(&[b"ticket", verb.as_bytes(), path.as_bytes(), &until.to_be_bytes()]);
        let expected = HEXLOWER.encode(&expected[..16]);
        match bool::from(expected.as_bytes().ct_eq(proof.as_bytes())) {
            true if now < until => TicketState::Valid,
            true => TicketState::Expired { until },
            false => TicketState::Wrong,
        }
    }
}

/// Whether the other end of a connection is a process of this user on this machine. Reads the kernel's table of
/// connections: ask once per connection.
pub fn same_user(peer: SocketAddr, local: SocketAddr) -> bool {
    if !peer.ip().to_canonical().is_loopback() {
        return false;
    }
    let table = match peer.ip() {
        IpAddr::V4(_) => "/proc/net/tcp",
        IpAddr::V6(_) => "/proc/net/tcp6",
    };
    let Ok(file) = fs::File::open(table) else { return false };
    let (near, far) = (hex(peer), hex(local));
    let own = rustix::process::geteuid().as_raw().to_string();
    for line in BufReader::new(file).lines().skip(1).map_while(Result::ok) {
        // sl, local, remote, state, queues, timer, retransmits, uid
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next() == Some(near.as_str()) && fields.next() == Some(far.as_str()) {
            let uid = fields.nth(4);
            return uid == Some(own.as_str()) || uid == Some("0");
        }
    }
    false
}

/// As the kernel prints an address: words of the address in host order, in hexadecimal.
fn hex(address: SocketAddr) -> String {
    let words: Vec<u32> = match address.ip() {
        IpAddr::V4(ip) => vec![u32::from_ne_bytes(ip.octets())],
        IpAddr::V6(ip) => ip
            .octets()
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap_or_default()))
            .collect(),
    };
    let mut text = words.iter().fold(String::new(), |mut text, word| {
        let _ = write!(text, "{word:08X}");
        text
    });
    let _ = write!(text, ":{:04X}", address.port());
    text
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn keys_and_tickets_are_told_apart() {
        let key = Key::new(b"0123456789abcdef".to_vec());
        assert!(key.authorizes("Bearer 0123456789abcdef") && key.authorizes("bearer  0123456789abcdef "));
        for wrong in ["Bearer 0123456789abcdeF", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer "] {
            assert!(!key.authorizes(wrong), "{wrong}");
        }
        let ticket = key.ticket("PUT", "/put/c/x", 1000);
        for (verb, path, now, expected) in [
            ("PUT", "/put/c/x", 1299, TicketState::Valid),
            ("PUT", "/put/c/x", 1300, TicketState::Expired { until: 1300 }),
            ("GET", "/put/c/x", 1000, TicketState::Wrong),
            ("PUT", "/put/c/y", 1000, TicketState::Wrong),
            ("PUT", "/put/c/y", 1300, TicketState::Wrong),
        ] {
            assert_eq!(key.ticket_state(&ticket, verb, path, now), expected, "{verb} {path} {now}");
        }
        let longer = ticket.replacen("1300", "9300", 1);
        for wrong in [longer.as_str(), "", "1300", "x.y"] {
            assert_eq!(key.ticket_state(wrong, "PUT", "/put/c/x", 1000), TicketState::Wrong, "{wrong}");
        }
        assert_ne!(key.proof(&[b"ab", b"c"]), key.proof(&[b"a", b"bc"]));
    }

    #[test]
    fn keys_that_are_short_or_no_header_can_carry_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "short\n").unwrap();
        assert!(matches!(Key::read(&path), Err(Error::ShortKey { bytes: 5, .. })));
        for wrong in ["0123456789\tabcdef", "0123456789\nabcdef", "0123456789abcdef\u{e9}"] {
            fs::write(&path, wrong).unwrap();
            assert!(matches!(Key::read(&path), Err(Error::UnsendableKey { .. })), "{wrong}");
        }
        for right in ["0123456789abcdef", "a sentence of several words"] {
            fs::write(&path, format!("{right}\n")).unwrap();
            let key = Key::read(&path).unwrap();
            assert_eq!(key.bearer(), format!("Bearer {right}"));
            assert!(key.authorizes(&key.bearer()), "{right}");
        }
    }

    #[test]
    fn our_own_connection_is_known() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, far) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            assert!(same_user(near, far), "{address}");
            let mut other = near;
            other.set_port(1);
            assert!(!same_user(other, far));
        }
        assert!(!same_user("192.0.2.1:5".parse().unwrap(), "192.0.2.1:6".parse().unwrap()));
    }
}
