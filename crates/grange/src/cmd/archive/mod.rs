//! The archive: store and read files, look at replicas, check, repair, prove.

mod audit;
mod files;
mod keep;
mod proof;
mod repairs;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use grange_model::{AuditKind, RepairChoice};

pub(crate) use audit::{audit_all, print as print_audit};
pub(super) use keep::{is_whole, print_rebuilt};

use crate::cli::Common;
use crate::exit::Exit;

/// Files to store.
#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    name: String,
    /// Where to [default: a file of that name in this folder]; - writes to standard output
    dest: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct RecordArgs {
    name: String,
    /// Where the record starts in the file
    offset: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FilesCommand {
    /// All files, and how they stand on every replica
    #[command(alias = "list")]
    Ls,
    /// One file
    Show { name: String },
    /// Withdraw a deposit of which no replica has the bytes, so that other bytes can be stored under its name
    ///
    /// Every replica is asked first, and must answer. A file that was ever acknowledged (proven on every replica) is never
    /// withdrawn, nor one of which a replica has the bytes. Bytes that wait in the spool are removed.
    Withdraw { name: String },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplicasCommand {
    /// All replicas, with their counts
    #[command(alias = "list")]
    Ls,
    /// Take a replica that was emptied or replaced as it is now, so that repairs fill it again
    Adopt { name: String },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check replicas: list (which files are there), checksum (every byte) or challenge (some files, with a fresh salt)
    #[command(alias = "start")]
    Run {
        #[arg(long, default_value = "checksum")]
        kind: AuditKind,
        /// Only this one [default: all]
        #[arg(long)]
        replica: Option<String>,
        /// Wait for the end and count; exit code 5 if a copy is missing or corrupt
        #[arg(long)]
        wait: bool,
    },
    /// The newest checks and how far they are
    Status,
    /// Prove that nothing in the log of events was rewritten
    VerifyLog,
    /// List the keys that sign the log: whose, since when, retired when
    Keys,
    /// Sign the log with a new key on this node; the old key vouches for it and is removed
    RotateKey,
    /// A proof about a file that a third party can check without Grange's database
    Prove { name: String },
    /// Check a proof, with nothing but this program; exit code 1 if it does not hold
    CheckProof {
        /// The proof, as `audit prove` wrote it
        file: PathBuf,
        /// The archive's public key in hexadecimal, got by another way
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
        /// A witness that somebody kept: the log must continue it
        #[arg(long, value_name = "FILE")]
        witness: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct RepairArgs {
    #[command(subcommand)]
    command: Option<RepairCommand>,
    /// Repair every copy that is missing or corrupt; ask to correct records that every copy contradicts
    #[arg(long, required = true)]
    all: bool,
    /// Really do it, with the replicas' credentials on this machine; otherwise only say what would be done
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RepairCommand {
    /// The newest repairs: which wait for a second person, which are done
    #[command(alias = "list")]
    Ls,
    /// Ask for the repair of a file whose copies contradict its record; a second person confirms it
    Decide {
        name: String,
        /// Choose the side that is right: `record` or `copies`
        ///
        /// `record` replaces the copies that contradict the record; store the original file first if no copy is good.
        /// `copies` records the checksum that every copy with bytes answers; checksum replicas have no vote. A checksum
        /// replica that answers the old record is then corrupt: `grange repair --all` replaces its line, with a second
        /// person or its credential.
        #[arg(long, value_name = "record|copies")]
        keep: RepairChoice,
    },
    /// Confirm a repair that somebody else asked for; it is done at once
    Confirm {
        /// Its id, as listed by `repair ls`
        id: String,
    },
    /// Withdraw a repair that waits for a second person; nothing is changed on any replica
    Withdraw {
        /// Its id, as listed by `repair ls`
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    /// Enter every file that lies on the replicas and has no row, after the database was lost
    Rebuild,
}

pub(super) async fn store(common: &Common, args: StoreArgs) -> anyhow::Result<Exit> {
    files::store(common, &args.files).await
}

pub(super) async fn get(common: &Common, args: GetArgs) -> anyhow::Result<Exit> {
    files::get(common, &args.name, args.dest).await
}

pub(super) async fn record(common: &Common, args: RecordArgs) -> anyhow::Result<Exit> {
    files::record(common, &args.name, args.offset).await
}

pub(super) async fn files(common: &Common, command: FilesCommand) -> anyhow::Result<Exit> {
    match command {
        FilesCommand::Ls => files::list(common).await,
        FilesCommand::Show { name } => files::show(common, &name).await,
        FilesCommand::Withdraw { name } => files::withdraw(common, &name).await,
    }
}

pub(super) async fn replicas(common: &Common, command: ReplicasCommand) -> anyhow::Result<Exit> {
    match command {
        ReplicasCommand::Ls => keep::replicas(common).await,
        ReplicasCommand::Adopt { name } => keep::adopt_replica(common, &name).await,
    }
}

pub(super) async fn audit(common: &Common, command: AuditCommand) -> anyhow::Result<Exit> {
    match command {
        AuditCommand::Run { kind, replica, wait } => audit::run(common, kind, replica, wait).await,
        AuditCommand::Status => audit::status(common).await,
        AuditCommand::VerifyLog => keep::verify_log(common).await,
        AuditCommand::Keys => keep::log_keys(common).await,
        AuditCommand::RotateKey => keep::rotate_log_key(common).await,
        AuditCommand::Prove { name } => keep::prove(common, &name).await,
        AuditCommand::CheckProof { file, key, witness } => {
            proof::check(common, &file, key.as_deref(), witness.as_deref())
        }
    }
}

pub(super) async fn repair(common: &Common, args: RepairArgs) -> anyhow::Result<Exit> {
    match args.command {
        Some(RepairCommand::Ls) => repairs::list(common).await,
        Some(RepairCommand::Decide { name, keep }) => repairs::decide(common, &name, keep).await,
        Some(RepairCommand::Confirm { id }) => repairs::confirm(common, &id).await,
        Some(RepairCommand::Withdraw { id }) => repairs::withdraw(common, &id).await,
        None => keep::repair(common, args.yes).await,
    }
}

pub(super) async fn archive(
    common: &Common,
    ArchiveCommand::Rebuild: ArchiveCommand,
) -> anyhow::Result<Exit> {
    keep::rebuild(common).await
}

/// A field of an answer as text, `-` where it is absent.
pub(crate) fn text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
