//! Through a proxy: HTTP (requests with the whole URL, or a tunnel by CONNECT) and SOCKS 5.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::{Host, Url};

use super::settings::BadSetting;

/// The longest answer to CONNECT that is read.
const ANSWER_BYTES_MAX: usize = 8 << 10;

/// Who stands between us and the web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proxy {
    pub(super) kind: ProxyKind,
    pub(super) host: String,
    pub(super) port: u16,
    /// The value of `Proxy-Authorization`. It is never recorded.
    authorization: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyKind {
    Http,
    Socks5,
}

impl Proxy {
    /// Reads the setting; empty is none.
    pub(super) fn parse(text: &str) -> Result<Option<Proxy>, BadSetting> {
        if text.is_empty() {
            return Ok(None);
        }
        let bad = || BadSetting::new("proxy", "give http://host:port or socks5://host:port, or nothing");
        let url = Url::parse(text).map_err(|_| bad())?;
        let (kind, port) = match url.scheme() {
            "http" => (ProxyKind::Http, 80),
            "socks5" => (ProxyKind::Socks5, 1080),
            _ => return Err(bad()),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(bad)?.to_owned();
        let authorization = super::auth::basic_of_url(&url);
        if authorization.is_some() && kind == ProxyKind::Socks5 {
            return Err(BadSetting::new("proxy", "SOCKS with a password is not supported; leave it out"));
        }
        Ok(Some(Proxy { kind, host, port: url.port().unwrap_or(port), authorization }))
    }

    /// The line of a request that is for the proxy alone.
    pub(super) fn header_line(&self) -> Option<String> {
        self.authorization.as_ref().map(|value| format!("Proxy-Authorization: {value}\r\n"))
    }

    /// Asks an HTTP proxy for a tunnel to `host:port`. What it answers otherwise is the error.
    pub(super) async fn tunnel(&self, stream: &mut TcpStream, host: &str, port: u16) -> Result<(), String> {
        let line = self.header_line().unwrap_or_default();
        let ask = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{line}\r\n");
        stream.write_all(ask.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the answer belongs to the tunnel.
        while !answer.ends_with(b"\r\n\r\n") && !answer.ends_with(b"\n\n") {
            match stream.read_u8().await {
                Ok(byte) if answer.len() < ANSWER_BYTES_MAX => answer.push(byte),
                Ok(_) => return Err("its answer to CONNECT has no end".to_owned()),
                Err(error) => return Err(format!("no answer to CONNECT: {error}")),
            }
        }
        let line = answer.split(|&b| b == b'\n').next().unwrap_or_default().trim_ascii();
        let granted = line.starts_with(b"HTTP/")
            && line.split(|&b| b == b' ').nth(1).is_some_and(|code| code.len() == 3 && code[0] == b'2');
        if granted { Ok(()) } else { Err(format!("CONNECT was answered by {}", line.escape_ascii())) }
    }

    /// Asks a SOCKS 5 proxy (RFC 1928) for a connection to `host:port`; the proxy looks the name up.
    pub(super) async fn socks(&self, stream: &mut TcpStream, host: &str, port: u16) -> Result<(), String> {
        let address = socks_address(host)?;
        let talk = async {
            stream.write_all(&[5, 1, 0]).await?;
            let mut choice = [0; 2];
            stream.read_exact(&mut choice).await?;
            if choice != [5, 0] {
                return Ok(Err("it wants a password or speaks another version".to_owned()));
            }
            let mut ask = vec![5, 1, 0];
            ask.extend_from_slice(&address);
            ask.extend_from_slice(&port.to_be_bytes());
            stream.write_all(&ask).await?;
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).await?;
            if answer[1] != 0 {
                return Ok(Err(format!("it answered with code {}", answer[1])));
            }
            let rest = match answer[3] {
                1 => 4,
                4 => 16,
                _ => usize::from(stream.read_u8().await?),
            };
            let mut bound = vec![0; rest + 2];
            stream.read_exact(&mut bound).await?;
            Ok::<_, std::io::Error>(Ok(()))
        };
        talk.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// The kind of an address and its bytes (RFC 1928 5): an address as such, for a proxy looks up only names.
fn socks_address(host: &str) -> Result<Vec<u8>, String> {
    match Host::parse(host) {
        Ok(Host::Ipv4(ip)) => Ok([&[1][..], &ip.octets()].concat()),
        Ok(Host::Ipv6(ip)) => Ok([&[4][..], &ip.octets()].concat()),
        _ => {
            let length =
                u8::try_from(host.len()).map_err(|_| "the host name is longer than 255 bytes".to_owned())?;
            Ok([&[3, length][..], host.as_bytes()].concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::BASE64;

    #[test]
    fn socks_is_told_names_and_addresses_apart() {
        for (host, expected) in [
            ("a.example", Ok(b"\x03\x09a.example".to_vec())),
            ("127.0.0.1", Ok(vec![1, 127, 0, 0, 1])),
            ("[::1]", Ok([&[4][..], &[0; 15], &[1]].concat())),
            ("[2001:db8::2]", Ok([&[4, 0x20, 1, 0xd, 0xb8][..], &[0; 11], &[2]].concat())),
            (&"a".repeat(256), Err("the host name is longer than 255 bytes".to_owned())),
        ] {
            assert_eq!(socks_address(host), expected, "{host}");
        }
    }

    #[test]
    fn proxies_are_read_from_urls() {
        let proxy =
            |text| Proxy::parse(text).map(|proxy| proxy.map(|p| (p.kind, p.host, p.port, p.authorization)));
        assert_eq!(proxy(""), Ok(None));
        assert_eq!(
            proxy("http://u:p@proxy.example:3128"),
            Ok(Some((
                ProxyKind::Http,
                "proxy.example".to_owned(),
                3128,
                Some(format!("Basic {}", BASE64.encode(b"u:p")))
            )))
        );
        assert_eq!(
            proxy("socks5://127.0.0.1"),
            Ok(Some((ProxyKind::Socks5, "127.0.0.1".to_owned(), 1080, None)))
        );
        for text in ["proxy.example", "https://proxy.example", "http://", "socks5://u:p@x"] {
            assert!(proxy(text).is_err(), "{text}");
        }
    }
}
