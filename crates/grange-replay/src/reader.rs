//! Who reads, as access rules see them, and what they may see of a collection.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap, header};
use grange_i18n::{Texts, Tongue};
use grange_index::Stamp;
use grange_index::access::{CompiledRule, Decision};

use crate::access_check::Person;
use crate::cdx::Options;
use crate::collection::Collections;

/// Whoever sent a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub(crate) person: Person,
    texts: Texts,
    /// `Accept-Language`, as it was sent.
    likes: Option<String>,
}

impl Who {
    pub(crate) fn of(
        headers: &HeaderMap,
        extensions: &Extensions,
        options: &Options,
        collections: &Collections,
    ) -> Self {
        let address = extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let user = options.user_header.as_ref().and_then(|name| headers.get(name)?.to_str().ok());
        let person = Person::new(address, user, now(options), collections);
        Self { person, ..Self::stranger(address, headers, options) }
    }

    /// Somebody of whom only the address is known.
    pub(crate) fn stranger(address: Option<IpAddr>, headers: &HeaderMap, options: &Options) -> Self {
        let likes = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Self {
            person: Person { address, now: now(options), ..Person::default() },
            texts: options.texts.clone(),
            likes: likes.map(ToOwned::to_owned),
        }
    }

    /// The language that they read best of those there are.
    pub(crate) fn tongue(&self) -> Tongue {
        self.texts.tongue(self.likes.as_deref())
    }
}

/// What readers are told about a rule that hides what they asked for by name.
pub(crate) fn reason(rule: &CompiledRule, t: &Tongue) -> String {
    match &rule.rule.decision {
        Decision::Block { .. } if rule.id.is_none() => t.say("hidden-documentation"),
        Decision::Block { message } if !message.is_empty() => message.clone(),
        Decision::Allow | Decision::Block { .. } => t.say("hidden-blocked"),
        Decision::Embargo { .. } => t.say("hidden-embargo"),
        Decision::Networks { .. } => t.say("hidden-networks"),
        Decision::Users { .. } => t.say("hidden-users"),
    }
}

/// The present, as captures write it.
pub(crate) fn now(options: &Options) -> Stamp {
    Stamp::of(options.clock.now())
}
