//! The tree of commands. Help text is written for people who meet Grange for the first time.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use grange_base::Period;
use grange_model::account::Role;
use grange_model::node::NodeRole;

/// A web archive in one program.
#[derive(Debug, Parser)]
#[command(name = "grange", version, max_term_width = 110, help_template = TEMPLATE, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// Commands in groups; a test makes sure that none is missing.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Run it:
  init         Create an empty archive in the data folder
  up           Start a node: everything in one process, or some roles of a cluster
  demo         Show what Grange does, on a folder and ports of its own
  nodes        The nodes of this Grange and whether they live
  findings     What needs a person: wrong copies, lost nodes, failed jobs
  db           The database: state, migration, backup

Harvests:
  harvests     Harvests: define, preview, put into service
  domains      Domains, their configurations and logins
  seeds        Seed lists of a domain
  schedules    When harvests run
  templates    How crawls behave
  jobs         Jobs: what is crawled, what became of it
  channels     Lanes of harvesters, and the harvesters
  traps        Global lists of what no crawl follows

Metadata:
  oai          Harvest metadata over OAI-PMH, export it and serve it again

The archive:
  store        Store files on every replica and prove the copies
  get          Get a file back from a proven copy
  record       Write one record of a stored file to standard output
  files        The files and how they stand on every replica
  replicas     The replicas and their counts
  audit        Check copies, and the log of what happened to them
  repair       Repair copies that are missing or corrupt
  archive      Rebuild the database from the replicas
  restore      Put a backup in the place of the database and bring it up to date from the replicas

Access:
  collections  Collections: import foreign files, list, remove
  index        The index of stored files: state, rollback, requests for jobs
  access       Rules of who may see which captures

People:
  users        Users, passwords and API tokens
  changes      The record of changes: who did what, and what it was before

Files on disk (no server needed):
  crawl        Crawl sites into a folder: WARC files, logs and reports
  replay       Replay WARC, ARC and WACZ files in the browser, without any set-up
  warc         List, check, extract, recompress and convert WARC and ARC files
  cdx          Make, sort, merge and search CDX and CDXJ indexes

Storage over machines:
  swap         Plain files spread over machines by one rule: run a server, manage collections

Try it out:
  testkit      A synthetic web to crawl, and what a right crawl captures of it

Set it up:
  settings     Show, check and explain settings
  completions  Completions for your shell
  man          The manual page

{options}

Exit codes: 0 ok, 1 failed, 2 wrong use, 3 not found, 4 refused, 5 done with problems,
141 a list that nobody reads ended early.
";

/// Options that every command takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// The folder that holds everything
    #[arg(long, global = true, value_name = "DIR", env = "GRANGE_DATA", default_value = "grange-data")]
    pub data: PathBuf,
    /// A settings file; may be given several times, later ones win [default: DIR/grange.toml if there]
    #[arg(long, global = true, value_name = "FILE", env = "GRANGE_SETTINGS", value_delimiter = ':')]
    pub settings: Vec<PathBuf>,
    /// One setting, such as web.listen=127.0.0.1:8080
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Ask the node at this URL instead of the one on this machine
    #[arg(long, global = true, value_name = "URL", env = "GRANGE_SERVER", requires = "token_file", value_parser = server_url)]
    pub server: Option<String>,
    /// The file with the API token for --server
    #[arg(long, global = true, value_name = "FILE", env = "GRANGE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The URL of a node; HOST:PORT stands for http://HOST:PORT.
fn server_url(text: &str) -> Result<String, String> {
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    match url::Url::parse(&full) {
        Ok(url) if ["http", "https"].contains(&url.scheme()) && url.has_host() => Ok(full),
        _ => Err("expected the URL of a node, such as http://127.0.0.1:7070".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// Forget a stopped or lost node that will not come back
    Forget {
        /// Its name or id, as listed by `nodes`
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create an empty archive in the data folder
    ///
    /// Makes the folder, this node's id and token, and the tables of the database. A PostgreSQL database that already has
    /// tables is joined as it is. `up` and `demo` do the same when there is no archive; every other command needs one.
    Init,
    /// Start a node: everything in one process, or some roles of a cluster
    ///
    /// Runs until Ctrl-C or SIGTERM and stops in good order. The first start makes the user admin and prints its
    /// password once. A database, bus or replica that is away is waited for: the node answers /healthz meanwhile, and
    /// /readyz with the reason.
    Up {
        /// The roles to play, separated by commas [default: all]
        #[arg(long, value_delimiter = ',', value_name = "ROLES")]
        roles: Vec<NodeRole>,
    },
    /// Show what Grange does, on a folder and ports of its own
    ///
    /// Runs the story and prints each step, then goes on answering until Ctrl-C. Uses a temporary folder unless
    /// --data is given.
    Demo {
        /// Run the story, print the summary and exit
        #[arg(long)]
        once: bool,
    },
    /// The nodes of this Grange and whether they live
    Nodes {
        #[command(subcommand)]
        command: Option<NodesCommand>,
    },
    /// What needs a person: wrong copies, lost nodes, failed jobs
    ///
    /// Lists the open findings, each with what to do. A finding closes by itself when its cause is gone.
    Findings {
        /// List closed findings too; they are kept for 90 days
        #[arg(long)]
        all: bool,
    },
    /// The database: state, migration, backup
    #[command(subcommand)]
    Db(DbCommand),
    /// Users, passwords and API tokens
    #[command(subcommand)]
    Users(UsersCommand),
    /// The record of changes: who did what, and what it was before
    Changes {
        /// Only changes by this user
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// Only changes of this subject, such as user:anna
        #[arg(long)]
        subject: Option<String>,
        /// Only changes before this number
        #[arg(long, value_name = "NUMBER")]
        before: Option<i64>,
        /// How many at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Harvests: define, preview, put into service
    #[command(subcommand)]
    Harvests(crate::cmd::harvest::harvests::HarvestsCommand),
    /// Domains, their configurations and logins
    #[command(subcommand)]
    Domains(crate::cmd::harvest::domains::DomainsCommand),
    /// Seed lists of a domain
    #[command(subcommand)]
    Seeds(crate::cmd::harvest::seeds::SeedsCommand),
    /// When harvests run
    #[command(subcommand)]
    Schedules(crate::cmd::harvest::schedules::SchedulesCommand),
    /// How crawls behave
    #[command(subcommand)]
    Templates(crate::cmd::harvest::templates::TemplatesCommand),
    /// Jobs: what is crawled, what became of it
    #[command(subcommand)]
    Jobs(crate::cmd::harvest::jobs::JobsCommand),
    /// Lanes of harvesters, and the harvesters
    #[command(subcommand)]
    Channels(crate::cmd::harvest::channels::ChannelsCommand),
    /// Global lists of what no crawl follows
    #[command(subcommand)]
    Traps(crate::cmd::harvest::traps::TrapsCommand),
    /// Harvest metadata over OAI-PMH, export it and serve it again
    #[command(subcommand)]
    Oai(Box<crate::cmd::oai::OaiCommand>),
    /// Store files on every replica and prove the copies
    Store(crate::cmd::archive::StoreArgs),
    /// Get a file back from a proven copy
    Get(crate::cmd::archive::GetArgs),
    /// Write one record of a stored file to standard output
    Record(crate::cmd::archive::RecordArgs),
    /// The files and how they stand on every replica
    #[command(subcommand)]
    Files(crate::cmd::archive::FilesCommand),
    /// The replicas and their counts
    #[command(subcommand)]
    Replicas(crate::cmd::archive::ReplicasCommand),
    /// Check copies, and the log of what happened to them
    #[command(subcommand)]
    Audit(crate::cmd::archive::AuditCommand),
    /// Repair copies that are missing or corrupt
    Repair(crate::cmd::archive::RepairArgs),
    /// Rebuild the database from the replicas
    #[command(subcommand)]
    Archive(crate::cmd::archive::ArchiveCommand),
    /// Put a backup in the place of the database and bring it up to date from the replicas
    ///
    /// The database that was there is kept. Sessions end; files that the backup does not know get rows, every copy is
    /// checked, and keys and rules that came back to life are listed. Exit code 5 when something is left to decide.
    Restore(crate::cmd::restore::RestoreArgs),
    /// Collections: import foreign files, list, remove
    #[command(subcommand)]
    Collections(crate::cmd::collections::CollectionsCommand),
    /// The index of stored files: state, rollback, requests for jobs
    #[command(subcommand)]
    Index(crate::cmd::collections::index::IndexCommand),
    /// Rules of who may see which captures
    #[command(subcommand)]
    Access(crate::cmd::collections::access::AccessCommand),
    /// Crawl sites into a folder: WARC files, logs and reports
    Crawl(Box<crate::cmd::crawl::CrawlArgs>),
    /// Replay WARC, ARC and WACZ files in the browser, without any set-up
    Replay(crate::cmd::replay::ReplayArgs),
    /// List, check, extract, recompress and convert WARC and ARC files
    #[command(subcommand)]
    Warc(crate::cmd::warc::WarcCommand),
    /// Make, sort, merge and search CDX and CDXJ indexes
    #[command(subcommand)]
    Cdx(crate::cmd::cdx::CdxCommand),
    /// Plain files spread over machines by one rule: run a server, manage collections
    #[command(subcommand)]
    Swap(crate::cmd::swap::SwapCommand),
    /// A synthetic web to crawl, and what a right crawl captures of it
    #[command(subcommand)]
    Testkit(crate::cmd::testkit::TestkitCommand),
    /// Show, check and explain settings
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Completions for your shell
    Completions { shell: clap_complete::Shell },
    /// The manual page
    Man,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Which database, and how old its tables are
    Status,
    /// Bring the tables up to this version (PostgreSQL; SQLite does it by itself)
    Migrate,
    /// End all sessions after a restore with other tools (`pg_restore`), and list the tokens and passwords that work
    Restored,
    /// Copy the SQLite database, also while a node runs
    Backup {
        /// Where to [default: DIR/backups/…]
        path: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsersCommand {
    /// All users
    #[command(alias = "ls")]
    List,
    /// A new user; without a password file a password is made and printed once
    Add {
        name: String,
        /// admin, curator, operator or viewer
        #[arg(long)]
        role: Role,
        #[command(flatten)]
        password: PasswordFile,
    },
    /// A new password; without a password file one is made and printed once
    Passwd {
        name: String,
        #[command(flatten)]
        password: PasswordFile,
    },
    /// Another role
    Role {
        name: String,
        /// admin, curator, operator or viewer
        role: Role,
    },
    /// Keep a user from logging in; their tokens stop working too
    Disable { name: String },
    /// Let a disabled user in again
    Enable { name: String },
    /// A new API token for a user, printed once
    Token {
        name: String,
        /// What the token is for
        #[arg(long = "for", value_name = "TEXT", default_value = "command line")]
        purpose: String,
        /// How long it works, such as 30d [default: until revoked]
        #[arg(long, value_name = "PERIOD")]
        expires: Option<Period>,
    },
    /// A user's API tokens
    Tokens { name: String },
    /// End an API token
    Revoke {
        /// Its id, as listed by `users tokens`
        id: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct PasswordFile {
    /// A file whose first line is the password; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Every setting as it is now, and where it was set
    Show,
    /// Say whether the settings are right
    Check,
    /// Tell all about one setting
    Explain {
        /// Such as web.listen
        path: String,
    },
    /// A file with every setting, commented out
    Example,
    /// The reference page of the book
    #[command(hide = true)]
    Reference,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn a_server_is_a_url_or_a_host_with_a_port() {
        for (text, url) in [
            ("127.0.0.1:7070", Some("http://127.0.0.1:7070")),
            ("localhost:7070", Some("http://localhost:7070")),
            ("archive.example", Some("http://archive.example")),
            ("[::1]:7070", Some("http://[::1]:7070")),
            ("https://archive.example/", Some("https://archive.example/")),
            ("ftp://archive.example", None),
            ("host:port", None),
            ("http://", None),
            ("", None),
        ] {
            assert_eq!(server_url(text).ok().as_deref(), url, "{text}");
        }
    }

    #[test]
    fn the_tree_is_well_formed_and_every_command_is_in_the_grouped_help() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        let help = command.clone().render_help().to_string();
        for sub in command.get_subcommands() {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let line =
                help.lines().find(|line| line.trim_start().starts_with(&format!("{} ", sub.get_name())));
            let line = line.unwrap_or_else(|| panic!("{} is missing in TEMPLATE", sub.get_name()));
            assert!(line.ends_with(&about), "TEMPLATE says \"{line}\" but the command says \"{about}\"");
        }
    }
}
