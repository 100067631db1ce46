//! Reads an answer as it arrives: `decode` makes text of bytes, `scan` walks through it and `draft` keeps what it
//! finds; `capture` cuts records out of it, `tag` and `text` repair them on the way.

mod capture;
mod decode;
mod draft;
mod names;
mod namespace;
mod part;
mod scan;
mod tag;
mod text;

use decode::Decoder;
pub(crate) use names::is_xml_char;
use scan::Scanner;
pub(crate) use tag::unqualified_root;

use crate::{Datestamp, Item, Page};

/// How much an answer may ask of its reader.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one record, or of one other item. What is larger loses its content, with a problem.
    pub record_bytes_max: usize,
    /// Elements inside elements. Programs that read the metadata later recurse.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        // 16 MB: a finding aid (EAD) of a large collection has a few; 256: TEI and METS stay below 60.
        Limits { record_bytes_max: 16 << 20, depth_max: 256 }
    }
}

/// Reads one answer from pieces of its body.
///
/// Take the items after each push: what is not taken waits in memory.
#[derive(Debug)]
pub struct PageReader {
    decoder: Decoder,
    scanner: Scanner,
}

impl PageReader {
    /// A reader of one answer.
    pub fn new(limits: Limits) -> PageReader {
        PageReader { decoder: Decoder::new(None), scanner: Scanner::new(limits) }
    }

    /// Tells the charset of the HTTP Content-Type, which counts where the answer itself states none. To be called
    /// before the first push.
    #[must_use]
    pub fn with_charset(self, charset: Option<&str>) -> PageReader {
        PageReader { decoder: Decoder::new(charset), ..self }
    }

    /// Takes the next piece of the body, of any size.
    pub fn push(&mut self, bytes: &[u8]) {
        self.scanner.compact();
        self.decoder.push(bytes, &mut self.scanner.input);
    }

    /// The next item that is complete.
    pub fn next_item(&mut self) -> Option<Item> {
        self.scanner.next_item()
    }

    /// The server's clock, as soon as it was read.
    pub fn response_date(&self) -> Option<Datestamp> {
        self.scanner.page.response_date
    }

    /// Bytes of text held at the moment.
    pub fn held_bytes(&self) -> usize {
        self.scanner.input.text.len()
    }

    /// Ends the body: gives everything beside the items already taken, and those not yet taken.
    pub fn finish(mut self) -> Page<Item> {
        self.decoder.finish(&mut self.scanner.input);
        self.scanner.end();
        let items = std::iter::from_fn(|| self.scanner.next_item()).collect();
        self.scanner.conclude();
        let mut page = self.scanner.page;
        let mut problems = page.problems.take();
        problems.sort_by_key(|problem| problem.offset);
        Page {
            response_date: page.response_date,
            verb: page.verb,
            items,
            token: page.token,
            errors: page.errors,
            problems,
            complete: page.complete,
        }
    }

    /// Reads a whole body at once.
    pub fn read(body: &[u8], limits: Limits) -> Page<Item> {
        let mut reader = PageReader::new(limits);
        reader.push(body);
        reader.finish()
    }
}
