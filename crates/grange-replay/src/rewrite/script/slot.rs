//! What a name is in the place where it stands: a key, a target of an assignment, or a use.
//!
//! `location` means the page's own in `x = location` and nothing of the kind in `{location: 1}`, `class { location = 1 }` or
//! `function f(location = 1)`. There it must not be changed: a method of another name, a second meaning of
//! `=` or a look at a parameter that has no value yet would break the script.

use super::tokens::{Brace, Lexer, Open};

/// Whether the names of a pattern are bound where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// They are uses, or targets of an assignment.
    No,
    /// They are if what is in these parentheses turns out to be parameters.
    Maybe,
    /// Declarations, and parameters that are known as such.
    Yes,
}

/// The place of the next token, if it is a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The name of a member: of a class, or of an object behind `get`, `set`, `async` or `*`.
    Member,
    /// In an object or a pattern: a key, the name of a method, or both key and value.
    Property(Binding),
    /// An element of a list or a pattern, or the value in a property.
    Target(Binding),
    Other,
}

impl Slot {
    /// What becomes of a name that stands here for itself.
    pub(super) const fn binding(self) -> Binding {
        match self {
            Self::Property(binding) | Self::Target(binding) => binding,
            Self::Member | Self::Other => Binding::No,
        }
    }
}

impl Lexer<'_> {
    /// The place of the next token.
    pub(super) fn slot(&self) -> Slot {
        let [last, before] = self.last_texts();
        match self.innermost() {
            Some(Open::Brace(Brace::Class)) if self.member_comes(last) => Slot::Member,
            Some(Open::Brace(Brace::Object)) => match last {
                "{" | "," => Slot::Property(self.binding()),
                ":" | "..." => Slot::Target(self.binding()),
                "get" | "set" | "async" if matches!(before, "{" | ",") => Slot::Member,
                "*" if self.after_generator_star() => Slot::Member,
                _ => Slot::Other,
            },
            Some(Open::Paren { .. } | Open::Bracket) if matches!(last, "(" | "[" | "," | "...") => {
                Slot::Target(self.binding())
            }
            _ => Slot::Other,
        }
    }

    /// In a class: what comes next cannot go on with the value of a field.
    fn member_comes(&self, last: &str) -> bool {
        // Two names in a row are a modifier or a decorator and its member, or two fields on two lines.
        matches!(last, "{" | "}" | ";") || self.after_generator_star() || self.ends_expression()
    }

    /// The parenthesis that was just closed held parameters.
    pub(super) fn closed_parameters(&self) -> bool {
        let ahead = self.ahead();
        ahead.starts_with("=>")
            || (ahead.starts_with('{')
                && matches!(self.innermost(), Some(Open::Brace(Brace::Class | Brace::Object))))
    }
}
