//! The manifests of all crates, and what each must state.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use toml::{Table, Value};

/// What tidy needs of one manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub name: String,
    /// The folder, relative to the root: `crates/grange-db`.
    pub folder: String,
    pub licence: String,
    pub lints: bool,
    /// Normal and build dependencies.
    pub needs: BTreeSet<String>,
    /// Needed by tests alone.
    pub test_needs: BTreeSet<String>,
}

pub(crate) fn read_all(root: &Path) -> anyhow::Result<Vec<Manifest>> {
    let suite: Table = read(&root.join("Cargo.toml"))?;
    let licence = suite["workspace"]["package"]["license"].as_str().unwrap_or_default().to_owned();
    let mut manifests = Vec::new();
    for above in ["crates", "libs"] {
        let mut folders: Vec<_> = std::fs::read_dir(root.join(above))
            .with_context(|| format!("cannot list {above}"))?
            .collect::<Result<_, _>>()?;
        folders.sort_by_key(std::fs::DirEntry::path);
        // Licence texts lie beside the crates they are for.
        for folder in folders.into_iter().filter(|entry| entry.path().is_dir()) {
            let table = read(&folder.path().join("Cargo.toml"))?;
            let folder = format!("{above}/{}", folder.file_name().to_string_lossy());
            manifests.push(parse(&folder, &table, &licence));
        }
    }
    Ok(manifests)
}

fn read(path: &Path) -> anyhow::Result<Table> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| format!("{} is not TOML", path.display()))
}

fn parse(folder: &str, table: &Table, suite_licence: &str) -> Manifest {
    let package = &table["package"];
    let names = |section: &str| -> BTreeSet<String> {
        let listed = table.get(section).and_then(Value::as_table).into_iter();
        let renamed = |name: &String, value: &Value| {
            value.get("package").and_then(Value::as_str).unwrap_or(name).to_owned()
        };
        listed.flat_map(|deps| deps.iter().map(|(name, value)| renamed(name, value))).collect()
    };
    let mut needs = names("dependencies");
    needs.extend(names("build-dependencies"));
    Manifest {
        name: package["name"].as_str().unwrap_or_default().to_owned(),
        folder: folder.to_owned(),
        licence: match package.get("license") {
            Some(Value::String(own)) => own.clone(),
            Some(_) => suite_licence.to_owned(),
            None => String::new(),
        },
        lints: table.get("lints").and_then(|lints| lints.get("workspace")) == Some(&Value::Boolean(true)),
        needs,
        test_needs: names("dev-dependencies"),
    }
}

/// Folder = name, licence by folder, workspace lints on.
pub(crate) fn check(manifests: &[Manifest]) -> Vec<String> {
    let mut found = Vec::new();
    for manifest in manifests {
        let Manifest { name, folder, .. } = manifest;
        let wanted = if folder.starts_with("libs/") { "MIT OR Apache-2.0" } else { "AGPL-3.0-or-later" };
        if manifest.licence != wanted {
            found.push(format!("{folder}: licence is \"{}\", must be \"{wanted}\"", manifest.licence));
        }
        if !folder.ends_with(&format!("/{name}")) {
            found.push(format!("{folder}: the crate is named {name}; folder and name must be equal"));
        }
        if !manifest.lints {
            found.push(format!("{folder}: add [lints] workspace = true"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_omission_is_named() {
        let text =
            "[package]\nname = \"other\"\nlicense = \"MIT\"\n[dependencies]\nx = { package = \"y\" }\n";
        let manifest = parse("libs/urlkey", &text.parse().unwrap(), "AGPL-3.0-or-later");
        assert_eq!(manifest.needs, BTreeSet::from(["y".to_owned()]));
        assert_eq!(check(&[manifest]).len(), 3);
    }
}
