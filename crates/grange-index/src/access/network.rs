//! Networks of readers.

use std::net::IpAddr;
use std::str::FromStr;

/// An address range such as `192.0.2.0/24` or `2001:db8::/32`; a single address without a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: u128,
    bits: u32,
    width: u32,
}

/// A text that is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no network: write 192.0.2.0/24 or 2001:db8::/32")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
        let (base, width) = number(base.parse().map_err(|_| wrong())?);
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        if bits > width { Err(wrong()) } else { Ok(Self { base, bits, width }) }
    }
}

impl Network {
    /// Whether an address is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (address, width) = number(address);
        width == self.width && (self.base ^ address).checked_shr(width - self.bits).unwrap_or(0) == 0
    }
}

/// An address as a number, and its bits. An IPv4 reader may arrive on an IPv6 socket.
fn number(address: IpAddr) -> (u128, u32) {
    match address.to_canonical() {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_the_addresses_that_share_its_leading_bits() {
        for (network, address, expected) in [
            ("192.0.2.128/25", "192.0.2.129", true),
            ("192.0.2.128/25", "192.0.2.127", false),
            ("192.0.2.7/32", "192.0.2.7", true),
            ("192.0.2.7/32", "192.0.2.6", false),
            ("192.0.2.6", "192.0.2.7", false),
            ("128.0.0.0/1", "127.0.0.1", false),
            ("0.0.0.0/0", "127.0.0.1", true),
            ("2001:db8::/32", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("2001:db8::1", "2001:db8::1", true),
            ("2001:db8::1/128", "2001:db8::2", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "192.0.2.7", false),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("192.0.2.0/24", "::ffff:192.0.2.7", true),
            ("::ffff:192.0.2.0/24", "192.0.2.7", true),
            ("0.0.0.7/32", "::7", false),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{address} in {network:?}");
        }
        for text in ["192.0.2.0/33", "::/129", "192.0.2.0/x", "library", "", "10.0.0.0/"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
