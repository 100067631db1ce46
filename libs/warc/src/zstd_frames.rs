//! Unpacking zstd: a frame per record, with an optional dictionary in a skippable frame at the start
//! (the IIPC draft for `.warc.zst`).

use std::fmt;
use std::io;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::DParameter;

use crate::hunt::{self, Budget};
use crate::problem::{Kind, Problems};
use crate::resync::starts_record;
use crate::source::Source;
use crate::tape::{Members, Out, Step};

pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Skippable frames start with 0x184D2A50 to 0x184D2A5F.
pub(crate) const SKIPPABLE_TAIL: [u8; 3] = [0x2a, 0x4d, 0x18];
/// The one that holds the dictionary.
const DICTIONARY: u8 = 0x5d;

/// Windows and dictionaries of 8 MiB must be readable; larger ones would cost more memory than we allow.
const WINDOW_LOG_MAX: u32 = 23;
const DICTIONARY_MAX: usize = 8 << 20;
/// Bytes made per step.
const STREAM_STEP: usize = 128 << 10;
/// What the decoder wants to see first of a frame.
const GENTLE_FIRST: usize = 5;

/// See the head of this file.
pub(crate) struct Zstd {
    decoder: Decoder<'static>,
    frame: Option<Frame>,
    budget: Budget,
}

/// The frame being read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Where it starts.
    offset: u64,
    made: u64,
    /// It is read a second time, in pieces of the size the decoder asks for: given a frame as a whole, zstd
    /// keeps back everything if only the checksum at its end is wrong.
    gentle: Option<usize>,
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd").field("frame", &self.frame).finish_non_exhaustive()
    }
}

impl Zstd {
    pub(crate) fn new() -> io::Result<Zstd> {
        Ok(Zstd { decoder: decoder(None)?, frame: None, budget: Budget::default() })
    }

    /// Forgets the frame that was being read, but not the dictionary.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        self.frame = None;
        self.decoder.reinit()
    }

    /// Reads the dictionary at the start of the file, where there is one.
    pub(crate) fn load_dictionary(&mut self, source: &mut Source, problems: &mut Problems) -> io::Result<()> {
        source.fill(8)?;
        let Some(head) = source.window().first_chunk::<8>().copied() else {
            return Ok(());
        };
        if head[0] != DICTIONARY || head[1..4] != SKIPPABLE_TAIL {
            return Ok(());
        }
        let len = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        source.consume(8);
        if len > DICTIONARY_MAX {
            problems.add_with(0, Kind::BadDictionary, || format!("{len} bytes, more than {DICTIONARY_MAX}"));
            source.skip(len as u64)?;
            return Ok(());
        }
        source.fill(len)?;
        let stored = &source.window()[..len.min(source.window().len())];
        let dictionary = if stored.starts_with(&MAGIC) { unpack(stored) } else { Ok(stored.to_vec()) };
        let used = stored.len();
        match dictionary.and_then(|bytes| decoder(Some(&bytes))) {
            Ok(decoder) => self.decoder = decoder,
            Err(error) => problems.add_with(0, Kind::BadDictionary, || error.to_string()),
        }
        source.consume(used);
        Ok(())
    }

    pub(crate) fn step(
        &mut self,
        source: &mut Source,
        out: &mut Out,
        members: &mut Members,
        problems: &mut Problems,
    ) -> io::Result<Step> {
        if let Some(frame) = self.frame {
            return self.stream_on(frame, source, out, members, problems).map(|()| Step::On);
        }
        source.fill(8)?;
        let window = source.window();
        if window.is_empty() {
            return Ok(Step::Eof);
        }
        let offset = source.offset();
        if window.starts_with(&MAGIC) {
            members.begin(offset);
            self.frame = Some(Frame { offset, made: 0, gentle: None });
        } else if let Some(head) = window.first_chunk::<8>()
            && head[0] & 0xf0 == 0x50
            && head[1..4] == SKIPPABLE_TAIL
        {
            let len = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
            if source.skip(8 + len)? < 8 + len {
                problems.add(offset, Kind::TruncatedMember);
            }
        } else {
            hunt::skip_junk(source, problems, &MAGIC, &mut |bytes| starts_frame(bytes, &mut self.decoder))?;
        }
        Ok(Step::On)
    }

    fn stream_on(
        &mut self,
        mut frame: Frame,
        source: &mut Source,
        out: &mut Out,
        members: &mut Members,
        problems: &mut Problems,
    ) -> io::Result<()> {
        let offset = frame.offset;
        source.fill(1)?;
        let mut output = OutBuffer::around(out.room(STREAM_STEP));
        let window = source.window();
        let piece = frame.gentle.unwrap_or(usize::MAX).min(window.len());
        let mut input = InBuffer::around(&window[..piece]);
        let result = self.decoder.run(&mut input, &mut output);
        let (used, made) = (input.pos(), output.pos());
        out.wrote(made);
        members.made(made);
        source.consume(used);
        frame.made += made as u64;
        if let (Some(gentle), Ok(hint)) = (&mut frame.gentle, &result) {
            *gentle = (*hint).max(1);
        }
        self.frame = Some(frame);
        if result.is_err() && frame.made == 0 && frame.gentle.is_none() && source.can_seek(offset) {
            self.decoder.reinit()?;
            self.frame = Some(Frame { gentle: Some(GENTLE_FIRST), ..frame });
            return source.seek(offset);
        }
        match result {
            Ok(0) => {
                self.frame = None;
                members.end(source.offset(), false, problems);
                return Ok(());
            }
            Ok(_) if used > 0 || made > 0 => return Ok(()),
            Ok(_) => problems.add(offset, Kind::TruncatedMember),
            Err(error) => {
                let text = error.to_string();
                let kind = if text.contains("checksum") { Kind::BadChecksum } else { Kind::CorruptData };
                problems.add_with(offset, kind, || text);
            }
        }
        self.reset()?;
        self.budget.rewind(source, offset + 1)?;
        hunt::find(source, &MAGIC, &mut |bytes| starts_frame(bytes, &mut self.decoder))?;
        members.end(source.offset(), true, problems);
        Ok(())
    }
}

fn decoder(dictionary: Option<&[u8]>) -> io::Result<Decoder<'static>> {
    let mut decoder = match dictionary {
        Some(dictionary) => Decoder::with_dictionary(dictionary)?,
        None => Decoder::new()?,
    };
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
    Ok(decoder)
}

/// Decodes up to `max` bytes of the frame at the start of `bytes`.
fn first_bytes(bytes: &[u8], decoder: &mut Decoder<'static>, max: usize) -> io::Result<Vec<u8>> {
    decoder.reinit()?;
    let mut first = vec![0; max];
    let mut output = OutBuffer::around(&mut first[..]);
    let mut input = InBuffer::around(bytes);
    while output.pos() < max {
        let before = (input.pos(), output.pos());
        let hint = decoder.run(&mut input, &mut output)?;
        if hint == 0 || before == (input.pos(), output.pos()) {
            break;
        }
    }
    let made = output.pos();
    first.truncate(made);
    Ok(first)
}

/// Unpacks a packed dictionary.
fn unpack(stored: &[u8]) -> io::Result<Vec<u8>> {
    first_bytes(stored, &mut decoder(None)?, DICTIONARY_MAX)
}

/// Whether `bytes` start a zstd frame whose content starts a record. The decoder carries the dictionary
/// and is between frames; it is left so.
fn starts_frame(bytes: &[u8], decoder: &mut Decoder<'static>) -> bool {
    let starts = first_bytes(bytes, decoder, 2048).is_ok_and(|first| starts_record(&first));
    starts & decoder.reinit().is_ok()
}
