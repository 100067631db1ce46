//! seeds-report.txt.

use std::io::{self, Write};

use super::statistics::Statistics;

/// Seeds by what became of them: those not crawled first, then the highest codes.
pub fn seeds_report(statistics: &Statistics, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "[code] [status] [seed] [redirect]")?;
    let mut seeds: Vec<_> = statistics.seeds().iter().collect();
    // Untried before failed before answered; within each from great to small, as Heritrix's readers expect.
    seeds.sort_by_key(|seed| (seed.status.is_success(), std::cmp::Reverse(seed.status), &seed.url));
    for seed in seeds {
        let status = if seed.status.is_success() { "CRAWLED" } else { "NOTCRAWLED" };
        write!(out, "{} {status} {}", seed.status, seed.url)?;
        if let Some(redirect) = &seed.redirect {
            write!(out, " {redirect}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
