//! One listening session: its inbox, what it listens to, and its place on the rosters.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgNotification, PgPoolOptions};
use sqlx::{Connection, Executor};

use super::names::{inbox_name, notify_name, queue_key};
use crate::channel::{Channel, Kind};

/// Stands where a queue's key would in the lock that proves an inbox number to be nobody else's. Any number would
/// do, as long as every node has the same.
const INBOX_KEY: i32 = 0x0047_5242;

pub(super) struct Session {
    listener: PgListener,
    inbox: u32,
    listening: HashSet<Channel>,
    patience: Duration,
}

impl Session {
    pub(super) async fn open(options: &PgConnectOptions, patience: Duration) -> Result<Self, sqlx::Error> {
        within(patience, async {
            // A pool answers every trouble with "timed out"; a connection tried first says what it is.
            PgConnection::connect_with(options).await?.close().await?;
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .max_lifetime(None)
                .idle_timeout(None)
                .acquire_timeout(patience)
                .connect_lazy_with(options.clone());
            let mut listener = PgListener::connect_with(&pool).await?;
            // A new session needs its locks again, so reconnecting is ours to do.
            listener.eager_reconnect(false);
            let inbox = loop {
                let drawn: u32 = rand::random();
                if lock(&mut listener, INBOX_KEY, drawn).await? {
                    break drawn;
                }
            };
            listener.listen(&inbox_name(inbox)).await?;
            Ok(Self { listener, inbox, listening: HashSet::new(), patience })
        })
        .await
    }

    /// Listening twice is listening once.
    pub(super) async fn listen(&mut self, channel: &Channel) -> Result<(), sqlx::Error> {
        if self.listening.contains(channel) {
            return Ok(());
        }
        within(self.patience, async {
            match channel.kind() {
                Kind::Topic => self.listener.listen(&notify_name(channel)).await?,
                Kind::Queue => {
                    lock(&mut self.listener, queue_key(channel).cast_signed(), self.inbox).await?;
                }
            }
            self.listening.insert(channel.clone());
            Ok(())
        })
        .await
    }

    pub(super) async fn unlisten(&mut self, channel: &Channel) -> Result<(), sqlx::Error> {
        if !self.listening.remove(channel) {
            return Ok(());
        }
        within(self.patience, async {
            match channel.kind() {
                Kind::Topic => self.listener.unlisten(&notify_name(channel)).await?,
                Kind::Queue => {
                    sqlx::query("SELECT pg_advisory_unlock($1, $2)")
                        .bind(queue_key(channel).cast_signed())
                        .bind(self.inbox.cast_signed())
                        .execute(&mut self.listener)
                        .await?;
                }
            }
            Ok(())
        })
        .await
    }

    /// The next notification, `None` when the connection is gone. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<PgNotification>, sqlx::Error> {
        self.listener.try_recv().await
    }

    /// Finds out whether the server is still there: a connection cut in the network says nothing by itself.
    pub(super) async fn ping(&mut self) -> Result<(), sqlx::Error> {
        let patience = self.patience;
        within(patience, async { self.listener.execute("SELECT 1").await.map(|_| ()) }).await
    }
}

async fn lock(listener: &mut PgListener, key: i32, inbox: u32) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1, $2)")
        .bind(key)
        .bind(inbox.cast_signed())
        .fetch_one(listener)
        .await
}

async fn within<T>(
    patience: Duration,
    act: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(patience, act).await {
        Ok(outcome) => outcome,
        Err(_) => Err(sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            "the server did not answer in time",
        ))),
    }
}
