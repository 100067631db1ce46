//! Scripts, made to meet wombat's stand-ins for `window`, `document`, `location` and the other ways out of a page.
//!
//! No address inside a script is changed: what a script does with it passes through wombat in the browser. What wombat
//! cannot see from outside is changed here: which object a bare name means, `location = …`, `eval`, `import()`, the
//! sender of a message. The names of wombat's side of this contract begin with `WB_` and underscores.

mod declared;
mod edits;
mod read;
mod slot;
mod token_ends;
mod tokens;

use std::collections::HashSet;
use std::fmt::Write as _;

use super::place::Place;
use declared::Declared;
use edits::Edits;
pub(super) use read::specifier;
use read::{Read, read};
use tokens::{Kind, Lexer};

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
    if found.gives_up() {
        return text.to_owned();
    }
    let names = names(&found);
    let wraps = !names.is_empty();
    let Read { mut edits, declared, checks_arguments, .. } = found;
    if !wraps && edits.is_empty() {
        return text.to_owned();
    }
    comment_hashbang(text, &mut edits);
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

/// A `#!` line is only allowed at the very start, where it will not be any more.
fn comment_hashbang(text: &str, edits: &mut Edits<'_>) {
    if text.starts_with("#!") {
        edits.insert(0, "//");
    }
}

/// A script as it was, for the place behind another one.
pub(super) fn behind(first: String, text: &str) -> String {
    first + if text.starts_with("#!") { "//" } else { "" } + text
}

fn open_block(out: &mut String, declared: &Declared, names: &[&str], mode: Mode, arguments: bool) {
    for (keyword, names) in [("let", &declared.lexical), ("var", &declared.vars)] {
        let mut seen = HashSet::new();
        for name in names {
            if seen.insert(name.as_str()) {
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
    let found = read(text, source, Mode::Module, false);
    if found.gives_up() {
        return text.to_owned();
    }
    let Read { mut edits, declared, uses, .. } = found;
    let names: Vec<&str> =
        uses.into_iter().filter(|name| !declared.all.iter().any(|declared| declared == name)).collect();
    let mut out = String::with_capacity(text.len() + 128);
    if !names.is_empty() {
        comment_hashbang(text, &mut edits);
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

#[cfg(test)]
mod bindings_tests;
#[cfg(test)]
mod tests;
