//! Named fields as WARC, HTTP and `application/warc-fields` share them: `name: value`, one per line.
//!
//! The bytes are kept as they were; a field is two ranges into them. Parsing never fails, it notes.

/// The bytes of a head, and where its fields lie in them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fields {
    /// The head as it was found, then the joined values of folded fields.
    bytes: Vec<u8>,
    raw_len: usize,
    list: Vec<Field>,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    name: (u32, u32),
    value: (u32, u32),
}

/// What was unusual about a head.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notes {
    pub(crate) bare_lf: bool,
    pub(crate) folded: bool,
    pub(crate) no_colon: bool,
    pub(crate) space_before_colon: bool,
}

impl Fields {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
        self.raw_len = 0;
    }

    /// Takes a head whose fields start at `from`, after the version or start line.
    pub(crate) fn parse(&mut self, head: &[u8], from: usize) -> Notes {
        self.clear();
        self.bytes.extend_from_slice(head);
        self.raw_len = head.len();
        let mut notes = Notes::default();
        let mut at = from;
        while at < head.len() {
            let end = memchr::memchr(b'\n', &head[at..]).map_or(head.len(), |n| at + n + 1);
            let line = &head[at..end];
            let text = trim_line_end(line);
            if line.ends_with(b"\n") && text.len() + 1 == line.len() {
                notes.bare_lf = true;
            }
            if text.is_empty() {
                // The blank line, or several of them where lines end in CR CR LF.
            } else if matches!(text[0], b' ' | b'\t') {
                notes.folded = true;
                self.fold(text);
            } else if let Some(colon) = memchr::memchr(b':', text) {
                let name = text[..colon].trim_ascii_end();
                notes.space_before_colon |= name.len() < colon;
                let value = text[colon + 1..].trim_ascii();
                let value_at =
                    at + colon + 1 + text[colon + 1..].iter().take_while(|b| b.is_ascii_whitespace()).count();
                let value_at = if value.is_empty() { at + colon + 1 } else { value_at };
                self.list.push(Field {
                    name: (at as u32, (at + name.len()) as u32),
                    value: (value_at as u32, (value_at + value.len()) as u32),
                });
            } else {
                notes.no_colon = true;
            }
            at = end;
        }
        notes
    }

    /// Joins a folded line to the value before it, with one space.
    fn fold(&mut self, text: &[u8]) {
        let Some(last) = self.list.last_mut() else { return };
        let (from, to) = (last.value.0 as usize, last.value.1 as usize);
        let at = if to == self.bytes.len() && from >= self.raw_len {
            from
        } else {
            let at = self.bytes.len();
            self.bytes.extend_from_within(from..to);
            at
        };
        if self.bytes.len() > at {
            self.bytes.push(b' ');
        }
        self.bytes.extend_from_slice(text.trim_ascii());
        last.value = (at as u32, self.bytes.len() as u32);
    }

    /// Adds a field that is not in the bytes as such.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name.as_bytes());
        let middle = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.list.push(Field { name: (start, middle), value: (middle, self.bytes.len() as u32) });
    }

    /// Sets the bytes that were found, without fields.
    pub(crate) fn set_raw(&mut self, raw: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(raw);
        self.raw_len = raw.len();
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.bytes[..self.raw_len]
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let field = self.list.get(index)?;
        let range = |(from, to): (u32, u32)| &self.bytes[from as usize..to as usize];
        Some((range(field.name), range(field.value)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.list.len()).filter_map(|index| self.at(index))
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }
}

/// A line without its LF and the CRs before it.
pub(crate) fn trim_line_end(line: &[u8]) -> &[u8] {
    let mut text = line.strip_suffix(b"\n").unwrap_or(line);
    while let Some(rest) = text.strip_suffix(b"\r") {
        text = rest;
    }
    text
}

/// Where a head ends, the blank line included, if `bytes` hold all of it. A line for which `stop` is true
/// ends it too; it is not part of it.
pub(crate) fn head_end(bytes: &[u8], stop: impl Fn(&[u8]) -> bool) -> HeadEnd {
    let mut at = 0;
    for newline in memchr::memchr_iter(b'\n', bytes) {
        let line = trim_line_end(&bytes[at..=newline]);
        if at > 0 && stop(line) {
            return HeadEnd::Stopped(at);
        }
        at = newline + 1;
        if line.is_empty() {
            return HeadEnd::Blank(at);
        }
    }
    HeadEnd::Open
}

/// How a head ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadEnd {
    /// With a blank line, which it includes.
    Blank(usize),
    /// Before a line that cannot belong to it.
    Stopped(usize),
    /// Not within the bytes at hand.
    Open,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_is_there() {
        let head = b"WARC/1.0\r\nA: 1\r\nb :2\nLong: one\r\n  two\r\n\tthree\r\nnonsense\r\nEmpty:\r\nA: again  \r\n\r\n";
        let mut fields = Fields::default();
        let notes = fields.parse(head, 10);
        assert_eq!(notes, Notes { bare_lf: true, folded: true, no_colon: true, space_before_colon: true });
        let list: Vec<_> = fields
            .iter()
            .map(|(n, v)| (String::from_utf8_lossy(n).into_owned(), String::from_utf8_lossy(v).into_owned()))
            .collect();
        let expected = [("A", "1"), ("b", "2"), ("Long", "one two three"), ("Empty", ""), ("A", "again")];
        assert_eq!(list, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert_eq!(fields.raw(), head);
        assert_eq!(fields.get("a"), Some(&b"1"[..]));
        assert_eq!(fields.all("A").count(), 2);
    }

    #[test]
    fn heads_end_at_a_blank_line() {
        let stop = |line: &[u8]| line == b"STOP";
        for (bytes, expected) in [
            ("a: b\r\n\r\nx", HeadEnd::Blank(8)),
            ("a: b\n\nx", HeadEnd::Blank(6)),
            ("a: b\r\r\n\r\r\nx", HeadEnd::Blank(10)),
            ("a: b\r\nc", HeadEnd::Open),
            ("a: b\r\nSTOP\r\n\r\n", HeadEnd::Stopped(6)),
            ("\r\nx", HeadEnd::Blank(2)),
        ] {
            assert_eq!(head_end(bytes.as_bytes(), stop), expected, "{bytes:?}");
        }
    }
}
