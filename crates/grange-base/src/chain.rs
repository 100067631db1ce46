//! One line for a whole error: what we were doing, and why it failed, and why that failed.

use std::error::Error;
use std::fmt;

/// Displays an error with all its sources: `cannot open the store: /data/x.db: permission denied`.
///
/// Errors in Grange never repeat their source in their own text, so the chain reads as one sentence. Foreign
/// libraries sometimes do; a source whose text the line already ends with is left out.
#[derive(Debug)]
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = self.0.to_string();
        let mut source = self.0.source();
        while let Some(error) = source {
            let text = error.to_string();
            if !text.is_empty() && !line.ends_with(&text) {
                line.push_str(": ");
                line.push_str(&text);
            }
            source = error.source();
        }
        f.write_str(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the settings")]
    struct Outer(#[source] Middle);

    #[derive(Debug, thiserror::Error)]
    #[error("grange.toml: {0}")]
    struct Middle(#[source] std::io::Error);

    #[test]
    fn every_cause_is_named_once() {
        let error = Outer(Middle(std::io::Error::other("disk on fire")));
        assert_eq!(Chain(&error).to_string(), "cannot read the settings: grange.toml: disk on fire");
    }
}
