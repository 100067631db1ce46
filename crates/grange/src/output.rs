//! Standard output and standard error of every command. No command writes to them in another way: clippy refuses it.
//!
//! Nobody reading the output never ends an act and never changes its exit code: after a reader such as `head` has gone, text is
//! dropped. Another failure, such as a full disk, is reported once when the command has ended, by [`finish`]. Commands that
//! only list may read for hours, so what they write to, [`listing`], ends them instead.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal as _, StdoutLock, Write};
use std::sync::OnceLock;

use grange_api::ApiError;
use serde::Serialize;

use crate::exit::Exit;

/// Prints a line on standard output.
macro_rules! outln {
    () => { $crate::output::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints text on standard output.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*)) };
}

/// Prints a line on standard error.
macro_rules! errln {
    ($($text:tt)*) => { $crate::output::print_error(format_args!("{}\n", format_args!($($text)*))) };
}

/// The first failure of standard output. Nothing is written after it.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// Standard output for text that accompanies an act, and for whole answers: writing never fails.
#[derive(Debug)]
pub(crate) struct Output(StdoutLock<'static>);

pub(crate) fn stdout() -> Output {
    #[expect(clippy::disallowed_methods, reason = "the one place that writes to it")]
    Output(io::stdout().lock())
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        keep_failure(bytes.len(), || self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        keep_failure((), || self.0.flush())
    }
}

/// Does it unless standard output failed before; `dropped` stands for what was not written.
fn keep_failure<T>(dropped: T, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if FAILURE.get().is_some() {
        return Ok(dropped);
    }
    match write() {
        Err(error) if error.kind() != ErrorKind::Interrupted => {
            let _ = FAILURE.set(error);
            Ok(dropped)
        }
        written => written,
    }
}

/// Standard output for commands that do nothing but write a list or bytes of any length: the first failure ends them.
#[derive(Debug)]
pub(crate) struct Listing(Output);

pub(crate) fn listing() -> Listing {
    Listing(stdout())
}

impl Write for Listing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        unless_unread(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        unless_unread(())
    }
}

fn unless_unread<T>(written: T) -> io::Result<T> {
    if FAILURE.get().is_some() { Err(ErrorKind::BrokenPipe.into()) } else { Ok(written) }
}

/// Whether this is the error with which a [`Listing`] ends a command.
pub(crate) fn ended_listing(error: &anyhow::Error) -> bool {
    let ended = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        // An error of JSON hides the one of the writer.
        let kind = io.or_else(|| cause.downcast_ref::<serde_json::Error>()?.io_error_kind());
        kind == Some(ErrorKind::BrokenPipe)
    };
    // A server that hangs up has nothing to do with it.
    let from_server = error.chain().any(<dyn std::error::Error>::is::<ApiError>);
    FAILURE.get().is_some() && !from_server && error.chain().any(ended)
}

pub(crate) fn print(text: Arguments<'_>) {
    // It cannot fail: failures are kept for the end.
    let _ = stdout().write_fmt(text);
}

/// Text that nobody can read is dropped: there is no other place to report it.
#[expect(clippy::disallowed_methods, reason = "the one place that writes to it")]
pub(crate) fn print_error(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Whether standard error is a terminal.
#[expect(clippy::disallowed_methods, reason = "nothing is written")]
pub(crate) fn errors_are_seen() -> bool {
    io::stderr().is_terminal()
}

/// Writes out the rest, reports a failure of standard output, and gives the exit code that is true.
pub(crate) fn finish(exit: Exit) -> Exit {
    let _ = stdout().flush();
    let Some(error) = FAILURE.get().filter(|error| error.kind() != ErrorKind::BrokenPipe) else {
        return exit;
    };
    let done = match exit {
        Exit::Ok | Exit::Partial => "the command itself was carried out, but ",
        _ => "",
    };
    errln!("grange: cannot write to standard output: {error}; {done}its output is incomplete");
    match exit {
        Exit::Ok | Exit::Unread => Exit::Failed,
        other => other,
    }
}

/// Prints one JSON value on standard output.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    stdout().write_all(&text)?;
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
    let mut out = stdout();
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
