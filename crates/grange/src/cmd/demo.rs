//! `grange demo`: the main job shown end to end. A web is served, a harvest of it is defined, the schedule fires, a
//! harvester crawls and documents, the archive stores and proves, and a damaged copy is found and repaired.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use grange_api::wire::system::{Database, NodeSeen};
use grange_api::wire::users::{NewToken, NewUser, TokenMade, UserSaved};
use grange_api::{Client, HttpTransport};
use grange_base::{Clock, telemetry};
use grange_model::account::Role;
use grange_node::{DataFolder, Node};

use super::up::stop_signal;
use crate::cli::Common;
use crate::exit::Exit;
use crate::story::Story;
use crate::{context, output};

pub(super) async fn run(common: &Common, once: bool) -> anyhow::Result<Exit> {
    let mut settings = context::load(common)?.settings;
    // The story tells what happens; only trouble is logged beside it.
    telemetry::start_logging("warn", settings.log.format)?;
    let stop = stop_signal()?;
    let temporary = tempfile::Builder::new().prefix("grange-demo-").tempdir()?;
    let folder = if common.data == Path::new("grange-data") { temporary.path() } else { &common.data };
    if once {
        // Whoever runs the story in a script may have a node running beside it.
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        (settings.node.listen, settings.web.listen) = (free, free);
        (settings.replay.listen, settings.replay.proxy_listen) = (free, free);
    }

    if settings.harvest.contact_url.is_empty() {
        // Only a web of the demo's own gets to see it.
        "https://grange.invalid/demo".clone_into(&mut settings.harvest.contact_url);
    }

    let demo = super::demo_harvest::DemoWeb::serve().await?;
    settings.harvest.network.resolve.extend(demo.resolve());

    let mut story = Story::begin(common.json);
    if !common.json {
        outln!("Grange {} in {}", grange_node::VERSION, folder.display());
    }
    let data = DataFolder::take(folder).await?;
    let node = Node::start(settings, data, Clock::system(), &stop.listener()).await?;
    let told = tell(&mut story, &node, folder, demo).await;
    let admin = node.record().addresses.get("admin").cloned().unwrap_or_default();
    let harvest = match told {
        Ok(harvest) => harvest,
        Err(error) => {
            node.stop().await;
            return Err(error);
        }
    };

    if common.json {
        output::json(&serde_json::json!({
            "ok": true, "ms": story.ms(), "admin": admin, "harvest": harvest, "steps": story.steps,
        }))?;
    } else {
        outln!("All {} steps worked in {} ms.", story.steps.len(), story.ms());
    }
    if once {
        node.stop().await;
    } else {
        outln!("\nGrange answers at {admin}");
        if let Some(password) = node.first_password() {
            outln!("log in as admin / {password}");
        }
        outln!("Stop with Ctrl-C.");
        node.run(stop.listener()).await?;
    }
    Ok(Exit::Ok)
}

async fn tell(
    story: &mut Story,
    node: &Node,
    folder: &Path,
    demo: super::demo_harvest::DemoWeb,
) -> anyhow::Result<serde_json::Value> {
    let record = node.record();
    let roles: Vec<String> = record.roles.iter().map(ToString::to_string).collect();
    story.told("node started", format!("roles {}", roles.join(", ")));

    let grange_node::data::Access::Running(here) = DataFolder::access(folder, None).await? else {
        anyhow::bail!("the node started but left no way to reach it");
    };
    let local = Client::new(HttpTransport::new(&here.url, &here.token, Some("demo".to_owned()))?);
    let database: Database = local.get("/database").await?;
    story
        .told("database open", format!("{}, tables at version {}", database.engine, database.schema_version));

    // A name of its own each time: the story can be told again on the same folder.
    let name = format!("curator-{}", record.started_at.as_millisecond());
    let new = NewUser { name: name.clone(), role: Role::Curator, password: None };
    let saved: UserSaved = local.post("/users", &new).await?;
    story.told("user added", format!("{} ({})", saved.user.name, saved.user.role));
    let new = NewToken { name: "demo".to_owned(), lifetime_s: Some(3600) };
    let made: TokenMade = local.post(&format!("/users/{name}/tokens"), &new).await?;
    let curator = Client::new(HttpTransport::new(&here.url, &made.secret, None)?);
    let nodes: Vec<NodeSeen> = curator.get("/nodes").await?;
    let seen = nodes.first().context("the node is in the register")?;
    story.told("API answered a token", format!("node {} is {}", seen.node.name, seen.state));
    let refused = curator.get::<serde_json::Value>("/users").await.err();
    let refused = refused.context("a curator must not manage users")?;
    story.told("permission kept", refused);

    let harvested = super::demo_harvest::tell(story, &local, folder, demo).await?;
    let (work, copy) = (tempfile::tempdir_in(folder)?, super::demo_harvest::copy_of(folder, &harvested.file));
    tokio::task::block_in_place(|| super::demo_files::tell(story, work.path(), &copy, &harvested.url))?;
    super::demo_archive::tell(story, &local, folder, &harvested.file).await?;
    Ok(harvested.summary)
}
