//! Addresses that outgoing connections may reach: public ones, and networks that the operator allows.
//!
//! A page can embed, link or redirect to any address. Without this check the author of a page makes the crawler fetch
//! cloud metadata, intranet pages or the ports of its own machine, and reads the responses in the archive. Callers check
//! the address that they connect to, after DNS and on every redirect, so that a name cannot change its meaning between
//! check and connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What an address is for, by the special-purpose address registries of IANA (RFC 6890).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressKind {
    Public,
    Loopback,
    /// RFC 1918: `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`; IPv6 site-local.
    Private,
    /// `169.254.0.0/16` with the metadata services of clouds, and `fe80::/10`.
    LinkLocal,
    /// `fc00::/7`.
    UniqueLocal,
    /// RFC 6598, carrier-grade NAT: `100.64.0.0/10`.
    SharedAddressSpace,
    Multicast,
    Unspecified,
    /// Documentation, benchmarking, protocol assignments, and what is reserved.
    Reserved,
}

impl AddressKind {
    /// The kind of an address. An IPv6 address that carries an IPv4 address is judged by both.
    pub fn of(ip: IpAddr) -> AddressKind {
        match ip {
            IpAddr::V4(ip) => kind_of_v4(ip),
            IpAddr::V6(ip) => {
                let embedded = embedded_v4(ip);
                let kinds = embedded.iter().flatten().map(|ip| kind_of_v4(*ip));
                let hidden = kinds.into_iter().find(|kind| *kind != AddressKind::Public);
                hidden.unwrap_or_else(|| kind_of_v6(ip))
            }
        }
    }

    const fn name(self) -> &'static str {
        match self {
            AddressKind::Public => "public",
            AddressKind::Loopback => "loopback",
            AddressKind::Private => "private",
            AddressKind::LinkLocal => "link-local",
            AddressKind::UniqueLocal => "unique-local",
            AddressKind::SharedAddressSpace => "carrier-grade NAT",
            AddressKind::Multicast => "multicast",
            AddressKind::Unspecified => "unspecified",
            AddressKind::Reserved => "reserved",
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn kind_of_v4(ip: Ipv4Addr) -> AddressKind {
    match ip.octets() {
        [0, ..] => AddressKind::Unspecified,
        [127, ..] => AddressKind::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => AddressKind::Private,
        [169, 254, ..] => AddressKind::LinkLocal,
        [100, 64..=127, ..] => AddressKind::SharedAddressSpace,
        [224..=239, ..] => AddressKind::Multicast,
        // Protocol assignments, documentation (three networks), 6to4 relays, benchmarking, future use, broadcast.
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn kind_of_v6(ip: Ipv6Addr) -> AddressKind {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xfc00..=0xfdff, ..] => AddressKind::UniqueLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // IPv4-compatible, translation of local use, discard-only, benchmarking, documentation, segment routing.
        [0, 0, 0, 0, 0, 0, ..]
        | [0x64, 0xff9b, 1, ..]
        | [0x100, 0, 0, 0, ..]
        | [0x2001, 2, 0, ..]
        | [0x2001, 0xdb8, ..]
        | [0x3fff, 0..=0xfff, ..]
        | [0x5f00, ..] => AddressKind::Reserved,
        // Mapped, translated (RFC 6052), 6to4 and Teredo addresses come here when what they carry is public.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => AddressKind::Public,
        // Outside of global unicast nothing is assigned.
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

/// The IPv4 addresses inside an IPv6 address: mapped, compatible, translated, 6to4, Teredo (server and client), ISATAP.
fn embedded_v4(ip: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match ip.segments() {
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => [Some(v4(high, low)), None],
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            [Some(v4(server_high, server_low)), Some(v4(!high, !low))]
        }
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [Some(v4(high, low)), None],
        _ => [None, None],
    }
}

/// A network in CIDR notation, such as `192.0.2.0/24`; one address is a network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

/// A text that is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid network {0:?}: expected an address or CIDR notation, such as 192.0.2.7, 10.0.0.0/8 or fd00::/8"
)]
pub struct NetworkError(String);

impl Network {
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.0.contains(&ip)
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let text = text.trim();
        let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map(|network| Network(network.trunc())).map_err(|_| NetworkError(text.to_owned()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Network, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Network {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Network".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// Decides which addresses may be connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    networks: Vec<Network>,
    endpoints: Vec<SocketAddr>,
}

/// A connection that is refused, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{ip} is a {kind} address, which only the operator can allow (allow_networks, or --allow-network of grange crawl)"
)]
pub struct AddressRefused {
    pub ip: IpAddr,
    pub kind: AddressKind,
}

impl AddressPolicy {
    /// Allows public addresses, every address in `networks`, and `endpoints` (an address with a port).
    pub fn new(networks: Vec<Network>, endpoints: Vec<SocketAddr>) -> AddressPolicy {
        AddressPolicy { networks, endpoints }
    }

    /// Checks an address with the port that is connected to.
    pub fn check(&self, address: SocketAddr) -> Result<(), AddressRefused> {
        if self.endpoints.contains(&address) { Ok(()) } else { self.check_ip(address.ip()) }
    }

    /// Checks an address of which no port is known.
    pub fn check_ip(&self, ip: IpAddr) -> Result<(), AddressRefused> {
        let kind = AddressKind::of(ip);
        if kind == AddressKind::Public || self.networks.iter().any(|network| network.contains(ip)) {
            return Ok(());
        }
        // `::ffff:127.0.0.1` is 127.0.0.1 to the system, so it is allowed where that is.
        if let IpAddr::V6(v6) = ip
            && let Some(v4) = v6.to_ipv4_mapped()
            && self.networks.iter().any(|network| network.contains(v4.into()))
        {
            return Ok(());
        }
        Err(AddressRefused { ip, kind })
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
