//! Names to addresses: overrides first, then what is remembered, then the name servers, then the machine.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grange_base::Clock;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::rr::{Name, RecordType};
use jiff::{SignedDuration, Timestamp};

use super::error::FetchError;
use super::overrides::{Overrides, parse_place};
use super::settings::{AddressChoice, DnsSettings, Settings};
use crate::FetchStatus;

/// A failure younger than this is not asked about again, by nobody.
const FAILURE_SHARED_FOR: SignedDuration = SignedDuration::from_secs(5);

/// What is known about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsAnswer {
    pub host: String,
    pub asked: Timestamp,
    pub duration: Duration,
    pub source: DnsSource,
    /// In the order in which they are to be tried; not empty.
    pub addresses: Result<Vec<IpAddr>, DnsFailure>,
    /// The records of the answer, one line each.
    pub records: Vec<String>,
}

/// Who said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsSource {
    /// The host is an address already; nobody was asked.
    Literal,
    /// The operator's table.
    Override,
    Servers,
    /// The machine's own lookup.
    System,
}

/// Why there is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsFailure {
    /// There is no such name, or it has no address of the wanted kind.
    NoSuchName,
    /// Nobody answered, or only with an error.
    NoAnswer(String),
}

impl DnsAnswer {
    /// 1, 1001 for the machine's own lookup, or -1.
    pub fn status(&self) -> FetchStatus {
        match (&self.addresses, self.source) {
            (Err(_), _) => FetchStatus::DNS_FAILED,
            (Ok(_), DnsSource::System) => FetchStatus(1001),
            (Ok(_), _) => FetchStatus::DNS_OK,
        }
    }

    /// The block of a `dns:` record (`text/dns`), as Heritrix writes it: the time, then a line per record.
    pub fn text(&self) -> String {
        let mut text = self.asked.strftime("%Y%m%d%H%M%S").to_string();
        text.push('\n');
        for record in &self.records {
            text.push_str(record);
            text.push('\n');
        }
        text
    }
}

/// One record as dnsjava prints it, with the columns aligned by tabs.
fn record_line(name: &str, ttl: u32, kind: &str, data: &str) -> String {
    let mut line = name.to_owned();
    for column in [8, 16] {
        if line.len() < column {
            line.push('\t');
        }
    }
    let _ = write!(line, "\t{ttl}\tIN\t{kind}\t{data}");
    line
}

/// Looks names up, and remembers them.
#[derive(Debug)]
pub(super) struct Dns {
    settings: DnsSettings,
    choice: AddressChoice,
    overrides: Overrides,
    resolver: Option<TokioResolver>,
    cache: Mutex<HashMap<String, Kept>>,
    clock: Clock,
}

#[derive(Debug)]
struct Kept {
    answer: Arc<DnsAnswer>,
    until: Timestamp,
}

impl Dns {
    pub(super) fn new(settings: &Settings, clock: Clock) -> Result<Dns, FetchError> {
        Ok(Dns {
            choice: settings.addresses,
            overrides: Overrides::new(settings)?,
            resolver: resolver(&settings.dns)?,
            settings: settings.dns.clone(),
            cache: Mutex::default(),
            clock,
        })
    }

    pub(super) fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    pub(super) async fn resolve(&self, host: &str) -> Arc<DnsAnswer> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return self.known(host, ip, DnsSource::Literal);
        }
        if let Some(place) = self.overrides.find_host(host) {
            return self.known(host, place.ip, DnsSource::Override);
        }
        let asked = self.clock.now();
        if let Some(kept) = self.lock().get(host).filter(|kept| kept.until > asked) {
            return Arc::clone(&kept.answer);
        }
        let (answer, ttl) = self.ask(host, asked).await;
        let answer = Arc::new(answer);
        let until = asked.checked_add(ttl).unwrap_or(Timestamp::MAX);
        let kept = Kept { answer: Arc::clone(&answer), until };
        let mut cache = self.lock();
        make_room(&mut cache, self.settings.cache_names as usize, asked);
        cache.insert(host.to_owned(), kept);
        answer
    }

    /// Lets the next lookup of `host` ask again if the last one failed, unless that was just now: URLs that are tried
    /// again together share one answer.
    pub(super) fn forget_failure(&self, host: &str) {
        let now = self.clock.now();
        let mut cache = self.lock();
        let is_old = |kept: &Kept| {
            let age = now.duration_since(kept.answer.asked);
            kept.answer.addresses.is_err() && age >= FAILURE_SHARED_FOR
        };
        if cache.get(host).is_some_and(is_old) {
            cache.remove(host);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Kept>> {
        // A map of whole entries is sound whatever happened to the thread before.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, host: &str, ip: IpAddr, source: DnsSource) -> Arc<DnsAnswer> {
        Arc::new(DnsAnswer {
            host: host.to_owned(),
            asked: self.clock.now(),
            duration: Duration::ZERO,
            source,
            addresses: Ok(vec![ip]),
            records: Vec::new(),
        })
    }

    async fn ask(&self, host: &str, asked: Timestamp) -> (DnsAnswer, Duration) {
        let begin = tokio::time::Instant::now();
        let mut answer = DnsAnswer {
            host: host.to_owned(),
            asked,
            duration: Duration::ZERO,
            source: DnsSource::Servers,
            addresses: Err(DnsFailure::NoAnswer("there is no name server".to_owned())),
            records: Vec::new(),
        };
        let mut ttl = self.settings.failure_ttl.0;
        // This machine is no business of name servers (RFC 6761 6.3).
        if let Some(resolver) = self.resolver.as_ref().filter(|_| !is_localhost(host)) {
            let name = match name_of(host) {
                Ok(name) => name,
                Err(error) => {
                    answer.addresses = Err(DnsFailure::NoAnswer(format!("{host:?} is not a name: {error}")));
                    return (answer, ttl);
                }
            };
            for kind in kinds(self.choice) {
                match resolver.lookup(name.clone(), *kind).await {
                    Ok(lookup) => {
                        let seconds = take(&lookup, &mut answer);
                        if answer.addresses.is_ok() {
                            let least = Duration::from_secs(u64::from(seconds));
                            ttl = least.clamp(self.settings.min_ttl.0, self.settings.max_ttl.0);
                            break;
                        }
                    }
                    Err(error) => answer.addresses = Err(failure(&error)),
                }
            }
        }
        if answer.addresses.is_err() && self.settings.system_fallback {
            let ips: Vec<IpAddr> = match tokio::net::lookup_host((host, 0)).await {
                Ok(found) => self.chosen(found.map(|address| address.ip())),
                Err(_) => Vec::new(),
            };
            if !ips.is_empty() {
                let kind = |ip: &IpAddr| if ip.is_ipv4() { "A" } else { "AAAA" };
                answer.records = ips
                    .iter()
                    .map(|ip| record_line(&format!("{host}."), 0, kind(ip), &ip.to_string()))
                    .collect();
                answer.source = DnsSource::System;
                answer.addresses = Ok(ips);
                ttl = self.settings.min_ttl.0;
            }
        }
        answer.duration = begin.elapsed();
        (answer, ttl)
    }

    /// The wanted addresses, each once, those of the first kind first.
    fn chosen(&self, found: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
        let all: Vec<IpAddr> = found.collect();
        let mut chosen: Vec<IpAddr> = Vec::new();
        for kind in kinds(self.choice) {
            for ip in all.iter().filter(|ip| ip.is_ipv4() == (*kind == RecordType::A)) {
                if !chosen.contains(ip) {
                    chosen.push(*ip);
                }
            }
        }
        chosen
    }
}

/// Whether a name means this machine (RFC 6761 6.3).
pub(super) fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host == "localhost" || host.ends_with(".localhost")
}

/// The name with its labels as they are. Read from text, labels that begin with a hyphen would be refused, and there
/// are such hosts.
fn name_of(host: &str) -> Result<Name, ProtoError> {
    let labels = host.strip_suffix('.').unwrap_or(host).split('.');
    Name::from_labels(labels.map(str::as_bytes))
}

fn kinds(choice: AddressChoice) -> &'static [RecordType] {
    match choice {
        AddressChoice::Ipv4First => &[RecordType::A, RecordType::AAAA],
        AddressChoice::Ipv6First => &[RecordType::AAAA, RecordType::A],
        AddressChoice::Ipv4Only => &[RecordType::A],
        AddressChoice::Ipv6Only => &[RecordType::AAAA],
    }
}

/// Takes the addresses and lines of an answer; gives the least time to live, in seconds.
fn take(lookup: &Lookup, answer: &mut DnsAnswer) -> u32 {
    let mut ips = Vec::new();
    let mut ttl = u32::MAX;
    for record in lookup.answers() {
        ttl = ttl.min(record.ttl);
        let kind = record.record_type().to_string();
        answer.records.push(record_line(
            &record.name.to_string(),
            record.ttl,
            &kind,
            &record.data.to_string(),
        ));
        ips.extend(record.data.ip_addr());
    }
    answer.addresses = if ips.is_empty() { Err(DnsFailure::NoSuchName) } else { Ok(ips) };
    ttl
}

fn failure(error: &NetError) -> DnsFailure {
    if error.is_nx_domain() || error.is_no_records_found() {
        DnsFailure::NoSuchName
    } else {
        DnsFailure::NoAnswer(error.to_string())
    }
}

fn resolver(settings: &DnsSettings) -> Result<Option<TokioResolver>, FetchError> {
    let mut builder = if settings.servers.is_empty() {
        // A machine without name servers can still look into its hosts file.
        match TokioResolver::builder_tokio() {
            Ok(builder) => builder,
            Err(_) => return Ok(None),
        }
    } else {
        let servers = settings.servers.iter().filter_map(|server| parse_place(server)).map(|place| {
            let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
            for connection in &mut connections {
                connection.port = place.port.unwrap_or(53);
            }
            NameServerConfig::new(place.ip, true, connections)
        });
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    options.timeout = settings.timeout.0;
    options.attempts = settings.retries as usize;
    // By default more than 32 questions at once are refused; a crawl of thousands of hosts starts with more.
    options.max_active_requests = 4096;
    // Ours is the cache, with times of its own, and the machine's lookup reads its hosts file.
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    // The way over aliases belongs into the record.
    options.preserve_intermediates = true;
    builder.build().map(Some).map_err(|error| FetchError::Dns(error.to_string()))
}

/// Makes room for one more: what is stale first, then an eighth of the rest.
fn make_room(cache: &mut HashMap<String, Kept>, most: usize, now: Timestamp) {
    if cache.len() < most {
        return;
    }
    cache.retain(|_, kept| kept.until > now);
    let over = (cache.len() + 1).saturating_sub(most);
    if over > 0 {
        let mut left = over.max(most / 8);
        cache.retain(|_, _| {
            let keep = left == 0;
            left = left.saturating_sub(1);
            keep
        });
    }
}
