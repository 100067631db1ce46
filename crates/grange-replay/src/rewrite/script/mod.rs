//! Scripts, made to meet wombat's stand-ins for `window`, `document`, `location` and the other ways out of a page.
//!
//! No address inside a script is changed: what a script does with it passes through wombat in the browser. What wombat
//! cannot see from outside is changed here: which object a bare name means, `location = …`, `eval`, `import()`, the
//! sender of a message. The names of wombat's side of this contract begin with `WB_` and underscores.

mod declared;
mod edits;
mod tokens;

use std::fmt::Write as _;

use super::modifier::Modifier;
use super::place::Place;
use declared::{Before, Declared};
use edits::Edits;
use tokens::{Kind, Lexer, Token};

/// Names that mean wombat's stand-ins. `globalThis` is left out: it cannot be declared anew by those who also assign
/// to it, and wombat gives it no stand-in.
const REPLACED: [&str; 8] = ["window", "self", "document", "location", "top", "parent", "frames", "opener"];

const ASSIGN: &str = "_____WB$wombat$assign$function_____";
const CHECK_THIS: &str = "_____WB$wombat$check$this$function_____(this)";

/// How a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// In a page.
    Classic,
    /// In a worker.
    Worker,
    Module,
}

/// Where a script's dynamic imports count from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) place: &'a Place,
    /// The script's own URL; `None` for one inside a page.
    pub(super) url: Option<&'a str>,
}

fn is_replaced(name: &str) -> bool {
    REPLACED.contains(&name)
}

/// A classic script of a page or a worker.
pub(super) fn classic(text: &str, source: Source<'_>, mode: Mode) -> String {
    let names = |read: &Read<'_>| -> Vec<&str> {
        match mode {
            Mode::Worker => ["location"].into_iter().filter(|name| read.uses.contains(name)).collect(),
            _ if read.uses.is_empty() => Vec::new(),
            _ => REPLACED
                .into_iter()
                .filter(|name| !read.declared.excluded.iter().any(|excluded| excluded == name))
                .collect(),
        }
    };
    let mut found = read(text, source, mode, true);
    // Without a block around them, or without trust in the brackets, declarations stay where they are.
    if found.damaged || names(&found).is_empty() {
        found = read(text, source, mode, false);
    }
    let names = names(&found);
    let wraps = !names.is_empty();
    let Read { mut edits, declared, checks_arguments, .. } = found;
    if !wraps && edits.is_empty() {
        return text.to_owned();
    }
    if text.starts_with("#!") {
        // Only allowed at the very start, where it will not stand any more.
        edits.insert(0, "//");
    }
    let mut out = String::with_capacity(text.len() + 1024);
    if wraps {
        open_block(&mut out, &declared, &names, mode, checks_arguments);
    }
    edits.apply(&mut out);
    if wraps {
        // The line end closes a comment that the script may end with.
        out.push_str("\n}}");
    }
    out
}

fn open_block(out: &mut String, declared: &Declared, names: &[&str], mode: Mode, arguments: bool) {
    for (keyword, names) in [("let", &declared.lexical), ("var", &declared.vars)] {
        let mut seen: Vec<&str> = Vec::new();
        for name in names {
            if !seen.contains(&name.as_str()) {
                seen.push(name);
                let _ = write!(out, "{keyword} {name};");
            }
        }
    }
    if mode == Mode::Worker {
        out.push_str("{let location = self._WB_wombat_location || self.location;");
    } else {
        let _ = write!(
            out,
            "var {ASSIGN} = function(name) {{return (self._wb_wombat && self._wb_wombat.local_init && \
             self._wb_wombat.local_init(name)) || self[name];}};\
             if (!self.__WB_pmw) {{self.__WB_pmw = function(from) {{this.__WB_source = from; return this;}};}}{{"
        );
        for name in names {
            let _ = write!(out, "let {name} = {ASSIGN}(\"{name}\");");
        }
    }
    if arguments {
        out.push_str("let arguments;");
    }
    // The second block lets the script declare names of ours as its own.
    out.push('{');
    for name in &declared.functions {
        let _ = write!(out, "self.{name} = {name};");
    }
    out.push('\n');
}

/// The value of an event handler attribute or of a `javascript:` address, on one line.
pub(super) fn inline(text: &str, source: Source<'_>) -> Option<String> {
    let Read { edits, uses, damaged, .. } = read(text, source, Mode::Classic, false);
    if damaged || (uses.is_empty() && edits.is_empty()) {
        return None;
    }
    let mut out = String::new();
    if !uses.is_empty() {
        out.push('{');
        for name in REPLACED.into_iter().filter(|name| uses.contains(name)) {
            let _ = write!(out, "let {name} = {ASSIGN}(\"{name}\");");
        }
    }
    edits.apply(&mut out);
    if !uses.is_empty() {
        out.push_str("\n}");
    }
    Some(out)
}

/// An ES module: it imports the stand-ins instead of being wrapped, which would make its imports and exports errors.
pub(super) fn module(text: &str, source: Source<'_>, static_prefix: &str) -> String {
    let Read { edits, declared, uses, .. } = read(text, source, Mode::Module, false);
    let names: Vec<&str> =
        uses.into_iter().filter(|name| !declared.all.iter().any(|declared| declared == name)).collect();
    let mut out = String::with_capacity(text.len() + 128);
    if !names.is_empty() {
        let _ = writeln!(out, "import {{{}}} from \"{static_prefix}grange-modules.js\";", names.join(", "));
    }
    edits.apply(&mut out);
    out
}

/// Imports or exports something: only a module does.
pub(super) fn is_module(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    loop {
        let depth = lexer.depth();
        let Some(token) = lexer.next() else { return false };
        if depth == 0 && token.kind == Kind::Word {
            match lexer.text(token) {
                "export" => return true,
                "import" => return !matches!(lexer.peek(), Some(b'(' | b'.')),
                _ => {}
            }
        }
    }
}

struct Read<'a> {
    edits: Edits<'a>,
    declared: Declared,
    /// Replaced names that the script uses.
    uses: Vec<&'static str>,
    /// An edit refers to `arguments`.
    checks_arguments: bool,
    damaged: bool,
}

/// Reads a script once and notes what must change.
fn read<'a>(text: &'a str, source: Source<'_>, mode: Mode, hoist: bool) -> Read<'a> {
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
pub(super) fn specifier(text: &str, place: &Place) -> Option<String> {
    let is_address = ["./", "../", "/", "http:", "https:"].iter().any(|start| text.starts_with(start));
    if is_address { place.changed_fully(text, Modifier::Module) } else { None }
}

/// A text as a JavaScript literal that can stand in a script of an HTML page too.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            ' '..='~' if !matches!(letter, '"' | '\\' | '<' | '>' | '&' | '\'') => out.push(letter),
            _ => {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    out
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

#[cfg(test)]
mod tests;
