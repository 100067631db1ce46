//! `grange crawl`: one crawl into a folder, without a server.

mod control;
mod job;
mod seed_addresses;
mod view;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use grange_base::{Clock, Network, Period, Size};
use grange_crawl::engine::{Crawl, End, Outcome};
use grange_crawl::job::StopReason;
use grange_crawl::record::NoOracle;
use serde_json::json;

use super::up::stop_signal;
use crate::cli::Common;
use crate::exit::{Exit, UsageError};
use crate::output;

pub(crate) use control::ControlCommand;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct CrawlArgs {
    #[command(subcommand)]
    command: Option<ControlCommand>,
    /// Where to start
    #[arg(value_name = "URL", required_unless_present_any = ["resume", "seeds", "templates"])]
    urls: Vec<String>,
    /// A file with one URL per line; # begins a comment
    #[arg(long, value_name = "FILE")]
    seeds: Option<PathBuf>,
    /// The folder for WARC files, logs, reports and manifests [default: crawl-<time>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the crawl in this folder, after a crash or a stop
    #[arg(long, value_name = "DIR", conflicts_with_all = ["urls", "seeds", "out", "template"])]
    resume: Option<PathBuf>,
    /// A template that is shipped, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    template: String,
    /// List the templates that are shipped
    #[arg(long)]
    templates: bool,
    /// Documents at most, robots.txt files not counted; -1 for no limit
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = job::objects)]
    max_objects: Option<i64>,
    /// Bytes at most, such as 500MB or 1000000; -1 for no limit
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = job::bytes)]
    max_bytes: Option<i64>,
    /// Running time at most, such as 2h
    #[arg(long, value_name = "TIME")]
    max_time: Option<Period>,
    /// Hops from a seed at most
    #[arg(long, value_name = "HOPS")]
    max_hops: Option<u32>,
    /// Wait this long between two requests to a host, whatever the template says; 0s does not wait at all
    #[arg(long, value_name = "TIME")]
    delay: Option<Period>,
    /// What to do about robots.txt
    #[arg(long, value_enum, value_name = "POLICY")]
    robots: Option<job::RobotsArg>,
    /// How many URLs are worked on at the same time
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// A page that tells web masters who crawls and why; goes into the user agent
    #[arg(long, value_name = "URL", env = "GRANGE_CONTACT_URL")]
    contact: Option<String>,
    /// A mail address for the From header
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// Begin a new chunk (WARC files, logs, manifest) at this size
    #[arg(long, value_name = "SIZE")]
    chunk_size: Option<Size>,
    /// Send requests for HOST:PORT to ADDR, as curl does; * for every port
    #[arg(long, value_name = "HOST:PORT:ADDR")]
    resolve: Vec<String>,
    /// Send all requests to this address
    #[arg(long, value_name = "ADDR")]
    all_hosts_to: Option<String>,
    /// Reach this network although it is not public, such as 10.0.0.0/8; may be repeated. The addresses of URLs given as
    /// arguments are always reached
    #[arg(long = "allow-network", value_name = "NETWORK")]
    allow_networks: Vec<Network>,
    /// Change anything in the template, such as write.level=1
    #[arg(long = "template-set", value_name = "KEY=VALUE")]
    template_set: Vec<String>,
    /// Say nothing while crawling
    #[arg(long, short)]
    quiet: bool,
}

pub(super) async fn run(common: &Common, args: CrawlArgs) -> anyhow::Result<Exit> {
    if let Some(command) = args.command {
        return control::run(common, command).await;
    }
    if args.templates {
        return templates(common);
    }
    let clock = Clock::system();
    let oracle = Arc::new(NoOracle);
    let (crawl, folder) = if let Some(folder) = &args.resume {
        let mut job = Crawl::job_in(folder).map_err(job::refuse)?;
        if args.changes_limits() {
            args.apply(&mut job)?;
        }
        // A crawl of an earlier version did not write down the private addresses of its seeds.
        let endpoints = seed_addresses::private_endpoints(&[], &job).await;
        let allowed = &mut job.template.fetch.allow_endpoints;
        let new: Vec<_> = endpoints.into_iter().filter(|endpoint| !allowed.contains(endpoint)).collect();
        allowed.extend(new);
        job.template.fetch.allow_ordered_endpoints = true;
        (Crawl::resume_as(job, folder, oracle, clock), folder.clone())
    } else {
        let mut job = args.job()?;
        let endpoints = seed_addresses::private_endpoints(&args.urls, &job).await;
        job.template.fetch.allow_endpoints.extend(endpoints);
        job.template.fetch.allow_ordered_endpoints = true;
        let folder = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("crawl-{}", job.name)));
        (Crawl::start(job, &folder, oracle, clock), folder)
    };
    let crawl =
        crawl.map_err(job::refuse).with_context(|| format!("cannot crawl into {}", folder.display()))?;
    let handle = crawl.handle();
    let stop = stop_signal()?;
    let orders = {
        let handle = handle.clone();
        tokio::spawn(async move {
            stop.listener().wait().await;
            handle.stop();
        })
    };
    let shown = (!args.quiet && !common.json)
        .then(|| tokio::spawn(view::show(handle.watch(), output::errors_are_seen())));
    let outcome = crawl.run().await;
    orders.abort();
    if let Some(shown) = shown {
        // The last picture says that the crawl is finished, and the view ends with it.
        shown.abort();
        let _ = shown.await;
    }
    let outcome = outcome.with_context(|| {
        format!("the crawl in {0} broke off; go on with: grange crawl --resume {0}", folder.display())
    })?;
    if common.json {
        output::json(&summary(&folder, &outcome))?;
    } else {
        view::tell(&folder, &outcome);
    }
    Ok(exit_of(outcome.end, outcome.last.succeeded))
}

fn summary(folder: &std::path::Path, outcome: &Outcome) -> serde_json::Value {
    json!({
        "folder": folder,
        "end": end_word(outcome.end),
        "succeeded": outcome.last.succeeded,
        "failed": outcome.last.failed,
        "disregarded": outcome.last.disregarded,
        "queued": outcome.last.queued,
        "bytes": outcome.last.bytes,
        "seconds": outcome.last.ran_seconds,
        "domains": outcome.domains,
        "manifest": outcome.manifest,
    })
}

/// A crawl without a document failed; one that left URLs because their hosts could not be reached is not complete.
fn exit_of(end: End, succeeded: u64) -> Exit {
    match end {
        _ if succeeded == 0 => Exit::Failed,
        End::Unreachable => Exit::Partial,
        End::Finished | End::Stopped | End::Limit(_) => Exit::Ok,
    }
}

fn end_word(end: End) -> &'static str {
    match end {
        End::Finished => "finished",
        End::Unreachable => "hosts-unreachable",
        End::Stopped => "stopped",
        End::Limit(StopReason::ObjectLimit) => "object-limit",
        End::Limit(StopReason::TimeLimit) => "time-limit",
        End::Limit(_) => "size-limit",
    }
}

fn templates(common: &Common) -> anyhow::Result<Exit> {
    let mut rows = Vec::new();
    for (name, text) in grange_crawl::template::shipped() {
        let template = grange_crawl::template::parse(text).map_err(|error| UsageError(error.to_string()))?;
        rows.push([(*name).to_owned(), template.description]);
    }
    if common.json {
        let list: Vec<_> = rows
            .iter()
            .map(|[name, description]| json!({"name": name, "description": description}))
            .collect();
        output::json(&list)?;
    } else {
        output::table(["TEMPLATE", "WHAT IT IS FOR"], &rows)?;
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: CrawlArgs,
    }

    #[test]
    fn a_limit_is_a_number_or_minus_one() {
        let limits = |args: &[&str]| {
            let parsed = Command::try_parse_from(["x"].iter().chain(args)).ok()?.args;
            Some((parsed.max_objects, parsed.max_bytes))
        };
        for (args, expected) in [
            (&["http://e.test/", "--max-objects=-1", "--max-bytes", "-1"][..], Some((Some(-1), Some(-1)))),
            (&["http://e.test/", "--max-objects", "0"], Some((Some(0), None))),
            (&["http://e.test/", "--max-objects=-5"], None),
            (&["http://e.test/", "--max-objects", "many"], None),
            (&["http://e.test/", "--max-bytes=-2"], None),
            (&["control", "x", "set-limits", "--max-objects=-1", "--max-bytes=0"], Some((None, None))),
            (&["control", "x", "set-limits", "--max-objects=-7"], None),
            (&["control", "x", "set-limits", "--max-bytes=-7"], None),
        ] {
            assert_eq!(limits(args), expected, "{args:?}");
        }
    }

    #[test]
    fn a_crawl_that_leaves_urls_of_unreachable_hosts_has_an_exit_code_of_its_own() {
        for (end, succeeded, exit) in [
            (End::Finished, 1, Exit::Ok),
            (End::Stopped, 1, Exit::Ok),
            (End::Limit(StopReason::TimeLimit), 1, Exit::Ok),
            (End::Unreachable, 1, Exit::Partial),
            (End::Unreachable, 0, Exit::Failed),
            (End::Finished, 0, Exit::Failed),
        ] {
            assert_eq!(exit_of(end, succeeded), exit, "{end:?} {succeeded}");
        }
    }
}
