//! `grange changes`

use std::fmt::Write as _;

use grange_api::client::segment;
use grange_api::wire::changes::Changes;

use crate::cli::Common;
use crate::exit::Exit;
use crate::{context, output};

pub(super) async fn run(
    common: &Common,
    who: Option<String>,
    subject: Option<String>,
    before: Option<i64>,
    limit: u32,
) -> anyhow::Result<Exit> {
    let mut path = format!("/changes?limit={limit}");
    for (name, value) in
        [("who", who), ("subject", subject), ("before", before.map(|before| before.to_string()))]
    {
        if let Some(value) = value {
            let _ = write!(path, "&{name}={}", segment(&value));
        }
    }
    let page: Changes = context::client(common).await?.get(&path).await?;
    if common.json {
        output::json(&page)?;
        return Ok(Exit::Ok);
    }
    let shown =
        |value: Option<serde_json::Value>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let rows: Vec<_> = page
        .changes
        .into_iter()
        .map(|change| {
            [
                change.number.to_string(),
                format!("{:.0}", change.at),
                format!("{} ({})", change.who, change.via),
                change.act,
                change.subject,
                format!("{} → {}", shown(change.before), shown(change.after)),
            ]
        })
        .collect();
    output::table(["NUMBER", "AT", "WHO", "ACT", "SUBJECT", "CHANGE"], &rows)?;
    Ok(Exit::Ok)
}
