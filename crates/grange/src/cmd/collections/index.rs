//! `grange index …`

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use grange_api::client::segment;
use grange_api::wire::collections::{Marked, MarkedFiles};
use grange_base::Size;
use grange_node::role::indexer::{self, JobIndexKind};
use serde_json::{Value, json};

use super::import;
use crate::cli::Common;
use crate::cmd::harvest::told;
use crate::exit::{Exit, UsageError};
use crate::{context, output};

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// How many files are indexed, wait or failed
    Status(Of),
    /// Take files out of the index again; they stay stored
    Rollback {
        #[command(flatten)]
        which: WhichFiles,
        #[command(flatten)]
        of: Of,
    },
    /// Index files that failed or were taken out
    Again {
        #[command(flatten)]
        which: WhichFiles,
        #[command(flatten)]
        of: Of,
    },
    /// Copy the index of a collection into a store, for replay nodes elsewhere (file:FOLDER or s3://BUCKET/…)
    ///
    /// Only segments that are not there yet are sent. No node may run on the data folder meanwhile.
    Publish {
        #[arg(value_name = "URL")]
        to: String,
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        keys: Keys,
    },
    /// Bring the newest copy of an index from a store into a folder, to be served with `grange cdx serve`
    Fetch {
        #[arg(value_name = "URL")]
        from: String,
        folder: PathBuf,
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        keys: Keys,
    },
    /// Write what is known of some jobs: CDX lines, or what a crawl needs to find duplicates
    ///
    /// Reads the data folder, for those who may read it: hidden captures are in it, too.
    Jobs {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<u64>,
        #[arg(long, value_enum, default_value_t = KindName::Cdx)]
        kind: KindName,
        #[command(flatten)]
        of: Of,
        /// Write to this file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Of {
    /// The collection
    #[arg(long, value_name = "NAME", default_value = "archive")]
    collection: String,
}

/// The keys of a bucket.
#[derive(Args, Debug)]
pub(crate) struct Keys {
    /// The file with the access key of the bucket
    #[arg(long, value_name = "FILE", requires = "secret_key_file")]
    access_key_file: Option<PathBuf>,
    /// The file with its secret key
    #[arg(long, value_name = "FILE", requires = "access_key_file")]
    secret_key_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichFiles {
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// All files of this job
    #[arg(long, value_name = "ID")]
    job: Option<u64>,
    /// All files
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindName {
    /// CDX lines of eleven fields
    Cdx,
    /// URL, digest and origin of everything but text
    Dedup,
    /// URL, digest and origin of everything
    Full,
}

pub(crate) async fn run(common: &Common, command: IndexCommand) -> anyhow::Result<Exit> {
    match command {
        IndexCommand::Status(of) => status(common, &of.collection).await,
        IndexCommand::Rollback { which, of } => mark(common, &of.collection, which, true).await,
        IndexCommand::Again { which, of } => mark(common, &of.collection, which, false).await,
        IndexCommand::Publish { to, of, keys } => {
            context::require_local(common, "publish an index")?;
            let settings = context::load(common)?.settings;
            let keys = keys.access_key_file.zip(keys.secret_key_file);
            let sent = indexer::publish_index(&settings, &common.data, &of.collection, &to, keys).await?;
            told(
                common,
                &json!({ "files": sent }),
                &format!("Copied the index of {}: {sent} new files.", of.collection),
            )?;
            Ok(Exit::Ok)
        }
        IndexCommand::Fetch { from, folder, of, keys } => {
            context::require_local(common, "fetch an index")?;
            let keys = keys.access_key_file.zip(keys.secret_key_file);
            let path = indexer::fetch_index(&common.data, &of.collection, &from, keys, &folder).await?;
            told(common, &json!({ "folder": path }), &path.display().to_string())?;
            Ok(Exit::Ok)
        }
        IndexCommand::Jobs { ids, kind, of, output } => jobs(common, &of.collection, &ids, kind, output),
    }
}

/// What is not on every replica yet, in the archive and on harvesters.
fn print_waiting(counts: &Value) {
    let count = |field: &str| counts[field].as_u64().unwrap_or_default();
    if count("unproven_files") > 0 {
        outln!(
            "{} files ({}) of the archive wait for a replica; they are indexed from their first verified copy.",
            count("unproven_files"),
            Size(count("unproven_bytes"))
        );
    }
    if count("folders") > 0 {
        outln!(
            "{} files ({}) wait in {} job folders on harvesters; see `grange jobs ls`.",
            count("files"),
            Size(count("bytes")),
            count("folders")
        );
    }
}

async fn status(common: &Common, collection: &str) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let mut shown: Value = client.get(&format!("/collections/{}", segment(collection))).await?;
    let troubled = import::troubled(&client, collection).await?;
    if collection == "archive" {
        let deposits: Value = client.get("/deposits?limit=1").await?;
        shown["waiting_for_replica"] = deposits["counts"].clone();
    }
    if common.json {
        shown["troubled"] = json!(troubled);
        output::json(&shown)?;
    } else {
        import::print(&shown, &troubled);
        print_waiting(&shown["waiting_for_replica"]);
    }
    Ok(Exit::Ok)
}

async fn mark(common: &Common, collection: &str, which: WhichFiles, out: bool) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let at = format!("/collections/{}/{}", segment(collection), if out { "rollback" } else { "again" });
    let asked: Vec<Marked> = match (which.job, which.all) {
        (Some(job), _) => vec![Marked { job: Some(job.to_string()), ..Marked::default() }],
        (None, true) => vec![Marked { all: true, ..Marked::default() }],
        (None, false) => {
            which.files.into_iter().map(|file| Marked { file: Some(file), ..Marked::default() }).collect()
        }
    };
    let state = if out { "indexed" } else { "failed or taken out" };
    let (mut files, mut none) = (0, Vec::new());
    for one in asked {
        let marked: MarkedFiles = client.post(&at, &one).await?;
        files += marked.files;
        if marked.files == 0 {
            none.extend(one.file);
        }
    }
    drop(client);
    if files == 0 {
        return Err(UsageError(format!("no such file of {collection} is {state}")).into());
    }
    for file in &none {
        errln!("grange: {file}: no such file of {collection} is {state}");
    }
    import::feed(common, collection, false).await?;
    let done = if out { "Taken out" } else { "Indexed again" };
    told(
        common,
        &json!({ "files": files, "none": none }),
        &format!("{done}: {files} files of {collection}."),
    )?;
    Ok(if none.is_empty() { Exit::Ok } else { Exit::Partial })
}

/// Reads the index where it lies, also while a node writes to it.
fn jobs(
    common: &Common,
    collection: &str,
    ids: &[u64],
    kind: KindName,
    output: Option<PathBuf>,
) -> anyhow::Result<Exit> {
    context::require_local(common, "read the index of jobs")?;
    let kind = match kind {
        KindName::Cdx => JobIndexKind::Cdx,
        KindName::Dedup => JobIndexKind::Dedup,
        KindName::Full => JobIndexKind::Full,
    };
    let jobs: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
    let settings = context::load(common)?.settings;
    let write =
        |out: &mut dyn Write| indexer::job_index(&settings, &common.data, collection, &jobs, kind, out);
    let report = match &output {
        None => {
            let mut out = BufWriter::new(output::listing());
            let report = write(&mut out)?;
            out.flush()?;
            report
        }
        Some(path) => crate::cmd::cdx::aside(path, |file| {
            let mut out = BufWriter::new(file);
            let report = write(&mut out)?;
            out.flush()?;
            Ok(report)
        })?,
    };
    let empty: Vec<&str> =
        report.jobs.iter().filter(|(_, count)| **count == 0).map(|(job, _)| job.as_str()).collect();
    if !empty.is_empty() {
        errln!("grange: nothing is known of these jobs: {}", empty.join(", "));
        return Ok(Exit::Partial);
    }
    Ok(Exit::Ok)
}
