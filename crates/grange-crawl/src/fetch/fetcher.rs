//! One request, one answer: over a connection that is there or a new one, with an eye on clock and memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grange_base::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout_at};
use warc::Algorithm;

use super::connect::{Connection, Connector, Failed, Target};
use super::cookies::CookieJar;
use super::dns::{Dns, DnsAnswer};
use super::error::FetchError;
use super::fetched::Fetched;
use super::pool::Pool;
use super::problem::{Problem, ProblemKind};
use super::proxy::Proxy;
use super::reply::{End, Outcome, Reply};
use super::request::{Request, Standing, WantsBody};
use super::scratch::{ScratchFile, ScratchFolder};
use super::settings::Settings;
use super::spool::Spool;
use crate::FetchStatus;

/// The first read of an answer: most pages fit in, and a buffer of this size costs nothing.
const READ_FIRST_BYTES: usize = 16 << 10;
/// The least room for a read; below it the buffer grows.
const READ_LEAST_BYTES: usize = 8 << 10;
/// The digest of blocks and payloads: what every reader of WARC files can check.
pub(super) const ALGORITHM: Algorithm = Algorithm::Sha1;

/// Fetches documents. Clones share connections, cookies and names.
#[derive(Clone, Debug)]
pub struct Fetcher(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    standing: Standing,
    connector: Connector,
    pool: Pool,
    cookies: CookieJar,
    scratch: ScratchFolder,
    clock: Clock,
}

/// What an exchange over one connection gave.
struct Exchange {
    outcome: Outcome,
    /// What did not fit into memory.
    spilled: Option<ScratchFile>,
    first_byte: Option<Instant>,
}

impl Exchange {
    /// Whether what came over a reused connection is not the response to this request, so that it must be repeated
    /// on a fresh one.
    fn is_out_of_step(&self) -> bool {
        // The server closed an idle connection just when we asked; it has not seen the request.
        let closed = self.first_byte.is_none() && self.outcome.status == FetchStatus::CONNECT_LOST;
        // A load balancer gave up waiting for a request just when we sent it (RFC 9110 15.5.9).
        let waited = self.outcome.status == FetchStatus(408);
        // Something else arrived first: the end of an earlier body that was longer than announced.
        let mixed = self.outcome.problems.iter().any(|problem| {
            matches!(problem.kind, ProblemKind::GarbageBeforeHead | ProblemKind::NoStatusLine)
        });
        closed || waited || mixed
    }
}

impl Fetcher {
    /// `scratch` is a folder for long answers; nothing stays in it.
    pub fn new(settings: &Settings, scratch: &Path, clock: Clock) -> Result<Fetcher, FetchError> {
        settings.check()?;
        let dns = Dns::new(settings, clock.clone())?;
        Ok(Fetcher(Arc::new(Shared {
            standing: Standing::new(settings),
            connector: Connector::new(settings, dns)?,
            pool: Pool::new(settings.keep_alive_max as usize, settings.keep_alive_idle.0),
            cookies: CookieJar::default(),
            scratch: ScratchFolder::new(scratch, settings.scratch_min_free.0),
            clock,
            settings: settings.clone(),
        })))
    }

    /// The cookies, to be loaded and saved.
    pub fn cookies(&self) -> &CookieJar {
        &self.0.cookies
    }

    /// What is known about a name; asks for it if nothing is.
    pub async fn resolve(&self, host: &str) -> Arc<DnsAnswer> {
        self.0.connector.dns.resolve(host).await
    }

    /// Why a URL must not be fetched because of the addresses of its host, in a sentence; none if it may.
    pub async fn refusal(&self, url: &url::Url) -> Option<String> {
        let deadline = Instant::now() + self.0.settings.total_timeout.0;
        let failed = self.0.connector.refusal(&Target::of(url)?, deadline).await?;
        failed.problem.detail.map(String::from)
    }

    /// Whether the server of a URL takes a connection. Nothing is asked of it.
    pub async fn can_connect(&self, url: &url::Url) -> bool {
        let Some(target) = Target::of(url) else { return false };
        let deadline = Instant::now() + self.0.settings.total_timeout.0;
        match self.0.connector.connect(&target, deadline).await {
            Ok(_) => true,
            // Somebody is there, and speaks something else.
            Err(failed) => {
                matches!(failed.problem.kind, ProblemKind::TlsFailed | ProblemKind::CertificateNotVerified)
            }
        }
    }

    /// Allows addresses, each with its port, although they are not public.
    pub fn allow(&self, endpoints: &[std::net::SocketAddr]) {
        self.0.connector.allow(endpoints);
    }

    /// Whether an address is public, or allowed already.
    pub fn allows(&self, endpoint: std::net::SocketAddr) -> bool {
        self.0.connector.check_address(endpoint).is_ok()
    }

    /// Lets a retry ask for a name that was not found before.
    pub fn forget_failure(&self, host: &str) {
        self.0.connector.dns.forget_failure(host);
    }

    /// Bytes of the scratch folder's disk that nobody needs, if at least `min_free` are to stay free.
    pub fn spare_disk_bytes(&self, min_free: u64) -> u64 {
        self.0.scratch.spare_bytes(min_free)
    }

    /// Asks, and gives whatever came back. An error is a fault of our own.
    pub async fn fetch(&self, request: &Request) -> Result<Fetched, FetchError> {
        let shared = &*self.0;
        let mut fetch = Fetch {
            shared,
            request,
            started: to_the_millisecond(shared.clock.now()),
            begin: Instant::now(),
            wire: Vec::new(),
            private: None,
        };
        let Some(target) = Target::of(&request.url) else {
            let problem = Problem::with(ProblemKind::NotFetchable, "not an http or https URL with a host");
            return Ok(fetch.failed(FetchStatus::ILLEGAL_URI, problem, None));
        };
        fetch.write_request(&target);
        let fetched = fetch.run(target).await?;
        if shared.settings.cookies
            && let Some(head) = &fetched.http
        {
            shared.cookies.store(&request.url, head.all("Set-Cookie"), fetch.started);
        }
        Ok(fetched)
    }
}

/// Records and log lines name one moment: the log counts milliseconds, and later crawls refer to records by it. The
/// next one, not the last, so that a pause that is counted from it is never too short.
fn to_the_millisecond(time: jiff::Timestamp) -> jiff::Timestamp {
    let up = jiff::TimestampRound::new().smallest(jiff::Unit::Millisecond).mode(jiff::RoundMode::Ceil);
    time.round(up).unwrap_or(time)
}

/// One fetch under way.
struct Fetch<'a> {
    shared: &'a Shared,
    request: &'a Request,
    started: jiff::Timestamp,
    begin: Instant,
    /// The request as it is recorded.
    wire: Vec<u8>,
    /// The request as it is sent, where it holds what only the proxy may know.
    private: Option<Vec<u8>>,
}

impl Fetch<'_> {
    fn write_request(&mut self, target: &Target) {
        let shared = self.shared;
        let url = &self.request.url;
        let cookies = if shared.settings.cookies { shared.cookies.header(url, self.started) } else { None };
        let to_proxy = shared.connector.asks_proxy(target);
        self.wire = shared.standing.write(self.request, cookies.as_deref(), to_proxy);
        let line = shared.connector.proxy.as_ref().filter(|_| to_proxy).and_then(Proxy::header_line);
        self.private = line.and_then(|line| {
            let after = memchr::memchr(b'\n', &self.wire)? + 1;
            Some([&self.wire[..after], line.as_bytes(), &self.wire[after..]].concat())
        });
    }

    fn deadline(&self) -> Instant {
        self.begin + self.shared.settings.total_timeout.0
    }

    async fn run(&mut self, target: Target) -> Result<Fetched, FetchError> {
        let shared = self.shared;
        // A request that cannot be repeated is not risked on a connection that may be closed by now.
        if shared.settings.keep_alive
            && self.request.method.can_repeat()
            && let Some(mut connection) = shared.pool.take(&target, self.begin)
            && self.may_send(&connection)
        {
            let exchange = self.exchange(&mut connection).await?;
            if !exchange.is_out_of_step() {
                return Ok(self.fetched(target, connection, exchange, true));
            }
        }
        match shared.connector.connect(&target, self.deadline()).await {
            Ok(connection) if !self.may_send(&connection) => {
                self.wire.clear();
                let why = format!("no password is sent to {}: its certificate is not verified", target.host);
                let problem = Problem::with(ProblemKind::CertificateNotVerified, why);
                Ok(self.failed(FetchStatus::CONNECT_FAILED, problem, connection.ip))
            }
            Ok(mut connection) => {
                let exchange = self.exchange(&mut connection).await?;
                Ok(self.fetched(target, connection, exchange, false))
            }
            Err(Failed { status, problem, ip }) => {
                // Nothing was sent.
                self.wire.clear();
                Ok(self.failed(status, problem, ip))
            }
        }
    }

    /// Whether the server at the other end may see this request.
    fn may_send(&self, connection: &Connection) -> bool {
        let is_verified = |tls: &Arc<super::tls::Tls>| tls.certificate == super::tls::Verdict::Verified;
        !self.request.holds_password() || connection.tls.as_ref().is_none_or(is_verified)
    }

    /// Sends the request and takes the answer.
    async fn exchange(&self, connection: &mut Connection) -> Result<Exchange, FetchError> {
        let settings = &self.shared.settings;
        let deadline = self.deadline();
        let max_bytes = if settings.max_bytes.0 == 0 { u64::MAX } else { settings.max_bytes.0 };
        let no_body = self.request.method == super::Method::Head;
        let mut reply = Reply::new(no_body, max_bytes, ALGORITHM);
        let mut spilled = None;
        let mut first_byte = None;
        let sent = {
            let until = deadline.min(Instant::now() + settings.idle_timeout.0);
            let wire = self.private.as_deref().unwrap_or(&self.wire);
            let stream = &mut connection.stream;
            timeout_at(until, async { stream.write_all(wire).await.and(stream.flush().await) }).await
        };
        let end = match sent {
            Err(_) => End::TimedOut,
            // A server may refuse a long request before it has read it, and say why.
            Ok(Ok(()) | Err(_)) => {
                self.receive(connection, &mut reply, &mut spilled, &mut first_byte, deadline).await?
            }
        };
        let mut outcome = reply.finish(end);
        if let Some(mut file) = spilled.take() {
            let rest = std::mem::take(&mut outcome.buffer);
            spilled = Some(self.on_disk(move |_| file.append(&rest).map(|()| file)).await?);
        }
        Ok(Exchange { outcome, spilled, first_byte })
    }

    async fn receive(
        &self,
        connection: &mut Connection,
        reply: &mut Reply,
        spilled: &mut Option<ScratchFile>,
        first_byte: &mut Option<Instant>,
        deadline: Instant,
    ) -> Result<End, FetchError> {
        let settings = &self.shared.settings;
        let bound = settings.memory_bytes.0 as usize;
        let mut now = Instant::now();
        let mut received: u64 = 0;
        let mut wanted = false;
        reply.buffer().reserve_exact(READ_FIRST_BYTES);
        loop {
            // A read that is always ready never looks at the clock.
            if now >= deadline {
                return Ok(End::TimedOut);
            }
            let patience =
                if first_byte.is_none() { settings.first_byte_timeout } else { settings.idle_timeout };
            let until = deadline.min(now + patience.0);
            let read = timeout_at(until, connection.stream.read_buf(reply.buffer())).await;
            now = Instant::now();
            let n = match read {
                Err(_) => return Ok(End::TimedOut),
                Ok(Ok(0)) => return Ok(End::Closed),
                Ok(Ok(n)) => n,
                // TLS that was cut off, not closed. Half the web does so.
                Ok(Err(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    reply.note(ProblemKind::NoCloseNotify.into());
                    return Ok(End::Closed);
                }
                Ok(Err(_)) => return Ok(End::Lost),
            };
            first_byte.get_or_insert(now);
            if reply.advance() {
                return Ok(End::Done);
            }
            if !wanted && reply.in_body() {
                wanted = true;
                if let (Some(WantsBody(wants)), Some(head)) = (&self.request.wants_body, reply.head())
                    && !wants(head)
                {
                    return Ok(End::NotWanted);
                }
            }
            if reply.in_body() && reply.buffer().len() >= bound && !self.spill(reply, spilled).await? {
                return Ok(End::DiskFull);
            }
            make_room(reply, bound);
            if settings.max_rate.0 > 0 {
                received += n as u64;
                let due = received as f64 / settings.max_rate.0 as f64;
                let start = first_byte.unwrap_or(now);
                sleep_until(deadline.min(start + Duration::from_secs_f64(due))).await;
                now = Instant::now();
            }
        }
    }

    /// Moves what has come to disk and reserves room for as much again. False if there is no room for more; what has
    /// come so far is in memory then, or on disk as a whole.
    async fn spill(&self, reply: &mut Reply, spilled: &mut Option<ScratchFile>) -> Result<bool, FetchError> {
        // A buffer may grow by one read beyond the bound.
        let next = 2 * self.shared.settings.memory_bytes.0;
        if spilled.is_none() {
            let bytes = reply.buffer().len() as u64 + next;
            *spilled = self.on_disk(move |folder| folder.create(bytes)).await?;
        }
        let Some(mut file) = spilled.take() else { return Ok(false) };
        let bytes = reply.take_bytes();
        let (file, bytes, more) = self
            .on_disk(move |folder| {
                file.append(&bytes)?;
                let more = folder.reserve(&mut file, next)?;
                Ok((file, bytes, more))
            })
            .await?;
        *spilled = Some(file);
        reply.give_back(bytes);
        Ok(more)
    }

    /// Works on the scratch folder, beside the threads that serve connections.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ScratchFolder) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, FetchError> {
        let folder = self.shared.scratch.clone();
        let worked = match tokio::task::spawn_blocking(move || work(&folder)).await {
            Ok(worked) => worked,
            Err(_) => Err(std::io::Error::other("the runtime is shutting down")),
        };
        worked.map_err(|source| FetchError::Scratch { folder: self.shared.scratch.path().to_owned(), source })
    }

    fn fetched(
        &mut self,
        target: Target,
        connection: Connection,
        exchange: Exchange,
        reused: bool,
    ) -> Fetched {
        let Exchange { outcome, spilled, first_byte } = exchange;
        let now = Instant::now();
        let (ip, tls) = (connection.ip, connection.tls.clone());
        if outcome.clean
            && self.shared.settings.keep_alive
            && outcome.head.as_ref().is_some_and(super::reply::stays_open)
        {
            self.shared.pool.put(target, connection, now);
        }
        Fetched {
            started: self.started,
            duration: now - self.begin,
            first_byte: first_byte.map(|at| at - self.begin),
            ip,
            request: std::mem::take(&mut self.wire),
            response: match spilled {
                Some(file) => {
                    let (file, copy) = file.into_parts();
                    Spool::file(file, outcome.len, copy)
                }
                None => Spool::memory(outcome.buffer),
            },
            head_len: outcome.head_len,
            http: outcome.head,
            preamble: outcome.preamble,
            status: outcome.status,
            block_digest: outcome.block_digest,
            payload_digest: outcome.payload_digest,
            payload_length: outcome.payload_len,
            wire_length: outcome.len,
            truncated: outcome.truncated,
            problems: outcome.problems,
            tls,
            reused,
        }
    }

    /// No answer, for this reason.
    fn failed(&mut self, status: FetchStatus, problem: Problem, ip: Option<std::net::IpAddr>) -> Fetched {
        let nothing = warc::Digest::of(ALGORITHM, b"");
        Fetched {
            started: self.started,
            duration: self.begin.elapsed(),
            first_byte: None,
            ip,
            request: std::mem::take(&mut self.wire),
            response: Spool::memory(Vec::new()),
            head_len: 0,
            http: None,
            preamble: Vec::new(),
            status,
            block_digest: nothing,
            payload_digest: nothing,
            payload_length: 0,
            wire_length: 0,
            truncated: None,
            problems: vec![problem],
            tls: None,
            reused: false,
        }
    }
}

/// Room for the next read: all that is still to come where that is known, else twice as much as there is.
fn make_room(reply: &mut Reply, bound: usize) {
    let left = reply.left();
    let buffer = reply.buffer();
    let room = buffer.capacity() - buffer.len();
    let most = bound.saturating_sub(buffer.len()).max(READ_LEAST_BYTES);
    let want = match left {
        Some(left) => (left.min(most as u64) as usize).max(1),
        None => buffer.len().clamp(READ_LEAST_BYTES, most),
    };
    let enough = if left.is_some() { want } else { READ_LEAST_BYTES };
    if room < enough {
        buffer.reserve_exact(want);
    }
}
