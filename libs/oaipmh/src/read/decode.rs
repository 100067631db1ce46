//! Bytes become text that XML allows: UTF-8 whatever came, without characters that XML forbids.
//!
//! What a server states about its encoding is often wrong, so the bytes decide where they can: a run of non-ASCII
//! bytes that is UTF-8 is hardly ever anything else. Stated UTF-8 with other bytes in it is read byte by byte as
//! windows-1252, which saves Latin letters pasted into a UTF-8 page.

use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::names::is_xml_char;
use crate::{Kind, Problem};

/// Bytes in which an XML declaration is looked for. It stands at the start but for blanks and notices.
const START_MAX: usize = 1024;

/// Bytes of a run that decide between UTF-8 and what is stated.
const RUN_MAX: usize = 64;

/// Notes of one answer. What stands close together is one note, so this is thousands of damaged records.
const NOTES_MAX: usize = 65_536;

/// The text of an answer, as far as it came and is not yet used.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// What is there.
    pub(super) text: String,
    /// Where its first byte stands in the whole.
    pub(super) base: u64,
    /// What was wrong with the bytes, in order of place.
    pub(super) notes: Vec<Problem>,
    /// How many notes there ever were.
    noted: usize,
}

impl Input {
    fn note(&mut self, kind: Kind, detail: Option<String>) {
        let offset = self.base + self.text.len() as u64;
        // Within a run every byte would be a note of its own; four bytes is the longest character.
        let goes_on = |last: &Problem| last.kind == kind && offset <= last.offset + 4;
        if self.noted < NOTES_MAX && !self.notes.last().is_some_and(goes_on) {
            self.noted += 1;
            self.notes.push(Problem { offset, kind, detail: detail.map(String::into_boxed_str) });
        }
    }

    /// Appends text, with blanks for what XML forbids.
    fn append(&mut self, piece: &str) {
        // Without an early exit the compiler makes this a comparison of 16 or 32 bytes at once.
        let flag = |holds: bool| u8::from(holds);
        let suspicious = piece.bytes().fold(0, |found, b| {
            let blank = flag(b == b'\t') | flag(b == b'\n') | flag(b == b'\r');
            found | (flag(b < 0x20) & (1 - blank)) | flag(b == 0xef)
        });
        if suspicious == 0 {
            self.text.push_str(piece);
            return;
        }
        let mut clean = 0;
        for (at, c) in piece.char_indices().filter(|(_, c)| !is_xml_char(*c)) {
            self.text.push_str(&piece[clean..at]);
            self.note(Kind::IllegalCharacter, Some(format!("U+{:04X}", u32::from(c))));
            self.text.push(' ');
            clean = at + c.len_utf8();
        }
        self.text.push_str(&piece[clean..]);
    }
}

enum State {
    /// Waiting for enough bytes to know.
    Start,
    Utf8,
    /// This single-byte encoding is stated; the first run of non-ASCII bytes will tell.
    Doubted(&'static Encoding),
    Other(Box<encoding_rs::Decoder>),
}

/// Decodes one answer.
pub(super) struct Decoder {
    charset: Option<String>,
    state: State,
    /// Bytes that cannot be decided on before more come.
    held: Vec<u8>,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("charset", &self.charset)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl Decoder {
    pub(super) fn new(charset: Option<&str>) -> Decoder {
        Decoder { charset: charset.map(str::to_owned), state: State::Start, held: Vec::new() }
    }

    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Input) {
        self.feed(bytes, false, out);
    }

    pub(super) fn finish(&mut self, out: &mut Input) {
        self.feed(&[], true, out);
    }

    fn feed(&mut self, bytes: &[u8], last: bool, out: &mut Input) {
        let joined;
        let mut bytes = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.held);
            &joined[..]
        };
        if matches!(self.state, State::Start) {
            let Some((state, skip)) = self.start(bytes, last, out) else {
                self.held = bytes.to_vec();
                return;
            };
            self.state = state;
            bytes = &bytes[skip..];
        }
        if let State::Doubted(stated) = self.state {
            let ascii = Encoding::ascii_valid_up_to(bytes);
            append_ascii(&bytes[..ascii], out);
            bytes = &bytes[ascii..];
            let run = bytes.iter().take(RUN_MAX).take_while(|b| !b.is_ascii()).count();
            if run == bytes.len() && run < RUN_MAX && !last {
                self.held = bytes.to_vec();
                return;
            }
            if run > 0 {
                self.state = if is_utf8_but_for_its_end(&bytes[..run]) {
                    out.note(Kind::WrongEncoding, Some(format!("stated {}, is UTF-8", stated.name())));
                    State::Utf8
                } else {
                    State::Other(Box::new(stated.new_decoder_without_bom_handling()))
                };
            }
        }
        match &mut self.state {
            State::Start | State::Doubted(_) => {}
            State::Utf8 => self.held = utf8(bytes, last, out),
            State::Other(decoder) => other(decoder, bytes, last, out),
        }
    }

    /// Decides on the encoding, or waits. The same for any cut of the body: only the first declaration within
    /// the first bytes counts.
    fn start(&self, bytes: &[u8], last: bool, out: &mut Input) -> Option<(State, usize)> {
        let decoder =
            |encoding: &'static Encoding| State::Other(Box::new(encoding.new_decoder_without_bom_handling()));
        if bytes.len() < 4 && !last {
            return None;
        }
        match bytes {
            [0xef, 0xbb, 0xbf, ..] => return Some((State::Utf8, 3)),
            [0xff, 0xfe, ..] => return Some((decoder(UTF_16LE), 2)),
            [0xfe, 0xff, ..] => return Some((decoder(UTF_16BE), 2)),
            [b'<', 0, ..] => return Some((decoder(UTF_16LE), 0)),
            [0, b'<', ..] => return Some((decoder(UTF_16BE), 0)),
            _ => {}
        }
        let start = &bytes[..bytes.len().min(START_MAX)];
        let declaration = declaration(start);
        if declaration.is_none() && start.len() < START_MAX && !last {
            return None;
        }
        let declared =
            declaration.and_then(encoding_of).map(|label| String::from_utf8_lossy(label).into_owned());
        let Some(stated) = declared.or_else(|| self.charset.clone()) else { return Some((State::Utf8, 0)) };
        let state = match Encoding::for_label(stated.as_bytes()) {
            None => {
                out.note(Kind::UnknownEncoding, Some(stated));
                State::Utf8
            }
            Some(encoding) if encoding == UTF_8 => State::Utf8,
            Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => {
                out.note(Kind::WrongEncoding, Some(format!("stated {stated}, is not")));
                State::Utf8
            }
            Some(encoding) if encoding.is_single_byte() => State::Doubted(encoding),
            Some(encoding) => decoder(encoding),
        };
        Some((state, 0))
    }
}

/// The first XML declaration, once its end is there.
fn declaration(start: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(start, b"<?xml")?;
    let length = memchr::memmem::find(&start[at..], b"?>")?;
    Some(&start[at..at + length])
}

/// The value of `encoding="…"`.
fn encoding_of(declaration: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(declaration, b"encoding")? + "encoding".len();
    let rest = declaration[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, rest) = rest.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
    Some(&rest[..memchr::memchr(*quote, rest)?])
}

fn is_utf8_but_for_its_end(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    }
}

fn append_ascii(bytes: &[u8], out: &mut Input) {
    // Checked by the caller; a lossy conversion is the one without a panic.
    out.append(&String::from_utf8_lossy(bytes));
}

/// Appends UTF-8 and gives back the start of a character whose rest is yet to come.
fn utf8(mut bytes: &[u8], last: bool, out: &mut Input) -> Vec<u8> {
    loop {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => {
                out.append(text);
                return Vec::new();
            }
            Err(error) => error,
        };
        let (good, rest) = bytes.split_at(error.valid_up_to());
        out.append(std::str::from_utf8(good).unwrap_or_default());
        let bad = match error.error_len() {
            Some(length) => length,
            None if last => rest.len(),
            None => return rest.to_vec(),
        };
        for byte in &rest[..bad] {
            out.note(Kind::BadUtf8, Some(format!("byte {byte:#04X}")));
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(std::slice::from_ref(byte));
            out.append(&text);
        }
        bytes = &rest[bad..];
    }
}

fn other(decoder: &mut encoding_rs::Decoder, mut bytes: &[u8], last: bool, out: &mut Input) {
    // Bytes of output per round: large enough to be rarely filled, small enough for the stack's caches.
    let mut room = [0_u8; 4096];
    loop {
        let (result, read, written) = decoder.decode_to_utf8_without_replacement(bytes, &mut room, last);
        out.append(std::str::from_utf8(&room[..written]).unwrap_or_default());
        bytes = &bytes[read..];
        match result {
            DecoderResult::InputEmpty => return,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => {
                out.note(Kind::UndecodableBytes, None);
                out.append("\u{FFFD}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], charset: Option<&str>, step: usize) -> (String, Vec<(u64, Kind)>) {
        let mut decoder = Decoder::new(charset);
        let mut out = Input::default();
        for chunk in bytes.chunks(step) {
            decoder.push(chunk, &mut out);
        }
        decoder.finish(&mut out);
        let notes = out.notes.iter().map(|note| (note.offset, note.kind)).collect();
        (out.text, notes)
    }

    #[test]
    fn every_encoding_becomes_utf8_however_it_is_cut() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let with_bom = [&[0xff, 0xfe][..], &utf16("<a>é</a>")].concat();
        type Case<'a> = (&'a [u8], Option<&'a str>, &'a str, &'a [(u64, Kind)]);
        let cases: &[Case<'_>] = &[
            ("<a>é€𝄞</a>".as_bytes(), None, "<a>é€𝄞</a>", &[]),
            (b"\xef\xbb\xbf<a/>", None, "<a/>", &[]),
            (&with_bom, None, "<a>é</a>", &[]),
            (&utf16("<a>é</a>"), None, "<a>é</a>", &[]),
            (b"<?xml encoding='iso-8859-1'?><a>\xe9</a>", None, "<?xml encoding='iso-8859-1'?><a>é</a>", &[]),
            (b"<a>\xe9</a>", Some("ISO-8859-1"), "<a>é</a>", &[]),
            (
                b"<a>caf\xe9 \x93x\x94</a>",
                None,
                "<a>café “x”</a>",
                &[(6, Kind::BadUtf8), (13, Kind::BadUtf8)],
            ),
            (
                b"<?xml encoding='latin1'?><a>\xc3\xa9\xc3\xa8</a>",
                None,
                "<?xml encoding='latin1'?><a>éè</a>",
                &[(28, Kind::WrongEncoding)],
            ),
            (
                b"<?xml encoding='UTF-16'?><a/>",
                None,
                "<?xml encoding='UTF-16'?><a/>",
                &[(0, Kind::WrongEncoding)],
            ),
            (
                b"<?xml encoding='klingon'?>\xc3\xa9",
                None,
                "<?xml encoding='klingon'?>é",
                &[(0, Kind::UnknownEncoding)],
            ),
            (b"a\x0bb\x00\xef\xbf\xbfc\xef\xbb\xbf", None, "a b  c\u{feff}", &[(1, Kind::IllegalCharacter)]),
            (
                b"<?xml encoding='Shift_JIS'?>\x83\x65\xff",
                None,
                "<?xml encoding='Shift_JIS'?>テ\u{fffd}",
                &[(31, Kind::UndecodableBytes)],
            ),
            (b"ab\xe2\x82", None, "abâ‚", &[(2, Kind::BadUtf8)]),
        ];
        for (bytes, charset, text, notes) in cases {
            for step in [1, 2, 3, 7, 5000] {
                let got = decode(bytes, *charset, step);
                assert_eq!(
                    (got.0.as_str(), &got.1[..]),
                    (*text, *notes),
                    "{} by {step}",
                    bytes.escape_ascii()
                );
            }
        }
    }
}
