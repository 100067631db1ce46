//! One pass over a script: which words of it must change, and into what.

use super::declared::{Before, Declared};
use super::edits::Edits;
use super::tokens::{Kind, Lexer, Token};
use super::{CHECK_THIS, Mode, REPLACED, Source, literal};
use crate::rewrite::modifier::Modifier;
use crate::rewrite::place::Place;

/// What a pass found.
pub(super) struct Read<'a> {
    pub(super) edits: Edits<'a>,
    pub(super) declared: Declared,
    /// Replaced names that the script uses.
    pub(super) uses: Vec<&'static str>,
    /// An edit refers to `arguments`.
    pub(super) checks_arguments: bool,
    pub(super) damaged: bool,
}

/// Reads a script once and notes what must change.
pub(super) fn read<'a>(text: &'a str, source: Source<'_>, mode: Mode, hoist: bool) -> Read<'a> {
    let mut lexer = Lexer::new(text);
    let mut out = Read {
        edits: Edits::new(text),
        declared: Declared::default(),
        uses: Vec::new(),
        checks_arguments: false,
        damaged: false,
    };
    let mut last_text = "";
    // Depth of the declaration that is open, if one is.
    let mut declaring: Option<usize> = None;
    // Between `import` and its specifier.
    let mut importing = false;
    loop {
        let (depth, functions) = (lexer.depth(), lexer.functions());
        let ends_expression = lexer.ends_expression();
        let begins = [lexer.at_statement(false), lexer.at_statement(true)];
        let Some(token) = lexer.next() else { break };
        let before = Before {
            depth,
            functions,
            at_statement: begins[usize::from(token.after_line_end)]
                || matches!(last_text, "export" | "default"),
            ends_expression,
            after_dot: matches!(last_text, "." | "?."),
            after_async: last_text == "async" && !token.after_line_end,
        };
        out.declared.see(&lexer, token, before, hoist, &mut out.edits);
        let word = lexer.text(token);
        match token.kind {
            Kind::Word if importing => {
                let is_bound = !matches!(word, "as" | "from") && !is_word(lexer.ahead(), "as");
                out.declared.all.extend(is_bound.then(|| word.to_owned()));
            }
            Kind::Word => {
                if matches!(word, "let" | "const" | "var") {
                    declaring = Some(depth);
                }
                importing = mode == Mode::Module
                    && word == "import"
                    && depth == 0
                    && !before.after_dot
                    && !matches!(lexer.peek(), Some(b'(' | b'.' | b'"' | b'\''));
                let declared_here = matches!(last_text, "let" | "const" | "var")
                    || (last_text == "," && declaring == Some(depth));
                Word { lexer: &lexer, token, last_text, before, declared_here, source, mode }.edit(&mut out);
            }
            Kind::Text if mode == Mode::Module && matches!(last_text, "from" | "import") => {
                importing = false;
                edit_specifier(&mut out.edits, token, source.place);
            }
            Kind::Punct => {
                declaring = declaring.filter(|at| word != ";" && lexer.depth() >= *at);
            }
            _ => {}
        }
        last_text = word;
    }
    out.declared.end(hoist, &mut out.edits);
    out.damaged = lexer.damaged();
    out
}

/// One word of a script and what is around it.
struct Word<'l, 'a, 's> {
    lexer: &'l Lexer<'a>,
    token: Token,
    last_text: &'a str,
    before: Before,
    /// It is the name that a declaration declares.
    declared_here: bool,
    source: Source<'s>,
    mode: Mode,
}

impl Word<'_, '_, '_> {
    fn edit(&self, out: &mut Read<'_>) {
        let word = self.lexer.text(self.token);
        if self.before.after_dot {
            if word == "postMessage" && self.lexer.peek() == Some(b'(') && self.mode != Mode::Worker {
                out.edits.insert(self.token.start, "__WB_pmw(self).");
                out.use_name("self");
            }
            return;
        }
        let is_key = self.lexer.peek() == Some(b':') && matches!(self.last_text, "{" | ",");
        let is_member = self.lexer.among_members() && matches!(self.last_text, "{" | "}" | ";" | "static");
        if is_key || is_member {
            return;
        }
        if let Some(name) = REPLACED.iter().find(|name| **name == word) {
            out.use_name(name);
        }
        match word {
            "this" if self.leaks_this() => out.edits.replace(self.token, CHECK_THIS),
            "location" if !self.declared_here && self.is_assigned() => {
                let arguments = if self.mode == Mode::Module || self.lexer.in_class_body() {
                    "[]"
                } else {
                    out.checks_arguments = true;
                    "arguments"
                };
                out.edits.insert(
                    self.next_at() + 1,
                    &format!(
                        " ((self.__WB_check_loc && self.__WB_check_loc(location, {arguments})) || {{}}).maybeHref ="
                    ),
                );
            }
            "eval" if self.mode != Mode::Worker => self.edit_eval(out),
            "import" => self.edit_import(out),
            _ => {}
        }
    }

    /// Offset of the next token.
    fn next_at(&self) -> usize {
        self.lexer.len() - self.lexer.ahead().len()
    }

    /// `this` could be the window, and is more than looked into for some property of the script's own.
    fn leaks_this(&self) -> bool {
        let ahead = self.lexer.ahead();
        match self.lexer.peek() {
            Some(b'(') => false,
            Some(b'=') => ahead.starts_with("=="),
            Some(b'.' | b'?') if ahead.starts_with('.') || ahead.starts_with("?.") => {
                let property = ahead.trim_start_matches(['.', '?']).trim_start();
                REPLACED.iter().any(|name| is_word(property, name))
            }
            _ => true,
        }
    }

    fn is_assigned(&self) -> bool {
        let ahead = self.lexer.ahead();
        ahead.starts_with('=') && !ahead.starts_with("==") && !ahead.starts_with("=>")
    }

    fn edit_eval(&self, out: &mut Read<'_>) {
        let next = self.lexer.peek();
        if next == Some(b'(') {
            if matches!(self.last_text, "function" | "get" | "set" | "static" | "async" | "new" | "*") {
                return;
            }
            out.checks_arguments = true;
            out.edits.replace_range(
                self.token.start,
                self.next_at() + 1,
                // Called with the text and whether `eval` was called at the top level, where it declares globals.
                "WB_wombat_runEval2((_______eval_arg, _______eval_global) => \
                 _______eval_global ? (0, eval)(_______eval_arg) : eval(_______eval_arg))\
                 .eval(this, (function() {return arguments;})(), ",
            );
        } else if matches!(self.last_text, "=" | "," | "(" | "return" | "||" | "&&" | "?" | ":")
            && !matches!(next, Some(b'.' | b'=' | b':'))
            && !self.declared_here
        {
            out.edits.replace(self.token, "self.eval");
            out.use_name("self");
        }
    }

    fn edit_import(&self, out: &mut Read<'_>) {
        let ahead = self.lexer.ahead();
        let from = || {
            let base = self.source.url.map(ToOwned::to_owned);
            let base = base.or_else(|| self.source.place.base().map(ToString::to_string));
            base.map_or_else(|| "null".to_owned(), |base| literal(&base))
        };
        if ahead.starts_with('(') {
            if !matches!(self.last_text, "async" | "function" | "get" | "set" | "static" | "*") {
                let call = format!("____wb_rewrite_import__({}, ", from());
                out.edits.replace_range(self.token.start, self.next_at() + 1, &call);
            }
        } else if self.mode == Mode::Module
            && let Some(len) = meta_url_len(ahead)
        {
            out.edits.replace_range(self.token.start, self.next_at() + len, &from());
        }
    }
}

impl Read<'_> {
    fn use_name(&mut self, name: &'static str) {
        if !self.uses.contains(&name) {
            self.uses.push(name);
        }
    }
}

/// The address in `import … from "…"`. Bare names are left to the page's import map.
fn edit_specifier(edits: &mut Edits<'_>, token: Token, place: &Place) {
    let quoted = edits.text(token);
    if quoted.len() < 2 || quoted.contains('\\') {
        return;
    }
    if let Some(link) = specifier(&quoted[1..quoted.len() - 1], place) {
        edits.replace_range(token.start + 1, token.end - 1, &link);
    }
}

/// A module specifier as a link within the archive; `None` for bare names and what needs no change.
pub(in crate::rewrite) fn specifier(text: &str, place: &Place) -> Option<String> {
    let is_address = ["./", "../", "/", "http:", "https:"].iter().any(|start| text.starts_with(start));
    if is_address { place.changed_fully(text, Modifier::Module) } else { None }
}

/// Bytes of `.meta.url`, with whatever space is between.
fn meta_url_len(ahead: &str) -> Option<usize> {
    let mut rest = ahead;
    for part in [".", "meta", ".", "url"] {
        rest = rest.trim_start().strip_prefix(part)?;
    }
    let ends = !rest.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '_' | '$'));
    ends.then(|| ahead.len() - rest.len())
}

/// `text` begins with exactly this word.
fn is_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| {
        !rest.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '_' | '$'))
    })
}
