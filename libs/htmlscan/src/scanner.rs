//! From one token to the next.

use memchr::memchr_iter;

use crate::foreign::Foreign;
use crate::look::{find, find_text, looked};
use crate::raw::{End, Raw, closing};
use crate::tag::{self, Attribute, Tag};
use crate::{Dialect, Token};

/// Where a scanner is, between tokens. Can be taken to another piece of the same document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The element whose inside is text up to its end tag.
    raw: Option<Raw>,
    /// Its text is over, and its end tag comes next.
    closing: bool,
    foreign: Foreign,
    /// A script was found whose end by the nested reading does not exist. That took a look at all of the input, and
    /// is not tried again.
    nesting_failed: bool,
}

/// Goes through one piece of a document.
#[derive(Debug)]
pub struct Scanner<'a> {
    input: &'a [u8],
    at: usize,
    dialect: Dialect,
    state: State,
    cut: bool,
}

impl<'a> Scanner<'a> {
    /// `state`: the default one at the start of a document.
    pub fn new(input: &'a [u8], dialect: Dialect, state: State) -> Scanner<'a> {
        Scanner { input, at: 0, dialect, state, cut: false }
    }

    /// The offset behind the last token.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Where the scanner is now; to be kept from before a token that turns out to be cut.
    pub fn state(&self) -> State {
        self.state
    }

    /// The last token ended with the input and might go on.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The start tag just read begins a text that only its end tag ends: that of a script, a style, a title.
    pub fn holds_text(&self) -> bool {
        self.state.raw.is_some()
    }

    /// The next token; the attributes of a start tag replace what is in `attributes`. A tag that never ends is
    /// none: the rest of the input is then skipped, as browsers do. A text that only its end tag ends comes in pieces
    /// where the input does, and never with a part of that tag.
    pub fn next(&mut self, attributes: &mut Vec<Attribute<'a>>) -> Option<Token<'a>> {
        self.cut = false;
        if let Some(raw) = self.state.raw.take() {
            match self.raw_text(raw) {
                Some(text) => return Some(text),
                None if self.state.raw.is_some() => return self.give_up(),
                None => {}
            }
        }
        let rest = &self.input[self.at..];
        if rest.is_empty() {
            return None;
        }
        // A `<` that begins nothing is text, and the text goes on behind it.
        let mut from = 0;
        let text_end = loop {
            match find(b'<', &rest[from..]) {
                Some(at) if self.opens(&rest[from + at + 1..]) => break from + at,
                Some(at) => from += at + 1,
                None => break rest.len(),
            }
        };
        if text_end > 0 {
            self.at += text_end;
            self.cut = self.at == self.input.len();
            return Some(Token::Text(&rest[..text_end]));
        }
        match rest.get(1) {
            Some(b'!') => Some(self.declaration()),
            Some(b'?') => Some(self.instruction()),
            Some(b'/') => self.end_tag(attributes),
            _ => self.start_tag(attributes),
        }
    }

    /// Whether `<` before `rest` begins markup.
    fn opens(&self, rest: &[u8]) -> bool {
        match rest {
            [b'!' | b'?', ..] => true,
            [b'/', next, ..] => *next != b'<' || self.dialect != Dialect::Xml,
            // The piece of input ends here: what follows will tell.
            [] | [b'/'] => true,
            [first, ..] if first.is_ascii_alphabetic() => true,
            [first, ..] => self.dialect == Dialect::Xml && (*first == b'_' || *first >= 0x80),
        }
    }

    /// `<!…>`: comments, and declarations, which are of no use here.
    fn declaration(&mut self) -> Token<'a> {
        let input = self.input;
        let start = self.at + 2;
        let rest = &input[start..];
        if let Some(body) = rest.strip_prefix(b"--") {
            // `<!-->` and `<!--->` are whole comments.
            if body.starts_with(b">") || body.starts_with(b"->") {
                self.at = start + 3 + usize::from(body[0] == b'-');
                return Token::Comment(&[]);
            }
            let (inside, after) = comment_end(body).unwrap_or_else(|| {
                self.cut = true;
                (body.len(), body.len())
            });
            self.at = start + 2 + after;
            return Token::Comment(&body[..inside]);
        }
        let has_data = match self.dialect {
            Dialect::Xml | Dialect::Xhtml => true,
            Dialect::Browser => self.state.foreign.is_inside(),
            Dialect::Html => false,
        };
        if has_data && let Some(body) = rest.strip_prefix(b"[CDATA[") {
            let end = find_text(body, b"]]>");
            self.cut = end.is_none();
            let inside = end.unwrap_or(body.len());
            self.at = (start + 7 + inside + 3).min(input.len());
            return Token::Data(&body[..inside]);
        }
        // A doctype, or a comment by mistake. Too few bytes to tell a comment look like this as well: cut.
        let end = find(b'>', rest);
        self.cut = end.is_none();
        let inside = end.unwrap_or(rest.len());
        self.at = (start + inside + 1).min(input.len());
        Token::Comment(&rest[..inside])
    }

    fn instruction(&mut self) -> Token<'a> {
        let rest = &self.input[self.at + 2..];
        let end = find(b'>', rest);
        self.cut = end.is_none();
        let inside = end.unwrap_or(rest.len());
        self.at = (self.at + 2 + inside + 1).min(self.input.len());
        let body = &rest[..inside];
        match self.dialect {
            Dialect::Xml => Token::Instruction(body.strip_suffix(b"?").unwrap_or(body)),
            Dialect::Html | Dialect::Xhtml | Dialect::Browser => Token::Comment(body),
        }
    }

    fn end_tag(&mut self, attributes: &mut Vec<Attribute<'a>>) -> Option<Token<'a>> {
        let start = self.at + 2;
        match self.input.get(start) {
            // `</>` is nothing.
            Some(b'>') => {
                self.at = start + 1;
                Some(Token::Comment(&[]))
            }
            Some(first) if first.is_ascii_alphabetic() || self.dialect == Dialect::Xml => {
                let name = self.tag(start, attributes)?.name;
                attributes.clear();
                let ends_text = std::mem::take(&mut self.state.closing);
                if matches!(self.dialect, Dialect::Html | Dialect::Browser) && !ends_text {
                    self.state.foreign.end(name);
                }
                Some(Token::End { name })
            }
            Some(_) => {
                let rest = &self.input[start..];
                let end = find(b'>', rest);
                self.cut = end.is_none();
                let inside = end.unwrap_or(rest.len());
                self.at = (start + inside + 1).min(self.input.len());
                Some(Token::Comment(&rest[..inside]))
            }
            None => self.give_up(),
        }
    }

    fn start_tag(&mut self, attributes: &mut Vec<Attribute<'a>>) -> Option<Token<'a>> {
        let Tag { name, empty, .. } = self.tag(self.at + 1, attributes)?;
        let is_foreign = self.state.foreign.is_inside();
        let may_hold_text = match self.dialect {
            Dialect::Xml => false,
            Dialect::Xhtml => !empty,
            Dialect::Html => !(is_foreign && empty),
            Dialect::Browser => !is_foreign,
        };
        let raw = if may_hold_text { Raw::of(name, self.dialect) } else { None };
        // The end of a text is no end of an element of SVG, so its start must be none either.
        if self.dialect == Dialect::Browser || self.dialect == Dialect::Html && raw.is_none() {
            self.state.foreign.start(name, empty, attributes);
        }
        self.state.raw = raw;
        Some(Token::Start { name, empty })
    }

    fn tag(&mut self, start: usize, attributes: &mut Vec<Attribute<'a>>) -> Option<Tag<'a>> {
        let Some(tag) = tag::read(self.input, start, attributes) else { return self.give_up() };
        self.at = tag.end;
        Some(tag)
    }

    /// The input ended within a tag.
    fn give_up<T>(&mut self) -> Option<T> {
        self.at = self.input.len();
        self.cut = true;
        None
    }

    /// The text up to the end tag of `raw`; none if it is empty, and for what might be the beginning of that end tag.
    fn raw_text(&mut self, raw: Raw) -> Option<Token<'a>> {
        let rest = &self.input[self.at..];
        let mut end = match raw {
            Raw::Script(_) if self.state.nesting_failed => {
                closing(rest, b"script").map_or_else(|| raw.end(rest), End::At)
            }
            _ => raw.end(rest),
        };
        // A script that swallows the rest of the page.
        if let (Raw::Script(_), End::Open { .. }, Dialect::Html | Dialect::Xhtml) = (raw, &end, self.dialect)
            && let Some(first) = closing(rest, b"script")
        {
            // More input might hold its end after all.
            self.cut = true;
            self.state.nesting_failed = true;
            end = End::At(first);
        }
        let len = match end {
            End::At(len) => {
                self.state.closing = true;
                len
            }
            End::Open { len, raw } => {
                self.cut = true;
                self.state.raw = Some(raw);
                len
            }
        };
        self.at += len;
        (len > 0).then(|| Token::Text(&rest[..len]))
    }
}

/// Where a comment ends, inside and outside: at `-->` or `--!>`.
fn comment_end(body: &[u8]) -> Option<(usize, usize)> {
    let end = memchr_iter(b'>', body).find_map(|at| match &body[..at] {
        [inside @ .., b'-', b'-'] | [inside @ .., b'-', b'-', b'!'] => Some((inside.len(), at + 1)),
        _ => None,
    });
    looked(end.map_or(body.len(), |(_, after)| after));
    end
}
