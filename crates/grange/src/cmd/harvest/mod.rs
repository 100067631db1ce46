//! The curators' commands: `grange domains|seeds|schedules|templates|harvests|jobs|channels|traps …`

pub(crate) mod channels;
pub(crate) mod domains;
pub(crate) mod harvests;
pub(crate) mod jobs;
pub(crate) mod schedules;
pub(crate) mod seeds;
pub(crate) mod templates;
pub(crate) mod traps;

use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use anyhow::Context as _;
use grange_base::{Period, Size};
use grange_model::harvest::{Limit, Limits};
use serde_json::Value;

use crate::cli::Common;
use crate::output;

/// Limits on the command line.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct LimitArgs {
    /// The most objects per domain, or none
    #[arg(long = "max-objects", value_name = "COUNT", value_parser = objects)]
    objects: Option<Limit>,
    /// The most bytes per domain, such as 100MB, or none
    #[arg(long = "max-bytes", value_name = "SIZE", value_parser = bytes)]
    bytes: Option<Limit>,
    /// The longest a job may crawl, such as 12h, or none
    #[arg(long = "max-time", value_name = "PERIOD", value_parser = seconds)]
    time: Option<Limit>,
}

impl LimitArgs {
    /// For something new: what is not named is not limited.
    fn limits(self) -> Limits {
        self.changing(Limits { objects: Limit::NONE, bytes: Limit::NONE, running_s: Limit::NONE })
    }

    /// For something that has limits: what is not named stays as it is.
    fn changing(self, known: Limits) -> Limits {
        Limits {
            objects: self.objects.unwrap_or(known.objects),
            bytes: self.bytes.unwrap_or(known.bytes),
            running_s: self.time.unwrap_or(known.running_s),
        }
    }

    /// For something new that has limits of its own where none is named here.
    fn given(self) -> Option<Limits> {
        self.is_given().then(|| self.limits())
    }

    /// The change to something that the server described, in its field `limits`. `None` when none is named.
    fn change_of(self, described: &Value) -> anyhow::Result<Option<Limits>> {
        if !self.is_given() {
            return Ok(None);
        }
        let known = serde_json::from_value(described["limits"].clone()).context("cannot read its limits")?;
        Ok(Some(self.changing(known)))
    }

    fn is_given(self) -> bool {
        self.objects.is_some() || self.bytes.is_some() || self.time.is_some()
    }
}

fn limit<T: FromStr>(text: &str, number: impl Fn(T) -> u64) -> Result<Limit, T::Err> {
    if text == "none" { Ok(Limit::NONE) } else { text.parse().map(|value| Limit::of(number(value))) }
}

fn objects(text: &str) -> Result<Limit, <u64 as FromStr>::Err> {
    limit(text, |count: u64| count)
}

fn bytes(text: &str) -> Result<Limit, <Size as FromStr>::Err> {
    limit(text, |size: Size| size.0)
}

fn seconds(text: &str) -> Result<Limit, <Period as FromStr>::Err> {
    limit(text, |period: Period| period.0.as_secs())
}

/// A field of an answer as text, `-` where it is absent.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// Prints rows as JSON, or these fields of them as a table.
pub(crate) fn list<const N: usize>(
    common: &Common,
    rows: &[Value],
    columns: [(&str, &str); N],
) -> anyhow::Result<()> {
    if common.json {
        return output::json(&rows);
    }
    let cell = |row: &Value, field: &str| text(field.split('.').fold(row, |value, part| &value[part]));
    let cells: Vec<_> = rows.iter().map(|row| columns.map(|(_, field)| cell(row, field))).collect();
    Ok(output::table(columns.map(|(title, _)| title), &cells)?)
}

/// Prints an answer as JSON, or a sentence about it.
pub(crate) fn told(common: &Common, answer: &Value, sentence: &str) -> anyhow::Result<()> {
    if common.json {
        return output::json(answer);
    }
    outln!("{sentence}");
    Ok(())
}

/// Prints the fields of an answer, one per line.
pub(crate) fn shown(common: &Common, answer: &Value) -> anyhow::Result<()> {
    if common.json {
        return output::json(answer);
    }
    let rows: Vec<_> = answer
        .as_object()
        .map(|fields| fields.iter().map(|(name, value)| [name.clone(), text(value)]).collect())
        .unwrap_or_default();
    Ok(output::table(["FIELD", "VALUE"], &rows)?)
}

/// The text of a file; `-` is standard input.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn a_limit_that_is_not_named_stays_as_it_is() {
        let described = json!({ "limits": { "objects": 5, "bytes": 1000, "running_s": -1 } });
        for (given, expected) in [
            (vec![], None),
            (vec!["--max-bytes", "5MB"], Some((5, 5_000_000, -1))),
            (vec!["--max-objects", "7", "--max-time", "1m"], Some((7, 1000, 60))),
            (vec!["--max-objects", "none"], Some((-1, 1000, -1))),
        ] {
            let command = Command::try_parse_from([vec!["x"], given.clone()].concat()).unwrap();
            let changed = command.limits.change_of(&described).unwrap();
            let numbers = |one: Limits| (one.objects.number(), one.bytes.number(), one.running_s.number());
            assert_eq!(changed.map(numbers), expected, "{given:?}");
        }
        assert!(Command::try_parse_from(["x", "--max-objects", "-5"]).is_err());
    }
}
