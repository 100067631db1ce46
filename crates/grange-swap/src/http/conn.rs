//! One connection: heads in, answers out, until somebody has had enough.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BufMut as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout, timeout_at};

use crate::access::{self, TicketState};
use crate::http::answer::{self, http_date, sentence};
use crate::http::body::Body;
use crate::http::request::{self, BodyLength, Malformed, Method, Request};
use crate::http::{admin, get, page, put, record};
use crate::node::Node;
use crate::peer::{PROTOCOL, serve};
use crate::server::Callers;
use crate::settings::Patience;

/// Bytes of an unwanted body that are read so that the client sees the answer.
const DISCARD: usize = 1 << 20;
/// How long to wait for a client to hang up after its last answer.
const LINGER: Duration = Duration::from_secs(1);
/// Buffers kept per worker, and the largest worth keeping: a head, or a small file.
const SPARE_BUFFERS: usize = 64;
const SPARE_BYTES: usize = 128 << 10;
const READ_BYTES: usize = 4096;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

fn take_buffer() -> Vec<u8> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(READ_BYTES))
}

fn give_back(buffer: &mut Vec<u8>) {
    let mut buffer = std::mem::take(buffer);
    buffer.clear();
    if (1..=SPARE_BYTES).contains(&buffer.capacity()) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_BUFFERS {
                spare.push(buffer);
            }
        });
    }
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Keep,
    Close,
    /// A peer takes it over.
    Peer,
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub stream: TcpStream,
    /// Read and not yet understood.
    pub input: Vec<u8>,
    /// To be written.
    pub out: Vec<u8>,
    peer: SocketAddr,
    local: SocketAddr,
    same_user: Option<bool>,
    /// Of the request that is being answered: when its ticket ended, and our time then.
    expired: Option<(u64, u64)>,
    patience: Patience,
    idle_since: Instant,
    alarm: Pin<Box<Sleep>>,
}

pub(crate) async fn serve(node: Arc<Node>, callers: Callers, stream: TcpStream) {
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let patience = node.settings.patience;
    let mut conn = Conn {
        stream,
        input: Vec::new(),
        out: Vec::new(),
        peer,
        local,
        same_user: None,
        expired: None,
        patience,
        idle_since: Instant::now(),
        alarm: Box::pin(sleep(patience.idle.0)),
    };
    loop {
        let request = match conn.next_request().await {
            Ok(Ok(Some(request))) => request,
            Ok(Ok(None)) => return,
            Ok(Err(Malformed(status, text))) => {
                sentence(&mut conn.out, status, false, "", &text);
                if conn.flush().await.is_ok() {
                    let _ = timeout(LINGER, conn.linger()).await;
                }
                return;
            }
            Err(_) => return,
        };
        match handle(&node, &callers, &mut conn, &request).await {
            Ok(After::Keep) => {}
            Ok(After::Peer) => {
                let Conn { stream, input, .. } = conn;
                return serve::serve(node, callers, stream, input).await;
            }
            Ok(After::Close) | Err(_) => return,
        }
    }
}

async fn handle(
    node: &Arc<Node>,
    callers: &Callers,
    conn: &mut Conn,
    request: &Request,
) -> io::Result<After> {
    // The way of nearly all requests, kept free of allocated futures.
    if request.path.starts_with("/get/")
        && matches!(request.method, Method::Get | Method::Head)
        && request.body == BodyLength::None
    {
        return get::get(node, conn, request).await;
    }
    Box::pin(handle_other(node, callers, conn, request)).await
}

async fn handle_other(
    node: &Arc<Node>,
    callers: &Callers,
    conn: &mut Conn,
    request: &Request,
) -> io::Result<After> {
    let function = request.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match (function, request.method) {
        ("put", Method::Put) => put::put(node, conn, request, "/put/").await,
        ("move", Method::Put) => put::put(node, conn, request, "/move/").await,
        ("put" | "get", Method::Delete) => put::delete(node, conn, request).await,
        ("arc" | "warc", Method::Get | Method::Head) => record::get(node, conn, request).await,
        ("admin", _) => admin::handle(node, conn, request).await,
        ("peer", Method::Get) if request.upgrade.as_deref() == Some(PROTOCOL) && callers.has_key() => {
            let text = format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n"
            );
            conn.out.extend_from_slice(text.as_bytes());
            conn.flush().await?;
            Ok(After::Peer)
        }
        ("" | "get", Method::Get | Method::Head) => page::root(node, conn, request).await,
        ("get" | "put" | "arc" | "warc", _) => {
            let text = "GET or HEAD /get/…, PUT /put/…, DELETE /put/…, GET /arc/… or /warc/…";
            conn.refuse(request, 405, "Allow: GET, HEAD, PUT, DELETE\r\n", text).await
        }
        _ => {
            let text = "the first name of a path says what to do: get, put, arc or warc";
            conn.refuse(request, 404, "", text).await
        }
    }
}

impl Conn {
    /// The next request, `None` when the client has gone or stays silent.
    async fn next_request(&mut self) -> io::Result<Result<Option<Request>, Malformed>> {
        if self.input.is_empty() {
            give_back(&mut self.input);
            give_back(&mut self.out);
            if !self.awake().await? {
                return Ok(Ok(None));
            }
            self.input = take_buffer();
            self.out = take_buffer();
        }
        self.out.clear();
        let mut deadline = None;
        loop {
            if !self.input.is_empty() {
                match request::read(&self.input) {
                    Ok(Some((request, length))) => {
                        self.input.drain(..length);
                        return Ok(Ok(Some(request)));
                    }
                    Ok(None) => {}
                    Err(malformed) => return Ok(Err(malformed)),
                }
            }
            let had = self.input.len();
            self.input.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut (&mut self.input).limit(READ_BYTES)) {
                Ok(0) => return Ok(Ok(None)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.patience.head.0);
                    if timeout_at(deadline, self.stream.readable()).await.is_err() {
                        let text = "the head of the request took too long".to_owned();
                        return Ok(if had == 0 { Ok(None) } else { Err(Malformed(408, text)) });
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for the client to say something; false when it has been silent for too long. The alarm is set once and
    /// looks, when it rings, whether it is late enough: setting it for every request would cost more than parsing it.
    async fn awake(&mut self) -> io::Result<bool> {
        self.idle_since = Instant::now();
        loop {
            tokio::select! {
                biased;
                ready = self.stream.readable() => return ready.map(|()| true),
                () = self.alarm.as_mut() => {
                    let end = self.idle_since + self.patience.idle.0;
                    if Instant::now() >= end {
                        return Ok(false);
                    }
                    self.alarm.as_mut().reset(end);
                }
            }
        }
    }

    /// Writes what is to be written.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.out.len() {
            match self.stream.try_write(&self.out[written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        Ok(())
    }

    /// Writes what is to be written and `body` behind it, as far as the kernel takes it at once; the rest stays to be
    /// written.
    pub(crate) fn write_now(&mut self, body: &[u8]) -> io::Result<()> {
        let head = self.out.len();
        let written = match self.stream.try_write_vectored(&[IoSlice::new(&self.out), IoSlice::new(body)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.out.drain(..written.min(head));
        self.out.extend_from_slice(&body[written.saturating_sub(head)..]);
        Ok(())
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        timeout(self.patience.silence.0, self.stream.writable()).await.map_err(|_| ErrorKind::TimedOut)?
    }

    /// Answers with a sentence.
    pub(crate) async fn say(
        &mut self,
        request: &Request,
        status: u16,
        lines: &str,
        text: &str,
    ) -> io::Result<After> {
        let keep = request.keep_alive;
        if request.method == Method::Head {
            answer::Head::new(&mut self.out, status, keep).lines(lines).length(0);
        } else {
            sentence(&mut self.out, status, keep, lines, text);
        }
        self.flush().await?;
        Ok(if keep { After::Keep } else { After::Close })
    }

    /// Answers before the body was read. Who waits with the body keeps it; of others some is read and thrown away, or
    /// they would not see the answer.
    pub(crate) async fn refuse(
        &mut self,
        request: &Request,
        status: u16,
        lines: &str,
        text: &str,
    ) -> io::Result<After> {
        if request.body == BodyLength::None {
            return self.say(request, status, lines, text).await;
        }
        sentence(&mut self.out, status, false, lines, text);
        self.flush().await?;
        if !request.expects_continue {
            self.discard(self.body(request)).await;
        }
        Ok(After::Close)
    }

    /// The body of a request whose head was just read.
    pub(crate) fn body(&self, request: &Request) -> Body {
        Body::new(request.body, self.patience)
    }

    pub(crate) async fn discard(&mut self, mut body: Body) {
        let (mut thrown, mut total) = (Vec::new(), 0);
        while total < DISCARD && !body.finished() {
            thrown.clear();
            if body.next(&self.stream, &mut self.input, &mut thrown, 64 << 10).await.is_err() {
                return;
            }
            total += thrown.len();
        }
    }

    /// Reads and throws away what the client still sends, or it would not see the answer.
    async fn linger(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let (mut thrown, mut total) = ([0; READ_BYTES], 0);
        while total < DISCARD {
            match self.stream.read(&mut thrown).await? {
                0 => break,
                read => total += read,
            }
        }
        Ok(())
    }

    /// Whether who asks may: everybody who knows the key, has a ticket for this, or is the user we run as.
    pub(crate) fn permitted(&mut self, node: &Node, request: &Request) -> bool {
        self.expired = None;
        if let Some(header) = &request.authorization {
            return node.key.authorizes(header);
        }
        if let Some(ticket) = request.parameter("swap-ticket") {
            let now = node.seconds();
            match node.key.ticket_state(ticket, request.method.ticket_verb(), &request.path, now) {
                TicketState::Valid => return true,
                TicketState::Expired { until } => self.expired = Some((until, now)),
                TicketState::Wrong => {}
            }
        }
        if !node.settings.trust_local || request.roundabout {
            return false;
        }
        let (peer, local) = (self.peer, self.local);
        *self.same_user.get_or_insert_with(|| access::same_user(peer, local))
    }

    pub(crate) async fn unauthorized(&mut self, request: &Request) -> io::Result<After> {
        let text = match self.expired {
            None => "this needs the key of the network: send it as Authorization: Bearer".to_owned(),
            Some((until, now)) => format!(
                "the ticket of this redirect ended at {}, and the clock of this server shows {}: follow redirects at once; \
                 if you did, compare the clocks of the servers",
                date(until),
                date(now)
            ),
        };
        self.refuse(request, 401, "WWW-Authenticate: Bearer\r\n", &text).await
    }
}

fn date(seconds: u64) -> String {
    http_date(i64::try_from(seconds).unwrap_or(i64::MAX))
}
