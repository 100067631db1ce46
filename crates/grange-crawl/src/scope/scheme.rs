//! Rule 13: schemes that are not fetched.

/// The schemes that are fetched, in lower case.
#[derive(Clone, Debug)]
pub(super) struct Schemes(Vec<String>);

impl Schemes {
    pub(super) fn new(schemes: &[String]) -> Schemes {
        Schemes(
            schemes.iter().map(|scheme| scheme.trim().trim_end_matches(':').to_ascii_lowercase()).collect(),
        )
    }

    pub(super) fn lacks(&self, scheme: &str) -> bool {
        !self.0.iter().any(|known| known == scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_schemes_are_fetched() {
        let schemes = Schemes::new(&["HTTP".to_owned(), " dns: ".to_owned()]);
        for (scheme, lacks) in [("http", false), ("dns", false), ("https", true), ("", true)] {
            assert_eq!(schemes.lacks(scheme), lacks, "{scheme}");
        }
    }
}
