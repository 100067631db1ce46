//! One capture as WARC records: the answer (or a revisit), what was asked, and what is known about it.

use std::io::{self, Cursor, Seek as _, SeekFrom, Write as _};
use std::net::IpAddr;

use warc::write::{NewRecord, Press, RecordId};
use warc::{Date, Profile};

use super::oracle::{History, Original};
use super::parcel::Parcel;
use super::settings::Write;
use crate::candidate::{Candidate, target_uri};
use crate::fetch::Fetched;
use crate::link::Link;
use crate::virus;

/// How an answer is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// In full.
    #[default]
    Response,
    /// The payload is that of an earlier capture.
    Identical(Original),
    /// The server said that nothing changed.
    NotModified(History),
    /// Infected: made harmless, in a file of its own. The name of what was found.
    Viral(String),
}

/// What is written of one request.
#[derive(Debug)]
pub struct Capture<'a> {
    pub candidate: &'a Candidate,
    /// The URL that was asked; the candidate's, or where its robots.txt sent us.
    pub url: &'a str,
    pub fetched: &'a mut Fetched,
    pub form: Form,
    pub outlinks: &'a [Link],
    pub charset: Option<&'a str>,
    /// Further lines of the metadata record, such as what was found wrong with a certificate.
    pub notes: Vec<(&'static str, String)>,
}

/// Where the main record lies in the parcel, and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    pub offset: u64,
    pub id: RecordId,
}

impl Capture<'_> {
    /// Packs all records into `parcel`. None if there was no answer, so that there is nothing to write.
    pub fn pack(
        &mut self,
        settings: &Write,
        press: &mut Press,
        parcel: &mut Parcel,
    ) -> io::Result<Option<Packed>> {
        if self.fetched.response.is_empty() {
            return Ok(None);
        }
        let date = Date::from(self.fetched.started);
        let main = self.pack_main(date, press, parcel)?;
        if settings.requests && !self.fetched.request.is_empty() {
            let head = http_head_len(&self.fetched.request);
            let (head, body) = self.fetched.request.split_at(head);
            let mut record = NewRecord::request(self.url, date, head, body).concurrent_to(main.id);
            if let Some(ip) = self.fetched.ip {
                record = record.ip(ip);
            }
            parcel.add(press, &mut record)?;
        }
        if settings.metadata {
            let lines = self.metadata();
            let mut record = NewRecord::metadata(self.url, date, &lines).concurrent_to(main.id);
            parcel.add(press, &mut record)?;
        }
        Ok(Some(main))
    }

    fn pack_main(&mut self, date: Date, press: &mut Press, parcel: &mut Parcel) -> io::Result<Packed> {
        let (block, payload) = (self.fetched.block_digest, self.fetched.payload_digest);
        let (ip, truncated) = (self.fetched.ip, self.fetched.truncated);
        let length = self.fetched.response.len();
        let head_len = self.fetched.head_len;
        let mut head = vec![0; head_len];
        let mut body = self.fetched.response.reader()?;
        io::Read::read_exact(&mut body, &mut head)?;
        let written = match &self.form {
            Form::Response => {
                let mut record = NewRecord::response(self.url, date, &[], &[])
                    .stream(&head, &mut body, length - head_len as u64)
                    .block_digest(block)
                    .payload_digest(payload);
                if let Some(reason) = truncated {
                    record = record.truncated(reason);
                }
                parcel.add(press, &mut with_ip(record, ip))?
            }
            Form::Identical(original) => {
                let mut record =
                    NewRecord::revisit(self.url, date, Profile::IdenticalPayloadDigest, payload, &head)
                        .refers_to_capture(&original.url, Date::from(original.date));
                if let Some(id) = original.record {
                    record = record.refers_to(id);
                }
                parcel.add(press, &mut with_ip(record, ip))?
            }
            Form::NotModified(history) => {
                let mut record =
                    NewRecord::revisit(self.url, date, Profile::ServerNotModified, history.digest, &head)
                        .refers_to_capture(&history.original.url, Date::from(history.original.date));
                if let Some(id) = history.original.record {
                    record = record.refers_to(id);
                }
                parcel.add(press, &mut with_ip(record, ip))?
            }
            Form::Viral(found) => {
                // The whole message is masked, so that no scanner on the way stumbles over the file.
                body.seek(SeekFrom::Start(0))?;
                let mut masked = virus::Xor::new(&mut body);
                let mut record = NewRecord::new(warc::RecordType::Conversion, date)
                    .target_uri(self.url)
                    .content_type(virus::CONTENT_TYPE)
                    .stream(&[], &mut masked, length)
                    .field("WARC-Virus-Found", one_line(found).as_bytes());
                if let Some(reason) = truncated {
                    record = record.truncated(reason);
                }
                parcel.add(press, &mut with_ip(record, ip))?
            }
        };
        Ok(Packed { offset: written.offset, id: written.id })
    }

    /// The lines of the metadata record, in the words of Heritrix.
    fn metadata(&self) -> Vec<u8> {
        let mut lines = Cursor::new(Vec::with_capacity(256 + 80 * self.outlinks.len()));
        // Writing into memory cannot fail.
        let mut line = |name: &str, value: &str| {
            let _ = write!(lines, "{name}: {}\r\n", one_line(value));
        };
        if self.candidate.hops.is_seed() {
            line("seed", "");
        } else {
            if let Some(via) = &self.candidate.via {
                line("via", via);
            }
            line("hopsFromSeed", &self.candidate.hops.to_string());
        }
        if let Some(source) = &self.candidate.source {
            line("sourceTag", source);
        }
        line("fetchTimeMs", &self.fetched.duration.as_millis().to_string());
        if let Some(charset) = self.charset {
            line("charsetForLinkExtraction", charset);
        }
        for (name, value) in &self.notes {
            line(name, value);
        }
        for link in self.outlinks {
            let (url, context) = (target_uri(&link.url), one_line(&link.context));
            let _ = write!(lines, "outlink: {url} {} {context}\r\n", link.hop.letter());
        }
        lines.into_inner()
    }
}

fn with_ip(record: NewRecord<'_>, ip: Option<IpAddr>) -> NewRecord<'_> {
    match ip {
        Some(ip) => record.ip(ip),
        None => record,
    }
}

/// Where the head of a message we made ends.
fn http_head_len(message: &[u8]) -> usize {
    memchr::memmem::find(message, b"\r\n\r\n").map_or(message.len(), |at| at + 4)
}

/// A value that cannot end its line.
fn one_line(value: &str) -> std::borrow::Cow<'_, str> {
    if value.contains(|c: char| c.is_control()) {
        value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().into()
    } else {
        value.into()
    }
}
