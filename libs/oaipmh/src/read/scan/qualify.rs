//! Names of elements and attributes get their namespaces, and attributes the form they should have had.

use std::ops::Range;

use super::{Scanner, is_declaration};
use crate::read::namespace;
use crate::read::tag::{self, Attribute};
use crate::read::{names, text};
use crate::{Kind, NAMESPACE};

impl Scanner {
    /// Binds the namespaces the tag declares; those it may not declare are dropped.
    pub(super) fn declare(&mut self) -> Option<Kind> {
        let text = &self.input.text;
        let mut wrong = None;
        for attribute in &mut self.attributes {
            let prefix = match text[attribute.name.clone()].strip_prefix("xmlns") {
                Some("") => "",
                Some(prefix) if prefix.starts_with(':') => &prefix[1..],
                _ => continue,
            };
            let mut uri = String::new();
            text::unescape(&text[attribute.value.clone()], &mut uri, |_, _| ());
            let sound = match prefix {
                // `xmlns:=` is nobody's declaration.
                "" if attribute.name.len() > "xmlns".len() => false,
                "" => uri != namespace::XML && uri != namespace::XMLNS,
                "xml" => uri == namespace::XML,
                _ => {
                    let name = names::split(prefix).is_some_and(|(none, _)| none.is_empty());
                    name && prefix != "xmlns"
                        && ![namespace::XML, namespace::XMLNS, ""].contains(&uri.as_str())
                }
            };
            if sound {
                let ours = uri == NAMESPACE;
                self.namespaces.declare(prefix, &uri, ours);
            } else {
                attribute.dropped = true;
                wrong = Some(Kind::BadAttribute);
            }
        }
        wrong
    }

    /// Binds every prefix of a tag and has its attributes written properly.
    pub(super) fn check_names(&mut self, prefix: Range<usize>, inside: Range<usize>, syntax: Option<Kind>) {
        let at = inside.start;
        let mut wrong = syntax;
        let mut attributes = std::mem::take(&mut self.attributes);
        self.bind(prefix.clone(), prefix.is_empty());
        for index in 0..attributes.len() {
            let (before, rest) = attributes.split_at_mut(index);
            let attribute = &mut rest[0];
            let full = attribute.name.clone();
            let text = &self.input.text;
            let mut flawed = None;
            tag::value_flaws(&text[attribute.value.clone()], |flaw| flawed = Some(flaw.kind));
            wrong = wrong.or(flawed);
            if attribute.dropped
                || text[full.clone()].starts_with("xmlns") && is_declaration(&text[full.clone()])
            {
                if before.iter().any(|other| text[other.name.clone()] == text[full.clone()]) {
                    attribute.dropped = true;
                    wrong = Some(Kind::DuplicateAttribute);
                }
                continue;
            }
            let Some((prefix, local)) = names::split(&text[full.clone()]) else {
                attribute.dropped = true;
                wrong = wrong.or(Some(Kind::BadAttribute));
                continue;
            };
            let prefix = full.start..full.start + prefix.len();
            let local = full.end - local.len()..full.end;
            if !prefix.is_empty() {
                self.bind(prefix.clone(), false);
            }
            let text = &self.input.text;
            let same = |other: &Attribute| {
                let other_name = &text[other.name.clone()];
                if *other_name == text[full.clone()] {
                    return true;
                }
                let Some((other_prefix, other_local)) = names::split(other_name) else { return false };
                !other.dropped
                    && !prefix.is_empty()
                    && !other_prefix.is_empty()
                    && *other_local == text[local.clone()]
                    && self.same_namespace(other_prefix, &text[prefix.clone()])
            };
            if before.iter().any(same) {
                attribute.dropped = true;
                wrong = Some(Kind::DuplicateAttribute);
            }
        }
        if let Some(kind) = wrong {
            self.problem(at, kind);
            let mut rebuilt = String::new();
            tag::rebuild(&self.input.text, &attributes, &mut rebuilt);
            self.repair(at, inside.len(), rebuilt);
        }
        self.attributes = attributes;
    }

    pub(super) fn same_namespace(&self, one: &str, other: &str) -> bool {
        match (self.namespaces.find(one), self.namespaces.find(other)) {
            (Some(one), Some(other)) => self.namespaces.uri(one) == self.namespaces.uri(other),
            _ => false,
        }
    }

    /// Notes the use of a prefix, or gives it a namespace.
    pub(super) fn bind(&mut self, prefix: Range<usize>, default: bool) {
        let text = &self.input.text[prefix.clone()];
        if text == "xml" {
            return;
        }
        if let Some(binding) = self.namespaces.find(text) {
            self.namespaces.note_use(binding);
            return;
        }
        if default {
            return;
        }
        let usual = namespace::usual(text);
        let made_up = || usual.map_or_else(|| format!("urn:undeclared-prefix:{text}"), str::to_owned);
        if self.capture.as_mut().is_some_and(|capture| capture.declare(text, made_up)) {
            let kind = if usual.is_some() { Kind::KnownNamespace } else { Kind::UnboundPrefix };
            let detail = text.to_owned();
            self.problem_with(prefix.start, kind, &detail);
        }
    }
}
