//! `grange testkit`

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use grange_testkit::web::{
    Coding, Expected, Options, Profile, RobotsPolicy, Rules, Scheme, ServeOptions, Web, WebServer,
};
use serde::Serialize;

use super::up::stop_signal;
use crate::cli::Common;
use crate::exit::Exit;
use crate::output;

/// Where the web listens when nothing is said.
const LISTEN: &str = "127.0.0.1:8090";
/// Seeds shown to people; the rest follow from their pattern.
const SEEDS_SHOWN: usize = 3;

#[derive(Debug, Subcommand)]
pub(crate) enum TestkitCommand {
    /// Serve a synthetic web: thousands of hosts on loopback, told apart by name
    ///
    /// Answers follow from the seed alone. Runs until Ctrl-C or SIGTERM.
    ServeWeb(ServeWebArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ServeWebArgs {
    /// How many sites
    #[arg(long, value_name = "N", default_value_t = 10)]
    hosts: usize,
    /// How many articles on each
    #[arg(long, value_name = "M", default_value_t = 100)]
    pages: usize,
    /// Decides everything
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Where to listen [default: 127.0.0.1:8090; with --expect: nowhere]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Also listen here with TLS; certificates are signed by themselves
    #[arg(long, value_name = "ADDR")]
    listen_tls: Option<SocketAddr>,
    /// What kind of web
    #[arg(long, value_enum, default_value_t = WebProfile::Deterministic)]
    profile: WebProfile,
    /// Which state of it: from one to the next, a fifth of the articles change
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    generation: u32,
    /// What every name ends in
    #[arg(long, value_name = "NAME", default_value = "test")]
    suffix: String,
    /// Links and seeds say https
    #[arg(long)]
    https: bool,
    /// Write what a right crawl captures to this file, a JSON line for each URL
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    #[command(flatten)]
    rules: RulesArgs,
}

/// The crawl that --expect is about.
#[derive(Args, Debug)]
pub(crate) struct RulesArgs {
    /// What the crawl does about robots.txt
    #[arg(long, value_enum, default_value_t = WebRobots::Obey, requires = "expect")]
    robots: WebRobots,
    /// How far it goes from its seeds
    #[arg(long, value_name = "HOPS", requires = "expect")]
    max_hops: Option<usize>,
    /// It does not read site maps
    #[arg(long, requires = "expect")]
    no_sitemaps: bool,
    /// It knows the user and the password
    #[arg(long, requires = "expect")]
    credentials: bool,
    /// It offers gzip, deflate and br
    #[arg(long, requires = "expect")]
    compressed: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WebProfile {
    /// Articles and pictures only, as cheap as possible
    Plain,
    /// Everything that ends and has one right answer
    Deterministic,
    /// Also endless places and broken servers
    Wild,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WebRobots {
    Obey,
    Ignore,
    ExceptEmbeds,
}

/// What a program wants to know.
#[derive(Serialize)]
struct Serving {
    listen: SocketAddr,
    listen_tls: Option<SocketAddr>,
    seeds: Vec<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    url: &'a str,
    #[serde(flatten)]
    expected: &'a Expected,
}

pub(super) async fn run(common: &Common, command: TestkitCommand) -> anyhow::Result<Exit> {
    match command {
        TestkitCommand::ServeWeb(args) => serve_web(common, args).await,
    }
}

async fn serve_web(common: &Common, args: ServeWebArgs) -> anyhow::Result<Exit> {
    let profile = match args.profile {
        WebProfile::Plain => Profile::Plain,
        WebProfile::Deterministic => Profile::Deterministic,
        WebProfile::Wild => Profile::Wild,
    };
    let web = Web::new(Options {
        hosts: args.hosts,
        pages: args.pages,
        seed: args.seed,
        profile,
        generation: args.generation,
        suffix: args.suffix,
        scheme: if args.https { Scheme::Https } else { Scheme::Http },
        ..Options::default()
    });
    if let Some(path) = &args.expect {
        let count = write_expected(&web, &rules(&args.rules), path)?;
        errln!("{count} expected captures written to {}", path.display());
        if args.listen.is_none() && args.listen_tls.is_none() {
            return Ok(Exit::Ok);
        }
    }
    let stop = stop_signal()?;
    let listen = args.listen.map_or_else(|| LISTEN.to_owned(), |listen| listen.to_string());
    // Nobody asks this process for counts, and they cost a lock a request.
    let options = ServeOptions { log: false, ..ServeOptions::default() };
    let server = web
        .serve_with(&listen, args.listen_tls, options)
        .await
        .with_context(|| format!("cannot serve on {listen}; is the port taken?"))?;
    greet(common, &server)?;
    stop.listener().wait().await;
    server.stop().await;
    Ok(Exit::Ok)
}

fn rules(args: &RulesArgs) -> Rules {
    Rules {
        robots: match args.robots {
            WebRobots::Obey => RobotsPolicy::Obey,
            WebRobots::Ignore => RobotsPolicy::Ignore,
            WebRobots::ExceptEmbeds => RobotsPolicy::ExceptEmbeds,
        },
        max_hops: args.max_hops,
        sitemaps: !args.no_sitemaps,
        credentials: args.credentials,
        codings: if args.compressed { Coding::ALL.into() } else { Rules::default().codings },
        ..Rules::default()
    }
}

fn write_expected(web: &Web, rules: &Rules, path: &Path) -> anyhow::Result<usize> {
    let context = || format!("cannot write the expected captures to {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(context)?);
    let expected = web.expected(rules);
    for (url, expected) in &expected {
        serde_json::to_writer(&mut file, &Line { url, expected }).with_context(context)?;
        writeln!(file).with_context(context)?;
    }
    file.flush().with_context(context)?;
    Ok(expected.len())
}

fn greet(common: &Common, server: &WebServer) -> anyhow::Result<()> {
    let (listen, seeds) = (server.addr(), server.web().seeds());
    if common.json {
        return output::json(&Serving { listen, listen_tls: server.tls_addr(), seeds });
    }
    outln!("A synthetic web of {} sites listens on {listen}.", seeds.len());
    if let Some(tls) = server.tls_addr() {
        outln!("  TLS     {tls}");
    }
    for seed in seeds.iter().take(SEEDS_SHOWN) {
        outln!("  seed    {seed}");
    }
    if seeds.len() > SEEDS_SHOWN {
        outln!("  …       and {} more", seeds.len() - SEEDS_SHOWN);
    }
    outln!("  look    curl -x http://{listen} {}", seeds[0]);
    outln!("  crawl   grange crawl {} --all-hosts-to {listen} --delay 0s --out crawled", seeds[0]);
    outln!("Stop with Ctrl-C.");
    Ok(())
}
