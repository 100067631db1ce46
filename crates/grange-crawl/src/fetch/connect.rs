//! A connection to a server: TCP, perhaps through a proxy, perhaps with TLS inside.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};

use grange_base::{AddressPolicy, AddressRefused};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

use super::dns::{Dns, DnsFailure, is_localhost};
use super::problem::{Problem, ProblemKind};
use super::proxy::{Proxy, ProxyKind};
use super::settings::{Settings, Trust};
use super::tls::{Tls, TlsSetup, Verdict};
use crate::FetchStatus;

/// How many addresses of a host are tried. A host with more of them is large enough to have working ones in front.
const ADDRESSES_MAX: usize = 3;

/// Whom a connection leads to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    /// As in the URL: IPv6 addresses in brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: bool,
}

impl Target {
    /// None for what is not HTTP.
    pub(super) fn of(url: &Url) -> Option<Target> {
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = url.host_str().filter(|host| !host.is_empty())?;
        Some(Target { host: host.to_owned(), port: url.port_or_known_default()?, tls })
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) status: FetchStatus,
    pub(super) problem: Problem,
    pub(super) ip: Option<IpAddr>,
}

impl From<AddressRefused> for Failed {
    fn from(refused: AddressRefused) -> Failed {
        Failed {
            status: FetchStatus::BLOCKED_BY_ADDRESS,
            problem: Problem::with(ProblemKind::AddressRefused, refused),
            ip: Some(refused.ip),
        }
    }
}

impl Failed {
    fn connect(problem: Problem, ip: Option<IpAddr>) -> Failed {
        Failed { status: FetchStatus::CONNECT_FAILED, problem, ip }
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Stream,
    /// The server's address; not known through a proxy.
    pub(super) ip: Option<IpAddr>,
    pub(super) tls: Option<Arc<Tls>>,
}

#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Opens connections.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) dns: Dns,
    pub(super) proxy: Option<Proxy>,
    tls: TlsSetup,
    policy: AddressPolicy,
    /// Allowed while the crawl runs, beside the policy.
    ordered: RwLock<HashSet<SocketAddr>>,
    settings: Settings,
}

impl Connector {
    pub(super) fn new(settings: &Settings, dns: Dns) -> Result<Connector, super::FetchError> {
        let proxy = Proxy::parse(&settings.proxy)?;
        let (tls, policy) = (TlsSetup::new(settings)?, settings.address_policy());
        Ok(Connector { dns, proxy, tls, policy, ordered: RwLock::default(), settings: settings.clone() })
    }

    /// Allows more addresses, each with its port.
    pub(super) fn allow(&self, endpoints: &[SocketAddr]) {
        self.ordered.write().unwrap_or_else(PoisonError::into_inner).extend(endpoints);
    }

    pub(super) fn check_address(&self, address: SocketAddr) -> Result<(), AddressRefused> {
        let is_ordered = self.ordered.read().unwrap_or_else(PoisonError::into_inner).contains(&address);
        if is_ordered { Ok(()) } else { self.policy.check(address) }
    }

    /// Whether requests to `target` go to an HTTP proxy as they are, not through a tunnel.
    pub(super) fn asks_proxy(&self, target: &Target) -> bool {
        !target.tls && self.proxy.as_ref().is_some_and(|proxy| proxy.kind == ProxyKind::Http)
    }

    pub(super) async fn connect(&self, target: &Target, deadline: Instant) -> Result<Connection, Failed> {
        let (mut tcp, ip) = if let Some(proxy) = &self.proxy {
            self.check_literal(target)?;
            // The operator chose the proxy, wherever it is.
            let addresses = self.addresses(&proxy.host, proxy.port, deadline).await?;
            (self.reach(addresses, deadline).await?.0, None)
        } else {
            let addresses = self.allowed_addresses(target, deadline).await?;
            let (tcp, ip) = self.reach(addresses, deadline).await?;
            (tcp, Some(ip))
        };
        // What we send is one write; waiting to put more into the packet only costs time.
        let _ = tcp.set_nodelay(true);
        if let Some(proxy) = &self.proxy {
            let until = deadline.min(Instant::now() + self.settings.connect_timeout.0);
            let through = async {
                match proxy.kind {
                    ProxyKind::Socks5 => proxy.socks(&mut tcp, &target.host, target.port).await,
                    ProxyKind::Http if target.tls => proxy.tunnel(&mut tcp, &target.host, target.port).await,
                    ProxyKind::Http => Ok(()),
                }
            };
            let through = timeout_at(until, through).await;
            through
                .unwrap_or_else(|_| Err("no answer in time".to_owned()))
                .map_err(|why| Failed::connect(Problem::with(ProblemKind::ProxyFailed, why), None))?;
        }
        if !target.tls {
            return Ok(Connection { stream: Stream::Plain(tcp), ip, tls: None });
        }
        self.handshake(tcp, ip, &target.host, deadline).await
    }

    async fn handshake(
        &self,
        tcp: TcpStream,
        ip: Option<IpAddr>,
        host: &str,
        deadline: Instant,
    ) -> Result<Connection, Failed> {
        let failed = |kind, why: String| Failed::connect(Problem::with(kind, why), ip);
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        // TLS cannot name a host with a hyphen at the edge of a label. It is asked without a name, if nobody minds that
        // its certificate cannot be verified.
        let named = ServerName::try_from(bare.to_owned());
        let name = match (&named, ip) {
            (Ok(name), _) => name.clone(),
            (Err(_), Some(ip)) if self.settings.trust != Trust::Verify => ServerName::IpAddress(ip.into()),
            (Err(error), _) => return Err(failed(ProblemKind::TlsFailed, error.to_string())),
        };
        let until = deadline.min(Instant::now() + self.settings.tls_timeout.0);
        let connector = TlsConnector::from(Arc::clone(&self.tls.config));
        match timeout_at(until, connector.connect(name.clone(), tcp)).await {
            Ok(Ok(stream)) => {
                let mut tls = self.tls.describe(stream.get_ref().1, &name);
                if named.is_err() && tls.certificate == Verdict::Verified {
                    tls.certificate = Verdict::Failed("it is for the address, not for the name".to_owned());
                }
                Ok(Connection { stream: Stream::Tls(Box::new(stream)), ip, tls: Some(Arc::new(tls)) })
            }
            Ok(Err(error)) => {
                let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
                let kind = match tls {
                    Some(rustls::Error::InvalidCertificate(_)) => ProblemKind::CertificateNotVerified,
                    _ => ProblemKind::TlsFailed,
                };
                Err(failed(kind, error.to_string()))
            }
            Err(_) => Err(failed(ProblemKind::TlsFailed, "no answer in time".to_owned())),
        }
    }

    /// Why `target` may not be connected to, if so. A name that cannot be resolved is not refused.
    pub(super) async fn refusal(&self, target: &Target, deadline: Instant) -> Option<Failed> {
        let checked = match &self.proxy {
            Some(_) => self.check_literal(target),
            None => self.allowed_addresses(target, deadline).await.map(drop),
        };
        checked.err().filter(|failed| failed.status == FetchStatus::BLOCKED_BY_ADDRESS)
    }

    /// The addresses of `target` that may be connected to. The connection is made to one of these and the name is not
    /// resolved again, so that a name cannot pass the check with one address and lead to another.
    async fn allowed_addresses(&self, target: &Target, deadline: Instant) -> Result<Vec<SocketAddr>, Failed> {
        let mut addresses = self.addresses(&target.host, target.port, deadline).await?;
        if self.dns.overrides().find(&target.host, target.port).is_some() {
            // Chosen by the operator.
            return Ok(addresses);
        }
        let mut refused = None;
        addresses
            .retain(|address| self.check_address(*address).map_err(|error| refused = Some(error)).is_ok());
        match refused {
            Some(refused) if addresses.is_empty() => Err(refused.into()),
            _ => {
                addresses.truncate(ADDRESSES_MAX);
                Ok(addresses)
            }
        }
    }

    /// Refuses what is private by its name alone. Other names are resolved by the proxy, whose network this node does not
    /// know: the proxy must refuse its own.
    fn check_literal(&self, target: &Target) -> Result<(), Failed> {
        let ip = match Host::parse(&target.host) {
            Ok(Host::Ipv4(ip)) => ip.into(),
            Ok(Host::Ipv6(ip)) => ip.into(),
            Ok(Host::Domain(name)) if is_localhost(&name) => Ipv4Addr::LOCALHOST.into(),
            _ => return Ok(()),
        };
        Ok(self.check_address(SocketAddr::new(ip, target.port))?)
    }

    /// A TCP connection to the first address that answers.
    async fn reach(
        &self,
        addresses: Vec<SocketAddr>,
        deadline: Instant,
    ) -> Result<(TcpStream, IpAddr), Failed> {
        let mut last = None;
        for address in addresses {
            let until = deadline.min(Instant::now() + self.settings.connect_timeout.0);
            match timeout_at(until, self.open(address)).await {
                Ok(Ok(tcp)) => return Ok((tcp, address.ip())),
                Ok(Err(error)) => {
                    let why = format_args!("{address}: {error}");
                    last = Some((Problem::with(ProblemKind::NotConnected, why), address.ip()));
                }
                Err(_) => last = Some((Problem::with(ProblemKind::ConnectTimeout, address), address.ip())),
            }
        }
        let (problem, ip) =
            last.map_or((ProblemKind::NotConnected.into(), None), |(problem, ip)| (problem, Some(ip)));
        Err(Failed::connect(problem, ip))
    }

    async fn addresses(&self, host: &str, port: u16, deadline: Instant) -> Result<Vec<SocketAddr>, Failed> {
        if let Some(place) = self.dns.overrides().find(host, port) {
            return Ok(vec![SocketAddr::new(place.ip, place.port.unwrap_or(port))]);
        }
        match Host::parse(host) {
            Ok(Host::Ipv4(ip)) => return Ok(vec![SocketAddr::new(ip.into(), port)]),
            Ok(Host::Ipv6(ip)) => return Ok(vec![SocketAddr::new(ip.into(), port)]),
            _ => {}
        }
        let failed = |problem| Failed { status: FetchStatus::DNS_FAILED, problem, ip: None };
        let Ok(answer) = timeout_at(deadline, self.dns.resolve(host)).await else {
            return Err(failed(ProblemKind::NameNotAnswered.into()));
        };
        match &answer.addresses {
            Ok(ips) => Ok(ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect()),
            Err(DnsFailure::NoSuchName) => Err(failed(ProblemKind::NoSuchName.into())),
            Err(DnsFailure::NoAnswer(why)) => Err(failed(Problem::with(ProblemKind::NameNotAnswered, why))),
        }
    }

    async fn open(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(bind) = self.settings.bind {
            socket.bind(SocketAddr::new(bind, 0))?;
        }
        socket.connect(address).await
    }
}

impl Stream {
    /// Whether an idle connection is still open and holds nothing to read. Bytes that nobody asked for would become
    /// the response of the next URL, so a connection that has any is dead.
    pub(super) fn is_quiet(&mut self) -> bool {
        match self {
            Stream::Plain(tcp) => has_nothing_unread(tcp),
            // Session tickets come before the first response and were read with it. A server that sends one later
            // costs a handshake.
            Stream::Tls(tls) => {
                has_nothing_unread(tls.get_ref().0) && {
                    // Decrypted bytes that the last response did not take are in the TLS session, not in the socket.
                    let mut context = Context::from_waker(Waker::noop());
                    Pin::new(tls).poll_read(&mut context, &mut ReadBuf::new(&mut [0])).is_pending()
                }
            }
        }
    }
}

/// Asks the kernel itself: the runtime's own notion of readiness may be older than the bytes.
fn has_nothing_unread(tcp: &TcpStream) -> bool {
    let Ok(socket) = tcp.as_fd().try_clone_to_owned() else { return false };
    let peeked = std::net::TcpStream::from(socket).peek(&mut [0]);
    matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
