//! Putting an answer on the wire.

use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::PoisonError;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use super::Shared;
use super::request::Head;
use crate::web::answer::{Answer, Body, Ending, Framing, Gate, Pace, STREAM_BLOCK_BYTES};
use crate::web::article::{Articles, Item};
use crate::web::gate::{self, Shown};
use crate::web::site::Resource;
use crate::web::{Found, dice};

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Next,
    End(Ending),
}

/// Sizes of chunks, over and over: odd ones, so that nothing fits by chance.
const CHUNKS: [usize; 4] = [1, 173, 4_096, 700];
/// Seeds listed on the page that an unnamed visitor gets.
const SEEDS_LISTED: usize = 1_000;

/// Answers one request. `output` is a buffer to write into; what was in it is of no interest.
pub(super) async fn respond<S: AsyncWrite + Unpin>(
    stream: &mut S,
    shared: &Shared,
    head: &Head<'_>,
    body: &[u8],
    output: &mut Vec<u8>,
) -> After {
    let sent = match shared.web.names().find(head.host) {
        None => send(stream, head, &unknown(shared, head.host), output).await,
        Some((site, sub)) => match shared.web.find(site, sub, head.target) {
            Some(Found::Article(site, item)) => send_article(stream, shared, head, site, item, output).await,
            Some(Found::Resource(resource)) => match admitted(shared, head, body, &resource) {
                Some(other) => send(stream, head, &other, output).await,
                None => send(stream, head, &resource.answer, output).await,
            },
            None => send(stream, head, &missing(), output).await,
        },
    };
    // The client is gone: nothing to tell it.
    sent.unwrap_or(After::End(Ending::Close))
}

/// The answer at a closed gate; `None` lets the request in.
fn admitted(shared: &Shared, head: &Head<'_>, body: &[u8], resource: &Resource) -> Option<Answer> {
    let answer = &resource.answer;
    let shown = Shown { method: head.method, cookie: head.cookie, authorization: head.authorization, body };
    match answer.gate {
        Gate::Open => None,
        Gate::Busy { times, .. } => {
            let mut busy = shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
            let count = busy.entry(resource.url.clone()).or_insert(0);
            *count = count.saturating_add(1);
            (*count <= times).then(|| gate::closed(answer.gate))
        }
        Gate::LogIn if gate::admits(Gate::LogIn, shown) => Some(gate::welcome()),
        gate if gate::admits(gate, shown) => None,
        gate => Some(gate::closed(gate)),
    }
}

fn missing() -> Answer {
    Answer::new(404, "text/html", "<html><body><p>Nothing is here.</p></body></html>\n")
}

/// For names that are not of this web. Who comes by address is shown the seeds.
fn unknown(shared: &Shared, host: &str) -> Answer {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if name == "localhost" || host.is_empty() || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        let seeds: Vec<String> = (0..shared.web.options().hosts.min(SEEDS_LISTED))
            .map(|site| shared.web.url(site, crate::web::Sub::Bare, "/"))
            .map(|url| format!("<li><a href=\"{url}\">{url}</a></li>\n"))
            .collect();
        let seeds = seeds.concat();
        return Answer::html(format!(
            "<html><body><p>A synthetic web.</p><ul>\n{seeds}</ul></body></html>\n"
        ));
    }
    let example = shared.web.host(0, crate::web::Sub::Bare);
    Answer::new(421, "text/plain", format!("No such host in this web; there is {example}, for example.\n"))
}

/// The fast path: one buffer, one write.
async fn send_article<S: AsyncWrite + Unpin>(
    stream: &mut S,
    shared: &Shared,
    head: &Head<'_>,
    site: usize,
    item: Item,
    output: &mut Vec<u8>,
) -> io::Result<After> {
    let articles = shared.web.articles();
    let (tag, date) = articles.validators(site, item);
    output.clear();
    let mime = Articles::mime(item);
    let close = if head.close { "Connection: close\r\n" } else { "" };
    if unchanged(head, &tag, &date) {
        write!(output, "HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\nLast-Modified: {date}\r\n{close}\r\n")?;
    } else {
        write!(
            output,
            "HTTP/1.1 200 OK\r\nServer: synth\r\nContent-Type: {mime}\r\nETag: {tag}\r\nLast-Modified: {date}\r\n\
             {close}Content-Length: "
        )?;
        // The length is known after the body: leave room for it, right-aligned, as the standard allows.
        let room = output.len();
        output.extend_from_slice(b"          \r\n\r\n");
        let start = output.len();
        articles.write(site, item, output);
        let bytes = output.len() - start;
        write!(&mut output[room..room + 10], "{bytes:>10}")?;
        if head.method == "HEAD" {
            output.truncate(start);
        }
    }
    stream.write_all(output).await?;
    Ok(if head.close { After::End(Ending::Close) } else { After::Next })
}

fn unchanged(head: &Head<'_>, tag: &str, date: &str) -> bool {
    if head.if_none_match.is_empty() {
        return head.if_modified_since == date;
    }
    let weak = |text: &str| text.trim().trim_start_matches("W/").to_owned();
    head.if_none_match.split(',').any(|given| weak(given) == weak(tag) || given.trim() == "*")
}

async fn send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    head: &Head<'_>,
    answer: &Answer,
    output: &mut Vec<u8>,
) -> io::Result<After> {
    if let Body::Wire { bytes, ending } = &answer.body {
        stream.write_all(bytes).await?;
        stream.flush().await?;
        return Ok(After::End(*ending));
    }
    if let Pace::After(pause) = answer.pace {
        sleep(pause).await;
    }
    let not_modified = answer.validators.as_ref().is_some_and(|(tag, date)| unchanged(head, tag, date));
    let coding = answer.coding_for(|coding| coding.offered_in(head.accept_encoding));
    // An HTTP/1.0 client knows no chunks.
    let framing = match answer.framing {
        Framing::Chunked { .. } if head.http10 => Framing::UntilClose,
        framing => framing,
    };
    let without_body = not_modified || answer.status == 204 || head.method == "HEAD";
    let close = head.close
        || answer.close
        || (framing == Framing::UntilClose && !without_body)
        || framing == Framing::Http10;
    let encoded = coding.map(|coding| coding.encode(&answer.body.whole()));
    let body = match (&encoded, &answer.body) {
        (Some(encoded), _) => Source::Bytes(encoded),
        (None, Body::Bytes(bytes)) => Source::Bytes(bytes),
        (None, Body::Stream { seed, bytes }) => Source::Stream(*seed, *bytes),
        (None, Body::Wire { .. }) => Source::Bytes(&[]),
    };
    output.clear();
    let version = if framing == Framing::Http10 { "1.0" } else { "1.1" };
    let status = if not_modified { 304 } else { answer.status };
    write!(output, "HTTP/{version} {status} {}\r\nServer: synth\r\n", reason(status))?;
    for (name, value) in &answer.headers {
        write!(output, "{name}: {value}\r\n")?;
    }
    if let Some((tag, date)) = &answer.validators {
        write!(output, "ETag: {tag}\r\nLast-Modified: {date}\r\n")?;
    }
    if let Some(coded) = answer.coding {
        if !coded.forced {
            write!(output, "Vary: Accept-Encoding\r\n")?;
        }
        if let Some(coding) = coding {
            write!(output, "Content-Encoding: {}\r\n", coding.name())?;
        }
    }
    if !not_modified && answer.status != 204 {
        match framing {
            Framing::Length | Framing::Http10 => write!(output, "Content-Length: {}\r\n", body.len())?,
            Framing::Chunked { trailers } => {
                write!(output, "Transfer-Encoding: chunked\r\n")?;
                if trailers {
                    write!(output, "Trailer: X-Checked\r\n")?;
                }
            }
            Framing::UntilClose => {}
        }
    }
    if close {
        write!(output, "Connection: close\r\n")?;
    }
    output.extend_from_slice(b"\r\n");
    if without_body {
        stream.write_all(output).await?;
    } else {
        send_body(stream, body, framing, answer.pace, output).await?;
    }
    stream.flush().await?;
    Ok(if close { After::End(Ending::Close) } else { After::Next })
}

/// Where the bytes of a body come from.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Bytes(&'a [u8]),
    Stream(u64, u64),
}

impl Source<'_> {
    fn len(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stream(_, bytes) => bytes,
        }
    }

    /// Appends up to `most` bytes from `at` on and says how many.
    fn read(self, at: u64, most: usize, out: &mut Vec<u8>) -> usize {
        let count = (self.len() - at).min(most as u64) as usize;
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(&bytes[at as usize..at as usize + count]),
            Self::Stream(seed, _) => {
                let start = out.len();
                out.resize(start + count, 0);
                dice::fill(seed, at, &mut out[start..]);
            }
        }
        count
    }
}

/// Sends what is in `output` (the head), then the body.
async fn send_body<S: AsyncWrite + Unpin>(
    stream: &mut S,
    body: Source<'_>,
    framing: Framing,
    pace: Pace,
    output: &mut Vec<u8>,
) -> io::Result<()> {
    let mut at = 0;
    let mut piece = Vec::new();
    let mut turn = 0;
    while at < body.len() {
        let most = match (pace, framing) {
            (Pace::Drip { piece_bytes, .. }, _) => piece_bytes,
            // Odd chunks first, then large ones: a huge body is not sent byte by byte.
            (_, Framing::Chunked { .. }) if turn < 16 => CHUNKS[turn % CHUNKS.len()],
            _ => STREAM_BLOCK_BYTES,
        };
        turn += 1;
        piece.clear();
        at += body.read(at, most, &mut piece) as u64;
        if matches!(framing, Framing::Chunked { .. }) {
            // A chunk extension now and then: legal, and to be skipped.
            let extension = if turn == 3 { ";part=3" } else { "" };
            write!(output, "{:x}{extension}\r\n", piece.len())?;
            output.extend_from_slice(&piece);
            output.extend_from_slice(b"\r\n");
        } else {
            output.extend_from_slice(&piece);
        }
        if let Pace::Drip { every, .. } = pace {
            stream.write_all(output).await?;
            stream.flush().await?;
            output.clear();
            sleep(every).await;
        } else if output.len() >= STREAM_BLOCK_BYTES {
            stream.write_all(output).await?;
            output.clear();
        }
    }
    if let Framing::Chunked { trailers } = framing {
        output.extend_from_slice(if trailers { b"0\r\nX-Checked: yes\r\n\r\n" } else { b"0\r\n\r\n" });
    }
    stream.write_all(output).await
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Because",
    }
}
