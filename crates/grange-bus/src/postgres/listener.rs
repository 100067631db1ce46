//! The task that listens: hands out what comes, follows subscriptions, and makes the session again when it is lost.

use std::sync::Arc;
use std::time::Duration;

use grange_base::retry::jittered;
use grange_base::{Clock, Retry, RetryPolicy, Shutdown};
use sqlx::postgres::PgConnectOptions;
use tokio::sync::{mpsc, oneshot, watch};

use super::names::read_payload;
use super::session::Session;
use crate::bus::State;
use crate::channel::Channel;
use crate::meter;
use crate::registry::Registry;
use crate::wire::Message;

/// How long the session may be silent before it is asked for a sign of life. Below the five minutes after which
/// firewalls commonly forget a connection; rare enough to cost nothing.
const SILENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) enum Command {
    /// Listen, and say so when done.
    Listen(Channel, oneshot::Sender<()>),
    /// A listener went; stop if it was the last.
    Unlisten(Channel),
}

pub(super) struct Listener {
    pub(super) place: String,
    pub(super) options: PgConnectOptions,
    pub(super) connect_timeout: Duration,
    pub(super) registry: Arc<Registry>,
    pub(super) orders: mpsc::UnboundedReceiver<Command>,
    pub(super) state: watch::Sender<State>,
    pub(super) clock: Clock,
    pub(super) shutdown: Shutdown,
}

impl Listener {
    pub(super) async fn run(mut self, mut session: Session) {
        loop {
            match self.serve(&mut session).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(bus = %self.place, %error, "bus connection lost, reconnecting");
                }
            }
            self.tell(State::Reconnecting { since: self.clock.now() });
            drop(session);
            let Some(again) = self.reconnect().await else {
                break;
            };
            session = again;
            self.tell(State::Connected);
        }
        self.registry.close();
    }

    /// Until shutdown (`Ok`) or the loss of the session.
    async fn serve(&mut self, session: &mut Session) -> Result<(), sqlx::Error> {
        loop {
            tokio::select! {
                () = self.shutdown.wait() => return Ok(()),
                order = self.orders.recv() => match order {
                    Some(Command::Listen(channel, done)) => {
                        session.listen(&channel).await?;
                        // Whoever waited may have given up.
                        let _ = done.send(());
                    }
                    Some(Command::Unlisten(channel)) => {
                        if !self.registry.listens(&channel) {
                            session.unlisten(&channel).await?;
                        }
                    }
                    None => return Ok(()),
                },
                heard = session.next() => match heard? {
                    Some(notification) => self.hand_out(notification.payload()),
                    None => return Err(sqlx::Error::Io(std::io::ErrorKind::ConnectionAborted.into())),
                },
                () = self.clock.sleep(SILENCE) => session.ping().await?,
            }
        }
    }

    fn hand_out(&self, payload: &str) {
        // Anyone who can connect to the database can notify; what is not ours is skipped.
        let Some((name, text)) = read_payload(payload) else {
            return;
        };
        let Ok(channel) = Channel::parse(name) else { return };
        match Message::decode(text.as_bytes()) {
            Ok(message) => {
                self.registry.deliver(&channel, message);
            }
            Err(error) => meter::unreadable(&self.place, &error),
        }
    }

    /// Tries for ever; `None` on shutdown. Listens to all it did before it says that it is back.
    async fn reconnect(&mut self) -> Option<Session> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let error = match self.shutdown.or(Box::pin(self.connect())).await? {
                Ok(session) => return Some(session),
                Err(error) => error,
            };
            let policy = RetryPolicy::RECONNECT;
            let wait = policy.wait(attempt, Retry::Soon).unwrap_or(policy.most);
            tracing::warn!(bus = %self.place, attempt, wait_ms = wait.as_millis() as u64, %error,
                "cannot reach the bus, trying again");
            self.shutdown.or(self.clock.sleep(jittered(wait))).await?;
        }
    }

    async fn connect(&self) -> Result<Session, sqlx::Error> {
        let mut session = Session::open(&self.options, self.connect_timeout).await?;
        for channel in self.registry.channels() {
            session.listen(&channel).await?;
        }
        Ok(session)
    }

    fn tell(&self, state: State) {
        meter::state(&self.place, state);
        self.state.send_replace(state);
    }
}
