//! Finding the next gzip member or zstd frame in bytes that are not one.

use std::io;

use memchr::memmem;

use crate::problem::{Kind, Problems};
use crate::source::Source;

/// What must be at hand to judge a candidate.
const PROBE: usize = 64 << 10;

/// How far readers go back after damage, in total per file. Nested candidates could otherwise make the
/// time grow with the square of the file.
const REWIND_MAX: u64 = 64 << 20;

/// Tells whether the bytes, which start with the magic, start a member that holds records.
pub(crate) type Probe<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

/// The bytes that may still be read a second time.
#[derive(Debug)]
pub(crate) struct Budget(u64);

impl Default for Budget {
    fn default() -> Budget {
        Budget(REWIND_MAX)
    }
}

impl Budget {
    /// Goes back to `offset` if the file can do that and the budget allows it.
    pub(crate) fn rewind(&mut self, source: &mut Source, offset: u64) -> io::Result<()> {
        let back = source.offset().saturating_sub(offset);
        if back <= self.0 && source.can_seek(offset) {
            self.0 -= back;
            source.seek(offset)?;
        }
        Ok(())
    }
}

/// Skips bytes that are no member, and says so.
pub(crate) fn skip_junk(
    source: &mut Source,
    problems: &mut Problems,
    magic: &[u8],
    probe: Probe<'_>,
) -> io::Result<()> {
    let offset = source.offset();
    let zeros = find(source, magic, probe)?;
    let kind = if zeros { Kind::ZeroPadding } else { Kind::JunkBetweenMembers };
    problems.add_with(offset, kind, || format!("{} bytes", source.offset() - offset));
    Ok(())
}

/// Moves to the next place where `magic` stands and `probe` agrees, at least one byte ahead, or to the
/// end of the file. Answers whether all bytes on the way were zero.
pub(crate) fn find(source: &mut Source, magic: &[u8], probe: Probe<'_>) -> io::Result<bool> {
    let finder = memmem::Finder::new(magic);
    let mut zeros = true;
    let mut from = 1;
    loop {
        source.fill(PROBE)?;
        let window = source.window();
        let from_here = from.min(window.len());
        let Some(at) = finder.find(&window[from_here..]) else {
            // The last bytes may be the start of the magic.
            let done = source.at_eof();
            let pass = window.len().saturating_sub(if done { 0 } else { magic.len() - 1 });
            zeros &= window[..pass].iter().all(|&b| b == 0);
            source.consume(pass);
            if done {
                return Ok(zeros);
            }
            from = 0;
            continue;
        };
        let at = from_here + at;
        zeros &= window[..at].iter().all(|&b| b == 0);
        source.consume(at);
        source.fill(PROBE)?;
        if probe(source.window()) {
            return Ok(zeros);
        }
        zeros = false;
        from = 1;
    }
}
