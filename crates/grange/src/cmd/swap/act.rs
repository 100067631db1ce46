//! The commands that change something, and the one that checks.

use std::path::Path;
use std::time::Duration;

use grange_base::Size;
use grange_swap::admin::{Client, NewCollection, Reslice, Slices};
use grange_swap::verify::Problem;
use grange_swap::{Layout, Partition};
use serde_json::json;

use super::MoveArgs;
use crate::cli::Common;
use crate::exit::Exit;
use crate::output;

/// How often a running move or verification is asked how it stands.
const POLL: Duration = Duration::from_millis(250);

pub(super) fn init(common: &Common, dir: &Path, description: &str) -> anyhow::Result<Exit> {
    let uuid = Partition::init(dir, description)?;
    if common.json {
        output::json(&json!({ "partition": uuid, "path": dir }))?;
    } else {
        outln!("{} is partition {uuid}", dir.display());
    }
    Ok(Exit::Ok)
}

pub(super) async fn create(
    common: &Common,
    client: &Client,
    namespace: String,
    slices: u32,
    public: bool,
    mixed_disks: bool,
) -> anyhow::Result<Exit> {
    let record = client.create(&NewCollection { namespace, slices, public, mixed_disks }).await?;
    if common.json {
        output::json(&record)?;
    } else {
        outln!("{} has {slices} slices; its id is {}", record.namespace, record.uuid);
    }
    Ok(Exit::Ok)
}

pub(super) async fn reslice(
    common: &Common,
    client: &Client,
    namespace: &str,
    slices: Slices,
    how: &MoveArgs,
) -> anyhow::Result<Exit> {
    let wanted = Reslice { slices, dry_run: how.dry_run, mixed_disks: how.mixed_disks };
    let estimate = client.reslice(namespace, wanted).await?;
    let (files, bytes) = (estimate.files, Size(estimate.bytes));
    if !common.json {
        let verb = if how.dry_run { "would move" } else { "moves" };
        outln!(
            "{namespace}: {} to {} slices {verb} about {files} files ({bytes})",
            estimate.from,
            estimate.to
        );
        if how.dry_run && estimate.new_partitions > 0 {
            outln!("it takes {} more partitions", estimate.new_partitions);
        }
    }
    if how.wait && !how.dry_run {
        wait(common, client, namespace, estimate.to).await?;
    }
    if common.json {
        output::json(&estimate)?;
    }
    Ok(Exit::Ok)
}

async fn wait(common: &Common, client: &Client, namespace: &str, slices: u32) -> anyhow::Result<()> {
    let mut told = None;
    loop {
        let status = client.collection(namespace).await?;
        if matches!(status.record.layout, Layout::Stable { slices: now } if now.get() == slices) {
            if !common.json {
                outln!("{namespace} has {slices} slices");
            }
            return Ok(());
        }
        let trouble = status.slices.iter().find_map(|slice| slice.trouble.clone());
        if trouble.is_some() && trouble != told {
            errln!("the move pauses: {}", trouble.as_deref().unwrap_or_default());
        }
        told = trouble;
        tokio::time::sleep(POLL).await;
    }
}

pub(super) async fn verify(common: &Common, client: &Client, namespace: &str) -> anyhow::Result<Exit> {
    client.start_verify(namespace).await?;
    let report = loop {
        let report = client.verify(namespace).await?;
        if !report.running {
            break report;
        }
        tokio::time::sleep(POLL).await;
    };
    let sound = report.problem_count == 0 && report.missing_slices.is_empty();
    if common.json {
        output::json(&report)?;
        return Ok(if sound { Exit::Ok } else { Exit::Partial });
    }
    outln!(
        "{namespace}: {} files ({}) read again, {} problems",
        report.files,
        Size(report.bytes),
        report.problem_count
    );
    if report.without_checksum > 0 {
        outln!("{} had no checksum; they have one now", report.without_checksum);
    }
    for problem in &report.problems {
        outln!("{}", describe(problem));
    }
    if report.problem_count > report.problems.len() as u64 {
        outln!("and {} more", report.problem_count - report.problems.len() as u64);
    }
    for slice in &report.missing_slices {
        outln!("slice {slice}: its server is away; it was not read");
    }
    Ok(if sound { Exit::Ok } else { Exit::Partial })
}

fn describe(problem: &Problem) -> String {
    match problem {
        Problem::OtherBytes { path, slice, .. } => {
            format!("slice {slice}: {path} has other bytes than were stored")
        }
        Problem::Misplaced { path, slice, belongs_to } => {
            format!("slice {slice}: {path} belongs to slice {belongs_to}")
        }
        Problem::Unreadable { path, slice, reason } => {
            format!("slice {slice}: {path} cannot be read: {reason}")
        }
        Problem::Foreign { path, slice } => format!("slice {slice}: {path} is no file or directory of SWAP"),
    }
}

pub(super) async fn remove(
    common: &Common,
    client: &Client,
    namespace: &str,
    path: Option<&str>,
    sha512: Option<&str>,
    with_files: bool,
) -> anyhow::Result<Exit> {
    let what = if let Some(path) = path {
        client.remove_file(namespace, path, sha512).await?;
        format!("{namespace}/{path}")
    } else {
        client.remove_collection(namespace, with_files).await?;
        namespace.to_owned()
    };
    if common.json {
        output::json(&json!({ "removed": what }))?;
    } else {
        outln!("{what} is out of sight; its bytes are in the attic of their partitions");
    }
    Ok(Exit::Ok)
}
