//! The rules by name and number, and what they decide.

/// A rule of the chain. Its number is its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rule {
    RejectAll = 1,
    AcceptSurt,
    TooManyHops,
    Transclusion,
    RejectSurt,
    RejectRegex,
    RepeatingPath,
    DeepPath,
    LongUrl,
    QueryArguments,
    Calendar,
    Prerequisite,
    Scheme,
    TooManyRedirects,
}

impl Rule {
    pub const ALL: [Rule; 14] = [
        Rule::RejectAll,
        Rule::AcceptSurt,
        Rule::TooManyHops,
        Rule::Transclusion,
        Rule::RejectSurt,
        Rule::RejectRegex,
        Rule::RepeatingPath,
        Rule::DeepPath,
        Rule::LongUrl,
        Rule::QueryArguments,
        Rule::Calendar,
        Rule::Prerequisite,
        Rule::Scheme,
        Rule::TooManyRedirects,
    ];

    /// Its place in the chain, from 1.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its name in `scope.log`.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::RejectAll => "RejectDecideRule",
            Rule::AcceptSurt | Rule::RejectSurt => "SurtPrefixedDecideRule",
            Rule::TooManyHops => "TooManyHopsDecideRule",
            Rule::Transclusion => "TransclusionDecideRule",
            Rule::RejectRegex => "MatchesListRegexDecideRule",
            Rule::RepeatingPath => "PathologicalPathDecideRule",
            Rule::DeepPath => "TooManyPathSegmentsDecideRule",
            Rule::LongUrl => "TooLongDecideRule",
            Rule::QueryArguments => "TooManyQueryArgumentsDecideRule",
            Rule::Calendar => "EndlessCalendarDecideRule",
            Rule::Prerequisite => "PrerequisiteAcceptDecideRule",
            Rule::Scheme => "SchemeNotInSetDecideRule",
            Rule::TooManyRedirects => "TooManyRedirectsDecideRule",
        }
    }

    /// What it says when it does not pass.
    pub const fn accepts(self) -> bool {
        matches!(self, Rule::AcceptSurt | Rule::Transclusion | Rule::Prerequisite)
    }
}

/// What was decided, and by which rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub accept: bool,
    pub rule: Rule,
    /// Which of the reject regexes it was; [`super::Scope::pattern`] tells more.
    pub pattern: Option<u32>,
}

impl Decision {
    pub(super) const fn by(rule: Rule) -> Decision {
        Decision { accept: rule.accepts(), rule, pattern: None }
    }
}
