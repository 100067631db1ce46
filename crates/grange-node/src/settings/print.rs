//! The settings for people: the effective values, one key explained, the example file, the reference page.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::known::{Key, Known, Section};
use super::load::Loaded;
use super::source::Origin;

/// All effective values, as they may be shown: a password that somebody wrote into a URL is hidden.
pub fn shown_values(settings: &impl Serialize) -> Value {
    let mut whole = serde_json::to_value(settings).unwrap_or(Value::Null);
    hide_passwords(&mut whole);
    whole
}

fn hide_passwords(value: &mut Value) {
    match value {
        Value::String(text) => {
            let login =
                text.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')).map(|(login, _)| login);
            if let Some((_, password)) = login.and_then(|login| login.split_once(':')) {
                *text = text.replacen(&format!(":{password}@"), ":…@", 1);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_passwords),
        Value::Object(fields) => fields.values_mut().for_each(hide_passwords),
        _ => {}
    }
}

/// The effective value at a path (`web.listen`), `Null` where unset.
pub fn value_at(settings: &impl Serialize, path: &str) -> Value {
    let whole = shown_values(settings);
    path.split('.').fold(whole, |value, part| value.get(part).cloned().unwrap_or(Value::Null))
}

/// Every key with its effective value, as TOML; what was set is marked with its origin.
pub fn show<T: Serialize>(loaded: &Loaded<T>, known: &Known) -> String {
    let mut text = String::new();
    let mut section = "";
    for key in plain_keys(known) {
        let (above, name) = split(&key.path);
        if above != section {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}[{above}]");
            section = above;
        }
        let value = value_at(&loaded.settings, &key.path);
        let set = loaded.origins.get(&key.path).filter(|origin| **origin != Origin::Default);
        let origin = set.map(|origin| format!("  # {origin}")).unwrap_or_default();
        if value.is_null() {
            let _ = writeln!(text, "# {name} is not set");
        } else {
            let _ = writeln!(text, "{name} = {}{origin}", toml_value(&value));
        }
    }
    text
}

/// One key in full: what it is for, its kind, default, effective value, and all the ways to set it.
pub fn explain<T: Serialize>(loaded: &Loaded<T>, key: &Key, path: &str) -> String {
    let origin = loaded.origins.get(path).cloned().unwrap_or(Origin::Default);
    let value = value_at(&loaded.settings, path);
    format!(
        "{path}\n\n{doc}\n\n  kind         {kind}\n  default      {default}\n  now          {value} ({origin})\n  \
         in a file    [{section}]\n               {name} = …\n  environment  {environment}\n  flag         --set {path}=…\n",
        doc = indent(&key.doc),
        kind = key.kind,
        default = shown(&key.default),
        value = shown(&value),
        section = split(path).0,
        name = split(path).1,
        environment = environment_name(path),
    )
}

/// What a section is for, and the first sentence about each of its keys.
pub fn explain_section(known: &Known, section: &Section) -> String {
    let mut text = format!("[{}]\n\n{}\n\n", section.path, indent(&section.doc));
    let below: Vec<_> = known.keys.iter().filter(|key| split(&key.path).0 == section.path).collect();
    let wide = below.iter().map(|key| key.path.len()).max().unwrap_or(0);
    for key in below {
        let first = key.doc.split_inclusive(". ").next().unwrap_or_default().replace('\n', " ");
        let _ = writeln!(text, "  {:wide$}  {}", key.path, first.trim());
    }
    text
}

/// The example file: every key, commented out, with its default and what it is for.
pub fn example(known: &Known) -> String {
    let mut text = String::from(
        "# Grange settings. Every key is shown with its default; take away the `#` before what you change.\n\
         # Layers: defaults, then files (--settings), then GRANGE_SECTION__KEY, then --set section.key=value.\n\
         # Made by `grange settings example`; do not edit config/grange.example.toml by hand.\n",
    );
    for section in &known.sections {
        let _ = write!(text, "\n{}", comment(&section.doc));
        let _ = writeln!(text, "{}", header(&section.path));
        for key in known.keys.iter().filter(|key| split(&key.path).0 == section.path) {
            let _ = write!(text, "\n{}", comment(&key.doc));
            let value = if key.default.is_null() { "…".to_owned() } else { toml_value(&key.default) };
            let _ = writeln!(text, "#{} = {value}", split(&key.path).1);
        }
    }
    text
}

/// The reference page of the book.
pub fn reference(known: &Known) -> String {
    let mut text = String::from(
        "# Settings\n\n\
         <!-- Made by `grange settings reference`; do not edit by hand. -->\n\n\
         One file, `grange.toml`, holds what differs from the defaults. Later layers win: defaults, then each \
         `--settings FILE`, then `GRANGE_SECTION__KEY` in the environment, then `--set section.key=value`. \
         Tables merge, lists are replaced whole. Unknown keys are refused with the nearest known one. \
         Relative paths are taken from the data folder (`--data`).\n",
    );
    for section in &known.sections {
        let _ = write!(text, "\n## `{}`\n\n{}\n", section.path, section.doc);
        for key in known.keys.iter().filter(|key| split(&key.path).0 == section.path) {
            let _ = write!(
                text,
                "\n### `{}`\n\n{}\n\n- kind: {}\n- default: `{}`\n- environment: `{}`\n",
                key.path,
                key.doc,
                key.kind,
                shown(&key.default),
                environment_name(&key.path),
            );
        }
    }
    text
}

/// `web.listen` → `GRANGE_WEB__LISTEN`.
pub fn environment_name(path: &str) -> String {
    format!("GRANGE_{}", path.to_ascii_uppercase().replace('.', "__"))
}

fn plain_keys(known: &Known) -> impl Iterator<Item = &Key> {
    known.keys.iter().filter(|key| !key.path.contains("[]") && !key.path.contains('*'))
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

fn header(section: &str) -> String {
    let section = section.replace('*', "NAME");
    match section.strip_suffix("[]") {
        Some(list) => format!("#[[{list}]]"),
        None if section.contains("NAME") => format!("#[{section}]"),
        None => format!("[{section}]"),
    }
}

fn comment(doc: &str) -> String {
    doc.lines().map(|line| if line.is_empty() { "#\n".to_owned() } else { format!("# {line}\n") }).collect()
}

fn indent(doc: &str) -> String {
    doc.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn shown(value: &Value) -> String {
    if value.is_null() { "not set".to_owned() } else { toml_value(value) }
}

fn toml_value(value: &Value) -> String {
    toml::Value::try_from(value).map_or_else(|_| value.to_string(), |value| value.to_string())
}
