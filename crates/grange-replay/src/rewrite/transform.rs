//! Bytes in, bytes out: the shape every rewriter has.

use super::place::Place;

/// Rewrites one body, pushed in pieces of any size. The pieces do not show in what comes out. When [`super::work`] is over,
/// what is left passes as it was captured.
pub trait Transform: std::fmt::Debug {
    /// Takes the next piece and appends what can be said by now.
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>);

    /// Bytes that were taken and have to be looked at yet: what the next call may cost besides its own input.
    fn held(&self) -> usize;

    /// The body is over: appends the rest.
    fn finish(self: Box<Self>, out: &mut Vec<u8>);
}

/// How the page is shown.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The page is shown inside a frame of ours, which holds the banner.
    pub framed: bool,
    /// The time that was asked for, as far as it differs from that of the capture.
    pub request_timestamp: Option<String>,
    /// JSONP: the function that the request names, in place of the one captured.
    pub callback: Option<String>,
    /// HTML put into every page's head behind wombat.
    pub head: String,
}

/// Passes everything on.
#[derive(Debug)]
pub(super) struct Untouched;

impl Transform for Untouched {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(input);
    }

    fn held(&self) -> usize {
        0
    }

    fn finish(self: Box<Self>, _out: &mut Vec<u8>) {}
}

/// Text rewritten as a whole. Scripts of 16 MiB exist; longer bodies are data in disguise and pass as they are.
pub(super) const WHOLE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Collects a text up to its end and rewrites it then.
pub(super) struct Whole<F> {
    held: Vec<u8>,
    too_long: bool,
    place: Place,
    rewrite: F,
}

impl<F> std::fmt::Debug for Whole<F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Whole").field("held_bytes", &self.held.len()).finish_non_exhaustive()
    }
}

impl<F: FnOnce(Vec<u8>, &Place) -> Vec<u8>> Whole<F> {
    pub(super) fn new(place: Place, rewrite: F) -> Self {
        Self { held: Vec::new(), too_long: false, place, rewrite }
    }
}

impl<F: FnOnce(Vec<u8>, &Place) -> Vec<u8>> Transform for Whole<F> {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if !self.too_long && self.held.len() + input.len() > WHOLE_BYTES_MAX {
            self.too_long = true;
            out.append(&mut self.held);
        }
        if self.too_long {
            out.extend_from_slice(input);
        } else {
            self.held.extend_from_slice(input);
        }
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn finish(self: Box<Self>, out: &mut Vec<u8>) {
        if !self.too_long {
            let this = *self;
            out.append(&mut (this.rewrite)(this.held, &this.place));
        }
    }
}
