//! Who reads, as access rules see them, and what they may see of a collection.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap, header};
use grange_i18n::{Texts, Tongue};
use grange_index::access::{Asked, Decision, Reader, Rule, Verdict, judge};
use grange_index::{Capture, CaptureView, Stamp};

use crate::cdx::Options;

/// Whoever sent a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub(crate) address: Option<IpAddr>,
    pub(crate) user: Option<String>,
    pub(crate) now: Stamp,
    texts: Texts,
    /// `Accept-Language`, as it was sent.
    likes: Option<String>,
}

impl Who {
    pub(crate) fn of(headers: &HeaderMap, extensions: &Extensions, options: &Options) -> Self {
        let address = extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let user = options.user_header.as_ref().and_then(|name| headers.get(name)?.to_str().ok());
        Self { user: user.map(ToOwned::to_owned), ..Self::stranger(address, headers, options) }
    }

    /// Somebody of whom only the address is known.
    pub(crate) fn stranger(address: Option<IpAddr>, headers: &HeaderMap, options: &Options) -> Self {
        let likes = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Self {
            address,
            user: None,
            now: now(options),
            texts: options.texts.clone(),
            likes: likes.map(ToOwned::to_owned),
        }
    }

    /// The language that they read best of those there are.
    pub(crate) fn tongue(&self) -> Tongue {
        self.texts.tongue(self.likes.as_deref())
    }

    fn judge<'r>(
        &self,
        collection: &str,
        rules: &'r [Rule],
        surt: &[u8],
        time: Stamp,
        mime: Option<&str>,
    ) -> Verdict<'r> {
        let asked = Asked { collection, surt, time, mime };
        let reader = Reader { address: self.address, user: self.user.as_deref(), now: self.now };
        judge(rules, &asked, &reader)
    }

    pub(crate) fn sees_view(&self, collection: &str, rules: &[Rule], view: &CaptureView<'_>) -> bool {
        rules.is_empty()
            || self.judge(collection, rules, view.surt_bytes(), view.time(), view.mime()).is_visible()
    }

    /// Why a capture is hidden; `None` if it is not.
    pub(crate) fn hidden(&self, collection: &str, rules: &[Rule], capture: &Capture) -> Option<String> {
        let surt = capture.surt.as_bytes();
        match self.judge(collection, rules, surt, capture.time, capture.mime.as_deref()) {
            Verdict::Visible => None,
            Verdict::Hidden(rule) => Some(reason(rule, &self.tongue())),
        }
    }
}

/// What readers are told about a rule that hides what they asked for by name.
fn reason(rule: &Rule, t: &Tongue) -> String {
    match &rule.decision {
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
