//! JavaScript cut into tokens, well enough to tell code from strings, comments, templates and regular expressions.
//!
//! No grammar is checked. What a parser would know for certain (is this `/` a division, does this brace open a
//! function) is decided from the tokens before it; the rules are right for all code that tools write and nearly all
//! that people write, and a wrong guess cannot reach beyond its line for strings and regular expressions.

use super::slot::{Binding, Slot};
use super::token_ends::{
    Unclosed, boundary, is_word_byte, number_end, punct_end, regex_end, skip_space, text_end, word_end,
};
use crate::rewrite::work;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    Number,
    /// With its quotes.
    Text,
    /// A piece of a template: from a backtick or `}` to `${` or a backtick.
    Template,
    Regex,
    Punct,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// A line ends between this token and the one before.
    pub(super) after_line_end: bool,
}

/// What a `{` opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brace {
    Block,
    /// The body of a function; `declared`: of one that stands as a statement.
    Function {
        declared: bool,
    },
    Class,
    Object,
    /// `${` in a template.
    Template,
}

/// What is open around a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    Brace(Brace),
    Paren {
        /// After `if`, `for`, `while`, `with`, `switch`, `catch`: what follows the `)` is a statement.
        control: bool,
        /// After the name of a function that stands as a statement.
        declared: bool,
    },
    Bracket,
}

/// An open bracket.
#[derive(Clone, Copy, Debug)]
struct Level {
    open: Open,
    /// Whether the names that stand in it are bound there.
    binding: Binding,
}

/// Deeper nesting than this is an attack on the lexer, not a program; the rest is not looked at.
const DEPTH_MAX: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    /// Where the next token begins, behind space and comments, and whether a line ends before it.
    at: usize,
    after_line_end: bool,
    open: Vec<Level>,
    functions: usize,
    classes: usize,
    /// The last token, and the one before.
    last: Option<Token>,
    last_but_one: Option<Token>,
    /// Where the last token stood.
    last_slot: Slot,
    /// What the last closing bracket closed.
    closed: Option<Open>,
    /// `class` was read and its `{` is yet to come, at this depth.
    class_at: Option<usize>,
    /// `function` was read and its `(` is yet to come; whether it stands as a statement.
    function: Option<bool>,
    /// Depth of the list of declarations that is open.
    declaring: Option<usize>,
    /// The last token is the `*` of a generator in a class or an object.
    generator: bool,
    /// The last `/` that was followed to the end of its line in vain.
    unclosed: Option<Unclosed>,
    damaged: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let (at, after_line_end) = skip_space(text.as_bytes(), 0);
        Self {
            text,
            at,
            after_line_end,
            open: Vec::new(),
            functions: 0,
            classes: 0,
            last: None,
            last_but_one: None,
            last_slot: Slot::Other,
            closed: None,
            class_at: None,
            function: None,
            declaring: None,
            generator: false,
            unclosed: None,
            damaged: false,
        }
    }

    pub(super) fn text(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    /// Brackets open around the next token.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Functions open around the next token.
    pub(super) fn functions(&self) -> usize {
        self.functions
    }

    pub(super) fn in_class_body(&self) -> bool {
        self.classes > 0
    }

    /// The brackets do not match: what was said about depth cannot be relied on.
    pub(super) fn damaged(&self) -> bool {
        self.damaged || !self.open.is_empty() || work::is_over()
    }

    /// Offset of the next token.
    pub(super) fn next_at(&self) -> usize {
        self.at
    }

    /// The first byte of the next token, not counting space and comments.
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The text from the next token on.
    pub(super) fn ahead(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let bytes = self.text.as_bytes();
        let (start, after_line_end) = (self.at, self.after_line_end);
        let first = *bytes.get(start).filter(|_| !work::is_over())?;
        let slot = self.slot();
        let (kind, end) = match first {
            b'"' | b'\'' => (Kind::Text, text_end(bytes, start)),
            b'`' => (Kind::Template, self.template_end(start + 1)),
            b'}' if matches!(self.innermost(), Some(Open::Brace(Brace::Template))) => {
                self.open.pop();
                (Kind::Template, self.template_end(start + 1))
            }
            b'0'..=b'9' => (Kind::Number, number_end(bytes, start)),
            b'.' if bytes.get(start + 1).is_some_and(u8::is_ascii_digit) => {
                (Kind::Number, number_end(bytes, start))
            }
            b'/' => match self.regex_allowed().then(|| self.regex_end(start)).flatten() {
                Some(end) => (Kind::Regex, end),
                None => (Kind::Punct, punct_end(bytes, start)),
            },
            _ if is_word_byte(first) || first == b'#' || first == b'\\' => {
                (Kind::Word, word_end(bytes, start))
            }
            _ => (Kind::Punct, punct_end(bytes, start)),
        };
        (self.at, self.after_line_end) = skip_space(bytes, end);
        work::spend(self.at - start);
        let token = Token { kind, start, end, after_line_end };
        self.generator = kind == Kind::Punct && self.is_generator(token);
        match kind {
            Kind::Punct => self.bracket(token, slot),
            Kind::Word => self.word(token, slot),
            _ => {}
        }
        self.last_but_one = self.last;
        self.last = Some(token);
        self.last_slot = slot;
        Some(token)
    }

    /// Behind the regular expression that begins at `start`, if there is one.
    fn regex_end(&mut self, start: usize) -> Option<usize> {
        match regex_end(self.text.as_bytes(), start, self.unclosed) {
            Ok(end) => Some(end),
            Err(unclosed) => {
                self.unclosed = Some(unclosed);
                None
            }
        }
    }

    pub(super) fn innermost(&self) -> Option<Open> {
        self.open.last().map(|level| level.open)
    }

    /// What becomes of names that stand in the innermost open bracket.
    pub(super) fn binding(&self) -> Binding {
        self.open.last().map_or(Binding::No, |level| level.binding)
    }

    /// The last tokens as text, the very last first; empty where there are none.
    pub(super) fn last_texts(&self) -> [&'a str; 2] {
        [self.last, self.last_but_one].map(|token| token.map_or("", |token| self.text(token)))
    }

    /// The last token is the `*` in front of the name of a generator that is a member.
    pub(super) fn after_generator_star(&self) -> bool {
        self.generator
    }

    /// The next token is in the place of a function's name.
    pub(super) fn names_function(&self) -> bool {
        self.function.is_some()
    }

    /// The next token, if it is a name, is one that `let`, `const` or `var` declare.
    pub(super) fn declares(&self) -> bool {
        match self.last_texts() {
            ["let" | "const" | "var", before] => {
                before != "." && !matches!(self.last_slot, Slot::Member | Slot::Property(_))
            }
            [",", _] => self.declaring == Some(self.open.len()),
            _ => false,
        }
    }

    fn is(&self, token: Option<Token>, text: &str) -> bool {
        token.is_some_and(|token| self.text(token) == text)
    }

    /// An expression could end with the last token.
    pub(super) fn ends_expression(&self) -> bool {
        let Some(last) = self.last else { return false };
        match last.kind {
            Kind::Number | Kind::Text | Kind::Regex => true,
            Kind::Template => self.text(last).ends_with('`'),
            Kind::Word => !wants_operand(self.text(last)) || self.is(self.last_but_one, "."),
            Kind::Punct => match self.text(last) {
                "]" | "++" | "--" => true,
                ")" => !matches!(self.closed, Some(Open::Paren { control: true, .. })),
                "}" => matches!(
                    self.closed,
                    Some(Open::Brace(Brace::Object | Brace::Function { declared: false }))
                ),
                _ => false,
            },
        }
    }

    fn regex_allowed(&self) -> bool {
        !self.ends_expression()
    }

    /// The next token begins a statement.
    pub(super) fn at_statement(&self, after_line_end: bool) -> bool {
        let Some(last) = self.last else { return true };
        match self.text(last) {
            ";" => true,
            "{" => matches!(self.innermost(), Some(Open::Brace(Brace::Block | Brace::Function { .. }))),
            "}" => after_line_end || !self.ends_expression(),
            _ => after_line_end && self.ends_expression(),
        }
    }

    fn word(&mut self, token: Token, slot: Slot) {
        if self.is(self.last, ".") || self.is(self.last, "?.") {
            return;
        }
        if token.after_line_end
            && self.declaring == Some(self.open.len())
            && self.ends_expression()
            && !matches!(self.text(token), "in" | "instanceof" | "of")
        {
            self.declaring = None;
        }
        // A key, or the name of a method.
        if slot == Slot::Member || matches!(slot, Slot::Property(_)) {
            return;
        }
        match self.text(token) {
            "class" => self.class_at = Some(self.open.len()),
            "function" => {
                let is_async = self.is(self.last, "async");
                let statement = self.at_statement(token.after_line_end) || is_async;
                self.function = Some(statement);
            }
            "let" | "const" | "var" => self.declaring = Some(self.open.len()),
            _ => {}
        }
    }

    /// Whether this is the `*` of a generator among the members of a class or an object.
    fn is_generator(&self, token: Token) -> bool {
        if self.text(token) != "*" {
            return false;
        }
        let [last, _] = self.last_texts();
        match self.innermost() {
            Some(Open::Brace(Brace::Class)) => matches!(last, "{" | "}" | ";" | "static" | "async"),
            Some(Open::Brace(Brace::Object)) => matches!(last, "{" | "," | "async"),
            _ => false,
        }
    }

    fn bracket(&mut self, token: Token, slot: Slot) {
        let text = self.text(token);
        if self.open.len() >= DEPTH_MAX {
            self.damaged = true;
            return;
        }
        match text {
            "(" => {
                let [last, before] = self.last_texts();
                let is_name = before == "." || matches!(self.last_slot, Slot::Member | Slot::Property(_));
                let is_word = self.last.is_some_and(|last| last.kind == Kind::Word) && !is_name;
                let control =
                    is_word && matches!(last, "if" | "for" | "while" | "with" | "switch" | "catch" | "await");
                let function = self.function.take();
                let binding = match () {
                    () if function.is_some() || (control && last == "catch") => Binding::Yes,
                    () if control => Binding::No,
                    () => Binding::Maybe,
                };
                let declared = function.unwrap_or(false);
                self.open.push(Level { open: Open::Paren { control, declared }, binding });
            }
            "[" => {
                let binding = self.pattern(slot);
                self.open.push(Level { open: Open::Bracket, binding });
            }
            "{" => {
                let (brace, binding) = match (self.brace(), self.pattern(slot)) {
                    // `let {` and `export {` hold names as an object does.
                    (Brace::Block, Binding::Yes) => (Brace::Object, Binding::Yes),
                    (brace, binding) => (brace, binding),
                };
                match brace {
                    Brace::Function { .. } => self.functions += 1,
                    Brace::Class => self.classes += 1,
                    _ => {}
                }
                self.open.push(Level { open: Open::Brace(brace), binding });
            }
            ")" => self.close(|open| matches!(open, Open::Paren { .. })),
            "]" => self.close(|open| matches!(open, Open::Bracket)),
            "}" => self.close(|open| matches!(open, Open::Brace(_))),
            _ => {}
        }
        if text == ";" || self.declaring.is_some_and(|depth| self.open.len() < depth) {
            self.declaring = None;
        }
    }

    /// What becomes of the names in the `[` or `{` that comes next.
    fn pattern(&self, slot: Slot) -> Binding {
        match slot {
            Slot::Target(binding) => binding,
            _ if self.declares() || matches!(self.last_texts()[0], "export" | "import") => Binding::Yes,
            _ => Binding::No,
        }
    }

    fn close(&mut self, fits: impl Fn(&Open) -> bool) {
        match self.open.pop().map(|level| level.open) {
            Some(open) => {
                if !fits(&open) {
                    self.damaged = true;
                }
                match open {
                    Open::Brace(Brace::Function { .. }) => self.functions -= 1,
                    Open::Brace(Brace::Class) => self.classes -= 1,
                    _ => {}
                }
                self.closed = Some(open);
            }
            None => self.damaged = true,
        }
    }

    /// What a `{` opens here.
    fn brace(&mut self) -> Brace {
        if self.class_at == Some(self.open.len()) {
            self.class_at = None;
            return Brace::Class;
        }
        let Some(last) = self.last else { return Brace::Block };
        let text = self.text(last);
        match last.kind {
            Kind::Word => match text {
                "else" | "do" | "try" | "finally" | "catch" | "static" => Brace::Block,
                _ if wants_operand(text) || text == "default" => Brace::Object,
                _ => Brace::Block,
            },
            Kind::Punct => match text {
                ")" => match self.closed {
                    Some(Open::Paren { control: true, .. }) => Brace::Block,
                    Some(Open::Paren { declared, .. }) => Brace::Function { declared },
                    _ => Brace::Block,
                },
                "=>" => Brace::Function { declared: false },
                ";" | "{" | "}" => Brace::Block,
                ":" => match self.innermost() {
                    None | Some(Open::Brace(Brace::Block | Brace::Function { .. })) => Brace::Block,
                    Some(_) => Brace::Object,
                },
                _ => Brace::Object,
            },
            _ => Brace::Block,
        }
    }

    /// From inside a template to behind its `${` or its closing backtick.
    fn template_end(&mut self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'`' => return at + 1,
                b'$' if bytes.get(at + 1) == Some(&b'{') => {
                    if self.open.len() >= DEPTH_MAX {
                        self.damaged = true;
                    } else {
                        let open = Open::Brace(Brace::Template);
                        self.open.push(Level { open, binding: Binding::No });
                    }
                    return at + 2;
                }
                _ => at += 1,
            }
        }
        self.damaged = true;
        boundary(self.text, at)
    }
}

/// Keywords after which an operand must follow, so that `/` begins a regular expression and `{` an object.
fn wants_operand(word: &str) -> bool {
    matches!(
        word,
        "return"
            | "typeof"
            | "instanceof"
            | "in"
            | "of"
            | "new"
            | "delete"
            | "void"
            | "throw"
            | "case"
            | "do"
            | "else"
            | "yield"
            | "await"
            | "extends"
    )
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
