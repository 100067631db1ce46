//! Prints the key of each line of standard input: `keys [standard|ia|outback]`.
//!
//! Lines need not be UTF-8. This is what the differential runs against the other canonicalizers use.

use std::io::{BufRead, BufWriter, Write};
use urlkey::{Dialect, Keyer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dialect: Dialect = std::env::args().nth(1).as_deref().unwrap_or("standard").parse()?;
    let mut keyer = Keyer::new(dialect);
    let mut input = std::io::stdin().lock();
    let mut output = BufWriter::new(std::io::stdout().lock());
    let (mut line, mut key) = (Vec::new(), String::new());
    while input.read_until(b'\n', &mut line)? > 0 {
        key.clear();
        keyer.key_bytes_into(line.strip_suffix(b"\n").unwrap_or(&line), &mut key);
        writeln!(output, "{key}")?;
        line.clear();
    }
    output.flush()?;
    Ok(())
}
