//! `grange swap serve`

use grange_base::{Clock, telemetry};
use grange_swap::{Server, Settings};

use super::ServeArgs;
use crate::cmd::up::stop_signal;
use crate::exit::Exit;

pub(super) async fn serve(args: ServeArgs) -> anyhow::Result<Exit> {
    let filter = std::env::var("GRANGE_LOG").unwrap_or_else(|_| "warn,grange_swap=info".to_owned());
    telemetry::start_logging(&filter, telemetry::LogFormat::default())?;
    let settings = Settings {
        partitions: args.partition,
        listen: args.listen,
        advertise: args.advertise,
        peers: args.peer,
        key_file: args.key_file,
        workers: args.workers,
        trust_local: !args.no_local_trust,
        min_space_left: args.min_space_left,
        sums_in_files: args.sums_in_files,
        move_rate: args.move_rate,
        ..Settings::default()
    };
    let trigger = stop_signal()?;
    let server = Server::start(settings, Clock::system(), &trigger.listener()).await?;
    outln!("SWAP on http://{}, {} partitions", server.address(), server.node().partitions.len());
    server.join().await;
    Ok(Exit::Ok)
}
