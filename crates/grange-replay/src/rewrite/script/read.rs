//! One pass over a script: which words of it must change, and into what.

use super::declared::{Before, Declared};
use super::edits::{ChangeIndex, Edits};
use super::slot::{Binding, Slot};
use super::tokens::{Kind, Lexer, Token};
use super::{CHECK_THIS, Mode, REPLACED, Source, literal};
use crate::rewrite::modifier::Modifier;
use crate::rewrite::place::Place;
use crate::rewrite::work;

/// Behind the `=` of an assignment to `location`.
const CHECK_LOCATION: &str =
    " ((self.__WB_check_loc && self.__WB_check_loc(location, arguments)) || {}).maybeHref =";
/// The same where `arguments` must not be named.
const CHECK_LOCATION_WITHOUT_ARGUMENTS: &str =
    " ((self.__WB_check_loc && self.__WB_check_loc(location, [])) || {}).maybeHref =";
/// In place of `eval(`: called with the text and whether `eval` was called at the top level, where it declares globals.
const EVAL: &str = "WB_wombat_runEval2((_______eval_arg, _______eval_global) => \
     _______eval_global ? (0, eval)(_______eval_arg) : eval(_______eval_arg))\
     .eval(this, (function() {return arguments;})(), ";

/// What a pass found.
pub(super) struct Read<'a> {
    pub(super) edits: Edits<'a>,
    pub(super) declared: Declared,
    /// Replaced names that the script uses.
    pub(super) uses: Vec<&'static str>,
    /// An edit refers to `arguments`.
    pub(super) checks_arguments: bool,
    pub(super) damaged: bool,
    /// Changes that are taken back if what is in these parentheses turns out to be parameters.
    doubtful: Vec<Doubtful>,
    /// `eval` as a value, wherever it was changed.
    evals: Vec<ChangeIndex>,
    /// The script calls something of its own `eval`.
    binds_eval: bool,
    /// Where dynamic imports count from, as a literal; made when the first is met.
    import_base: Option<String>,
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
        doubtful: Vec::new(),
        evals: Vec::new(),
        binds_eval: false,
        import_base: None,
    };
    let mut last_text = "";
    // Between `import` and its specifier.
    let mut importing = false;
    loop {
        let (depth, functions) = (lexer.depth(), lexer.functions());
        let ends_expression = lexer.ends_expression();
        let begins = [lexer.at_statement(false), lexer.at_statement(true)];
        let (slot, declared_here) = (lexer.slot(), lexer.declares());
        let names_function = lexer.names_function();
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
                importing = mode == Mode::Module
                    && word == "import"
                    && depth == 0
                    && !before.after_dot
                    && !matches!(lexer.peek(), Some(b'(' | b'.' | b'"' | b'\''));
                let context = NameContext { slot, declared_here, names_function };
                Word { lexer: &lexer, token, last_text, before, context, source, mode }.edit(&mut out);
            }
            Kind::Text if mode == Mode::Module && matches!(last_text, "from" | "import") => {
                importing = false;
                edit_specifier(&mut out.edits, token, source.place);
            }
            Kind::Punct if word == ")" => out.settle(lexer.depth(), lexer.closed_parameters()),
            _ => {}
        }
        if out.edits.is_outgrown() {
            out.damaged = true;
            return out;
        }
        last_text = word;
    }
    out.declared.end(hoist, &mut out.edits);
    if out.binds_eval {
        out.evals.iter().for_each(|change| out.edits.cancel(*change));
    }
    out.damaged = lexer.damaged();
    out
}

/// A change of a name that may be that of a parameter.
#[derive(Debug)]
struct Doubtful {
    /// Brackets open around the name.
    depth: usize,
    change: ChangeIndex,
    is_eval: bool,
}

/// One word of a script and what is around it.
struct Word<'l, 'a, 's> {
    lexer: &'l Lexer<'a>,
    token: Token,
    last_text: &'a str,
    before: Before,
    context: NameContext,
    source: Source<'s>,
    mode: Mode,
}

/// What a name is by the tokens before it.
#[derive(Clone, Copy, Debug)]
struct NameContext {
    slot: Slot,
    /// It is the name that a declaration declares.
    declared_here: bool,
    /// It is the name of a function.
    names_function: bool,
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
        if self.is_property_name() {
            return;
        }
        if let Some(name) = REPLACED.iter().find(|name| **name == word) {
            out.use_name(name);
        }
        match word {
            "this" if self.leaks_this() => {
                out.edits.replace(self.token, CHECK_THIS);
            }
            "location" if !self.context.declared_here && self.is_assigned() => {
                if self.context.slot.binding() == Binding::Yes {
                    return;
                }
                let change = if self.mode == Mode::Module || self.lexer.in_class_body() {
                    out.edits.insert(self.lexer.next_at() + 1, CHECK_LOCATION_WITHOUT_ARGUMENTS)
                } else {
                    out.checks_arguments = true;
                    out.edits.insert(self.lexer.next_at() + 1, CHECK_LOCATION)
                };
                self.doubt(change, out);
            }
            "eval" if self.mode != Mode::Worker => self.edit_eval(out),
            "import" => self.edit_import(out),
            _ => {}
        }
    }

    /// A key or the name of a member: what it is called says nothing of what it is.
    fn is_property_name(&self) -> bool {
        let next = self.lexer.peek();
        match self.context.slot {
            Slot::Member => true,
            Slot::Property(_) if matches!(next, Some(b':' | b'(')) => true,
            _ => next == Some(b':') && matches!(self.last_text, "{" | ","),
        }
    }

    /// Where the name may turn out to be a parameter, the change may have to be taken back.
    fn doubt(&self, change: ChangeIndex, out: &mut Read<'_>) {
        if self.context.slot.binding() == Binding::Maybe {
            let is_eval = self.lexer.text(self.token) == "eval";
            out.doubtful.push(Doubtful { depth: self.before.depth, change, is_eval });
        }
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
        let NameContext { slot, declared_here, names_function } = self.context;
        if names_function || declared_here || slot.binding() == Binding::Yes {
            out.binds_eval = true;
        } else if next == Some(b'(') {
            if self.last_text == "new" {
                return;
            }
            out.checks_arguments = true;
            out.edits.replace_range(self.token.start, self.lexer.next_at() + 1, EVAL);
        } else if matches!(self.last_text, "=" | "," | "(" | "return" | "||" | "&&" | "?" | ":")
            && !matches!(next, Some(b'.' | b'=' | b':'))
            // `{eval}` is a key as well.
            && !matches!(slot, Slot::Property(_))
        {
            let change = out.edits.replace(self.token, "self.eval");
            out.use_name("self");
            out.evals.push(change);
            self.doubt(change, out);
        }
    }

    fn edit_import(&self, out: &mut Read<'_>) {
        let ahead = self.lexer.ahead();
        if ahead.starts_with('(') {
            if !self.context.names_function {
                let call = format!("____wb_rewrite_import__({}, ", out.import_base(self.source));
                out.edits.replace_range(self.token.start, self.lexer.next_at() + 1, call);
            }
        } else if self.mode == Mode::Module
            && let Some(len) = meta_url_len(ahead)
        {
            let base = out.import_base(self.source).to_owned();
            out.edits.replace_range(self.token.start, self.lexer.next_at() + len, base);
        }
    }
}

impl Read<'_> {
    fn use_name(&mut self, name: &'static str) {
        if !self.uses.contains(&name) {
            self.uses.push(name);
        }
    }

    fn import_base(&mut self, source: Source<'_>) -> &str {
        self.import_base.get_or_insert_with(|| {
            let base = source.url.map(ToOwned::to_owned);
            let base = base.or_else(|| source.place.base().map(ToString::to_string));
            base.map_or_else(|| "null".to_owned(), |base| literal(&base))
        })
    }

    /// A parenthesis was closed, behind which `depth` brackets are open.
    fn settle(&mut self, depth: usize, are_parameters: bool) {
        while let Some(doubtful) = self.doubtful.pop_if(|doubtful| doubtful.depth > depth) {
            if are_parameters {
                self.edits.cancel(doubtful.change);
                self.binds_eval |= doubtful.is_eval;
            }
        }
    }

    /// The script is left as it was: looking at it takes too long, or what comes of it is too much.
    pub(super) fn gives_up(&self) -> bool {
        work::is_over() || self.edits.is_outgrown()
    }
}

/// The address in `import … from "…"`. Bare names are left to the page's import map.
fn edit_specifier(edits: &mut Edits<'_>, token: Token, place: &Place) {
    let quoted = edits.text(token);
    if quoted.len() < 2 || quoted.contains('\\') {
        return;
    }
    if let Some(link) = specifier(&quoted[1..quoted.len() - 1], place) {
        edits.replace_range(token.start + 1, token.end - 1, link);
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
