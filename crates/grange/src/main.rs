//! The command line. `main` parses, runs one command and turns its outcome into an exit code; nothing more.

// Output goes through `output` only.
#![deny(clippy::print_stdout, clippy::print_stderr)]

// First, for its macros.
#[macro_use]
mod output;
mod cli;
mod cmd;
mod context;
mod exit;
mod person;
mod progress;
mod story;

use std::process::ExitCode;

use clap::Parser;

/// Faster than that of the C library where many small things are made and thrown away: decision 0013.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            errln!("grange: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(cmd::run(cli)) {
        Ok(code) => output::finish(code).into(),
        Err(error) => output::finish(exit::report(&error)).into(),
    }
}
