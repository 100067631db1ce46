//! Putting new elements into the text of a record.

use std::borrow::Cow;

use uppsala::NodeId;

use crate::rules::{Document, Namespaces};

/// The name of a new element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    prefix: String,
    local: String,
    uri: String,
}

impl Name {
    /// A prefix stands for what `selectionNamespaces` says; a name without one is in no namespace.
    pub(super) fn parse(name: &str, namespaces: &Namespaces) -> Result<Name, String> {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        // The XML parser knows best what a name is.
        let probe =
            format!("<{local}{}/>", if prefix.is_empty() { String::new() } else { format!(" {prefix}=''") });
        if local.contains(':')
            || roxmltree::Document::parse(&probe).is_err()
            || local.contains(char::is_whitespace)
        {
            return Err(format!("{name} is not the name of an element"));
        }
        let uri = match prefix {
            "" => "",
            prefix => namespaces
                .get(prefix)
                .ok_or_else(|| format!("the prefix {prefix} is not declared in selectionNamespaces"))?,
        };
        Ok(Name { prefix: prefix.to_owned(), local: local.to_owned(), uri: uri.to_owned() })
    }

    /// The element, with the declaration it needs at this place.
    fn write(&self, declared: Option<&str>, value: &str) -> String {
        let name = match self.prefix.as_str() {
            "" => self.local.clone(),
            prefix => format!("{prefix}:{}", self.local),
        };
        let declaration = if declared.unwrap_or_default() == self.uri {
            String::new()
        } else if self.prefix.is_empty() {
            " xmlns=\"\"".to_owned()
        } else {
            format!(" xmlns:{}=\"{}\"", self.prefix, escape(&self.uri))
        };
        format!("<{name}{declaration}>{}</{name}>", escape(value))
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What is to be put where.
#[derive(Debug, Default)]
pub(super) struct Insertions {
    /// Places in the text, and what stands there, in the order of the rules.
    at: Vec<(Place, String)>,
    known: Vec<(Name, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Before(usize),
    /// Inside an empty element whose `/>` starts here.
    Inside(usize),
}

impl Insertions {
    /// Adds one element because of this node, or because of a computed value.
    pub(super) fn add(&mut self, record: &Document<'_>, because: Option<NodeId>, name: &Name, value: &str) {
        if self.known.iter().any(|(known, text)| known == name && text == value) {
            return;
        }
        let tree = &record.tree;
        let Some(root) = tree.document_element() else { return };
        let because = because.filter(|element| *element != root);
        let parent = because.and_then(|element| tree.parent(element)).unwrap_or(root);
        let place = match because.and_then(|element| tree.element(element)) {
            Some(kind) => {
                let same = |child: &NodeId| tree.element(*child).is_some_and(|other| other.name == kind.name);
                let last = tree.children_iter(parent).rfind(same);
                last.and_then(|last| tree.node_range(last)).map(|range| Place::Before(range.end))
            }
            None => inside_end(record, root),
        };
        let Some(place) = place else { return };
        let text = name.write(declared(record, parent, &name.prefix).as_deref(), value);
        self.known.push((name.clone(), value.to_owned()));
        self.at.push((place, text));
    }

    pub(super) fn apply(mut self, xml: &str) -> Cow<'_, str> {
        if self.at.is_empty() {
            return Cow::Borrowed(xml);
        }
        // Stable: at one place the order of the rules stays.
        self.at.sort_by_key(|(place, _)| *place);
        let mut out =
            String::with_capacity(xml.len() + self.at.iter().map(|(_, text)| text.len()).sum::<usize>() + 64);
        let mut done = 0;
        let mut rest = self.at.iter().peekable();
        while let Some((place, text)) = rest.next() {
            let (Place::Before(at) | Place::Inside(at)) = *place;
            out.push_str(&xml[done..at]);
            done = at;
            if let Place::Inside(_) = place {
                // All that goes into an empty element goes between its new tags.
                out.push('>');
                out.push_str(text);
                while let Some((_, text)) = rest.next_if(|(next, _)| next == place) {
                    out.push_str(text);
                }
                let name = xml[..at].rfind('<').map_or("", |start| &xml[start + 1..at]);
                let name = name.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
                out.push_str("</");
                out.push_str(name);
                out.push('>');
                done = at + 2;
            } else {
                out.push_str(text);
            }
        }
        out.push_str(&xml[done..]);
        Cow::Owned(out)
    }
}

/// The end of an element's content.
fn inside_end(record: &Document<'_>, element: NodeId) -> Option<Place> {
    let range = record.tree.node_range(element)?;
    let source = record.xml.get(range.clone())?;
    if source.ends_with("/>") {
        return Some(Place::Inside(range.end - 2));
    }
    source.rfind("</").map(|at| Place::Before(range.start + at))
}

/// The namespace a prefix has inside an element.
fn declared(record: &Document<'_>, element: NodeId, prefix: &str) -> Option<String> {
    let mut here = Some(element);
    while let Some(node) = here {
        if let Some(element) = record.tree.element(node)
            && let Some((_, uri)) = element.namespace_declarations.iter().find(|(known, _)| known == prefix)
        {
            return Some(uri.clone().into_owned());
        }
        here = record.tree.parent(node);
    }
    None
}
