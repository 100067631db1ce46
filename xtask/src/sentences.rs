//! Sentences of the pages: every one that is said must be there in English, and every one there must be said.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::text::list;

const ENGLISH: &str = "crates/grange-i18n/bundles/en";
/// Ids that are put together from these and a number.
const NUMBERED: &[&str] = &["month-", "weekday-"];
/// What a sentence is said with; the id follows in quotes.
const SAYING: &[&str] = &[".say(", ".say_with("];

/// One line per sentence that is missing or that nobody says.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    list(&root.join(ENGLISH), "ftl", &mut files)?;
    let known = ids(&read_all(&files)?);
    files.clear();
    list(&root.join("crates"), "rs", &mut files)?;
    list(&root.join("crates"), "html", &mut files)?;
    files.retain(|file| !file.starts_with(root.join("crates/grange-i18n")));
    let sources = read_all(&files)?;
    let mut found = Vec::new();
    let said: BTreeSet<&str> = sources.iter().flat_map(|(_, text)| said(text)).collect();
    for id in &said {
        if !known.contains(*id) {
            found.push(format!("{ENGLISH}: no sentence {id}, but a page says it"));
        }
    }
    for id in &known {
        let quoted = format!("\"{id}\"");
        let numbered = NUMBERED.iter().any(|head| id.starts_with(head));
        if !numbered && !sources.iter().any(|(_, text)| text.contains(&quoted)) {
            found.push(format!("{ENGLISH}: nobody says {id}"));
        }
    }
    Ok(found)
}

fn read_all(files: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let read = |file: &PathBuf| {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok((file.clone(), text))
    };
    files.iter().map(read).collect()
}

/// The messages of Fluent files, and their attributes as `message.attribute`.
fn ids(files: &[(PathBuf, String)]) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for (_, text) in files {
        let mut message = "";
        for line in text.lines() {
            let Some((name, _)) = line.split_once('=') else { continue };
            if let Some(attribute) = name.trim().strip_prefix('.') {
                ids.insert(format!("{message}.{attribute}"));
            } else if name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                message = name.trim();
                ids.insert(message.to_owned());
            }
        }
    }
    ids
}

/// The ids that a file says by name.
fn said(text: &str) -> impl Iterator<Item = &str> {
    SAYING.iter().flat_map(move |call| {
        text.split(call).skip(1).filter_map(|after| after.trim_start().strip_prefix('"')?.split('"').next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_attributes_are_found() {
        let text = "# a = b\nnext = Next\n    .title = Next one\nmany = { $count ->\n    [one] x = y\n}\n";
        let found = ids(&[(PathBuf::new(), text.to_owned())]);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["many", "next", "next.title"]);
    }

    #[test]
    fn what_is_said_is_found_over_line_ends() {
        let text = r#"t.say("one"); t.say_with(
            "two", &[]); t.say(id)"#;
        assert_eq!(said(text).collect::<Vec<_>>(), ["one", "two"]);
    }
}
