//! What no source file may hold.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Written in two halves so that this file does not find itself.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("todo", "!(", "work left undone"),
    ("unimplemented", "!(", "work left undone"),
    ("FIX", "ME", "work left undone"),
    ("#[ig", "nore", "a test that nobody runs"),
];

/// One line per forbidden text in a Rust file below crates, libs and xtask.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in ["crates", "libs", "xtask"] {
        list(&root.join(folder), "rs", &mut files)?;
    }
    let mut found = Vec::new();
    for file in files {
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for (number, line) in text.lines().enumerate() {
            for (head, tail, why) in FORBIDDEN {
                if line.contains(&format!("{head}{tail}")) {
                    let file = file.strip_prefix(root).unwrap_or(&file).display();
                    found.push(format!("{file}:{}: {head}{tail} is {why}", number + 1));
                }
            }
        }
    }
    Ok(found)
}

/// The files below a folder whose names end in `.end`, in order.
pub(crate) fn list(folder: &Path, end: &str, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, end, files)?;
        } else if path.extension().is_some_and(|extension| extension == end) {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}
