//! The start-up story of a node, and its end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use grange_app::OpenArchive;
use grange_archive::ArchiveClient;
use grange_base::worker::Hint;
use grange_base::{Clock, Retry, Shutdown, Trigger, telemetry};
use grange_blob::{Offers, Reach};
use grange_bus::{Announcer, Waker};
use grange_db::{Db, NewNode};
use grange_model::ids::NodeId;
use grange_model::node::{NodeRecord, NodeRole};
use grange_web::LocalToken;

use crate::data::{DataError, DataFolder, RunningNode, free_bytes};
use crate::findings;
use crate::front::Front;
use crate::health::{self, Health};
use crate::late_archive::LateArchive;
use crate::peer::auth::NodeAuth;
use crate::peer::elsewhere::Elsewhere;
use crate::peer::files::Held;
use crate::peer::known::Register;
use crate::peer::proof::{Gate, NodeToken, TokenError};
use crate::peer::routes::{Hello, PeerState};
use crate::serve::{ListenError, listen, serve};
use crate::settings::{Settings, below};
use crate::supervise::{Failure, Parts};
use crate::waiting::{keep_opening, try_archive, until_there};
use crate::{VERSION, housekeeping, oai, open, peer, role, roles, secret};

/// Why a node did not start. Nothing was left half-made.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Role(#[from] roles::RoleError),
    #[error(transparent)]
    SameId(#[from] crate::same_id::SameId),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Db(#[from] grange_db::Error),
    #[error(transparent)]
    Bus(#[from] grange_bus::Error),
    #[error(transparent)]
    Archive(#[from] grange_archive::Error),
    #[error(transparent)]
    App(#[from] grange_app::Error),
    #[error(transparent)]
    Api(#[from] grange_api::ApiError),
    #[error(transparent)]
    Collections(#[from] grange_replay::collect::WatchError),
    #[error(transparent)]
    Bucket(#[from] grange_blob::Error),
    #[error(transparent)]
    Swap(#[from] grange_swap::Error),
    #[error(transparent)]
    Authority(#[from] grange_replay::proxy::AuthorityError),
    #[error(transparent)]
    Texts(#[from] grange_i18n::FolderError),
    #[error("replay.user_header: \"{0}\" is no name of a header")]
    UserHeader(String),
    #[error("cannot speak HTTP to other nodes")]
    Http(#[source] reqwest::Error),
    #[error("the node was stopped before it had started")]
    Stopped,
    #[error(
        "the node on {} (process {pid}) does not take commands after {} s: {reason}; ask its /readyz, or see its log",
        data.display(), crate::data::WAIT_MAX.as_secs()
    )]
    NotYet { data: std::path::PathBuf, pid: u32, reason: String },
}

impl StartError {
    /// Whether the start may succeed later without anybody changing anything.
    pub(crate) fn retry(&self) -> Retry {
        match self {
            Self::Db(error) => error.retry(),
            Self::Bus(error) => error.retry(),
            Self::Archive(error) => error.retry(),
            Self::Bucket(error) => error.retry(),
            Self::App(grange_app::Error::Db(error)) => error.retry(),
            Self::App(grange_app::Error::Archive(error)) => error.retry(),
            _ => Retry::No,
        }
    }
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    id: NodeId,
    db: Db,
    data: DataFolder,
    parts: Parts,
    /// Carries hints from the bus to the workers.
    _wakers: Vec<Waker>,
    /// Ends what lives as long as the node itself, such as the bus connection.
    end: Trigger,
    settings: Settings,
    record: NodeRecord,
    /// The password of the first admin, made on the first start and shown once.
    first_password: Option<String>,
}

impl Node {
    /// Starts a node: data folder, ports, store, bus, roles. Every step that can fail for good comes before the first one
    /// that other nodes or people could see. Backends that are away are waited for until `stop`; meanwhile the ports
    /// answer `/healthz`, and `/readyz` with the reason.
    pub async fn start(
        settings: Settings,
        data: DataFolder,
        machine: Clock,
        stop: &Shutdown,
    ) -> Result<Self, StartError> {
        telemetry::start_metrics();
        let chosen = roles::chosen(&settings.node.roles, !settings.swap.partitions.is_empty())?;
        let file = open::database_file(&settings, data.path());
        data.refuse_lost_database(file.as_deref())?;
        if let Some(file) = file.filter(|file| !file.exists())
            && !open::full_replicas(&settings, data.path(), &machine).await.is_empty()
        {
            return Err(data.lost_database(&file).into());
        }
        data.known_node_id()?;
        housekeeping::clear_scratch(&data.path().join("spool"));
        let token = NodeToken::read_or_make(&below(data.path(), &settings.node.token_file))?;
        let node_listener = listen(settings.node.listen, "node.listen").await?;
        let node_address = address_of(&node_listener, settings.node.listen);
        let web_listener = if chosen.contains(&NodeRole::Admin) {
            Some(listen(settings.web.listen, "web.listen").await?)
        } else {
            None
        };

        let replay_ports = if chosen.contains(&NodeRole::Replay) {
            Some(role::replay::Ports::take(&settings).await?)
        } else {
            None
        };

        let swap = if chosen.contains(&NodeRole::Swap) {
            Some(role::swap::Swap::open(&settings, data.path(), &machine).await?)
        } else {
            None
        };

        // From here on the node answers, whatever is away.
        let health = Health::default();
        let mut parts = Parts::default();
        let gate = Arc::new(Gate::new(token.clone()));
        let node_front = Front::new(starting(&health, Some((Arc::clone(&gate), machine.clone()))));
        parts.start("node", |shutdown| serve(node_listener, node_front.routes(), shutdown));
        let admin = web_listener.map(|listener| {
            let (address, front) =
                (address_of(&listener, settings.web.listen), Front::new(starting(&health, None)));
            parts.start("admin", |shutdown| serve(listener, front.routes(), shutdown));
            (address, front)
        });
        let local = secret::random();
        let url = format!("http://{node_address}");
        data.announce(&RunningNode { pid: std::process::id(), url, token: local.clone() })?;

        let open_db = || async { Ok(open::db(&settings, data.path(), machine.clone()).await?) };
        let db = until_there("database", &health, stop, open_db).await?;
        let id = data.node_id()?;
        // One clock for all nodes of a shared database.
        let clock = db.clock();
        let end = Trigger::new();
        let listener = end.listener();
        let open_bus = || async { Ok(Box::pin(open::bus(&settings, data.path(), &clock, &listener)).await?) };
        let bus = until_there("bus", &health, stop, open_bus).await?;
        health.opened(db.clone(), Arc::clone(&bus));
        let auth = NodeAuth { node: id.to_string(), token: token.clone(), clock: clock.clone() };
        let channels = settings.bus.channels()?;
        let announcer = Announcer::new(Arc::clone(&bus), channels, clock.clone(), &format!("{id}/node"));
        let held = if chosen.contains(&NodeRole::Bitarchive) {
            open::held(&settings, data.path(), &clock).await?
        } else {
            Held::default()
        };
        let offers = Offers::new(id.to_string());
        let speaking = open::Speaking { auth: Arc::new(auth.clone()), offers: Some(offers.clone()) };
        let reach = Reach::new(Arc::new(Register(db.clone())), Arc::clone(&speaking.auth), clock.clone())
            .map_err(grange_archive::Error::from)?;
        let archive = open_archive(&settings, &data, id, &db, &clock, speaking, &announcer);
        let open_app = || async {
            let (db, clock, archive) = (db.clone(), clock.clone(), archive.clone());
            Ok(open::app(&settings, &data, db, clock, archive, Some(announcer.clone())).await?)
        };
        let app = until_there("database", &health, stop, open_app).await?;
        // A replica that cannot be used is known before anybody relies on it; one that is away is waited for.
        let archiver = chosen.contains(&NodeRole::Archiver);
        let archive_there = try_archive(&archive, &health).await?;
        if !archive_there {
            let (archive, health) = (archive.clone(), health.clone());
            parts.start("archive opening", move |shutdown| keep_opening(archive, health, shutdown, archiver));
        }
        let open_copies = || async { Ok(role::indexer::copies(&settings, data.path(), &chosen).await?) };
        let copies = until_there("index copies", &health, stop, open_copies).await?;
        let oai_hint = Hint::new();
        let app =
            app.with_oai(Arc::new(oai::Port::of_node(&settings, data.path(), &db, &clock, oai_hint.clone())));
        let first_password =
            until_there("database", &health, stop, || async { Ok(app.first_admin().await?) }).await?;

        let mut addresses = BTreeMap::new();
        let told = if settings.node.advertise.is_empty() {
            node_address.to_string()
        } else {
            settings.node.advertise.clone()
        };
        addresses.insert("node".to_owned(), told);
        if let Some((address, _)) = &admin {
            addresses.insert("admin".to_owned(), format!("http://{address}"));
        }
        if let Some(ports) = &replay_ports {
            let (wayback, proxy) = ports.addresses(&settings);
            addresses.insert("replay".to_owned(), format!("http://{wayback}"));
            addresses.insert("proxy".to_owned(), format!("http://{proxy}"));
        }
        if let Some(swap) = &swap {
            addresses.insert("swap".to_owned(), format!("http://{}", swap.address()));
        }
        let host = host_name();
        let new = NewNode {
            id,
            name: if settings.node.name.is_empty() { host.clone() } else { settings.node.name.clone() },
            host,
            roles: chosen.clone(),
            version: VERSION.to_owned(),
            addresses,
            free_bytes: data.free_bytes(),
        };
        let lost_after = settings.node.heartbeat.0 * 3;
        let refused = || async { crate::same_id::refuse(&db, &new, lost_after, &clock, stop).await };
        until_there("database", &health, stop, refused).await?;
        let register = || async { Ok(db.nodes().register(new.clone()).await?) };
        let record = until_there("database", &health, stop, register).await?;

        // Hints from other nodes wake this one's workers; without any of them they wake by themselves.
        let wake = Hint::new();
        let waker = grange_bus::wake(&*bus, &announcer.channels().all_nodes(), &wake).await?;
        announcer.hint(&announcer.channels().all_nodes(), "node-started", &id.to_string()).await;

        keep_house(&mut parts, &settings, &data, new, &db, &clock, &wake, &health);
        parts.start("findings", |shutdown| {
            let (db, announcer, clock, open) =
                (db.clone(), announcer.clone(), clock.clone(), health.findings().clone());
            findings::watch(db, announcer, id, lost_after, open, clock, shutdown)
        });

        let key = Arc::new(LocalToken::new(local));
        let peers = PeerState {
            gate,
            clock: clock.clone(),
            hello: Hello {
                node: id.to_string(),
                name: record.name.clone(),
                version: VERSION.to_owned(),
                roles: chosen.iter().map(ToString::to_string).collect(),
            },
            wake,
        };
        let acts = grange_web::Web { app: app.clone(), local: Some(Arc::clone(&key)), version: VERSION };
        let mut brought = peer::files::routes(held, &reach, offers.clone());
        if chosen.contains(&NodeRole::Archiver) {
            brought = brought.merge(peer::deposit::routes(archive.clone(), reach));
        }
        let routes = peer::routes::routes(peers, brought)
            .merge(health::private(health.clone()))
            .merge(grange_web::api(acts));
        node_front.show(routes);
        let mut wakers = vec![waker];
        // With a replica away it comes later: harvests do not wait for days.
        if archiver && archive_there {
            roles::look_for_strays(archive.get().await?).await;
        }
        if chosen.contains(&NodeRole::Scheduler) {
            wakers.push(roles::scheduler(&mut parts, &settings, &db, &clock, id, &*bus, &announcer).await?);
        }
        if chosen.contains(&NodeRole::Archiver) {
            roles::archiver(&mut parts, &archive, &clock);
        }
        // Where files are brought: to this node's archive, or the way to one that can prove every replica.
        let deposit_place: Arc<dyn ArchiveClient> = if chosen.contains(&NodeRole::Archiver) {
            Arc::new(LateArchive(archive.clone()))
        } else {
            let (here, lost_after) = (LateArchive(archive.clone()), settings.node.heartbeat.0 * 3);
            let algorithms = settings.archive.checksums.clone();
            let elsewhere = Elsewhere::new(here, algorithms, db.clone(), auth, offers, lost_after);
            Arc::new(elsewhere.map_err(StartError::Http)?)
        };
        if chosen.contains(&NodeRole::Oai) {
            db.raise_numbers(oai::numbers_of_folders(&settings, data.path())).await?;
            let worker = oai::worker(&settings, data.path(), &db, &clock, &id.to_string());
            let answers = oai::answers(&settings, data.path(), &db, Arc::clone(&deposit_place), &record.name);
            oai::role(&mut parts, &worker, answers, &clock, &oai_hint);
        }
        if chosen.contains(&NodeRole::Harvester) {
            let tools = role::harvester::Tools {
                settings: &settings,
                data: data.path(),
                db: &db,
                archive: deposit_place,
                clock: &clock,
                bus: &*bus,
                announcer: &announcer,
                name: format!("{}/{id}", record.name),
                host: record.host.clone(),
            };
            wakers.extend(role::harvester::start(&mut parts, tools).await?);
        }
        // One handle to each index for all roles of this process: what the indexer commits, replay sees at once.
        let shelf = role::indexer::shelf(&settings, data.path(), chosen.contains(&NodeRole::Indexer));
        if chosen.contains(&NodeRole::Indexer) {
            role::indexer::start(
                &mut parts,
                &settings,
                data.path(),
                &db,
                shelf.clone(),
                archive.clone(),
                copies.clone(),
                &clock,
                id.to_string(),
            )
            .await?;
        }
        if let Some(ports) = replay_ports {
            let client: Arc<dyn ArchiveClient> = Arc::new(LateArchive(archive));
            role::replay::start(
                &mut parts,
                &settings,
                data.path(),
                &db,
                &shelf,
                client,
                copies,
                &clock,
                ports,
            )
            .await?;
        }
        if let Some(swap) = swap {
            swap.start(&mut parts);
        }
        if let Some((_, front)) = admin {
            front.show(roles::admin(app, key, health.clone()));
        }
        health.started();
        tracing::info!(node.id = %id, version = VERSION, roles = ?chosen, data = %data.path().display(), "node started");
        Ok(Self { id, db, data, parts, _wakers: wakers, end, settings, record, first_password })
    }

    /// How the node stands in the register: its name, roles and addresses.
    pub fn record(&self) -> &NodeRecord {
        &self.record
    }

    /// The first admin's password, if this start made it.
    pub fn first_password(&self) -> Option<&str> {
        self.first_password.as_deref()
    }

    /// Runs until shutdown is requested or a part fails, then stops in good order.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), Failure> {
        let failure = tokio::select! {
            () = shutdown.wait() => None,
            failure = self.parts.failure() => Some(failure),
        };
        self.stop().await;
        failure.map_or(Ok(()), Err)
    }

    /// Stops every part in reverse order within the deadline and says so in the register.
    pub async fn stop(self) {
        tracing::info!("stopping");
        self.data.withdraw();
        self.parts.stop(self.settings.node.stop_deadline.0).await;
        if let Err(error) = self.db.nodes().mark_stopped(self.id).await {
            tracing::warn!(%error, "could not sign off; other nodes will see this one as lost");
        }
        self.end.pull();
        self.db.close().await;
        tracing::info!("stopped");
    }
}

/// The archive of this node, opened at the first call.
fn open_archive(
    settings: &Settings,
    data: &DataFolder,
    id: NodeId,
    db: &Db,
    clock: &Clock,
    speaking: open::Speaking,
    announcer: &Announcer,
) -> OpenArchive {
    let (settings, data, db, clock) = (settings.clone(), data.path().to_owned(), db.clone(), clock.clone());
    let announcer = announcer.clone();
    OpenArchive::new(move || {
        let (settings, data, db, clock) = (settings.clone(), data.clone(), db.clone(), clock.clone());
        let (speaking, announcer) = (speaking.clone(), announcer.clone());
        Box::pin(open::archive(settings, data, db, clock, id.to_string(), Some(speaking), Some(announcer)))
    })
}

/// What a port answers while the node starts. Peers get their proof with it, so that they do not take this node for a
/// stranger.
fn starting(health: &Health, peers: Option<(Arc<Gate>, Clock)>) -> axum::Router {
    let others = health::not_started(health.clone());
    match peers {
        Some((gate, clock)) => {
            let refused = axum::Router::new().route("/peer/{*rest}", others.clone());
            let proven = peer::routes::gated(gate, clock, refused);
            health::private(health.clone()).merge(proven).fallback(others)
        }
        None => health::public(health.clone()).fallback(others),
    }
}

#[allow(clippy::too_many_arguments)] // Each is a handle that is opened elsewhere.
fn keep_house(
    parts: &mut Parts,
    settings: &Settings,
    data: &DataFolder,
    new: NewNode,
    db: &Db,
    clock: &Clock,
    wake: &Hint,
    health: &Health,
) {
    let path = data.path().to_owned();
    let beat = housekeeping::Heart {
        db: db.clone(),
        node: new,
        health: health.clone(),
        clock_skew_max: settings.node.clock_skew_max.0,
        free_bytes: Box::new(move || free_bytes(&path)),
    };
    let every = settings.node.heartbeat.0;
    parts.start("heartbeat", |shutdown| housekeeping::heartbeat(beat, every, clock.clone(), shutdown));
    parts.start("sweep", |shutdown| housekeeping::sweep(db.clone(), clock.clone(), shutdown, wake.clone()));
    let (every, keep) = (settings.db.backup_every.0, settings.db.backup_keep as usize);
    if db.file().is_some() && !every.is_zero() {
        let folder = data.backups();
        parts.start("backup", |shutdown| {
            housekeeping::back_up(db.clone(), folder, every, keep, clock.clone(), shutdown)
        });
    }
}

/// The address really taken: port 0 became a free one.
fn address_of(listener: &tokio::net::TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
