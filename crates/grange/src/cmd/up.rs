//! `grange up`

use grange_base::{Chain, Clock, Trigger, telemetry};
use grange_model::node::NodeRole;
use grange_node::{DataFolder, Node, StartError};

use crate::cli::Common;
use crate::context;
use crate::exit::{Exit, UsageError};

pub(super) async fn run(common: &Common, roles: Vec<NodeRole>) -> anyhow::Result<Exit> {
    let mut settings = context::load(common)?.settings;
    if !roles.is_empty() {
        settings.node.roles = roles;
    }
    telemetry::start_logging(&settings.log.filter, settings.log.format)
        .map_err(|error| UsageError(Chain(&error).to_string()))?;
    // Listened for from the first moment: a stop during start-up is a stop too.
    let stop = stop_signal()?;
    let stop = stop.listener();
    let Some(data) = stop.or(DataFolder::take(&common.data)).await else { return Ok(Exit::Ok) };
    let node = match Node::start(settings, data?, Clock::system(), &stop).await {
        Err(StartError::Stopped) => return Ok(Exit::Ok),
        started => started?,
    };
    greet(&node);
    node.run(stop).await?;
    Ok(Exit::Ok)
}

/// What a person wants to know now.
fn greet(node: &Node) {
    let record = node.record();
    outln!("Grange {} is up.", record.version);
    if let Some(address) = record.addresses.get("admin") {
        outln!("  admin   {address}");
    }
    if let Some(address) = record.addresses.get("replay") {
        outln!("  replay  {address}");
    }
    if let Some(address) = record.addresses.get("proxy") {
        outln!("  proxy   {address}  (archived pages only; its page: http://viewerproxy.invalid/)");
    }
    if let Some(address) = record.addresses.get("swap") {
        outln!("  swap    {address}");
    }
    if let Some(address) = record.addresses.get("node") {
        outln!("  node    http://{address}  (health, metrics, peers)");
    }
    if let Some(password) = node.first_password() {
        outln!("  log in  admin / {password}   (shown only now; change it with `grange users passwd admin`)");
    }
    outln!("Stop with Ctrl-C.");
}

/// Pulled by Ctrl-C or SIGTERM; a second one ends the process at once.
pub(super) fn stop_signal() -> anyhow::Result<Trigger> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let trigger = Trigger::new();
    let pulled = trigger.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if pulled.pulled() {
                errln!("grange: stopped at once");
                std::process::exit(130);
            }
            pulled.pull();
        }
    });
    Ok(trigger)
}
