//! hosts-report.txt.

use std::io::{self, Write};

use super::statistics::Statistics;

/// Hosts, the busiest first. `remaining` says how many URIs a host still has in the frontier.
///
/// Each row ends with a blank, as Heritrix's rows do.
pub fn hosts_report(
    statistics: &Statistics,
    remaining: impl Fn(&str) -> u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "[#urls] [#bytes] [host] [#robots] [#remaining] [#novel-urls] [#novel-bytes] [#dup-by-hash-urls] \
         [#dup-by-hash-bytes] [#not-modified-urls] [#not-modified-bytes]"
    )?;
    let mut hosts: Vec<_> = statistics.hosts().filter(|(name, _)| !name.is_empty()).collect();
    hosts.sort_by(|(a, x), (b, y)| y.succeeded.urls.cmp(&x.succeeded.urls).then_with(|| a.cmp(b)));
    for (name, host) in hosts {
        writeln!(
            out,
            "{} {} {name} {} {} {} {} {} {} {} {} ",
            host.succeeded.urls,
            host.succeeded.bytes,
            host.robots,
            remaining(name),
            host.novel.urls,
            host.novel.bytes,
            host.duplicate.urls,
            host.duplicate.bytes,
            host.not_modified.urls,
            host.not_modified.bytes,
        )?;
    }
    Ok(())
}
