//! Who reads, as access rules see them, and what they may see of a collection.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap};
use grange_index::access::{Asked, Decision, Reader, Rule, Verdict, judge};
use grange_index::{Capture, CaptureView, Stamp};

use crate::cdx::Options;

/// Whoever sent a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub(crate) address: Option<IpAddr>,
    pub(crate) user: Option<String>,
    pub(crate) now: Stamp,
}

impl Who {
    pub(crate) fn of(headers: &HeaderMap, extensions: &Extensions, options: &Options) -> Self {
        let address = extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let user = options.user_header.as_ref().and_then(|name| headers.get(name)?.to_str().ok());
        Self { address, user: user.map(ToOwned::to_owned), now: now(options) }
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
            Verdict::Hidden(rule) => Some(reason(rule)),
        }
    }
}

/// What readers are told about a rule that hides what they asked for by name.
fn reason(rule: &Rule) -> String {
    match &rule.decision {
        Decision::Block { message } if !message.is_empty() => message.clone(),
        Decision::Allow | Decision::Block { .. } => "This page has been blocked.".to_owned(),
        Decision::Embargo { .. } => "This page is under embargo for some time after its capture.".to_owned(),
        Decision::Networks { .. } => "This page can be seen on the premises of the archive only.".to_owned(),
        Decision::Users { .. } => "This page can be seen by certain users only.".to_owned(),
    }
}

pub(crate) fn now(options: &Options) -> Stamp {
    let now = options.clock.now().strftime("%Y%m%d%H%M%S").to_string();
    Stamp::parse(now).unwrap_or_default()
}
