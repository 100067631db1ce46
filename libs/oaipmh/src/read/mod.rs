//! Reads an answer as it arrives.

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
    #[allow(dead_code)]
    limits: Limits,
}

impl PageReader {
    /// A reader of one answer.
    pub fn new(limits: Limits) -> PageReader {
        PageReader { limits }
    }

    /// Tells the charset of the HTTP Content-Type, which the answer itself may contradict.
    #[must_use]
    pub fn with_charset(self, _charset: Option<&str>) -> PageReader {
        self
    }

    /// Takes the next piece of the body, of any size.
    pub fn push(&mut self, _bytes: &[u8]) {}

    /// The next item that is complete.
    pub fn next_item(&mut self) -> Option<Item> {
        None
    }

    /// The server's clock, as soon as it was read.
    pub fn response_date(&self) -> Option<Datestamp> {
        None
    }

    /// Ends the body: gives everything beside the items already taken, and those not yet taken.
    pub fn finish(self) -> Page<Item> {
        Page {
            response_date: None,
            verb: None,
            items: Vec::new(),
            token: None,
            errors: Vec::new(),
            problems: Vec::new(),
            complete: false,
        }
    }

    /// Reads a whole body at once.
    pub fn read(body: &[u8], limits: Limits) -> Page<Item> {
        let mut reader = PageReader::new(limits);
        reader.push(body);
        reader.finish()
    }
}
