//! Undoing the chunked transfer coding, of bodies that are chunked, half chunked or not at all.

/// The longest size line; extensions are allowed but nobody needs a page of them.
const LINE_MAX: usize = 4096;

/// Takes chunked bytes apart without copying them. Where the coding breaks, the rest is raw.
#[derive(Debug, Clone)]
pub struct Dechunker {
    state: State,
    size: u64,
    digits: u8,
    line: usize,
    any: bool,
    flaw: Option<Flaw>,
    /// The bytes of a size line that may turn out to be none: they are body then.
    held: Vec<u8>,
    /// How many of the held bytes have been given back.
    given: usize,
}

/// What was wrong with a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// It is not chunked at all.
    NotChunked,
    /// It stops being chunked in the middle, or breaks off.
    Broken,
    /// It ends after a chunk, without the last chunk of size zero.
    NoLastChunk,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    Data(u64),
    /// After the data of a chunk, before its line end.
    DataEnd,
    /// In the lines after the last chunk; the flag tells that the line has a byte.
    Trailer(bool),
    Done,
    Raw,
}

/// What to do with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes of the body, taken from the input.
    Data(usize),
    /// Bytes of the input that are not part of the body.
    Skip(usize),
    /// Bytes of the body that were skipped before and turn out to belong to it.
    Held(&'a [u8]),
}

impl Default for Dechunker {
    fn default() -> Dechunker {
        Dechunker {
            state: State::Size,
            size: 0,
            digits: 0,
            line: 0,
            any: false,
            flaw: None,
            held: Vec::new(),
            given: 0,
        }
    }
}

impl Dechunker {
    /// Starts at the first byte of a body.
    pub fn new() -> Dechunker {
        Dechunker::default()
    }

    /// Looks at `input`, which must not be empty, and tells what its first bytes are.
    pub fn step(&mut self, input: &[u8]) -> Piece<'_> {
        match self.state {
            State::Raw if self.given < self.held.len() => {
                let from = std::mem::replace(&mut self.given, self.held.len());
                Piece::Held(&self.held[from..])
            }
            State::Raw => Piece::Data(input.len()),
            State::Done => Piece::Skip(input.len()),
            State::Data(left) => {
                let n = left.min(input.len() as u64);
                self.state = if n == left { State::DataEnd } else { State::Data(left - n) };
                Piece::Data(n as usize)
            }
            _ => self.step_line(input),
        }
    }

    fn step_line(&mut self, input: &[u8]) -> Piece<'_> {
        let mut used = 0;
        for &b in input {
            used += 1;
            match self.state {
                State::Size | State::Extension => {
                    self.held.push(b);
                    self.line += 1;
                    self.size_byte(b);
                }
                State::DataEnd => match b {
                    b'\r' => self.held.push(b),
                    b'\n' => self.start_line(),
                    _ => {
                        self.held.push(b);
                        // No line end after the data. Some writers leave it out; a size may follow at once.
                        let size = b.is_ascii_hexdigit();
                        if size {
                            self.line = 1;
                            self.digits = 0;
                            self.size = 0;
                            self.state = State::Size;
                            self.size_byte(b);
                        } else {
                            self.give_up();
                        }
                    }
                },
                State::Trailer(any) => match b {
                    b'\n' if !any => self.state = State::Done,
                    b'\n' => self.state = State::Trailer(false),
                    b'\r' => {}
                    _ => self.state = State::Trailer(true),
                },
                State::Data(_) | State::Done | State::Raw => unreachable!("handled by step"),
            }
            if matches!(self.state, State::Data(_) | State::Done | State::Raw) {
                break;
            }
        }
        Piece::Skip(used)
    }

    fn size_byte(&mut self, b: u8) {
        if self.line > LINE_MAX {
            return self.give_up();
        }
        match (self.state, b) {
            (_, b'\n') => {
                if self.digits == 0 {
                    return self.give_up();
                }
                self.any = true;
                self.held.clear();
                self.state = if self.size == 0 { State::Trailer(false) } else { State::Data(self.size) };
            }
            (State::Size, b) if b.is_ascii_hexdigit() => {
                let digit = char::from(b).to_digit(16).unwrap_or(0);
                self.digits += 1;
                self.size = self.size << 4 | u64::from(digit);
                if self.digits > 15 {
                    self.give_up();
                }
            }
            // Blanks before and after the size, then perhaps an extension.
            (State::Size, b' ' | b'\t' | b'\r') => {
                if self.digits > 0 {
                    self.state = State::Extension;
                }
            }
            (State::Size, b';') if self.digits > 0 => self.state = State::Extension,
            (State::Size, _) => self.give_up(),
            (State::Extension, b) if b >= b' ' || b == b'\t' || b == b'\r' => {}
            _ => self.give_up(),
        }
    }

    fn start_line(&mut self) {
        self.held.clear();
        (self.size, self.digits, self.line) = (0, 0, 0);
        self.state = State::Size;
    }

    fn give_up(&mut self) {
        self.flaw = Some(if self.any { Flaw::Broken } else { Flaw::NotChunked });
        self.state = State::Raw;
    }

    /// Called at the end of the input: bytes that were held back and belong to the body after all.
    pub fn end(&mut self) -> &[u8] {
        match self.state {
            State::Done | State::Raw => {}
            // The last chunk was there; a missing blank line after it harms nobody.
            State::Trailer(_) => {}
            State::Data(_) => self.flaw = Some(Flaw::Broken),
            State::DataEnd => self.flaw = Some(Flaw::NoLastChunk),
            State::Size if self.line == 0 && self.any => self.flaw = Some(Flaw::NoLastChunk),
            State::Size if self.line == 0 => {}
            State::Size | State::Extension => self.give_up(),
        }
        if self.state == State::Raw && self.given < self.held.len() {
            let from = std::mem::replace(&mut self.given, self.held.len());
            return &self.held[from..];
        }
        &[]
    }

    /// What was wrong, as far as the input has been seen.
    pub fn flaw(&self) -> Option<Flaw> {
        self.flaw
    }

    /// Whether the last chunk and the lines after it have been seen: what follows is not part of the body.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Undoes the coding of a whole body in memory.
    pub fn decode(body: &[u8]) -> (Vec<u8>, Option<Flaw>) {
        let mut chunks = Dechunker::new();
        let mut out = Vec::new();
        let mut rest = body;
        while !rest.is_empty() {
            match chunks.step(rest) {
                Piece::Data(n) => {
                    out.extend_from_slice(&rest[..n]);
                    rest = &rest[n..];
                }
                Piece::Skip(n) => rest = &rest[n..],
                Piece::Held(bytes) => out.extend_from_slice(bytes),
            }
        }
        out.extend_from_slice(chunks.end());
        (out, chunks.flaw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_every_form() {
        for (body, expected, flaw) in [
            ("5\r\nhello\r\n0\r\n\r\n", "hello", None),
            ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", None),
            ("5;name=value\r\nhello\r\n0\r\n\r\n", "hello", None),
            ("5 \r\nhello\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n", "hello", None),
            ("0005\r\nhello\r\n000\r\n\r\n", "hello", None),
            ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", None),
            ("5\nhello\n0\n\n", "hello", None),
            ("5\r\nhello\r\n0\r\n", "hello", None),
            ("5\r\nhello\r\n0\r\n\r\njunk", "hello", None),
            ("5\r\nhello0\r\n\r\n", "hello", None),
            ("5\r\nhello\r\n", "hello", Some(Flaw::NoLastChunk)),
            ("5\r\nhello", "hello", Some(Flaw::NoLastChunk)),
            ("9\r\nhello", "hello", Some(Flaw::Broken)),
            ("<html>plain</html>", "<html>plain</html>", Some(Flaw::NotChunked)),
            ("plain", "plain", Some(Flaw::NotChunked)),
            ("5\r\nhello\r\n<p>raw", "hello<p>raw", Some(Flaw::Broken)),
            ("5\r\nhello<p>raw", "hello<p>raw", Some(Flaw::Broken)),
            ("face", "face", Some(Flaw::NotChunked)),
            ("ffffffffffffffffffff\r\nx", "ffffffffffffffffffff\r\nx", Some(Flaw::NotChunked)),
            ("", "", None),
        ] {
            let (out, got) = Dechunker::decode(body.as_bytes());
            assert_eq!((String::from_utf8_lossy(&out).as_ref(), got), (expected, flaw), "{body:?}");
            // Byte by byte it must be the same.
            let mut chunks = Dechunker::new();
            let mut bytewise = Vec::new();
            for b in body.as_bytes() {
                loop {
                    match chunks.step(std::slice::from_ref(b)) {
                        Piece::Data(_) => {
                            bytewise.push(*b);
                            break;
                        }
                        Piece::Skip(_) => break,
                        Piece::Held(held) => bytewise.extend_from_slice(held),
                    }
                }
            }
            bytewise.extend_from_slice(chunks.end());
            assert_eq!((bytewise, chunks.flaw()), (out, flaw), "{body:?}");
        }
    }
}
