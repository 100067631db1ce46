//! The command line. `main` parses, runs one command and turns its outcome into an exit code; nothing more.

mod cli;
mod cmd;
mod context;
mod exit;
mod output;
mod person;
mod progress;
mod story;

use std::process::ExitCode;

use clap::Parser;

/// Faster than that of the C library where many small things are made and thrown away: decision 0013.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    end_quietly_on_closed_output();
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

/// Ends the program without a word when the reader of its output has gone, as in `grange findings | head`: `println!` panics then.
fn end_quietly_on_closed_output() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or_default();
        if text.starts_with("failed printing to std") && text.contains("Broken pipe") {
            // A reader that has seen enough is no failure: as `exit::report` has it.
            std::process::exit(0);
        }
        report(info);
    }));
}
