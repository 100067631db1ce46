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

use anyhow::Context as _;
use grange_base::{Period, Size};
use grange_model::harvest::{Limit, Limits};
use serde_json::Value;

use crate::cli::Common;
use crate::output;

/// Limits on the command line; what is not said is not limited.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct LimitArgs {
    /// The most objects per domain [default: no limit]
    #[arg(long = "max-objects", value_name = "COUNT")]
    objects: Option<u64>,
    /// The most bytes per domain, such as 100MB [default: no limit]
    #[arg(long = "max-bytes", value_name = "SIZE")]
    bytes: Option<Size>,
    /// The longest a job may crawl, such as 12h [default: no limit]
    #[arg(long = "max-time", value_name = "PERIOD")]
    time: Option<Period>,
}

impl LimitArgs {
    fn limits(self) -> Limits {
        let limit = |number: Option<u64>| number.map_or(Limit::NONE, Limit::of);
        Limits {
            objects: limit(self.objects),
            bytes: limit(self.bytes.map(|size| size.0)),
            running_s: limit(self.time.map(|period| period.0.as_secs())),
        }
    }

    /// `None` when nothing was said.
    fn given(self) -> Option<Limits> {
        let said = self.objects.is_some() || self.bytes.is_some() || self.time.is_some();
        said.then(|| self.limits())
    }
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
    println!("{sentence}");
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
