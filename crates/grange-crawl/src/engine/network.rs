//! Notes what visits say about our network, connects to servers to see whether it is in order, and pauses the crawl while it is
//! not. [`super::outage`] decides.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::task::JoinSet;
use url::Url;

use super::holds::Hold;
use super::hosts::authority;
use super::outage::{Finding, NetworkContact, NetworkState, was_reached};
use super::shared::Shared;
use crate::fetch::Fetched;
use crate::frontier::FrontierError;

/// What is known of our network.
#[derive(Debug, Default)]
pub(super) struct Network {
    state: Mutex<NetworkState>,
    /// Held by the worker that connects to servers: what it finds holds for all.
    probing: tokio::sync::Mutex<()>,
}

impl Network {
    fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Takes note of whether a host was reached. True if the failure is that of our own network, so that
    /// it must not count against the host or the URL.
    pub(super) async fn is_outage(&self, url: &Url, fetched: &Fetched) -> Result<bool, FrontierError> {
        let Some(reached) = was_reached(fetched) else { return Ok(false) };
        let now = self.clock.now();
        let (server, queue) = (authority(url), self.frontier.queue_name(url));
        let responded_in_earlier_run = || {
            let statistics = self.ledger.statistics();
            let tally = statistics.host_tally(url.host_str().unwrap_or_default());
            tally.is_some_and(|tally| tally.succeeded.urls > 0)
        };
        let active = || {
            let queues = self.frontier.counts(now).queues;
            queues.all.saturating_sub(queues.exhausted + queues.retired)
        };
        let responses = {
            let mut network = self.network.state();
            // Logs name hosts, not ports; they count until a server has shown in this run that the network is in order.
            let responded_before = !reached
                && (self.contacts.has_responded(&queue, &server)
                    || (network.responses() == 0 && responded_in_earlier_run()));
            let contact =
                NetworkContact { url, server: &server, status: fetched.status, reached, responded_before };
            let finding = network.note(contact, active, self.template.engine.max_outage.0, now);
            if finding != Finding::Suspected {
                // Decided and acted on under one lock, so that the last word is that of the last visit.
                self.act_on(finding, now)?;
                return Ok(finding == Finding::Outage);
            }
            network.responses()
        };
        let _probing = self.network.probing.lock().await;
        let probes = {
            let mut network = self.network.state();
            if network.responses() != responses || network.is_away() {
                return Ok(network.is_away());
            }
            network.probes()
        };
        let responding = self.first_to_respond(probes).await;
        let now = self.clock.now();
        let mut network = self.network.state();
        if let Some(server) = responding {
            let finding = network.note_response(&server);
            self.act_on(finding, now)?;
        } else if network.responses() == responses {
            network.begin_outage(now);
            self.act_on(Finding::Outage, now)?;
        }
        Ok(network.is_away())
    }

    /// Connects to servers in an outage, and ends it if one responds.
    pub(super) async fn probe_network(&self) -> Result<(), FrontierError> {
        let _probing = self.network.probing.lock().await;
        let (probes, responses) = {
            let mut network = self.network.state();
            (network.probes(), network.responses())
        };
        let responding = self.first_to_respond(probes).await;
        let now = self.clock.now();
        let mut network = self.network.state();
        let finding = match responding {
            Some(server) => network.note_response(&server),
            None if network.responses() == responses => {
                network.still_away(self.template.engine.max_outage.0, now)
            }
            None => Finding::Nothing,
        };
        self.act_on(finding, now)
    }

    /// The first of some servers to which a connection can be made.
    async fn first_to_respond(&self, servers: Vec<String>) -> Option<String> {
        let mut tries = JoinSet::new();
        for server in servers {
            let Ok(url) = Url::parse(&server) else { continue };
            let fetcher = self.fetcher.clone();
            tries.spawn(async move { fetcher.can_connect(&url).await.then_some(server) });
        }
        while let Some(tried) = tries.join_next().await {
            if let Ok(Some(server)) = tried {
                return Some(server);
            }
        }
        None
    }

    fn act_on(&self, finding: Finding, now: Timestamp) -> Result<(), FrontierError> {
        match finding {
            Finding::Nothing | Finding::Suspected => {}
            Finding::Outage => {
                let reason = "no host can be reached; check the network of this machine".to_owned();
                if self.ledger.holds.set(Hold::Outage, reason) {
                    tracing::warn!(
                        "no host can be reached: crawl paused until one answers; check the network"
                    );
                }
            }
            Finding::Over => {
                self.ledger.holds.clear(Hold::Outage);
                let revived = self.revive(None, now)?;
                tracing::info!(queues = revived, "a host answers again: crawl resumed");
            }
            Finding::GaveUp => {
                self.ledger.holds.clear(Hold::Outage);
                tracing::warn!(
                    "no host could be reached for engine.max_outage: hosts are given up one by one"
                );
            }
        }
        Ok(())
    }
}
