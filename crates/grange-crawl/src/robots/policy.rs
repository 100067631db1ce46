//! Whether robots.txt is heeded. That is the curator's choice; what it would have said is noted either way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::hops::{Hop, Hops};

/// How a crawl treats what robots.txt says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    #[default]
    Obey,
    /// Fetch what is forbidden as well (legal deposit), and note in the log that it was.
    Ignore,
    /// Obey, but complete pages that may be fetched with the images, styles and scripts that may not.
    ObeyExceptEmbeds,
}

/// What is done with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub fetch: bool,
    /// For the log, when it is fetched though it was forbidden.
    pub annotation: Option<&'static str>,
}

impl Policy {
    /// As templates write it.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Obey => "obey",
            Policy::Ignore => "ignore",
            Policy::ObeyExceptEmbeds => "obey-except-embeds",
        }
    }

    /// Whether a URL is fetched that was reached by `hops` and about which robots.txt says `verdict`.
    pub fn decide(self, verdict: Verdict<'_>, hops: &Hops) -> Decision {
        if verdict.allowed || hops.last() == Some(Hop::Prerequisite) {
            return Decision { fetch: true, annotation: None };
        }
        let fetch = match self {
            Policy::Obey => false,
            Policy::Ignore => true,
            Policy::ObeyExceptEmbeds => is_embed(hops),
        };
        Decision { fetch, annotation: fetch.then_some("robotExcluded") }
    }
}

/// A part of a page, wherever the server sends us for it.
fn is_embed(hops: &Hops) -> bool {
    hops.back().find(|hop| *hop != Hop::Redirect) == Some(Hop::Embed)
}
