//! A repository of so many pages over real HTTP, and facts in memory that can fail.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;
use grange_base::{Clock, Shutdown};
use grange_model::oai::{
    DeletedSupport, Granularity, HarvestSpec, Identified, KnownRecord, OaiJobId, OaiPage, Repository,
    RepositoryId, RepositoryRules,
};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::super::{Ended, Harvest, Ledger, LedgerError, Order, Outcome};
use crate::settings::Settings;

pub(super) const PER_PAGE: u64 = 10;

/// A repository. `pages` of `u64::MAX`: it never ends.
pub(super) struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    queries: Arc<Mutex<Vec<String>>>,
    heard: Arc<Notify>,
}

impl Server {
    /// `metadata` makes the content of a record.
    pub(super) async fn start(pages: u64, metadata: fn(u64) -> String) -> Self {
        Self::answering(move |query, _| {
            let page = token_of(query).map_or(0, |token| token.parse().unwrap());
            let records = (page * PER_PAGE..(page + 1) * PER_PAGE).map(|n| record(n, &metadata(n)));
            let token = if page + 1 < pages { (page + 1).to_string() } else { String::new() };
            list(records, &format!("<resumptionToken>{token}</resumptionToken>"))
        })
        .await
    }

    /// `respond` makes the response to a query; the number counts requests from 0.
    pub(super) async fn answering<B: Into<Vec<u8>>>(
        respond: impl Fn(&str, usize) -> B + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/oai", listener.local_addr().unwrap());
        let (asked, heard) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let queries = Arc::<Mutex<Vec<String>>>::default();
        let (log, bell, respond) = (Arc::clone(&asked), Arc::clone(&heard), Arc::new(respond));
        let all = Arc::clone(&queries);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (log, bell, respond) = (Arc::clone(&log), Arc::clone(&bell), Arc::clone(&respond));
                let all = Arc::clone(&all);
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while let Ok(byte) = stream.read_u8().await {
                        head.push(byte);
                        if !head.ends_with(b"\r\n\r\n") {
                            continue;
                        }
                        let text = String::from_utf8_lossy(&head).into_owned();
                        let query = text.split(' ').nth(1).and_then(|path| path.split_once('?'));
                        let query = query.map_or("", |(_, query)| query);
                        head.clear();
                        all.lock().unwrap().push(query.to_owned());
                        let number = {
                            let mut log = log.lock().unwrap();
                            log.push(token_of(query).unwrap_or_default().to_owned());
                            log.len() - 1
                        };
                        let body: Vec<u8> = respond(query, number).into();
                        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length";
                        let answer = [format!("{head}: {}\r\n\r\n", body.len()).into_bytes(), body].concat();
                        if stream.write_all(&answer).await.is_err() {
                            return;
                        }
                        bell.notify_waiters();
                        bell.notify_one();
                    }
                });
            }
        });
        Self { url, asked, queries, heard }
    }

    /// The queries that came, in order.
    pub(super) fn queries(&self) -> Vec<String> {
        self.queries.lock().unwrap().clone()
    }

    /// The tokens that were asked for, in order.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The resumption token of a query.
pub(super) fn token_of(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("resumptionToken="))
}

/// One record of the repository.
pub(super) fn record(number: u64, metadata: &str) -> String {
    format!("<record>{}<metadata>{metadata}</metadata></record>", header(number))
}

pub(super) fn header(number: u64) -> String {
    format!(
        "<header><identifier>oai:x:{number}</identifier><datestamp>2026-01-01T00:00:00Z</datestamp></header>"
    )
}

/// A page of ListRecords; `token` is the element at its end.
pub(super) fn list(records: impl Iterator<Item = String>, token: &str) -> String {
    let records: String = records.collect();
    response(&format!("<ListRecords>{records}{token}</ListRecords>"))
}

/// A response that holds `content`.
pub(super) fn response(content: &str) -> String {
    format!(
        "<?xml version='1.0'?><OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'>\
         <responseDate>2026-02-01T00:00:00Z</responseDate><request/>{content}</OAI-PMH>"
    )
}

/// Facts in memory.
#[derive(Default)]
pub(super) struct Facts {
    pub records: Mutex<HashMap<String, KnownRecord>>,
    pub position: Mutex<Option<String>>,
    pub counts: Mutex<grange_model::oai::Counts>,
    pub warnings: Mutex<Vec<String>>,
    /// The sets of each record.
    pub sets: Mutex<HashMap<String, Vec<String>>>,
    /// The set that is harvested; everything where it is absent.
    pub set: Mutex<Option<String>>,
    folders: Mutex<HashMap<String, i64>>,
    lists: AtomicI64,
    commits: AtomicU64,
    /// From this commit on the database is away, when so many pages were asked for.
    pub away: Mutex<Option<Away>>,
    /// Whether the lists of the last whole harvest lacked records.
    pub lacking: Mutex<bool>,
}

/// The commit, the pages, what was asked for and who tells of it.
type Away = (u64, usize, Arc<Mutex<Vec<String>>>, Arc<Notify>);

impl Facts {
    /// Commits from number `commit` on wait until `pages` were asked for, and fail.
    pub(super) fn go_away(&self, commit: u64, pages: usize, server: &Server) {
        let away = (commit, pages, Arc::clone(&server.asked), Arc::clone(&server.heard));
        *self.away.lock().unwrap() = Some(away);
    }

    /// Whether a record is active in the set that is harvested.
    fn is_active(&self, known: &KnownRecord) -> bool {
        let (set, sets) = (self.set.lock().unwrap(), self.sets.lock().unwrap());
        let in_set =
            set.as_ref().is_none_or(|set| sets.get(&known.identifier).is_some_and(|sets| sets.contains(set)));
        !known.deleted && in_set
    }

    /// How many commits there were.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    pub(super) fn come_back(&self) {
        *self.away.lock().unwrap() = None;
    }
}

#[async_trait]
impl Ledger for Facts {
    async fn known(&self, identifiers: &[&str]) -> Result<Vec<KnownRecord>, LedgerError> {
        let records = self.records.lock().unwrap();
        Ok(identifiers.iter().filter_map(|name| records.get(*name).cloned()).collect())
    }

    async fn folders(&self, paths: &[&str]) -> Result<Vec<(String, i64)>, LedgerError> {
        let folders = self.folders.lock().unwrap();
        Ok(paths.iter().filter_map(|path| Some(((*path).to_owned(), *folders.get(*path)?))).collect())
    }

    async fn begin_list(&self) -> Result<i64, LedgerError> {
        Ok(self.lists.fetch_add(1, Ordering::SeqCst) + 1)
    }

    async fn commit(&self, page: OaiPage) -> Result<(), LedgerError> {
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        let away = self.away.lock().unwrap().clone();
        if let Some((from, pages, asked, heard)) = away
            && number >= from
        {
            while asked.lock().unwrap().len() < pages {
                heard.notified().await;
            }
            return Err(LedgerError("the database is away".to_owned()));
        }
        let mut records = self.records.lock().unwrap();
        for row in page.records {
            let id = records.get(&row.identifier).map_or(records.len() as i64 + 1, |known| known.id);
            let known = KnownRecord {
                id,
                identifier: row.identifier.clone(),
                filename: row.filename,
                datestamp: row.datestamp,
                deleted: row.deleted,
                digest: row.digest,
                list: page.list,
            };
            self.sets.lock().unwrap().insert(row.identifier.clone(), row.sets);
            records.insert(row.identifier, known);
        }
        for known in records.values_mut().filter(|known| page.same.contains(&known.id)) {
            known.list = page.list;
        }
        self.folders.lock().unwrap().extend(page.folders);
        *self.position.lock().unwrap() = Some(page.position);
        *self.counts.lock().unwrap() = page.counts;
        self.warnings.lock().unwrap().extend(page.warnings);
        Ok(())
    }

    async fn unseen(&self, list: i64, limit: u32) -> Result<Vec<KnownRecord>, LedgerError> {
        let records = self.records.lock().unwrap();
        let unseen = records.values().filter(|known| known.list < list && self.is_active(known));
        Ok(unseen.take(limit as usize).cloned().collect())
    }

    async fn unseen_count(&self, list: i64) -> Result<u64, LedgerError> {
        let records = self.records.lock().unwrap();
        Ok(records.values().filter(|known| known.list < list && self.is_active(known)).count() as u64)
    }

    async fn active(&self) -> Result<u64, LedgerError> {
        Ok(self.records.lock().unwrap().values().filter(|known| self.is_active(known)).count() as u64)
    }

    async fn no_windows(&self) -> Result<(), LedgerError> {
        Ok(())
    }
}

/// One harvest, going on from where the facts say, of a repository that announces all deletions.
pub(super) async fn harvest(
    server: &Server,
    facts: &Arc<Facts>,
    folder: &Path,
    settings: Settings,
    spec: HarvestSpec,
) -> Outcome {
    let rules = RepositoryRules::default();
    harvest_of(server, facts, folder, (settings, spec), (DeletedSupport::Persistent, rules)).await
}

/// One harvest of a repository with this support for deleted records and these rules.
pub(super) async fn harvest_of(
    server: &Server,
    facts: &Arc<Facts>,
    folder: &Path,
    (settings, spec): (Settings, HarvestSpec),
    (deleted_support, rules): (DeletedSupport, RepositoryRules),
) -> Outcome {
    let said = Identified {
        name: "test".to_owned(),
        protocol_version: "2.0".to_owned(),
        admin_emails: Vec::new(),
        granularity: Granularity::Second,
        deleted_support,
        earliest: None,
        registry_prefix: None,
        formats: Vec::new(),
        sets: Vec::new(),
        remarks: Vec::new(),
        formats_incomplete: false,
        sets_incomplete: false,
    };
    let repository = Repository {
        id: RepositoryId(1),
        base_url: server.url.clone(),
        said,
        rules,
        added_at: Timestamp::UNIX_EPOCH,
        edition: 1,
    };
    let position = facts.position.lock().unwrap().clone();
    let (folder, lacking) = (folder.to_owned(), *facts.lacking.lock().unwrap());
    let order = Order { job: OaiJobId(1), repository, spec, position, next_from: None, lacking, folder };
    let ledger: Arc<dyn Ledger> = Arc::<Facts>::clone(facts);
    // The servers of these tests are on loopback.
    let settings = Settings { allow_networks: vec!["127.0.0.0/8".parse().unwrap()], ..settings };
    let outcome = Box::pin(Harvest::run(order, settings, ledger, Clock::system(), Shutdown::never())).await;
    // As the database does where a harvest did not fail.
    if !matches!(outcome.ended, Ended::Failed(_) | Ended::Stopped) {
        *facts.position.lock().unwrap() = None;
    }
    if let Ended::Whole { lacking, .. } = outcome.ended {
        *facts.lacking.lock().unwrap() = lacking;
    }
    outcome
}
