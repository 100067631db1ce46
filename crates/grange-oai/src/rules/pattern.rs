//! Regular expressions as VBScript and Java have them: searched for anywhere, with look-around and references back.

use fancy_regex::{Regex, RegexBuilder};

use super::{BadRules, RuleError};

/// Steps back before an expression is given up on one value: about a tenth of a second.
const STEPS_MAX: usize = 1_000_000;

/// Bytes of one compiled expression: a list of thousands of words fits.
const COMPILED_BYTES_MAX: usize = 16 << 20;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    pub(crate) fn parse(regexp: &str, ignore_case: bool, place: &str) -> Result<Pattern, BadRules> {
        // Put in front, the flag also holds in both halves of an alternative.
        let source = if ignore_case { format!("(?i){regexp}") } else { regexp.to_owned() };
        let built = RegexBuilder::new(&source)
            .backtrack_limit(STEPS_MAX)
            .delegate_size_limit(COMPILED_BYTES_MAX)
            .build();
        built
            .map(Pattern)
            .map_err(|error| BadRules::new(place, format!("{regexp} is not a regular expression: {error}")))
    }

    /// Whether the expression is found in a text.
    pub(crate) fn is_in(&self, text: &str) -> Result<bool, RuleError> {
        self.0.is_match(text).map_err(|error| RuleError::Regexp {
            regexp: self.0.as_str().to_owned(),
            reason: error.to_string(),
        })
    }
}
