//! The bus over PostgreSQL LISTEN/NOTIFY: a cluster that has the database needs no further service.
//!
//! **Topic:** `NOTIFY` on the channel's own name; every process that listens gets it.
//!
//! **Queue:** exactly one process is told. Each bus holds one session with an inbox (a NOTIFY channel of its own) and,
//! per queue it listens to, an advisory lock (hash of the queue, inbox). `pg_locks` is then the roster of listeners:
//! the publisher draws one and notifies that inbox only, in one statement. PostgreSQL itself strikes a dead session
//! off the roster, there is no table to own, migrate, vacuum or sweep, and N-1 processes are not woken in vain, as
//! they would be if all were told and then raced for a claim row. A session that is cut off without the server
//! noticing keeps its place until TCP gives up; hints drawn for it are lost, which is what hints may be.
//!
//! One connection listens, up to [`PUBLISHERS`] publish. LISTEN binds to a session, so a pooler in transaction mode
//! (PgBouncer) must be bypassed for `bus.url`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grange_base::{Clock, Shutdown, Trigger};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tokio::sync::{mpsc, oneshot, watch};

use crate::address::masked;
use crate::bus::{Bus, State};
use crate::channel::{Channel, Kind};
use crate::error::Error;
use crate::meter;
use crate::registry::Registry;
use crate::settings::Settings;
use crate::subscription::Subscription;
use crate::wire::Message;

mod listener;
mod names;
mod session;

use listener::{Command, Listener};
use session::Session;

/// Connections for publishing. A notification is one short statement, so two serve hundreds a second and a node
/// takes little of the server's limit.
const PUBLISHERS: u32 = 2;

/// An unused publishing connection is given back after this: many nodes publish rarely.
const PUBLISHER_IDLE: Duration = Duration::from_mins(5);

/// Tells the one drawn from the roster. Advisory locks made of two numbers have `objsubid` 2; the pair is `classid`
/// (the queue) and `objid` (the inbox).
const TELL_ONE: &str = "SELECT pg_notify('grange_inbox_' || objid::bigint, $2) FROM (
    SELECT objid FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1::bigint::oid
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY random() LIMIT 1) AS drawn";

const TELL_ALL: &str = "SELECT pg_notify($1, $2)";

pub(crate) struct Postgres {
    place: String,
    pool: PgPool,
    registry: Arc<Registry>,
    /// Unbounded, because it holds at most one entry per subscription begun or ended.
    commands: mpsc::UnboundedSender<Command>,
    states: watch::Receiver<State>,
    connect_timeout: Duration,
    publish_timeout: Duration,
    buffer: usize,
    /// Ends the listening task with this bus.
    end: Trigger,
}

impl Postgres {
    pub(crate) async fn open(
        url: &str,
        settings: &Settings,
        clock: &Clock,
        shutdown: &Shutdown,
    ) -> Result<Self, Error> {
        let place = masked(url);
        let (connect, publish) = (settings.connect_timeout.0, settings.publish_timeout.0);
        // sqlx names the faulty part of a URL, never the password in it.
        let unreachable = |source| Error::Unreachable { place: place.clone(), tried: connect, source };
        let options = PgConnectOptions::from_str(url)
            .map_err(|error| unreachable(error.into()))?
            .application_name("grange-bus");
        let session = Session::open(&options, connect).await.map_err(|error| unreachable(error.into()))?;
        let pool = PgPoolOptions::new()
            .max_connections(PUBLISHERS)
            .acquire_timeout(publish)
            .idle_timeout(PUBLISHER_IDLE)
            .connect_lazy_with(options.clone());

        let registry = Arc::new(Registry::default());
        let (commands, orders) = mpsc::unbounded_channel();
        let (state, states) = watch::channel(State::Connected);
        meter::state(&place, State::Connected);
        let end = Trigger::below(shutdown);
        let listener = Listener {
            place: place.clone(),
            options,
            connect_timeout: connect,
            registry: Arc::clone(&registry),
            orders,
            state,
            clock: clock.clone(),
            shutdown: end.listener(),
        };
        tokio::spawn(listener.run(session));
        Ok(Self {
            place,
            pool,
            registry,
            commands,
            states,
            connect_timeout: connect,
            publish_timeout: publish,
            buffer: settings.buffer(),
            end,
        })
    }

    async fn send(&self, channel: &Channel, message: &Message) -> Result<(), Error> {
        let payload = names::payload(channel, &message.encode()?);
        // The listening session is the one that knows whether the server is there. Trying anyway would hold up a
        // worker for the whole timeout, once per hint, as long as the outage lasts.
        if let State::Reconnecting { since } = self.state() {
            return Err(Error::Disconnected {
                channel: channel.name().to_owned(),
                place: self.place.clone(),
                since,
            });
        }
        let query = match channel.kind() {
            Kind::Topic => sqlx::query(TELL_ALL).bind(names::notify_name(channel)),
            Kind::Queue => sqlx::query(TELL_ONE).bind(i64::from(names::queue_key(channel))),
        };
        let waited = self.publish_timeout;
        match tokio::time::timeout(waited, query.bind(payload).execute(&self.pool)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(sqlx::Error::PoolTimedOut)) | Err(_) => {
                Err(Error::TimedOut { channel: channel.name().to_owned(), place: self.place.clone(), waited })
            }
            Ok(Err(source)) => Err(Error::Publish {
                channel: channel.name().to_owned(),
                place: self.place.clone(),
                source: source.into(),
            }),
        }
    }
}

#[async_trait]
impl Bus for Postgres {
    async fn publish(&self, channel: &Channel, message: &Message) -> Result<(), Error> {
        meter::published(channel, self.send(channel, message).await)
    }

    async fn subscribe(&self, channel: &Channel) -> Result<Subscription, Error> {
        let subscription = self.registry.add(channel, self.buffer);
        let (done, listening) = oneshot::channel();
        // Fails only after shutdown, when there is nothing to hear any more.
        let _ = self.commands.send(Command::Listen(channel.clone(), done));
        if self.state() == State::Connected {
            // When the server is gone without our noticing yet, listening starts on the next session.
            let _ = tokio::time::timeout(self.connect_timeout, listening).await;
        }
        let (commands, gone) = (self.commands.clone(), channel.clone());
        Ok(subscription.on_end(move || {
            let _ = commands.send(Command::Unlisten(gone));
        }))
    }

    fn states(&self) -> watch::Receiver<State> {
        self.states.clone()
    }

    fn place(&self) -> &str {
        &self.place
    }
}

/// Without what the client library remembers, which includes the password.
impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("place", &self.place)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end.pull();
    }
}
