//! Builds wombat into the program, when `scripts/setup build` has fetched it (docs/decisions/0009-wombat.md).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dist = root.join("ui/node_modules/@webrecorder/wombat/dist");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", root.join("ui/package-lock.json").display());
    println!("cargo::rerun-if-changed={}", dist.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut text = String::new();
    let mut missing = false;
    for (name, file) in [("WOMBAT", "wombat.js"), ("WOMBAT_WORKERS", "wombatWorkers.js")] {
        let value = if fs::copy(dist.join(file), out.join(file)).is_ok() {
            format!("Some(include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\")))")
        } else {
            missing = true;
            "None".to_owned()
        };
        writeln!(text, "const {name}: Option<&[u8]> = {value};").expect("writing to a string");
    }
    if missing {
        println!(
            "cargo::warning=building WITHOUT wombat: scripts in replayed pages will not work. \
             Run `scripts/setup build` (needs npm and the network) and build again."
        );
    }
    let list = out.join("wombat.rs");
    fs::write(&list, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", list.display()));
}
