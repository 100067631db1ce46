//! What is wrong with a template, said so that it can be mended.

use std::fmt;

/// Where in the text; both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    /// In characters.
    pub column: usize,
}

/// One thing wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Unknown when a value came from outside the text.
    pub place: Option<Place>,
    /// `scope.max_hops`, `scope.reject_regexes[2]`; empty when the text is not TOML at all.
    pub key: String,
    pub reason: String,
    /// The known name that was probably meant.
    pub nearest: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { line, column }) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.reason)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean \"{nearest}\"?"),
            None => Ok(()),
        }
    }
}

/// Everything wrong with a template at once, so that it is mended in one go. One line for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError(pub Vec<Problem>);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TemplateError {}
