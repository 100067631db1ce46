//! Rule 10: queries that grow without end.

use url::Url;

/// More arguments than a form has, or the same one over and over.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryArguments {
    pub(super) max_arguments: u32,
    pub(super) max_repetitions: u32,
}

/// How many arguments are compared with each other; the number itself is then the fault.
const COMPARED_MAX: usize = 256;

impl QueryArguments {
    pub(super) fn takes(self, url: &Url) -> bool {
        let Some(query) = url.query() else { return false };
        // Both separators are in use.
        let arguments = || query.split(['&', ';']).filter(|argument| !argument.is_empty());
        let count = arguments().count();
        if self.max_arguments > 0 && count > self.max_arguments as usize {
            return true;
        }
        let allowed = self.max_repetitions as usize;
        if allowed == 0 || count <= allowed {
            return false;
        }
        let repeats =
            |one: &str| arguments().take(COMPARED_MAX).filter(|other| *other == one).count() > allowed;
        arguments().take(COMPARED_MAX).any(repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_counted_and_compared() {
        let rule = QueryArguments { max_arguments: 5, max_repetitions: 2 };
        for (query, takes) in [
            ("", false),
            ("?", false),
            ("?a=1&b=2&c=3&d=4&e=5", false),
            ("?a=1&b=2&c=3&d=4&e=5&", false),
            ("?a=1&b=2&c=3&d=4&e=5&f=6", true),
            ("?a=1;b=2;c=3;d=4;e=5;f=6", true),
            ("?a=1&a=1", false),
            ("?a=1&b=2&a=1&a=1", true),
            ("?a=1&a=2&a=3", false),
        ] {
            let url = Url::parse(&format!("http://h.example/{query}")).unwrap();
            assert_eq!(rule.takes(&url), takes, "{query}");
        }
        let off = QueryArguments { max_arguments: 0, max_repetitions: 0 };
        assert!(!off.takes(&Url::parse(&format!("http://h.example/?{}", "a&".repeat(5000))).unwrap()));
        let only = QueryArguments { max_arguments: 0, max_repetitions: 3 };
        assert!(only.takes(&Url::parse(&format!("http://h.example/?{}", "a&".repeat(5000))).unwrap()));
    }
}
