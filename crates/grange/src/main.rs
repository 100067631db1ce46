//! The command line. `main` parses, runs one command and turns its outcome into an exit code; nothing more.

mod cli;
mod cmd;
mod context;
mod exit;
mod output;
mod progress;
mod story;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("grange: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(cmd::run(cli)) {
        Ok(code) => code.into(),
        Err(error) => exit::report(&error).into(),
    }
}
