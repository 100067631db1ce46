//! Cutting one element out of an answer as a document of its own, with repairs.

use std::borrow::Cow;

use super::namespace::Namespaces;

/// Repairs of one record. Beyond this it is not a record with flaws but something else.
const REPAIRS_MAX: usize = 10_000;

#[derive(Debug)]
struct Repair {
    /// From the start of the element.
    at: usize,
    cut: usize,
    put: Cow<'static, str>,
}

/// An element being cut out.
#[derive(Debug)]
pub(super) struct Capture {
    /// Where it starts in the text.
    pub(super) start: usize,
    /// How many elements were open around it.
    pub(super) depth: usize,
    /// How many namespaces were declared around it.
    pub(super) outer: usize,
    /// Bytes from its start to where declarations can be put in.
    name_end: usize,
    repairs: Vec<Repair>,
    /// Prefixes nobody declared, and what they are given.
    undeclared: Vec<(String, String)>,
    /// How many namespaces are declared including its own.
    own: usize,
}

impl Capture {
    /// An element whose tag starts here and has its name end there, and the namespaces declared before it and
    /// including it.
    pub(super) fn new(start: usize, name_end: usize, depth: usize, outer: usize, own: usize) -> Capture {
        Capture {
            start,
            depth,
            outer,
            name_end: name_end - start,
            repairs: Vec::new(),
            undeclared: Vec::new(),
            own,
        }
    }

    /// Notes a repair at a place of the text. Repairs come in the order of their places. `false` says that there
    /// are too many.
    pub(super) fn repair(&mut self, at: usize, cut: usize, put: impl Into<Cow<'static, str>>) -> bool {
        self.repairs.push(Repair { at: at - self.start, cut, put: put.into() });
        self.repairs.len() <= REPAIRS_MAX
    }

    /// Gives an undeclared prefix a namespace; `true` the first time.
    pub(super) fn declare(&mut self, prefix: &str, uri: impl FnOnce() -> String) -> bool {
        if self.undeclared.iter().any(|(known, _)| known == prefix) {
            return false;
        }
        self.undeclared.push((prefix.to_owned(), uri()));
        true
    }

    /// The element as a document.
    pub(super) fn finish(self, text: &str, end: usize, namespaces: &Namespaces) -> String {
        let element = &text[self.start..end];
        let mut declarations = String::new();
        let undeclared = self.undeclared.iter().map(|(prefix, uri)| (prefix.as_str(), uri.as_str()));
        for (prefix, uri) in namespaces.needed(self.outer, element).chain(undeclared) {
            if namespaces.declares(self.outer..self.own, prefix) {
                continue;
            }
            declarations.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
            declarations.push_str(prefix);
            declarations.push_str("=\"");
            crate::write::escape_into(uri, &mut declarations);
            declarations.push('"');
        }
        if declarations.is_empty() && self.repairs.is_empty() {
            return element.to_owned();
        }
        let mut out = String::with_capacity(element.len() + declarations.len() + 64);
        out.push_str(&element[..self.name_end]);
        out.push_str(&declarations);
        let mut done = self.name_end;
        for repair in &self.repairs {
            out.push_str(&element[done..repair.at]);
            out.push_str(&repair.put);
            done = repair.at + repair.cut;
        }
        out.push_str(&element[done..]);
        out
    }
}
