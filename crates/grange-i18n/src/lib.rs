//! Every sentence that pages show to people, in five languages, and in whatever a folder adds.
//!
//! Sentences are Fluent messages: `bundles/LANGUAGE/*.ftl`. English has them all; what another language lacks is said in
//! English. Logs, stored errors and answers to programs are English and do not come from here.

mod folder;
mod number;
mod tongue;

#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use fluent_bundle::FluentResource;
use fluent_bundle::concurrent::FluentBundle;
use fluent_langneg::{NegotiationStrategy, accepted_languages, negotiate_languages};
use unic_langid::LanguageIdentifier;

pub use folder::FolderError;
pub use tongue::{Arg, Tongue};

type Bundle = FluentBundle<FluentResource>;

/// The files of a language.
macro_rules! bundle_of {
    ($language:literal) => {
        [
            include_str!(concat!("../bundles/", $language, "/common.ftl")),
            include_str!(concat!("../bundles/", $language, "/replay.ftl")),
            include_str!(concat!("../bundles/", $language, "/proxy.ftl")),
        ]
    };
}
/// The languages that come with the program, English first.
const BUILT_IN: [(&str, [&str; 3]); 5] = [
    ("en", bundle_of!("en")),
    ("da", bundle_of!("da")),
    ("de", bundle_of!("de")),
    ("fr", bundle_of!("fr")),
    ("it", bundle_of!("it")),
];

/// The sentences of all languages. Cheap to clone.
#[derive(Clone)]
pub struct Texts {
    /// English first: it has every sentence.
    languages: Arc<[Language]>,
}

struct Language {
    id: LanguageIdentifier,
    bundle: Bundle,
}

impl std::fmt::Debug for Texts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.languages.iter().map(|language| language.id.to_string())).finish()
    }
}

impl Default for Texts {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Texts {
    /// Those that come with the program.
    pub fn built_in() -> Self {
        static BUILT: OnceLock<Texts> = OnceLock::new();
        BUILT.get_or_init(|| Self { languages: built_in().into() }).clone()
    }

    /// The codes of the languages there are.
    pub fn languages(&self) -> impl Iterator<Item = String> {
        self.languages.iter().map(|language| language.id.to_string())
    }

    /// The language that a reader likes best of those there are, by the `Accept-Language` of their browser; else English.
    pub fn tongue(&self, accept_language: Option<&str>) -> Tongue {
        let wanted = accepted_languages::parse(accept_language.unwrap_or_default());
        let have: Vec<&LanguageIdentifier> = self.languages.iter().map(|language| &language.id).collect();
        let chosen = negotiate_languages(&wanted, &have, None, NegotiationStrategy::Lookup);
        let number = chosen.first().and_then(|id| have.iter().position(|one| *one == **id));
        Tongue::new(self.clone(), number.unwrap_or(0))
    }
}

fn built_in() -> Vec<Language> {
    let language = |(code, files): (&str, [&str; 3])| {
        let id: LanguageIdentifier = code.parse().unwrap_or_default();
        let mut bundle = empty(&id);
        for text in files {
            bundle.add_resource_overriding(read_whole(text));
        }
        Language { id, bundle }
    };
    BUILT_IN.into_iter().map(language).collect()
}

/// A file of ours. What cannot be read would be left out here; the tests read the same bytes and find it.
fn read_whole(text: &str) -> FluentResource {
    FluentResource::try_new(text.to_owned()).unwrap_or_else(|(resource, _)| resource)
}

fn empty(id: &LanguageIdentifier) -> Bundle {
    let mut bundle = Bundle::new_concurrent(vec![id.clone()]);
    // Marks around what is filled in would be copied along with it.
    bundle.set_use_isolating(false);
    bundle.set_formatter(Some(number::format));
    bundle
}
