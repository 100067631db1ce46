//! What there is and how it stands.

use std::fmt::Write as _;

use grange_base::Size;
use grange_swap::Layout;
use grange_swap::admin::{Client, CollectionStatus};

use crate::cli::Common;
use crate::exit::Exit;
use crate::output;

pub(super) async fn collections(common: &Common, client: &Client) -> anyhow::Result<Exit> {
    let collections = client.collections().await?;
    if common.json {
        output::json(&collections)?;
        return Ok(Exit::Ok);
    }
    let rows: Vec<_> = collections.iter().map(row).collect();
    output::table(["COLLECTION", "SLICES", "FILES", "SIZE", "READ", "STATE"], &rows)?;
    Ok(Exit::Ok)
}

fn row(collection: &CollectionStatus) -> [String; 6] {
    let record = &collection.record;
    let away = collection.slices.iter().filter(|slice| !slice.alive).count();
    let mut state = match record.layout {
        Layout::Stable { .. } => "stable".to_owned(),
        Layout::Moving { from, to } => {
            let moved: u64 = collection.slices.iter().map(|slice| slice.moved_files).sum();
            format!("moving from {from} to {to} slices, {moved} files moved")
        }
        Layout::Closing { .. } => "closed, being removed".to_owned(),
        Layout::Gone => "gone".to_owned(),
    };
    if away > 0 {
        let _ = write!(state, ", {away} slices away");
    }
    [
        record.namespace.to_string(),
        record.slices.len().to_string(),
        collection.files().to_string(),
        Size(collection.bytes()).to_string(),
        if record.public { "public" } else { "key" }.to_owned(),
        state,
    ]
}

pub(super) async fn status(common: &Common, client: &Client) -> anyhow::Result<Exit> {
    let status = client.status().await?;
    if common.json {
        output::json(&status)?;
        return Ok(Exit::Ok);
    }
    let state = |alive: bool| if alive { "up" } else { "away" };
    let mut rows: Vec<[String; 5]> = Vec::new();
    for server in &status.servers {
        for partition in &server.partitions {
            rows.push([
                server.base.clone(),
                state(server.alive).to_owned(),
                partition.path.clone(),
                format!("{} of {} free", Size(partition.free_bytes), Size(partition.total_bytes)),
                partition.description.clone(),
            ]);
        }
        if server.partitions.is_empty() {
            rows.push([
                server.base.clone(),
                state(server.alive).to_owned(),
                "none".into(),
                String::new(),
                String::new(),
            ]);
        }
    }
    for peer in &status.unseen {
        rows.push([peer.clone(), "never seen".into(), String::new(), String::new(), String::new()]);
    }
    output::table(["SERVER", "STATE", "PARTITION", "SPACE", "DESCRIPTION"], &rows)?;
    let mut rows: Vec<[String; 6]> = Vec::new();
    for collection in &status.collections {
        for slice in &collection.slices {
            let moving = collection.moving().is_some();
            let state = match (slice.alive, moving, &slice.trouble) {
                (false, ..) => "away".to_owned(),
                (true, true, Some(trouble)) => format!("pauses: {trouble}"),
                (true, true, None) if slice.settled => "settled".to_owned(),
                (true, true, None) => format!("{} files moved away", slice.moved_files),
                (true, false, _) => "up".to_owned(),
            };
            rows.push([
                collection.record.namespace.to_string(),
                slice.index.to_string(),
                slice.server.clone().unwrap_or_else(|| "unknown".to_owned()),
                slice.files.to_string(),
                Size(slice.bytes).to_string(),
                state,
            ]);
        }
    }
    if !rows.is_empty() {
        outln!();
        output::table(["COLLECTION", "SLICE", "SERVER", "FILES", "SIZE", "STATE"], &rows)?;
    }
    Ok(Exit::Ok)
}
