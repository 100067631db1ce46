//! Files that are made from the types must be as the types are now.

use std::path::Path;

use crate::harness;

#[track_caller]
fn fresh(path: &str, args: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = harness::run(&root, args).ok().stdout;
    let kept = std::fs::read_to_string(root.join(path)).unwrap_or_default();
    assert!(made == kept, "{path} is stale: run `make generate` and commit it");
}

#[test]
fn the_example_settings_are_fresh() {
    fresh("config/grange.example.toml", &["settings", "example"]);
}

#[test]
fn the_settings_reference_is_fresh() {
    fresh("docs/src/reference/settings.md", &["settings", "reference"]);
}

#[test]
fn completions_and_the_manual_page_are_made() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let text = harness::run(folder.path(), &["completions", shell]).ok().stdout;
        assert!(text.contains("grange") && text.contains("users"), "{shell}");
    }
    let page = harness::run(folder.path(), &["man"]).ok().stdout;
    assert!(page.contains(".TH grange") && page.contains("GRANGE USERS"), "{page}");
}
