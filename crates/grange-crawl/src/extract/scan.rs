//! Markup as a row of tokens, for HTML and XML alike.
//!
//! Follows the tokenizer of the HTML standard in what is a tag, an attribute, a comment or the text of a script;
//! it decodes nothing and copies nothing. Between tags it goes from `<` to `<`, which makes it several times
//! faster than a tokenizer that must look at every character. `tests/scan.rs` holds it against html5gum.
//!
//! A token that runs into the end of the input is marked as cut: a reader with more to come asks for it again
//! with more behind it (see `window.rs`).

use memchr::{memchr, memchr2, memmem};

/// Further attributes of a tag are skipped: what is done with one may look at all the others.
const ATTRIBUTES_MAX: usize = 200;

/// An attribute with its value as it stands, entities and charset undecoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attribute<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `<name …>`; its attributes are in the list handed to [`Scanner::next`].
    Start {
        name: &'a [u8],
        empty: bool,
    },
    /// `</name>`
    End {
        name: &'a [u8],
    },
    Text(&'a [u8]),
    /// The inside of `<!-- … -->`, or of what passes for one.
    Comment(&'a [u8]),
    /// The inside of `<![CDATA[ … ]]>`; only in XML.
    Data(&'a [u8]),
    /// The inside of `<? … ?>`; only in XML.
    Instruction(&'a [u8]),
}

/// The rules of HTML or those of XML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Html,
    Xml,
}

/// Where a scanner is, between tokens. Can be taken to another piece of the same document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The element whose inside is text up to its end tag.
    raw: Option<Raw>,
    /// A script was found whose end by the nested reading does not exist. That took a look at all of the input, and
    /// is not tried again.
    nesting_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Raw {
    Script,
    /// Any other, with its name.
    Element(&'static [u8]),
    /// To the end of the document.
    Plaintext,
}

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    input: &'a [u8],
    at: usize,
    dialect: Dialect,
    state: State,
    cut: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(input: &'a [u8], dialect: Dialect, state: State) -> Scanner<'a> {
        Scanner { input, at: 0, dialect, state, cut: false }
    }

    /// The offset behind the last token.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// The last token ended with the input and might go on.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// The next token; the attributes of a start tag replace what is in `attributes`. A tag that never ends is
    /// none: the rest of the input is then skipped, as browsers do.
    pub(super) fn next(&mut self, attributes: &mut Vec<Attribute<'a>>) -> Option<Token<'a>> {
        self.cut = false;
        if let Some(raw) = self.state.raw.take()
            && let Some(text) = self.raw_text(raw)
        {
            return Some(text);
        }
        let rest = &self.input[self.at..];
        if rest.is_empty() {
            return None;
        }
        // A `<` that begins nothing is text, and the text goes on behind it.
        let mut from = 0;
        let text_end = loop {
            match memchr(b'<', &rest[from..]) {
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
            [b'/', next, ..] => *next != b'<' || self.dialect == Dialect::Html,
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
        if self.dialect == Dialect::Xml
            && let Some(body) = rest.strip_prefix(b"[CDATA[")
        {
            let end = memmem::find(body, b"]]>");
            self.cut = end.is_none();
            let inside = end.unwrap_or(body.len());
            self.at = (start + 7 + inside + 3).min(input.len());
            return Token::Data(&body[..inside]);
        }
        // A doctype, or a comment by mistake. Too few bytes to tell a comment look like this as well: cut.
        let end = memchr(b'>', rest);
        self.cut = end.is_none();
        let inside = end.unwrap_or(rest.len());
        self.at = (start + inside + 1).min(input.len());
        Token::Comment(&rest[..inside])
    }

    fn instruction(&mut self) -> Token<'a> {
        let rest = &self.input[self.at + 2..];
        let end = memchr(b'>', rest);
        self.cut = end.is_none();
        let inside = end.unwrap_or(rest.len());
        self.at = (self.at + 2 + inside + 1).min(self.input.len());
        let body = &rest[..inside];
        match self.dialect {
            Dialect::Xml => Token::Instruction(body.strip_suffix(b"?").unwrap_or(body)),
            Dialect::Html => Token::Comment(body),
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
                let (name, _) = self.tag(start, attributes)?;
                attributes.clear();
                Some(Token::End { name })
            }
            Some(_) => {
                let rest = &self.input[start..];
                let end = memchr(b'>', rest);
                self.cut = end.is_none();
                let inside = end.unwrap_or(rest.len());
                self.at = (start + inside + 1).min(self.input.len());
                Some(Token::Comment(&rest[..inside]))
            }
            None => self.give_up(),
        }
    }

    fn start_tag(&mut self, attributes: &mut Vec<Attribute<'a>>) -> Option<Token<'a>> {
        let (name, empty) = self.tag(self.at + 1, attributes)?;
        if self.dialect == Dialect::Html {
            self.state.raw = raw(name);
        }
        Some(Token::Start { name, empty })
    }

    /// Name and attributes up to `>`; none if the input ends first.
    fn tag(&mut self, start: usize, attributes: &mut Vec<Attribute<'a>>) -> Option<(&'a [u8], bool)> {
        attributes.clear();
        let input = self.input;
        let mut at = start;
        while at < input.len() && !matches!(input[at], b'>' | b'/') && !is_space(input[at]) {
            at += 1;
        }
        let name = &input[start..at];
        loop {
            while at < input.len() && (is_space(input[at]) || input[at] == b'/') {
                at += 1;
            }
            let Some(&first) = input.get(at) else { return self.give_up() };
            if first == b'>' {
                self.at = at + 1;
                return Some((name, input[at - 1] == b'/'));
            }
            // A name may begin with `=`, but not contain one.
            let from = at;
            at += 1;
            while at < input.len() && !matches!(input[at], b'=' | b'>' | b'/') && !is_space(input[at]) {
                at += 1;
            }
            let attribute = &input[from..at];
            while at < input.len() && is_space(input[at]) {
                at += 1;
            }
            let mut value: &[u8] = &[];
            if input.get(at) == Some(&b'=') {
                at += 1;
                while at < input.len() && is_space(input[at]) {
                    at += 1;
                }
                match input.get(at) {
                    Some(&quote @ (b'"' | b'\'')) => {
                        let Some(len) = memchr(quote, &input[at + 1..]) else { return self.give_up() };
                        value = &input[at + 1..at + 1 + len];
                        at += len + 2;
                    }
                    Some(b'>') | None => {}
                    Some(_) => {
                        let from = at;
                        while at < input.len() && input[at] != b'>' && !is_space(input[at]) {
                            at += 1;
                        }
                        value = &input[from..at];
                    }
                }
            }
            // Of two with the same name browsers take the first. Tags have few attributes, so looking is cheap.
            let is_first = !attributes.iter().any(|known| known.name.eq_ignore_ascii_case(attribute));
            if is_first && attributes.len() < ATTRIBUTES_MAX {
                attributes.push(Attribute { name: attribute, value });
            }
        }
    }

    /// The input ended within a tag.
    fn give_up<T>(&mut self) -> Option<T> {
        self.at = self.input.len();
        self.cut = true;
        None
    }

    /// The text up to the end tag of `raw`; none if it is empty.
    fn raw_text(&mut self, raw: Raw) -> Option<Token<'a>> {
        let rest = &self.input[self.at..];
        let end = match raw {
            Raw::Script if self.state.nesting_failed => closing(rest, b"script"),
            Raw::Script => match script_end(rest) {
                ScriptEnd::At(end) => Some(end),
                ScriptEnd::Settled(end) => {
                    // More input might hold the end after all.
                    self.cut = true;
                    self.state.nesting_failed = true;
                    Some(end)
                }
                ScriptEnd::None => None,
            },
            Raw::Element(name) => closing(rest, name),
            Raw::Plaintext => None,
        };
        let len = end.unwrap_or(rest.len());
        if end.is_none() {
            self.cut = true;
            self.state.raw = Some(raw);
        }
        self.at += len;
        (len > 0).then(|| Token::Text(&rest[..len]))
    }
}

pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

/// Elements whose inside is text. `noscript`, `noframes` and `noembed` are read as markup: we run no scripts and
/// show no frames, and what stands there is for such as us.
fn raw(name: &[u8]) -> Option<Raw> {
    const ELEMENTS: [&[u8]; 5] = [b"style", b"title", b"textarea", b"iframe", b"xmp"];
    match name.first()?.to_ascii_lowercase() {
        b's' | b't' | b'i' | b'x' | b'p' => {}
        _ => return None,
    }
    if name.eq_ignore_ascii_case(b"script") {
        return Some(Raw::Script);
    }
    if name.eq_ignore_ascii_case(b"plaintext") {
        return Some(Raw::Plaintext);
    }
    ELEMENTS.into_iter().find(|element| name.eq_ignore_ascii_case(element)).map(Raw::Element)
}

/// Where a comment ends, inside and outside: at `-->` or `--!>`.
fn comment_end(body: &[u8]) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(at) = memmem::find(&body[from..], b"--") {
        let dashes = from + at;
        match &body[dashes + 2..] {
            [b'>', ..] => return Some((dashes, dashes + 3)),
            [b'!', b'>', ..] => return Some((dashes, dashes + 4)),
            _ => from = dashes + 1,
        }
    }
    None
}

/// The offset of `</name` where the name ends.
fn closing(rest: &[u8], name: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = memchr(b'<', &rest[from..]) {
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

/// Where a script ends. Within `<!--` a script may hold `<script>…</script>` of its own, a custom of the last
/// century that the standard keeps. If that reading finds no end, the first end tag is one.
fn script_end(rest: &[u8]) -> ScriptEnd {
    let Some(first) = closing(rest, b"script") else { return ScriptEnd::None };
    if memmem::find(&rest[..first], b"<!--").is_none() {
        return ScriptEnd::At(first);
    }
    let (mut escaped, mut nested) = (false, false);
    let mut from = 0;
    while let Some(at) = memchr2(b'<', b'>', &rest[from..]) {
        let at = from + at;
        from = at + 1;
        if rest[at] == b'>' {
            if escaped && rest[..at].ends_with(b"--") {
                (escaped, nested) = (false, false);
            }
        } else if rest[from..].starts_with(b"!--") {
            escaped = true;
        } else if escaped && !nested && names(&rest[from..], b"script") {
            nested = true;
        } else if rest[from..].starts_with(b"/") && names(&rest[from + 1..], b"script") {
            if !nested {
                return ScriptEnd::At(at);
            }
            nested = false;
        }
    }
    ScriptEnd::Settled(first)
}

enum ScriptEnd {
    At(usize),
    /// At the first end tag, for want of a better one.
    Settled(usize),
    None,
}
