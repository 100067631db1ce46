//! The secondary index that `showPagedIndex` tells: where each block of rows begins.

use std::io::Write;

use serde_json::json;

use super::{Answer, Failure, NDJSON, TEXT, Visible};
use crate::query::{Next, Query};
use crate::snapshot::Snapshot;

/// The first row of a block.
struct Block {
    key: String,
    time: String,
    first: u64,
    rows: u64,
}

/// Tells the blocks of `block_rows` rows that a query covers: key and time of the first, `rows` as the part they are of, the
/// number of the first, how many there are, and the number of the block. Here is no file with offsets: they count rows.
pub(super) fn answer(
    query: &Query,
    snapshot: &Snapshot,
    block_rows: u64,
    as_json: bool,
    visible: Visible<'_>,
    out: &mut dyn Write,
) -> Result<Answer, Failure> {
    let mut block: Option<Block> = None;
    let (mut rows, mut told, mut failed) = (0, 0, None);
    let mut tell = |block: Block| {
        told += 1;
        let Block { key, time, first, rows } = block;
        let line = if as_json {
            let fields = json!({ "urlkey": format!("{key} {time}"), "part": "rows", "offset": first, "length": rows, "lineno": told });
            format!("{fields}\n")
        } else {
            format!("{key} {time}\trows\t{first}\t{rows}\t{told}\n")
        };
        failed = out.write_all(line.as_bytes()).err();
        failed.is_none()
    };
    let noticed = query.run(snapshot, |view| {
        if !visible(view) {
            return Ok(Next::More);
        }
        let mut go_on = true;
        match &mut block {
            Some(block) if block.rows < block_rows => block.rows += 1,
            _ => {
                let new = Block {
                    key: view.surt().into_owned(),
                    time: view.time().to_string(),
                    first: rows,
                    rows: 1,
                };
                go_on = block.replace(new).is_none_or(&mut tell);
            }
        }
        rows += 1;
        Ok(if go_on { Next::More } else { Next::Stop })
    })?;
    if let Some(block) = block {
        tell(block);
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    Ok(Answer { content_type: if as_json { NDJSON } else { TEXT }, captures: 0, noticed })
}
