//! A piece of a page on its way out, with changes in between.

/// What of `input` was not replaced is copied; nothing is copied twice, and nothing is left out.
pub(super) struct Copying<'a> {
    input: &'a [u8],
    /// Everything before this offset is out, or replaced.
    copied: usize,
    out: &'a mut Vec<u8>,
    /// What was out before this piece.
    before: usize,
}

impl<'a> Copying<'a> {
    pub(super) fn new(input: &'a [u8], out: &'a mut Vec<u8>) -> Self {
        let before = out.len();
        Self { input, copied: 0, out, before }
    }

    /// Bytes that came out of this piece so far.
    pub(super) fn written(&self) -> usize {
        self.out.len() - self.before
    }

    /// A part as it came.
    pub(super) fn input(&self, part: std::ops::Range<usize>) -> &'a [u8] {
        &self.input[part]
    }

    /// Copies up to `at`; what is written to the result stands there.
    pub(super) fn up_to(&mut self, at: usize) -> &mut Vec<u8> {
        self.out.extend_from_slice(&self.input[self.copied..at]);
        self.copied = at;
        self.out
    }

    /// Copies up to `start` and leaves out what comes up to `end`; what is written to the result replaces it.
    pub(super) fn replace(&mut self, start: usize, end: usize) -> &mut Vec<u8> {
        self.up_to(start);
        self.copied = end;
        self.out
    }
}
