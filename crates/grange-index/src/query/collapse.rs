//! Neighbours that are alike, told as one.

use super::field::Field;
use crate::view::CaptureView;

/// Captures whose field begins with the same characters as that of the one before are left out.
#[derive(Debug, Clone)]
pub struct Collapse {
    field: Field,
    /// Characters compared; `None` is all of them.
    chars: Option<usize>,
    /// A further field that must be the same, whole.
    and: Option<Field>,
    last: Option<String>,
    text: String,
}

/// What a capture is to the group before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collapsed {
    /// It begins a new group.
    First,
    /// It belongs to the group.
    Repeated,
}

impl Collapse {
    /// Reads `field` or `field:N`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, chars) = match text.split_once(':') {
            Some((name, chars)) => (name, Some(chars.parse().ok()?)),
            None => (text, None),
        };
        (!name.is_empty()).then(|| Self::new(Field::parse(name), chars))
    }

    pub fn new(field: Field, chars: Option<usize>) -> Self {
        Self { field, chars, and: None, last: None, text: String::new() }
    }

    /// The same, of captures that also agree in this field.
    #[must_use]
    pub fn and(self, field: Field) -> Self {
        Self { and: Some(field), ..self }
    }

    /// Compares a capture with the one before and remembers it.
    pub fn judge(&mut self, view: &CaptureView<'_>) -> Collapsed {
        self.text.clear();
        self.field.write(view, &mut self.text);
        if let Some(chars) = self.chars
            && let Some((end, _)) = self.text.char_indices().nth(chars)
        {
            self.text.truncate(end);
        }
        if let Some(field) = &self.and {
            self.text.push(' ');
            field.write(view, &mut self.text);
        }
        if self.last.as_ref() == Some(&self.text) {
            return Collapsed::Repeated;
        }
        self.last.get_or_insert_default().clone_from(&self.text);
        Collapsed::First
    }
}
