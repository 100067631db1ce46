//! One request with patience: busy servers are waited for, moved ones followed, broken connections tried again.

use std::time::Duration;

use grange_base::{AddressPolicy, Chain, Clock, Shutdown};
use oaipmh::flow::{self, BodyKind, Decision, Head, Patience};
use oaipmh::{Item, Limits, Page, PageReader, Request, TokenStyle};
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, FROM, LOCATION, RETRY_AFTER, USER_AGENT,
};
use url::Url;

use crate::outgoing;
use crate::responses::Responses;
use crate::settings::Settings;
use crate::unpack::Unpacker;

/// Why an answer could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The harvest is to end; nothing is wrong.
    #[error("stopped")]
    Stopped,
    #[error("{0}")]
    Failed(String),
}

/// Asks one repository, one thing at a time.
#[derive(Debug)]
pub(crate) struct Fetcher {
    http: reqwest::Client,
    policy: AddressPolicy,
    base_url: String,
    style: TokenStyle,
    patience: Patience,
    limits: Limits,
    page_bytes_max: u64,
    delay: Duration,
    clock: Clock,
    stop: Shutdown,
    asked_before: bool,
    /// Where answers are kept as they came.
    responses: Option<Responses>,
    /// What the operator should know, such as that the repository has moved.
    pub(crate) remarks: Vec<String>,
}

/// An answer that is arriving.
#[derive(Debug)]
pub(crate) struct Answer {
    response: reqwest::Response,
    first: Option<Vec<u8>>,
    /// Bytes as they came, how many of them are unpacked, and whether nothing more comes out of them.
    packed: Vec<u8>,
    used: usize,
    used_up: bool,
    unpacker: Unpacker,
    reader: PageReader,
    bytes: u64,
    bytes_max: u64,
}

/// How the body of an answer broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the connection broke in the middle of the answer: {0}")]
    Broken(String),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
}

impl Fetcher {
    pub(crate) fn new(
        base_url: &str,
        settings: &Settings,
        style: TokenStyle,
        delay: Duration,
        clock: Clock,
        stop: Shutdown,
    ) -> Result<Self, FetchError> {
        let failed = |error: reqwest::Error| FetchError::Failed(Chain(&error).to_string());
        let policy = outgoing::address_policy(settings);
        let http = outgoing::client(&policy)
            .connect_timeout(settings.timeout.0.min(Duration::from_secs(30)))
            .read_timeout(settings.timeout.0)
            .default_headers(headers(&settings.contact))
            .build()
            .map_err(failed)?;
        let patience = Patience {
            first_wait: settings.retry_first.0,
            retry_after_max: settings.retry_after_max.0,
            attempts_max: settings.attempts.max(1),
            ..Patience::default()
        };
        Ok(Self {
            http,
            policy,
            base_url: base_url.to_owned(),
            style,
            patience,
            limits: Limits { record_bytes_max: settings.record_bytes_max.0 as usize, ..Limits::default() },
            page_bytes_max: settings.page_bytes_max.0,
            delay: delay.max(settings.delay.0),
            clock,
            stop,
            asked_before: false,
            responses: None,
            remarks: Vec::new(),
        })
    }

    /// Keeps every answer from now on.
    pub(crate) fn keep(&mut self, responses: Responses) {
        self.responses = Some(responses);
    }

    /// Gives the file of answers its name.
    pub(crate) fn close_responses(&mut self) -> std::io::Result<()> {
        self.responses.take().map_or(Ok(()), Responses::close)
    }

    /// How often a body may break off before the caller gives up, too.
    pub(crate) fn attempts_max(&self) -> u32 {
        self.patience.attempts_max
    }

    /// Waits as after so many failures in a row.
    pub(crate) async fn wait_after(&self, failures: u32) -> Result<(), FetchError> {
        self.wait(flow::own_wait(failures, &self.patience)).await
    }

    async fn wait(&self, period: Duration) -> Result<(), FetchError> {
        self.stop.or(self.clock.sleep(period)).await.ok_or(FetchError::Stopped)
    }

    /// Asks until there is an answer to read. What it says is the caller's to find out.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Answer, FetchError> {
        if std::mem::replace(&mut self.asked_before, true) && !self.delay.is_zero() {
            self.wait(self.delay).await?;
        }
        let mut url = request.to_url_styled(&self.base_url, self.style);
        let (mut failures, mut hops) = (0, 0);
        loop {
            let refused = |why| FetchError::Failed(format!("cannot harvest {url}: {why}"));
            if let Ok(url) = Url::parse(&url) {
                outgoing::check_url(&url, &self.policy).map_err(refused)?;
            }
            let sent = self.stop.or(self.http.get(&url).send()).await.ok_or(FetchError::Stopped)?;
            let mut response = match sent {
                Ok(response) => response,
                Err(error) => {
                    if let Some(why) = outgoing::refusal(&error) {
                        return Err(refused(why));
                    }
                    failures += 1;
                    let told = Chain(&error).to_string();
                    if failures >= self.patience.attempts_max {
                        return Err(FetchError::Failed(format!("no answer from {url}: {told}")));
                    }
                    tracing::info!(url, failures, error = told, "no answer, trying again");
                    self.wait_after(failures - 1).await?;
                    continue;
                }
            };
            let first = self.stop.or(first_bytes(&mut response)).await.ok_or(FetchError::Stopped)?;
            let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            let packed = text(CONTENT_ENCODING)
                .is_some_and(|coding| !coding.trim().is_empty() && coding.trim() != "identity");
            let body = if packed && !first.is_empty() { BodyKind::Xml } else { BodyKind::sniff(&first) };
            let head = Head {
                status: response.status().as_u16(),
                retry_after: text(RETRY_AFTER),
                location: text(LOCATION),
            };
            match flow::decide(head, body, failures, hops, self.clock.now(), &self.patience) {
                Decision::Read => return Ok(self.open(response, first)),
                Decision::Retry { after, reason } => {
                    failures += 1;
                    tracing::info!(url, %reason, wait_s = after.as_secs(), "asking again later");
                    self.wait(after).await?;
                }
                Decision::Follow { location, permanent } => {
                    hops += 1;
                    let to = Url::parse(&url).and_then(|base| base.join(&location));
                    let to =
                        to.map_err(|_| FetchError::Failed(format!("{url} points to nowhere: {location}")))?;
                    if !matches!(to.scheme(), "http" | "https") {
                        return Err(FetchError::Failed(format!(
                            "{url} points to {to}, which is no web address"
                        )));
                    }
                    if permanent {
                        self.remark(format!("the repository has moved for good to {to}"));
                    }
                    // Some forget the question when they point elsewhere.
                    url = if to.query().is_some_and(|query| query.contains("verb=")) {
                        to.into()
                    } else {
                        request.to_url_styled(to.as_str(), self.style)
                    };
                }
                Decision::Fail(reason) => return Err(FetchError::Failed(format!("{url}: {reason}"))),
            }
        }
    }

    /// A page and everything on it, for answers that are small.
    pub(crate) async fn whole(&mut self, request: &Request) -> Result<Page<Item>, FetchError> {
        let mut failures = 0;
        loop {
            let mut answer = self.ask(request).await?;
            let mut items = Vec::new();
            let broken = loop {
                match self.next(&mut answer).await? {
                    Ok(Some(some)) => items.extend(some),
                    Ok(None) => break None,
                    Err(error) => break Some(error.to_string()),
                }
            };
            let mut page = self.finish(answer);
            let broken = broken.or_else(|| (!page.complete).then(|| "the answer is not complete".to_owned()));
            let Some(broken) = broken else {
                items.append(&mut page.items);
                return Ok(Page { items, ..page });
            };
            failures += 1;
            if failures >= self.patience.attempts_max {
                return Err(FetchError::Failed(format!("{}: {broken}", request.to_url(&self.base_url))));
            }
            self.wait_after(failures - 1).await?;
        }
    }

    /// The next records of an answer; `None` at its end. Dropped bytes are the caller's to ask for again.
    pub(crate) async fn next(
        &mut self,
        answer: &mut Answer,
    ) -> Result<Result<Option<Vec<Item>>, BodyError>, FetchError> {
        let Some(read) = self.stop.or(answer.read(self.responses.as_mut())).await else {
            return Err(FetchError::Stopped);
        };
        Ok(read)
    }

    /// What an answer held beside its items.
    pub(crate) fn finish(&mut self, answer: Answer) -> Page<Item> {
        if let Some(responses) = &mut self.responses
            && let Err(error) = responses.end(self.clock.now())
        {
            self.remarks.push(format!("an answer could not be kept: {error}"));
        }
        answer.reader.finish()
    }

    fn open(&mut self, response: reqwest::Response, first: Vec<u8>) -> Answer {
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let charset = text(CONTENT_TYPE).and_then(charset).map(str::to_owned);
        let unpacker = Unpacker::new(text(CONTENT_ENCODING), &first);
        if let Some(responses) = &mut self.responses {
            responses.begin(&response);
        }
        let reader = PageReader::new(self.limits).with_charset(charset.as_deref());
        let bytes_max = self.page_bytes_max;
        Answer {
            response,
            first: Some(first),
            packed: Vec::new(),
            used: 0,
            used_up: true,
            unpacker,
            reader,
            bytes: 0,
            bytes_max,
        }
    }

    fn remark(&mut self, text: String) {
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }
}

/// Plain bytes of a body taken together before their records are handed on: a page of a hundred records in one go.
const READ_BYTES: usize = 256 << 10;

impl Answer {
    /// Bytes received, as they came.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The server's clock, as soon as it was read.
    pub(crate) fn response_date(&self) -> Option<jiff::Timestamp> {
        self.reader.response_date().map(oaipmh::Datestamp::timestamp)
    }

    async fn read(&mut self, mut responses: Option<&mut Responses>) -> Result<Option<Vec<Item>>, BodyError> {
        let mut taken = 0;
        let mut ended = false;
        while taken < READ_BYTES {
            if self.used_up {
                let Some(chunk) = self.chunk().await? else {
                    ended = true;
                    break;
                };
                self.bytes += chunk.len() as u64;
                if let Some(responses) = &mut responses {
                    responses.take(&chunk);
                }
                (self.packed, self.used, self.used_up) = (chunk, 0, false);
            }
            taken += self.unpack(READ_BYTES - taken)?;
        }
        if ended {
            let reader = &mut self.reader;
            self.unpacker
                .finish(|bytes| reader.push(bytes))
                .map_err(|error| BodyError::Broken(error.to_string()))?;
        }
        let items: Vec<_> = std::iter::from_fn(|| self.reader.next_item()).collect();
        Ok((!ended || !items.is_empty()).then_some(items))
    }

    /// The next bytes as they came.
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let chunk = self.response.chunk().await;
        Ok(chunk.map_err(|error| BodyError::Broken(Chain(&error).to_string()))?.map(Vec::from))
    }

    /// Gives plain bytes to the reader until they are at least `enough` or those that came are used up. A small body can
    /// unpack to a huge one: it is counted after every step, and its records are taken before more is unpacked.
    fn unpack(&mut self, enough: usize) -> Result<usize, BodyError> {
        let (reader, before) = (&mut self.reader, self.unpacker.plain_bytes());
        let mut packed = &self.packed[self.used..];
        loop {
            let more = self.unpacker.step(&mut packed, |bytes| reader.push(bytes));
            let more = more.map_err(|error| BodyError::Broken(error.to_string()))?;
            let plain = self.unpacker.plain_bytes();
            if plain.max(self.bytes) > self.bytes_max {
                return Err(BodyError::TooLarge(self.bytes_max));
            }
            let taken = (plain - before) as usize;
            if !more || taken >= enough {
                (self.used, self.used_up) = (self.packed.len() - packed.len(), !more);
                return Ok(taken);
            }
        }
    }
}

/// Enough of a body to know what it is. One that breaks off at once is decided on as an empty one.
async fn first_bytes(response: &mut reqwest::Response) -> Vec<u8> {
    let mut first = Vec::new();
    while first.trim_ascii().len() < BodyKind::SNIFF_BYTES && first.len() < READ_BYTES {
        match response.chunk().await {
            Ok(Some(bytes)) => first.extend_from_slice(&bytes),
            Ok(None) | Err(_) => break,
        }
    }
    first
}

fn headers(contact: &str) -> reqwest::header::HeaderMap {
    let mut headers = reqwest::header::HeaderMap::new();
    let agent = if contact.is_empty() {
        format!("grange/{}", env!("CARGO_PKG_VERSION"))
    } else {
        format!("grange/{} (+{contact})", env!("CARGO_PKG_VERSION"))
    };
    if let Ok(agent) = agent.parse() {
        headers.insert(USER_AGENT, agent);
    }
    if contact.contains('@')
        && let Ok(from) = contact.parse()
    {
        headers.insert(FROM, from);
    }
    headers.insert(ACCEPT_ENCODING, reqwest::header::HeaderValue::from_static("gzip, deflate"));
    headers
}

fn charset(content_type: &str) -> Option<&str> {
    let lower = content_type.to_ascii_lowercase();
    let at = lower.find("charset=")? + "charset=".len();
    let rest = content_type[at..].trim_start_matches(['"', '\'']);
    let end = rest.find(['"', '\'', ';', ' ']).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::outgoing::tests::redirecting;

    /// Why Identify could not be had from there.
    async fn refusal_of(address: SocketAddr, allow: &[&str]) -> String {
        let allow_networks = allow.iter().map(|network| network.parse().unwrap()).collect();
        let settings = Settings { allow_networks, attempts: 1, ..Settings::default() };
        let base_url = format!("http://{address}/oai");
        let (style, clock) = (TokenStyle::Encoded, Clock::system());
        let fetcher = Fetcher::new(&base_url, &settings, style, Duration::ZERO, clock, Shutdown::never());
        fetcher.unwrap().whole(&Request::Identify).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_repository_at_a_private_address_is_refused_before_a_connection() {
        let (address, connections) = redirecting("127.0.0.1", "/").await;
        let refused = refusal_of(address, &[]).await;
        assert!(refused.starts_with("cannot harvest http://127.0.0.1"), "{refused}");
        assert_eq!(connections.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_repository_that_redirects_to_an_address_that_is_not_allowed_is_not_followed() {
        let (inside, connections) = redirecting("127.0.0.2", "/").await;
        let (outside, asked) = redirecting("127.0.0.1", &format!("http://{inside}/oai")).await;
        let refused = refusal_of(outside, &["127.0.0.1/32"]).await;
        assert!(refused.starts_with("cannot harvest http://127.0.0.2"), "{refused}");
        assert_eq!((asked.load(Ordering::SeqCst), connections.load(Ordering::SeqCst)), (1, 0));
    }
}
