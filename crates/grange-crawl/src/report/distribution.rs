//! mimetype-report.txt and responsecode-report.txt.

use std::io::{self, Write};

use super::statistics::Statistics;

/// Types of answers, the most frequent first.
pub fn mimetype_report(statistics: &Statistics, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "[#urls] [#bytes] [mime-types]")?;
    let mut mimes: Vec<_> = statistics.mimes().collect();
    mimes.sort_by(|(a, x), (b, y)| y.urls.cmp(&x.urls).then_with(|| a.cmp(b)));
    for (name, tally) in mimes {
        writeln!(out, "{} {} {name}", tally.urls, tally.bytes)?;
    }
    Ok(())
}

/// Statuses of answers, the most frequent first.
pub fn responsecode_report(statistics: &Statistics, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "[#urls] [rescode]")?;
    let mut statuses: Vec<_> = statistics.statuses().collect();
    statuses.sort_by_key(|(status, urls)| (std::cmp::Reverse(*urls), *status));
    for (status, urls) in statuses {
        writeln!(out, "{urls} {status}")?;
    }
    Ok(())
}
