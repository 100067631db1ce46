//! Explores the life of a SWAP collection exhaustively and prints how much that was: `cargo run --release -p grange-swap
//! --example explore_states`. Ends with 1 and the shortest way to it when a rule can be broken.

use std::process::ExitCode;
use std::time::Instant;

use grange_swap::model::{Bounds, explore};

/// More than this would not fit into the memory of a small machine.
const MOST_STATES: u64 = 40_000_000;

fn main() -> ExitCode {
    let bounds = |servers, creates, puts, deletes, reslices, removals, crashes| Bounds {
        servers,
        creates,
        puts,
        deletes,
        reslices,
        removals,
        crashes,
    };
    let runs = [
        bounds(2, 1, 2, 1, 2, 0, 1),
        bounds(2, 2, 1, 1, 1, 1, 1),
        bounds(3, 1, 1, 1, 1, 0, 1),
        bounds(3, 2, 1, 0, 0, 1, 1),
        bounds(3, 1, 1, 1, 1, 1, 1),
    ];
    let (mut states, mut transitions) = (0, 0);
    println!(
        "servers creates puts deletes reslices removals crashes       states  transitions  deepest  seconds"
    );
    for run in runs {
        let start = Instant::now();
        match explore(run, MOST_STATES) {
            Ok(explored) => {
                println!(
                    "{:7} {:7} {:4} {:7} {:8} {:8} {:7} {:12} {:12} {:8} {:8.1}",
                    run.servers,
                    run.creates,
                    run.puts,
                    run.deletes,
                    run.reslices,
                    run.removals,
                    run.crashes,
                    explored.states,
                    explored.transitions,
                    explored.deepest,
                    start.elapsed().as_secs_f64()
                );
                states += explored.states;
                transitions += explored.transitions;
            }
            Err(broken) => {
                eprintln!("{broken}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{states} states and {transitions} transitions, no rule broken");
    ExitCode::SUCCESS
}
