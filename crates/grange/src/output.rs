//! Tables for people, JSON for programs.

use std::io::{self, Write};

use serde::Serialize;

/// Prints one JSON value on standard output.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Prints rows under a header, columns aligned. The last column is not padded.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let mut widths = header.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = io::stdout().lock();
    let mut line = |cells: [&str; N]| {
        let mut text = String::new();
        for (index, (cell, width)) in cells.into_iter().zip(widths).enumerate() {
            text.push_str(cell);
            if index + 1 < N {
                text.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
            }
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(header)?;
    for row in rows {
        line(row.each_ref().map(String::as_str))?;
    }
    Ok(())
}

/// `1 file`, `2 files`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
