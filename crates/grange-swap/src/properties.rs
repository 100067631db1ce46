//! The `.properties` syntax of the original's files: `key=value` lines, escapes with a backslash.
//!
//! Written as plain ASCII so that any tool of any decade reads it; read with every escape the syntax knows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Largest file read, bytes: 10,000 slices take a tenth of this; more is not ours.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

pub(crate) type Properties = BTreeMap<String, String>;

pub(crate) fn read(text: &str) -> Properties {
    let mut found = Properties::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        // An odd number of backslashes at the end continues the line.
        while line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
            line.pop();
            line.push_str(lines.next().unwrap_or_default().trim_start());
        }
        let (key, value) = split(&line);
        found.insert(unescape(key), unescape(value));
    }
    found
}

pub(crate) fn write<'a>(comment: &str, entries: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut text = format!("# {comment}\n");
    for (key, value) in entries {
        text.push_str(key);
        text.push('=');
        escape(&value, &mut text);
        text.push('\n');
    }
    text
}

/// At the first unescaped `=`, `:` or blank.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        if !escaped && (c == '=' || c == ':' || c.is_ascii_whitespace()) {
            let rest = line[at..].trim_start();
            let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
            return (&line[..at], rest.trim_start());
        }
        escaped = c == '\\' && !escaped;
    }
    (line, "")
}

fn unescape(text: &str) -> String {
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    let mut buffer = [0; 2];
    while let Some(c) = chars.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut buffer));
            continue;
        }
        match chars.next() {
            Some('n') => units.push(10),
            Some('r') => units.push(13),
            Some('t') => units.push(9),
            Some('f') => units.push(12),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xfffd));
            }
            Some(c) => units.extend_from_slice(c.encode_utf16(&mut buffer)),
            None => {}
        }
    }
    String::from_utf16_lossy(&units)
}

fn escape(text: &str, out: &mut String) {
    let mut buffer = [0; 2];
    for (at, c) in text.chars().enumerate() {
        match c {
            '\\' => out.push_str("\\\\"),
            ' ' if at == 0 => out.push_str("\\ "),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut buffer) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_syntax_is_read_as_java_reads_it() {
        let text =
            "# note\n! note\n a = b\nc:d\ne f\ng\\ h=1\\\n  2\ni=\\u00e6\\ud83d\\ude00\nj=x\\=y\\\\\nk\n";
        let found = read(text);
        for (key, value) in
            [("a", "b"), ("c", "d"), ("e", "f"), ("g h", "12"), ("i", "æ😀"), ("j", "x=y\\"), ("k", "")]
        {
            assert_eq!(found.get(key).map(String::as_str), Some(value), "{key}");
        }
        assert_eq!(found.len(), 7);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(value in "\\PC{0,20}|[ \\\\=:#!\n\t]{0,8}") {
            let text = write("test", [("swap.description", value.clone())]);
            prop_assert!(text.is_ascii());
            prop_assert_eq!(&read(&text)["swap.description"], &value);
        }

        #[test]
        fn no_text_breaks_the_reader(text in "[ab=:#!\\\\u0-9\n ]{0,60}") {
            read(&text);
        }
    }
}
