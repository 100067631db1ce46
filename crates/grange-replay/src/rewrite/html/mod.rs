//! HTML and XHTML in a stream.
//!
//! Only attributes and texts that must change are written anew; every other byte passes as it was captured, damaged
//! markup too. What cannot be judged before its end is known is held until then: a tag, a comment, the text of a script or
//! a style.

mod charset;
mod copying;
mod held;
mod page;
mod tag;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod xhtml_tests;

use std::fmt;

use encoding_rs::Encoding;
use htmlscan::{Dialect, Scanner, State, Token};

use super::place::Place;
use super::transform::{Options, Transform, WHOLE_BYTES_MAX};
use super::work;
use charset::Charset;
use copying::Copying;
use page::Page;
use tag::StartTag;

/// The longest tag or comment that is waited for. A page that needs more is an attack or no page; from there on it
/// passes as it is.
const TOKEN_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) struct Html {
    page: Page,
    state: State,
    /// Of the input, what waits for its end.
    held: Vec<u8>,
    /// Looking again before `held` is this long would make many small pieces cost their square.
    enough: usize,
    /// The rest of the page is not looked at.
    passing: bool,
}

impl fmt::Debug for Html {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Html").field("held_bytes", &self.held.len()).finish_non_exhaustive()
    }
}

impl Html {
    /// `dialect`: [`Dialect::Browser`], or [`Dialect::Xml`] for XHTML, which stays well-formed if it was. `encoding`: an
    /// ASCII-compatible one; the page's own `<meta charset>` can correct it unless it is `certain`.
    pub(super) fn new(
        place: &Place,
        dialect: Dialect,
        encoding: &'static Encoding,
        certain: bool,
        options: &Options,
    ) -> Self {
        let charset = Charset::new(encoding, certain, dialect);
        Self::of(Page::new(place.clone(), options.clone(), charset, 0))
    }

    fn of(page: Page) -> Self {
        Self { page, state: State::default(), held: Vec::new(), enough: 0, passing: false }
    }

    /// Passes `input` on up to where something has to wait for more, and returns how far that is.
    fn scan(&mut self, input: &[u8], is_last: bool, out: &mut Vec<u8>) -> usize {
        let mut scanner = Scanner::new(input, self.page.charset.dialect(), self.state);
        let mut copying = Copying::new(input, out);
        let mut attributes = Vec::new();
        // What was gathered of earlier pieces comes out among what this one becomes.
        let came = input.len() + self.page.gathered_bytes();
        loop {
            let (start, state) = (scanner.position(), scanner.state());
            let token = scanner.next(&mut attributes);
            let end = scanner.position();
            work::spend(end - start);
            let is_text = matches!(token, Some(Token::Text(_)));
            let passes = is_text && !self.page.holds();
            if scanner.is_cut() && !is_last && !passes && end - start <= most(is_text) {
                copying.up_to(start);
                self.state = state;
                return start;
            }
            self.passing = work::is_over()
                || work::is_outgrown(came, copying.written())
                || (!is_text && end - start > TOKEN_BYTES_MAX);
            match token {
                _ if self.passing => {}
                Some(Token::Start { name, empty }) => {
                    let attributes = &attributes;
                    let holds_text = scanner.holds_text();
                    let tag = StartTag { name, attributes, start, end, holds_text, empty };
                    self.page.start(&tag, &mut copying);
                }
                Some(Token::Text(text)) => {
                    // Where nothing follows, what might have begun an end tag is text too.
                    let text = if scanner.is_cut() && is_last { &input[start..] } else { text };
                    self.page.text(text, start, &mut copying);
                }
                Some(Token::Data(data)) => self.page.data(data, start..end, &mut copying),
                Some(Token::Instruction(_)) => {
                    self.page.instruction(&input[start..end], start, &mut copying);
                }
                Some(Token::Comment(_)) => self.page.comment(start..end, &mut copying),
                Some(Token::End { .. }) => self.page.end(start, &mut copying),
                None => {}
            }
            if token.is_none() || self.passing {
                if self.passing || is_last {
                    self.page.release(start, &mut copying);
                }
                copying.up_to(input.len());
                self.state = scanner.state();
                return input.len();
            }
        }
    }
}

const fn most(is_text: bool) -> usize {
    if is_text { WHOLE_BYTES_MAX } else { TOKEN_BYTES_MAX }
}

impl Transform for Html {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if self.passing {
            out.extend_from_slice(input);
            return;
        }
        if self.held.is_empty() {
            let done = self.scan(input, false, out);
            self.held.extend_from_slice(&input[done..]);
        } else {
            self.held.extend_from_slice(input);
            if self.held.len() < self.enough {
                return;
            }
            let mut held = std::mem::take(&mut self.held);
            let done = self.scan(&held, false, out);
            held.drain(..done);
            self.held = held;
        }
        // Twice as much each time, so that all the looks together cost as much as one at twice the length.
        let longest = if self.held.len() > TOKEN_BYTES_MAX { usize::MAX } else { TOKEN_BYTES_MAX + 1 };
        self.enough = self.held.len().saturating_mul(2).min(longest);
    }

    fn held(&self) -> usize {
        self.held.len() + self.page.gathered_bytes()
    }

    fn finish(mut self: Box<Self>, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.scan(&held, true, out);
    }
}
