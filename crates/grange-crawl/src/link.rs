//! What an extractor finds: a URL, what kind of step it is, and where it stood.

use std::borrow::Cow;

use url::Url;

use crate::hops::Hop;

/// A link out of a document. The URL is absolute and has no fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub url: Url,
    pub hop: Hop,
    /// Where it stood, in Heritrix's words: `a/@href`, `img/@srcset`, `=JS_MISC`.
    pub context: Cow<'static, str>,
}
