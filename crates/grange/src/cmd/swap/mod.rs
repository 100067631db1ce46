//! `grange swap …`: run a SWAP server, and manage the collections of a network of them.

mod act;
mod serve;
mod show;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use grange_base::Size;
use grange_swap::admin::{Client, Slices};

use crate::cli::Common;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum SwapCommand {
    /// Make a folder a partition: a place for slices of collections
    Init {
        /// An empty folder, or one to be made
        dir: PathBuf,
        /// What people should know about it: which disk, which shelf
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
    },
    /// Serve partitions to clients and peers until Ctrl-C or SIGTERM
    Serve(Box<ServeArgs>),
    /// The collections, their slices, files and bytes
    Collections {
        #[command(flatten)]
        at: At,
    },
    /// Make a collection and spread its slices over the partitions of all servers
    Create {
        /// Where it hangs, such as chronopolis/umiacs/code
        namespace: String,
        /// How many slices; each takes a partition of its own
        #[arg(long, value_name = "N")]
        slices: u32,
        /// Let everybody read; writing needs the key all the same
        #[arg(long)]
        public: bool,
        /// Allow partitions on different kinds of file system
        #[arg(long)]
        mixed_disks: bool,
        #[command(flatten)]
        at: At,
    },
    /// Double the slices of a collection; half of its files move, and it stays in use
    Double {
        namespace: String,
        #[command(flatten)]
        how: MoveArgs,
        #[command(flatten)]
        at: At,
    },
    /// Halve the slices of a collection; half of its files move, and it stays in use
    ///
    /// With --slices any other number, up or down; that moves most of the files.
    Halve {
        namespace: String,
        /// Any other number of slices instead of half
        #[arg(long, value_name = "N")]
        slices: Option<u32>,
        #[command(flatten)]
        how: MoveArgs,
        #[command(flatten)]
        at: At,
    },
    /// Read every file again: compare its checksum, and see whether it lies where it belongs; exit code 5 if not
    Verify {
        namespace: String,
        #[command(flatten)]
        at: At,
    },
    /// Servers, partitions and their space, slices, running moves
    Status {
        #[command(flatten)]
        at: At,
    },
    /// Take a file, or a whole collection, out of sight; the bytes stay in the attic of their partition
    Rm {
        namespace: String,
        /// The file; without it, the collection
        path: Option<String>,
        /// Only if the file has this SHA-512
        #[arg(long, value_name = "HEX", requires = "path")]
        sha512: Option<String>,
        /// The collection with all its files
        #[arg(long, conflicts_with = "path")]
        with_files: bool,
        #[command(flatten)]
        at: At,
    },
}

/// Which network.
#[derive(Args, Debug)]
pub(crate) struct At {
    /// HOST:PORT of any server of the network
    #[arg(id = "server", long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    server: String,
    /// The key of the network; not needed for a server that this user runs on this machine
    #[arg(long, value_name = "FILE", env = "GRANGE_SWAP_KEY_FILE")]
    key_file: Option<PathBuf>,
}

impl At {
    fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.server, self.key_file.as_deref())?)
    }
}

#[derive(Args, Debug)]
pub(crate) struct MoveArgs {
    /// Wait until all is moved
    #[arg(long)]
    wait: bool,
    /// Only say what would be moved
    #[arg(long)]
    dry_run: bool,
    /// Allow partitions on different kinds of file system
    #[arg(long)]
    mixed_disks: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Folders made by `grange swap init`
    #[arg(long, value_name = "DIR", num_args = 1.., required = true)]
    partition: Vec<PathBuf>,
    /// Address and port for clients and peers
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// HOST:PORT of the other servers; one side of each pair is enough
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    peer: Vec<String>,
    /// The key that all servers share; clients may send it as "Authorization: Bearer"
    #[arg(long, value_name = "FILE", env = "GRANGE_SWAP_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// The URL by which others reach this server [default: http:// and the address it listens on]
    #[arg(long, value_name = "URL", default_value = "")]
    advertise: String,
    /// Threads that answer requests [default: one per processor]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    workers: usize,
    /// Ask everybody for the key, also this user's own programs on this machine
    #[arg(long)]
    no_local_trust: bool,
    /// How much a running move may read per second; 0B for no limit
    #[arg(long, value_name = "SIZE", default_value = "64 MiB")]
    move_rate: Size,
    /// Space to leave free on each partition
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    min_space_left: Size,
    /// Keep checksums in files below .swap-sums, as on disks without extended attributes
    #[arg(long)]
    sums_in_files: bool,
}

pub(crate) async fn run(common: &Common, command: SwapCommand) -> anyhow::Result<Exit> {
    match command {
        SwapCommand::Init { dir, description } => act::init(common, &dir, &description),
        SwapCommand::Serve(args) => serve::serve(*args).await,
        SwapCommand::Collections { at } => show::collections(common, &at.client()?).await,
        SwapCommand::Status { at } => show::status(common, &at.client()?).await,
        SwapCommand::Create { namespace, slices, public, mixed_disks, at } => {
            act::create(common, &at.client()?, namespace, slices, public, mixed_disks).await
        }
        SwapCommand::Double { namespace, how, at } => {
            act::reslice(common, &at.client()?, &namespace, Slices::Double, &how).await
        }
        SwapCommand::Halve { namespace, slices, how, at } => {
            let slices = slices.map_or(Slices::Halve, Slices::To);
            act::reslice(common, &at.client()?, &namespace, slices, &how).await
        }
        SwapCommand::Verify { namespace, at } => act::verify(common, &at.client()?, &namespace).await,
        SwapCommand::Rm { namespace, path, sha512, with_files, at } => {
            let client = at.client()?;
            act::remove(common, &client, &namespace, path.as_deref(), sha512.as_deref(), with_files).await
        }
    }
}
