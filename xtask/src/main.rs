//! The project's own automation. `cargo xtask tidy` checks what a compiler cannot: where arrows between crates
//! point, that every crate states its licence and lints, that no file hides work left undone, that every sentence a page
//! says is there.

mod edges;
mod manifest;
mod sentences;
mod text;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    if task != "tidy" {
        eprintln!("usage: cargo xtask tidy");
        return ExitCode::from(2);
    }
    match tidy() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(found) => {
            eprintln!("tidy: {found} found");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every check on the checkout and prints what it finds; gives the count.
fn tidy() -> anyhow::Result<usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies below the root")?;
    let manifests = manifest::read_all(root)?;
    let mut found = edges::check(&manifests);
    found.extend(manifest::check(&manifests));
    found.extend(text::check(root)?);
    found.extend(sentences::check(root)?);
    for line in &found {
        println!("{line}");
    }
    if found.is_empty() {
        println!("tidy: {} crates, all arrows point downward", manifests.len());
    }
    Ok(found.len())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checkout_is_tidy() {
        assert_eq!(super::tidy().unwrap(), 0, "see the lines above");
    }
}
