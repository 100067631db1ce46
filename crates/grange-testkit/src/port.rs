//! A loopback port that stays free for one server, also while that server is down.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;

use tokio::net::TcpSocket;

/// Reserves a port: bound with `SO_REUSEADDR` and never listening.
///
/// A server that sets `SO_REUSEADDR`, as tokio, Go, nginx, clamd and PostgreSQL do, listens on the port beside the reservation, and
/// again after each kill. The kernel gives the port to nobody who asks for any free one. While no server listens, connections are
/// refused.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl ReservedPort {
    pub fn new() -> Self {
        Self::at(Ipv4Addr::LOCALHOST)
    }

    /// On another loopback address of this machine, such as 127.0.0.2.
    pub fn at(address: Ipv4Addr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket can be made");
        socket.set_reuseaddr(true).expect("a socket can share its address");
        socket.bind(SocketAddr::from((address, 0))).expect("a loopback port is free");
        Self { address: socket.local_addr().expect("a bound socket has an address"), _socket: socket }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn number(&self) -> u16 {
        self.address.port()
    }
}

impl Default for ReservedPort {
    fn default() -> Self {
        Self::new()
    }
}

/// Several reserved ports, seen as their addresses.
#[derive(Debug)]
pub struct ReservedPorts {
    addresses: Vec<SocketAddr>,
    _ports: Vec<ReservedPort>,
}

impl ReservedPorts {
    pub fn new(count: usize) -> Self {
        let ports: Vec<_> = (0..count).map(|_| ReservedPort::new()).collect();
        Self { addresses: ports.iter().map(ReservedPort::address).collect(), _ports: ports }
    }
}

impl Deref for ReservedPorts {
    type Target = [SocketAddr];

    fn deref(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_server_listens_on_a_reserved_port_again_and_again_and_nobody_else_gets_it() {
        let reserved = ReservedPort::new();
        for _ in 0..3 {
            assert!(TcpStream::connect(reserved.address()).is_err(), "nobody listens");
            let server = TcpListener::bind(reserved.address()).unwrap();
            TcpStream::connect(reserved.address()).unwrap();
            drop(server);
        }
        let others: Vec<_> = (0..500).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        assert!(others.iter().all(|other| other.local_addr().unwrap() != reserved.address()));
    }
}
