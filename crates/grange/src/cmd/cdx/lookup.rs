//! `grange cdx lookup`

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use cdx::SortedFile;
use cdx::zipnum::Cluster;
use urlkey::{Dialect, MatchType, search_range};

use crate::cli::Common;
use crate::exit::Exit;

/// Prints the lines of a URL; exit code 3 when there are none.
pub(super) fn run(
    common: &Common,
    file: &Path,
    url: &str,
    kind: MatchType,
    dialect: Dialect,
    limit: Option<u64>,
) -> anyhow::Result<Exit> {
    let range = search_range(url, kind, dialect);
    let context = || format!("cannot search {}", file.display());
    let mut out = BufWriter::new(crate::output::listing());
    let (mut line, mut found) = (Vec::new(), 0);
    let mut print = |line: &[u8]| -> anyhow::Result<bool> {
        found += 1;
        if common.json {
            let entry = cdx::parse_line(line, None).entry();
            let entry = entry.map(|entry| serde_json::json!({
                "key": entry.key, "timestamp": entry.timestamp, "url": entry.url, "mime": entry.mime,
                "status": entry.status, "digest": entry.digest, "length": entry.length, "offset": entry.offset,
                "filename": entry.filename,
            }));
            serde_json::to_writer(&mut out, &entry)?;
        } else {
            out.write_all(line.trim_ascii_end())?;
        }
        out.write_all(b"\n")?;
        Ok(limit.is_none_or(|limit| found < limit))
    };
    if file.extension().is_some_and(|extension| extension == "idx") {
        let cluster = Cluster::open(file).with_context(context)?;
        let mut lines = cluster.lines_in(&range);
        while lines.next_into(&mut line).with_context(context)? {
            if !print(&line)? {
                break;
            }
        }
    } else {
        let mut sorted = SortedFile::open(file).with_context(context)?;
        let mut lines = sorted.lines_in(&range).with_context(context)?;
        while lines.next_into(&mut line).with_context(context)? {
            if !print(&line)? {
                break;
            }
        }
    }
    out.flush()?;
    Ok(if found == 0 { Exit::NotFound } else { Exit::Ok })
}
