//! Between harvester and repository: everything that goes wrong on the way, on purpose.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Every fourth request is answered 503 with Retry-After in seconds.
    Busy,
    /// The same, as a date.
    BusyUntil,
    /// 503 without a word, and 500 and 502.
    Failing,
    /// The first answer to each page breaks off in the middle.
    Cut,
    /// The same, and nothing but the XML shows it.
    CutQuietly,
    /// ISO 8859-1, while the answer says UTF-8.
    WrongCharset,
    /// The third token has expired, twice.
    ExpiredToken,
    /// From the fourth page on, the token is always the same.
    SameToken,
    /// The last page points to the first.
    Ring,
    /// `from` and `until` are left out.
    NoWindows,
    /// An answer that never ends.
    Endless,
    /// The nth list request gets no answer until released.
    HoldAt(usize),
}

#[derive(Debug, Default)]
struct Log {
    asked: Vec<String>,
    cut: HashSet<String>,
    lists: usize,
    pages: usize,
    held: bool,
    released: bool,
}

/// A proxy in front of a repository, on a port of its own.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub url: String,
    log: Arc<(Mutex<Log>, Condvar)>,
}

impl Proxy {
    pub(crate) fn start(upstream: &str, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/oai", listener.local_addr().unwrap());
        let log = Arc::new((Mutex::new(Log::default()), Condvar::new()));
        let (kept, upstream) = (Arc::clone(&log), upstream.to_owned());
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (log, upstream) = (Arc::clone(&kept), upstream.clone());
                // A harvester that was killed leaves its connection behind.
                std::thread::spawn(move || drop(answer(connection, &upstream, fault, &log)));
            }
        });
        Self { url, log }
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.0.lock().unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.log().asked.clone()
    }

    /// How many lists were begun.
    pub(crate) fn lists(&self) -> usize {
        self.log().lists
    }

    pub(crate) fn until_held(&self) {
        let (held, timeout) =
            self.log.1.wait_timeout_while(self.log(), Duration::from_secs(120), |log| !log.held).unwrap();
        assert!(held.held && !timeout.timed_out(), "nobody came: {:?}", held.asked);
    }

    pub(crate) fn release(&self) {
        self.log().released = true;
        self.log.1.notify_all();
    }
}

fn answer(
    mut connection: TcpStream,
    upstream: &str,
    fault: Fault,
    log: &(Mutex<Log>, Condvar),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let target = first.split(' ').nth(1).unwrap_or_default();
    let mut query = target.split_once('?').map_or("", |(_, query)| query).to_owned();
    let list = query.contains("verb=List") && (query.contains("Records") || query.contains("Identifiers"));
    let resumed = query.contains("resumptionToken");
    let (number, page, again) = {
        let mut log = log.0.lock().unwrap();
        log.asked.push(query.clone());
        log.lists += usize::from(list && !resumed);
        log.pages += usize::from(list);
        let again = !log.cut.insert(query.clone());
        (log.asked.len(), log.pages, again)
    };
    let status = |connection: &mut TcpStream, status: &str, headers: &str| {
        write!(connection, "HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n")
    };
    match fault {
        Fault::Busy if number % 4 == 0 => {
            return status(&mut connection, "503 Busy", "Retry-After: 1\r\n");
        }
        Fault::BusyUntil if number % 4 == 0 => {
            let at = jiff::Timestamp::try_from(SystemTime::now() + Duration::from_secs(1)).unwrap();
            let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT");
            return status(&mut connection, "503 Busy", &format!("Retry-After: {date}\r\n"));
        }
        Fault::Failing if number % 2 == 0 => {
            let codes = ["500 Oops", "502 Bad Gateway", "503 Busy"];
            return status(&mut connection, codes[number / 2 % 3], "");
        }
        Fault::HoldAt(at) if list && page == at => {
            let mut held = log.0.lock().unwrap();
            held.held = true;
            log.1.notify_all();
            drop(log.1.wait_while(held, |log| !log.released).unwrap());
        }
        Fault::NoWindows => {
            let kept: Vec<_> = query
                .split('&')
                .filter(|pair| !pair.starts_with("from=") && !pair.starts_with("until="))
                .map(str::to_owned)
                .collect();
            query = kept.join("&");
        }
        Fault::Endless if list => return endless(&mut connection),
        _ => {}
    }
    let mut body = ask(upstream, &query)?;
    match fault {
        Fault::ExpiredToken if resumed && (page == 3 || page == 6) => {
            body = error("badResumptionToken").into_bytes();
        }
        Fault::SameToken if list && page >= 4 => body = with_token(&body, "for%20ever"),
        Fault::Ring if list && token(&body).is_none() => body = with_token(&body, "round"),
        Fault::WrongCharset => {
            let text = String::from_utf8(body).unwrap();
            body = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
        }
        _ => {}
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\nConnection: close\r\n";
    let half = body.len() / 2;
    match fault {
        Fault::Cut if list && !again => {
            write!(connection, "{head}Content-Length: {}\r\n\r\n", body.len())?;
            connection.write_all(&body[..half])
        }
        Fault::CutQuietly if list && !again => {
            write!(connection, "{head}\r\n")?;
            connection.write_all(&body[..half])
        }
        _ => {
            write!(connection, "{head}Content-Length: {}\r\n\r\n", body.len())?;
            connection.write_all(&body)
        }
    }
}

/// Asks the repository. A token of ours is the beginning of the list.
fn ask(upstream: &str, query: &str) -> std::io::Result<Vec<u8>> {
    let ours = query.contains("round") || query.contains("for%2520ever");
    let query = if ours { "verb=ListRecords&metadataPrefix=oai_dc" } else { query };
    let (host, path) = upstream.trim_start_matches("http://").split_once('/').unwrap();
    let mut connection = TcpStream::connect(host)?;
    write!(connection, "GET /{path}?{query} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4);
    Ok(answer.split_off(end))
}

fn token(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let start = text.find("<resumptionToken")?;
    let rest = &text[start..];
    let content = rest.split_once('>')?.1.split('<').next()?.trim();
    (!content.is_empty()).then(|| content.to_owned())
}

fn with_token(body: &[u8], token: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let text = match text.find("<resumptionToken") {
        Some(start) => {
            let end =
                text[start..].find("</resumptionToken>").map(|at| start + at + "</resumptionToken>".len());
            let end = end.or_else(|| text[start..].find("/>").map(|at| start + at + 2)).unwrap();
            format!("{}{}", &text[..start], &text[end..])
        }
        None => text.into_owned(),
    };
    let at = text.find("</ListRecords>").unwrap();
    format!("{}<resumptionToken>{token}</resumptionToken>{}", &text[..at], &text[at..]).into_bytes()
}

fn error(code: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-01T00:00:00Z\
         </responseDate><request>x</request><error code=\"{code}\">no</error></OAI-PMH>"
    )
}

/// Records without end, until the harvester has had enough.
fn endless(connection: &mut TcpStream) -> std::io::Result<()> {
    write!(connection, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nConnection: close\r\n\r\n")?;
    write!(
        connection,
        "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-01T00:00:00Z\
         </responseDate><request/><ListRecords>"
    )?;
    for number in 0_u64.. {
        write!(
            connection,
            "<record><header><identifier>oai:endless:{number}</identifier><datestamp>2026-01-01</datestamp></header>\
             <metadata><a xmlns=\"urn:a\">{number:>2000}</a></metadata></record>"
        )?;
    }
    Ok(())
}
