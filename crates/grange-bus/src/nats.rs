//! The bus over NATS: the channel's name is the subject, a queue is a queue group. Core NATS, no JetStream: what
//! must survive is a row.
//!
//! The client library reconnects and subscribes again by itself; this file gives it the back-off, bounds every wait,
//! and tells the rest of Grange in what state the connection is.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, Subscriber};
use async_trait::async_trait;
use futures_util::StreamExt;
use grange_base::retry::jittered;
use grange_base::{Clock, Retry, RetryPolicy, Shutdown, Trigger};
use tokio::sync::watch;
use url::Url;

use crate::address::masked;
use crate::bus::{Bus, State};
use crate::channel::{Channel, Kind};
use crate::error::Error;
use crate::meter;
use crate::settings::Settings;
use crate::subscription::{Feed, Subscription, pair};
use crate::wire::Message;

/// All Grange listeners of a queue are one group, so that the server gives each message to one of them.
const GROUP: &str = "grange";

/// Two unanswered pings end a connection that died in the network: noticed within a minute.
const PING: Duration = Duration::from_secs(20);

pub(crate) struct Nats {
    place: String,
    client: Client,
    states: watch::Receiver<State>,
    publish_timeout: Duration,
    buffer: usize,
    /// Ends the forwarding tasks with this bus.
    end: Trigger,
}

impl Nats {
    pub(crate) async fn open(
        servers: Vec<Url>,
        settings: &Settings,
        clock: &Clock,
        shutdown: &Shutdown,
    ) -> Result<Self, Error> {
        let place = masked(&servers.iter().map(Url::as_str).collect::<Vec<_>>().join(","));
        let (options, servers) = credentials(servers, settings.token_file.as_deref())?;
        let tried = settings.connect_timeout.0;
        let unreachable = |source| Error::Unreachable { place: place.clone(), tried, source };
        let (state, states) = watch::channel(State::Connected);
        let observer = Observer { place: place.clone(), clock: clock.clone(), state };
        let observer = Arc::new(Mutex::new(observer));
        let options = options
            .name("grange")
            .connection_timeout(tried)
            .ping_interval(PING)
            .max_reconnects(None)
            .reconnect_delay_callback(back_off)
            .event_callback(move |event| {
                // In order, one at a time; the lock is never held across a wait.
                observer.lock().unwrap_or_else(PoisonError::into_inner).hear(&event);
                async {}
            });
        let servers = servers
            .into_iter()
            .map(async_nats::ServerAddr::from_url)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unreachable(error.into()))?;
        // Twice, as each of several servers is tried for that long and the first may be down.
        let client = tokio::time::timeout(tried * 2, options.connect(servers))
            .await
            .map_err(|elapsed| unreachable(elapsed.into()))?
            .map_err(|error| unreachable(error.into()))?;
        Ok(Self {
            place,
            client,
            states,
            publish_timeout: settings.publish_timeout.0,
            buffer: settings.buffer(),
            end: Trigger::below(shutdown),
        })
    }

    async fn send(&self, channel: &Channel, message: &Message) -> Result<(), Error> {
        let text = message.encode()?;
        if let State::Reconnecting { since } = self.state() {
            return Err(Error::Disconnected {
                channel: channel.name().to_owned(),
                place: self.place.clone(),
                since,
            });
        }
        let publish =
            |source| Error::Publish { channel: channel.name().to_owned(), place: self.place.clone(), source };
        let waited = self.publish_timeout;
        let sending = async {
            self.client
                .publish(channel.name().to_owned(), text.into())
                .await
                .map_err(|error| publish(error.into()))?;
            self.client.flush().await.map_err(|error| publish(error.into()))
        };
        tokio::time::timeout(waited, sending).await.unwrap_or_else(|_| {
            Err(Error::TimedOut { channel: channel.name().to_owned(), place: self.place.clone(), waited })
        })
    }

    async fn listen(&self, channel: &Channel) -> Result<Subscriber, Error> {
        let subject = channel.name().to_owned();
        let subscribed = match channel.kind() {
            Kind::Topic => self.client.subscribe(subject).await,
            Kind::Queue => self.client.queue_subscribe(subject, GROUP.to_owned()).await,
        };
        subscribed.map_err(|error| Error::Subscribe {
            channel: channel.name().to_owned(),
            place: self.place.clone(),
            source: error.into(),
        })
    }

    /// Comes back once the server has read everything sent before, subscriptions included: it answers in order.
    /// A user without the right to inboxes costs the timeout here and nothing else.
    async fn round_trip(&self) {
        let trip = async {
            let inbox = self.client.new_inbox();
            let mut echo = self.client.subscribe(inbox.clone()).await.ok()?;
            self.client.publish(inbox, "".into()).await.ok()?;
            echo.next().await
        };
        let _ = tokio::time::timeout(self.publish_timeout, trip).await;
    }
}

#[async_trait]
impl Bus for Nats {
    async fn publish(&self, channel: &Channel, message: &Message) -> Result<(), Error> {
        meter::published(channel, self.send(channel, message).await)
    }

    async fn subscribe(&self, channel: &Channel) -> Result<Subscription, Error> {
        let waited = self.publish_timeout;
        let subscriber =
            tokio::time::timeout(waited, self.listen(channel)).await.unwrap_or_else(|elapsed| {
                Err(Error::Subscribe {
                    channel: channel.name().to_owned(),
                    place: self.place.clone(),
                    source: elapsed.into(),
                })
            })?;
        if self.state() == State::Connected {
            self.round_trip().await;
        }
        let (feed, subscription) = pair(channel, self.buffer);
        let forwarding = forward(subscriber, feed, channel.clone(), self.place.clone(), self.end.listener());
        let task = tokio::spawn(forwarding).abort_handle();
        Ok(subscription.on_end(move || task.abort()))
    }

    fn states(&self) -> watch::Receiver<State> {
        self.states.clone()
    }

    fn place(&self) -> &str {
        &self.place
    }
}

/// Without what the client library remembers, which includes the password.
impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats")
            .field("place", &self.place)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.end.pull();
    }
}

/// Moves messages into the listener's buffer, which never makes anyone wait: a slow listener cannot fill up the
/// client library, which would drop the newest and not the oldest.
async fn forward(mut from: Subscriber, to: Feed, channel: Channel, place: String, shutdown: Shutdown) {
    while let Some(Some(message)) = shutdown.or(from.next()).await {
        match Message::decode(&message.payload) {
            Ok(message) => {
                meter::received(&channel);
                if !to.push(message) {
                    break;
                }
            }
            Err(error) => meter::unreadable(&place, &error),
        }
    }
}

#[derive(Debug)]
struct Observer {
    place: String,
    clock: Clock,
    state: watch::Sender<State>,
}

impl Observer {
    fn hear(&self, event: &Event) {
        match event {
            Event::Connected => self.tell(State::Connected),
            Event::Disconnected => {
                tracing::warn!(bus = %self.place, "bus connection lost, reconnecting");
                self.tell(State::Reconnecting { since: self.clock.now() });
            }
            Event::ServerError(_) | Event::ClientError(_) | Event::SlowConsumer(_) => {
                tracing::warn!(bus = %self.place, %event, "bus trouble");
            }
            _ => tracing::info!(bus = %self.place, %event, "bus event"),
        }
    }

    fn tell(&self, state: State) {
        meter::state(&self.place, state);
        self.state.send_replace(state);
    }
}

fn back_off(attempt: usize) -> Duration {
    let policy = RetryPolicy::RECONNECT;
    let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
    jittered(policy.wait(attempt, Retry::Soon).unwrap_or(policy.most))
}

/// Takes the credentials out of the URLs, so that no later error text can show them.
fn credentials(
    mut servers: Vec<Url>,
    token_file: Option<&Path>,
) -> Result<(ConnectOptions, Vec<Url>), Error> {
    let mut user = None;
    for server in &mut servers {
        if !server.username().is_empty() {
            let password = server.password().map(decoded);
            user.get_or_insert((decoded(server.username()), password));
        }
        // Fail only for URLs without a host, which were refused before.
        let _ = server.set_password(None);
        let _ = server.set_username("");
    }
    let secret = token_file
        .map(|path| {
            std::fs::read_to_string(path)
                .map(|text| text.trim().to_owned())
                .map_err(|source| Error::TokenFile { path: path.to_owned(), source })
        })
        .transpose()?;
    let options = ConnectOptions::new();
    let options = match (user, secret) {
        (Some((user, _)), Some(secret)) => options.user_and_password(user, secret),
        (Some((user, Some(password))), None) => options.user_and_password(user, password),
        (Some((token, None)), None) | (None, Some(token)) => options.token(token),
        (None, None) => options,
    };
    Ok((options, servers))
}

fn decoded(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}
