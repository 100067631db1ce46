//! Elements whose inside is text, and where that text ends.

use crate::look::{find, find_either, find_last, find_text, looked};
use crate::{Dialect, is_space};

/// An open element whose inside is text up to its end tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    Script(Script),
    /// Any other, with its name.
    Element(&'static [u8]),
    /// To the end of the document.
    Plaintext,
}

/// Within `<!--` a script may hold `<script>…</script>` of its own, a custom of the last century that the standard keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// Behind `<!--`.
    escaped: bool,
    /// And behind `<script>` in there.
    nested: bool,
    /// How many dashes the text before ended in, as far as `-->` asks.
    dashes: usize,
}

/// Where a text ends.
pub(crate) enum End {
    /// At this offset its end tag begins.
    At(usize),
    /// Not in this input. The first `len` bytes are text for certain, and `raw` is what goes on behind them.
    Open { len: usize, raw: Raw },
}

impl Raw {
    /// What the inside of an element of this name is; none for markup.
    pub(crate) fn of(name: &[u8], dialect: Dialect) -> Option<Self> {
        const ELEMENTS: [&[u8]; 5] = [b"style", b"title", b"textarea", b"iframe", b"xmp"];
        const SCRIPTING: [&[u8]; 3] = [b"noscript", b"noframes", b"noembed"];
        let among = |elements: &[&'static [u8]]| {
            elements.iter().find(|element| name.eq_ignore_ascii_case(element)).map(|name| Self::Element(name))
        };
        match name.first()?.to_ascii_lowercase() {
            b's' if name.eq_ignore_ascii_case(b"script") => Some(Self::Script(Script::default())),
            b'p' if name.eq_ignore_ascii_case(b"plaintext") => Some(Self::Plaintext),
            b's' | b't' | b'i' | b'x' => among(&ELEMENTS),
            b'n' if dialect == Dialect::Browser => among(&SCRIPTING),
            _ => None,
        }
    }

    /// Where the text that `rest` begins with ends.
    pub(crate) fn end(self, rest: &[u8]) -> End {
        match self {
            Self::Script(script) => script.end(rest),
            Self::Element(name) => closing(rest, name).map_or_else(
                || End::Open { len: settled(rest, |tail| may_close(tail, name)), raw: self },
                End::At,
            ),
            Self::Plaintext => End::Open { len: rest.len(), raw: self },
        }
    }
}

impl Script {
    fn end(mut self, rest: &[u8]) -> End {
        let first = closing(rest, b"script");
        let up_to = first.unwrap_or(rest.len());
        if self == Self::default() && find_text(&rest[..up_to], b"<!--").is_none() {
            return first.map_or_else(|| self.open(rest, settled(rest, may_matter)), End::At);
        }
        let mut from = 0;
        while let Some(at) = find_either(b'<', b'>', &rest[from..]) {
            let at = from + at;
            from = at + 1;
            if rest[at] == b'>' {
                if self.escaped && self.dashes_before(&rest[..at]) >= 2 {
                    self = Self::default();
                }
            } else if may_matter(&rest[at..]) {
                return self.open(rest, at);
            } else if rest[from..].starts_with(b"!--") {
                self.escaped = true;
            } else if self.escaped && !self.nested && names(&rest[from..], b"script") {
                self.nested = true;
            } else if rest[from..].starts_with(b"/") && names(&rest[from + 1..], b"script") {
                if !self.nested {
                    return End::At(at);
                }
                self.nested = false;
            }
        }
        self.open(rest, rest.len())
    }

    fn open(mut self, rest: &[u8], len: usize) -> End {
        self.dashes = if self.escaped { self.dashes_before(&rest[..len]).min(2) } else { 0 };
        End::Open { len, raw: Raw::Script(self) }
    }

    fn dashes_before(self, text: &[u8]) -> usize {
        let here = text.iter().rev().take_while(|byte| **byte == b'-').count();
        looked(here);
        if here == text.len() { here + self.dashes } else { here }
    }
}

/// The offset of `</name` where the name ends.
pub(crate) fn closing(rest: &[u8], name: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = find(b'<', &rest[from..]) {
        let start = from + at;
        if rest.get(start + 1) == Some(&b'/') && names(&rest[start + 2..], name) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

/// Whether `rest` begins with `name` as a whole word of a tag.
fn names(rest: &[u8], name: &[u8]) -> bool {
    rest.len() > name.len()
        && rest[..name.len()].eq_ignore_ascii_case(name)
        && (matches!(rest[name.len()], b'>' | b'/') || is_space(rest[name.len()]))
}

/// How much of `rest` means the same whatever follows: up to its last `<`, if `open` says so of what begins there.
fn settled(rest: &[u8], open: impl Fn(&[u8]) -> bool) -> usize {
    find_last(b'<', rest).filter(|at| open(&rest[*at..])).unwrap_or(rest.len())
}

/// `tail` is all of the input from a `<`, and more might make it the end tag.
fn may_close(tail: &[u8], name: &[u8]) -> bool {
    tail.len() <= name.len() + 2 && b"</".starts_with(&tail[..tail.len().min(2)]) && {
        let begun = &tail[tail.len().min(2)..];
        name[..begun.len()].eq_ignore_ascii_case(begun)
    }
}

/// The same for whatever matters in a script.
fn may_matter(tail: &[u8]) -> bool {
    let may_nest = tail.len() <= b"<script".len() && b"<script"[..tail.len()].eq_ignore_ascii_case(tail);
    may_nest || b"<!-".starts_with(tail) || may_close(tail, b"script")
}
