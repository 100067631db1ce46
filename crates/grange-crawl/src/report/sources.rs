//! source-report.txt.

use std::io::{self, Write};

use super::statistics::Statistics;

/// Answers by seed and host: seeds in order, their busiest hosts first.
pub fn source_report(statistics: &Statistics, out: &mut dyn Write) -> io::Result<()> {
    let mut rows: Vec<_> = statistics.sources().collect();
    if rows.is_empty() {
        return writeln!(out, "No source tag information. (Is 'sourceTagSeeds' enabled?)");
    }
    writeln!(out, "[source] [host] [#urls]")?;
    rows.sort_by(|(source_a, host_a, a), (source_b, host_b, b)| {
        (source_a, std::cmp::Reverse(a.urls), host_a).cmp(&(source_b, std::cmp::Reverse(b.urls), host_b))
    });
    for (source, host, tally) in rows {
        writeln!(out, "{source} {host} {}", tally.urls)?;
    }
    Ok(())
}
