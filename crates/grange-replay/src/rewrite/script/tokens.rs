//! JavaScript cut into tokens, well enough to tell code from strings, comments, templates and regular expressions.
//!
//! No grammar is checked. What a parser would know for certain (is this `/` a division, does this brace open a
//! function) is decided from the tokens before it; the rules are right for all code that tools write and nearly all
//! that people write, and a wrong guess cannot reach beyond its line for strings and regular expressions.

use super::token_ends::{
    boundary, is_word_byte, number_end, punct_end, regex_end, skip_space, text_end, word_end,
};

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
enum Open {
    Brace(Brace),
    Paren {
        /// After `if`, `for`, `while`, `with`, `switch`, `catch`: what follows the `)` is a statement.
        control: bool,
        /// After the name of a function that stands as a statement.
        declared: bool,
    },
    Bracket,
}

/// Deeper nesting than this is an attack on the lexer, not a program; the rest is not looked at.
const DEPTH_MAX: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Open>,
    functions: usize,
    /// The last token, and the one before.
    last: Option<Token>,
    last_but_one: Option<Token>,
    /// What the last closing bracket closed.
    closed: Option<Open>,
    /// `class` was read and its `{` is yet to come, at this depth.
    class_at: Option<usize>,
    /// `function` was read and its `(` is yet to come; whether it stands as a statement.
    function: Option<bool>,
    damaged: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            open: Vec::new(),
            functions: 0,
            last: None,
            last_but_one: None,
            closed: None,
            class_at: None,
            function: None,
            damaged: false,
        }
    }

    /// Bytes of the whole text.
    pub(super) fn len(&self) -> usize {
        self.text.len()
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

    /// Among the members of a class, not inside one of them.
    pub(super) fn among_members(&self) -> bool {
        matches!(self.open.last(), Some(Open::Brace(Brace::Class)))
    }

    pub(super) fn in_class_body(&self) -> bool {
        self.open.contains(&Open::Brace(Brace::Class))
    }

    /// The brackets do not match: what was said about depth cannot be relied on.
    pub(super) fn damaged(&self) -> bool {
        self.damaged || !self.open.is_empty()
    }

    /// The first byte of the next token, not counting space and comments.
    pub(super) fn peek(&self) -> Option<u8> {
        let (at, _) = skip_space(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(at).copied()
    }

    /// The text from the next token on.
    pub(super) fn ahead(&self) -> &'a str {
        let (at, _) = skip_space(self.text.as_bytes(), self.at);
        &self.text[at..]
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let bytes = self.text.as_bytes();
        let (start, after_line_end) = skip_space(bytes, self.at);
        let first = *bytes.get(start)?;
        let (kind, end) = match first {
            b'"' | b'\'' => (Kind::Text, text_end(bytes, start)),
            b'`' => (Kind::Template, self.template_end(start + 1)),
            b'}' if matches!(self.open.last(), Some(Open::Brace(Brace::Template))) => {
                self.open.pop();
                (Kind::Template, self.template_end(start + 1))
            }
            b'0'..=b'9' => (Kind::Number, number_end(bytes, start)),
            b'.' if bytes.get(start + 1).is_some_and(u8::is_ascii_digit) => {
                (Kind::Number, number_end(bytes, start))
            }
            b'/' => match self.regex_allowed().then(|| regex_end(bytes, start)).flatten() {
                Some(end) => (Kind::Regex, end),
                None => (Kind::Punct, punct_end(bytes, start)),
            },
            _ if is_word_byte(first) || first == b'#' || first == b'\\' => {
                (Kind::Word, word_end(bytes, start))
            }
            _ => (Kind::Punct, punct_end(bytes, start)),
        };
        let token = Token { kind, start, end, after_line_end };
        match kind {
            Kind::Punct => self.bracket(token),
            Kind::Word => self.word(token),
            _ => {}
        }
        self.at = end;
        self.last_but_one = self.last;
        self.last = Some(token);
        Some(token)
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
            "{" => matches!(self.open.last(), Some(Open::Brace(Brace::Block | Brace::Function { .. }))),
            "}" => after_line_end || !self.ends_expression(),
            _ => after_line_end && self.ends_expression(),
        }
    }

    fn word(&mut self, token: Token) {
        if self.is(self.last, ".") || self.is(self.last, "?.") {
            return;
        }
        match self.text(token) {
            "class" => self.class_at = Some(self.open.len()),
            "function" => {
                let is_async = self.is(self.last, "async");
                let statement = self.at_statement(token.after_line_end) || is_async;
                self.function = Some(statement);
            }
            _ => {}
        }
    }

    fn bracket(&mut self, token: Token) {
        if self.open.len() >= DEPTH_MAX {
            self.damaged = true;
            return;
        }
        match self.text(token) {
            "(" => {
                let control = self.last.is_some_and(|last| {
                    last.kind == Kind::Word
                        && matches!(
                            self.text(last),
                            "if" | "for" | "while" | "with" | "switch" | "catch" | "await"
                        )
                        && !self.is(self.last_but_one, ".")
                });
                let declared = self.function.take().unwrap_or(false);
                self.open.push(Open::Paren { control, declared });
            }
            "[" => self.open.push(Open::Bracket),
            "{" => {
                let brace = self.brace();
                if matches!(brace, Brace::Function { .. }) {
                    self.functions += 1;
                }
                self.open.push(Open::Brace(brace));
            }
            ")" => self.close(|open| matches!(open, Open::Paren { .. })),
            "]" => self.close(|open| matches!(open, Open::Bracket)),
            "}" => self.close(|open| matches!(open, Open::Brace(_))),
            _ => {}
        }
    }

    fn close(&mut self, fits: impl Fn(&Open) -> bool) {
        match self.open.pop() {
            Some(open) => {
                if !fits(&open) {
                    self.damaged = true;
                }
                if matches!(open, Open::Brace(Brace::Function { .. })) {
                    self.functions -= 1;
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
                ":" => match self.open.last() {
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
                        self.open.push(Open::Brace(Brace::Template));
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
