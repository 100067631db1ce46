//! Namespaces in scope, and those that repositories forget to declare.

use std::ops::Range;

pub(super) const XML: &str = "http://www.w3.org/XML/1998/namespace";
pub(super) const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// What a prefix usually stands for in metadata of libraries.
pub(super) fn usual(prefix: &str) -> Option<&'static str> {
    Some(match prefix {
        "dc" => "http://purl.org/dc/elements/1.1/",
        "oai_dc" => "http://www.openarchives.org/OAI/2.0/oai_dc/",
        "dcterms" => "http://purl.org/dc/terms/",
        "xsi" => "http://www.w3.org/2001/XMLSchema-instance",
        "xlink" => "http://www.w3.org/1999/xlink",
        "rdf" => "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "rdfs" => "http://www.w3.org/2000/01/rdf-schema#",
        "marc" => "http://www.loc.gov/MARC21/slim",
        "mods" => "http://www.loc.gov/mods/v3",
        "mets" => "http://www.loc.gov/METS/",
        "skos" => "http://www.w3.org/2004/02/skos/core#",
        "foaf" => "http://xmlns.com/foaf/0.1/",
        _ => return None,
    })
}

#[derive(Debug)]
struct Binding {
    prefix: Range<usize>,
    uri: Range<usize>,
    ours: bool,
    used: bool,
}

/// The declarations of all open elements, innermost last.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    names: String,
    bound: Vec<Binding>,
}

impl Namespaces {
    /// How many there are: to go back to, or to tell outer from inner ones.
    pub(super) fn mark(&self) -> usize {
        self.bound.len()
    }

    /// Forgets those declared since the mark.
    pub(super) fn forget(&mut self, mark: usize) {
        if let Some(first) = self.bound.get(mark) {
            self.names.truncate(first.prefix.start);
            self.bound.truncate(mark);
        }
    }

    /// Binds a prefix (empty for the default). `ours` says that the namespace is the protocol's.
    pub(super) fn declare(&mut self, prefix: &str, uri: &str, ours: bool) {
        let start = self.names.len();
        self.names.push_str(prefix);
        let middle = self.names.len();
        self.names.push_str(uri);
        let end = self.names.len();
        self.bound.push(Binding { prefix: start..middle, uri: middle..end, ours, used: false });
    }

    /// The binding of a prefix in scope; `None` also for a default that was taken back.
    pub(super) fn find(&self, prefix: &str) -> Option<usize> {
        let at = self.bound.iter().rposition(|binding| self.names[binding.prefix.clone()] == *prefix)?;
        (!self.bound[at].uri.is_empty()).then_some(at)
    }

    pub(super) fn is_ours(&self, binding: usize) -> bool {
        self.bound[binding].ours
    }

    /// Takes this namespace for the protocol's, whatever it is called.
    pub(super) fn adopt(&mut self, binding: usize) {
        let uri = self.uri(binding).to_owned();
        for binding in &mut self.bound {
            binding.ours |= self.names[binding.uri.clone()] == uri;
        }
    }

    pub(super) fn uri(&self, binding: usize) -> &str {
        &self.names[self.bound[binding].uri.clone()]
    }

    /// Whether one of these bindings is of this prefix.
    pub(super) fn declares(&self, among: Range<usize>, prefix: &str) -> bool {
        self.bound[among].iter().any(|binding| self.names[binding.prefix.clone()] == *prefix)
    }

    /// Notes that a name uses this binding.
    pub(super) fn note_use(&mut self, binding: usize) {
        self.bound[binding].used = true;
    }

    pub(super) fn forget_uses(&mut self) {
        for binding in &mut self.bound {
            binding.used = false;
        }
    }

    /// Of the first `outer` bindings, those that a document cut out below them needs: prefix and URI. Prefixes
    /// also stand in values (`xsi:type="dcterms:URI"`), so one that occurs at all counts as used.
    pub(super) fn needed<'a>(
        &'a self,
        outer: usize,
        xml: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let prefix = |binding: &Binding| &self.names[binding.prefix.clone()];
        self.bound[..outer].iter().enumerate().filter_map(move |(at, binding)| {
            let shadowed = || self.bound[at + 1..outer].iter().any(|later| prefix(later) == prefix(binding));
            let mentioned = || {
                let prefix = prefix(binding);
                !prefix.is_empty() && !binding.uri.is_empty() && mentions(xml, prefix) && !shadowed()
            };
            (binding.used || mentioned()).then(|| (prefix(binding), &self.names[binding.uri.clone()]))
        })
    }
}

fn mentions(xml: &str, prefix: &str) -> bool {
    let mut at = 0;
    while let Some(next) = memchr::memmem::find(&xml.as_bytes()[at..], prefix.as_bytes()) {
        at += next + prefix.len();
        if xml.as_bytes().get(at) == Some(&b':') {
            return true;
        }
    }
    false
}
