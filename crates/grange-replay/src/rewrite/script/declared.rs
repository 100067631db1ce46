//! Names that a script declares at its top level.
//!
//! A classic script is wrapped in a block, where its `let`, `const` and `class` would end with the block although
//! later scripts count on them. So they are declared in front of the block, and inside it the declarations become
//! assignments: `let a = 1, {b} = c` turns into `;a = 1, ({b} = c)`.

use super::edits::Edits;
use super::token_ends::{is_word_byte, word_end};
use super::tokens::{Kind, Lexer, Token};
use crate::rewrite::work;

/// One declaration that is being read: `let`, `const` or `var` at the top level.
#[derive(Debug)]
struct Reading {
    keyword: Token,
    /// Depth of the keyword.
    depth: usize,
    names: Vec<String>,
    phase: Phase,
    /// Where a pattern that must be put into parentheses begins, and where the closing ones belong.
    pattern_start: Option<usize>,
    patterns: Vec<(usize, usize)>,
    last_end: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// A name or a pattern comes next.
    Target,
    /// Inside a pattern; one entry per open bracket: whether names there are bound (and not part of a default value
    /// or a computed key).
    Pattern(Vec<Level>),
    /// Behind the target: `=`, `,` or the end.
    Behind,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    binds: bool,
    in_default: bool,
    /// How many names were bound before it.
    names: usize,
}

impl Level {
    const fn new(binds: bool, names: usize) -> Self {
        Self { binds, in_default: false, names }
    }
}

/// What was declared, and how.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// By `let` and `const` and `class`, in order.
    pub(super) lexical: Vec<String>,
    /// By `var` in a statement that also declares one of the replaced names.
    pub(super) vars: Vec<String>,
    /// Async functions and generators, which a block keeps to itself.
    pub(super) functions: Vec<String>,
    /// Every name declared at the top level in any way, for modules.
    pub(super) all: Vec<String>,
    /// Replaced names that are declared by `var` where it cannot be turned into an assignment.
    pub(super) excluded: Vec<String>,
    reading: Option<Reading>,
    /// A class declaration is open: its body ends at this depth.
    class_depth: Option<usize>,
}

impl Declared {
    /// Looks at the next token. `lexer` has just read it; `depth` is that before it. `hoist`: turn declarations into
    /// assignments (classic scripts only).
    pub(super) fn see(
        &mut self,
        lexer: &Lexer<'_>,
        token: Token,
        before: Before,
        hoist: bool,
        edits: &mut Edits<'_>,
    ) {
        if let Some(reading) = &mut self.reading {
            if reading.see(lexer, token, before) {
                return self.go_on(token);
            }
            self.finish(hoist, edits);
        }
        if self.class_depth == Some(lexer.depth()) && lexer.text(token) == "}" {
            self.class_depth = None;
            if hoist {
                edits.insert(token.end, ";");
            }
        }
        if token.kind != Kind::Word || before.after_dot {
            return;
        }
        let text = lexer.text(token);
        if before.depth > 0 {
            if text == "var" && before.functions == 0 {
                self.exclude_from_nested(lexer.ahead());
            }
            return;
        }
        match text {
            "let" | "const" | "var" => {
                let next = lexer.peek();
                if text == "let" && !next.is_some_and(starts_target) {
                    return;
                }
                self.reading = Some(Reading {
                    keyword: token,
                    depth: before.depth,
                    names: Vec::new(),
                    phase: Phase::Target,
                    pattern_start: None,
                    patterns: Vec::new(),
                    last_end: token.end,
                });
            }
            "class" if before.at_statement => {
                if let Some(name) = name_ahead(lexer.ahead()) {
                    self.all.push(name.to_owned());
                    if hoist {
                        if !super::is_replaced(name) {
                            self.lexical.push(name.to_owned());
                        }
                        edits.insert(token.start, format!(";{name} = "));
                        self.class_depth = Some(before.depth);
                    }
                }
            }
            "function" if before.at_statement || before.after_async => {
                let ahead = lexer.ahead();
                let generator = ahead.strip_prefix('*').map(str::trim_start);
                if let Some(name) = name_ahead(generator.unwrap_or(ahead)) {
                    self.all.push(name.to_owned());
                    if before.after_async || generator.is_some() {
                        self.functions.push(name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }

    fn go_on(&mut self, token: Token) {
        if let Some(reading) = &mut self.reading {
            reading.last_end = token.end;
        }
    }

    /// The script is over.
    pub(super) fn end(&mut self, hoist: bool, edits: &mut Edits<'_>) {
        if self.reading.is_some() {
            self.finish(hoist, edits);
        }
    }

    fn finish(&mut self, hoist: bool, edits: &mut Edits<'_>) {
        let Some(mut reading) = self.reading.take() else { return };
        reading.close_pattern();
        self.all.extend(reading.names.iter().cloned());
        if !hoist {
            return;
        }
        let is_var = edits.text(reading.keyword) == "var";
        let replaces = reading.names.iter().any(|name| super::is_replaced(name));
        if is_var && !replaces {
            return;
        }
        edits.replace(reading.keyword, ";");
        for (start, end) in reading.patterns {
            edits.insert(start, "(");
            edits.insert(end, ")");
        }
        let own = reading.names.into_iter().filter(|name| !super::is_replaced(name));
        if is_var { self.vars.extend(own) } else { self.lexical.extend(own) }
    }

    fn exclude_from_nested(&mut self, ahead: &str) {
        if let Some(name) = name_ahead(ahead).filter(|name| super::is_replaced(name)) {
            self.excluded.push(name.to_owned());
        }
    }
}

/// What was known before a token was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) depth: usize,
    pub(super) functions: usize,
    pub(super) at_statement: bool,
    pub(super) ends_expression: bool,
    pub(super) after_dot: bool,
    pub(super) after_async: bool,
}

impl Reading {
    /// `false` when the declaration ended before this token.
    fn see(&mut self, lexer: &Lexer<'_>, token: Token, before: Before) -> bool {
        let text = lexer.text(token);
        if let Phase::Pattern(levels) = &mut self.phase {
            pattern(levels, &mut self.names, lexer, token);
            if levels.is_empty() {
                self.phase = Phase::Behind;
            }
            return true;
        }
        if before.depth > self.depth || lexer.depth() < self.depth {
            // Inside the value, or an unmatched bracket closed what is around.
            return lexer.depth() >= self.depth;
        }
        match (&self.phase, token.kind, text) {
            (Phase::Target, Kind::Punct, "{" | "[") => {
                self.pattern_start = Some(token.start);
                self.phase = Phase::Pattern(vec![Level::new(true, self.names.len())]);
                true
            }
            (Phase::Target, Kind::Word, _) => {
                self.names.push(text.to_owned());
                self.phase = Phase::Behind;
                true
            }
            (Phase::Target, ..) => false,
            (Phase::Behind, Kind::Punct, "=") => {
                self.phase = Phase::Value;
                true
            }
            (Phase::Behind | Phase::Value, Kind::Punct, ",") => {
                self.close_pattern();
                self.phase = Phase::Target;
                true
            }
            (_, Kind::Punct, ";") => false,
            (Phase::Behind, ..) => false,
            // A line end, and then something that cannot go on with the expression: the statement is over.
            (Phase::Value, Kind::Punct, "++" | "--") => !token.after_line_end,
            (Phase::Value, Kind::Punct, "{") => !(token.after_line_end && before.ends_expression),
            (Phase::Value, Kind::Punct | Kind::Template, _) => true,
            (Phase::Value, Kind::Word, "in" | "instanceof") => true,
            (Phase::Value, ..) => !(token.after_line_end && before.ends_expression),
            (Phase::Pattern(_), ..) => true,
        }
    }

    fn close_pattern(&mut self) {
        if let Some(start) = self.pattern_start.take() {
            self.patterns.push((start, self.last_end));
        }
    }
}

/// One token inside a destructuring pattern.
fn pattern(levels: &mut Vec<Level>, names: &mut Vec<String>, lexer: &Lexer<'_>, token: Token) {
    let Some(level) = levels.last_mut() else { return };
    match (token.kind, lexer.text(token)) {
        (Kind::Punct, "{" | "(" | "[") => {
            let binds = level.binds && !level.in_default;
            levels.push(Level::new(binds, names.len()));
        }
        (Kind::Punct, close @ ("}" | "]" | ")")) => {
            // A nested pattern, or a computed key when `:` follows its `]`. The names in the latter are bound elsewhere;
            // declaring them would give them a second meaning.
            if close == "]" && lexer.peek() == Some(b':') {
                names.truncate(level.names);
            }
            levels.pop();
        }
        (Kind::Punct, "=") => level.in_default = true,
        (Kind::Punct, ",") => level.in_default = false,
        (Kind::Word, name) if level.binds && !level.in_default && lexer.peek() != Some(b':') => {
            names.push(name.to_owned());
        }
        _ => {}
    }
}

fn starts_target(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'{' | b'[') || byte >= 0x80
}

/// The name that `ahead` begins with.
fn name_ahead(ahead: &str) -> Option<&str> {
    let first = *ahead.as_bytes().first()?;
    let is_name = (is_word_byte(first) && !first.is_ascii_digit()) || matches!(first, b'#' | b'\\');
    let name = ahead.get(..word_end(ahead.as_bytes(), 0)).filter(|_| is_name)?;
    work::spend(name.len());
    Some(name).filter(|name| *name != "extends")
}
