//! Captures out of WARC and ARC records.

use std::io;

use cdx::{IndexOptions, IndexReport, Line, Records, parse_line};

use crate::batch::Batch;
use crate::load::push_entry;
use crate::run::Run;

impl Batch {
    /// Adds the captures of a WARC or ARC file by reading it from where `reader` stands to its end. Bodies of POST and PUT
    /// requests go into the keys, as pywb makes them. Damage in the file is in the report and does not end the reading.
    pub fn add_records(
        &mut self,
        reader: &mut warc::Reader,
        name: &str,
        job: Option<&str>,
    ) -> io::Result<IndexReport> {
        let name = name.replace('\0', "%00");
        let mut rows = Run::of_file(&name, job);
        let options = IndexOptions {
            filename: name.clone(),
            records: Records::Replayable,
            post_append: true,
            ..IndexOptions::default()
        };
        let report = cdx::index(reader, &options, |line| {
            if let Line::Entry(mut entry, _) = parse_line(line, None) {
                if let Some(url) = entry.url.as_deref().filter(|url| url.starts_with("metadata:")) {
                    entry.key = crate::key::key(url).into();
                }
                push_entry(&mut rows, entry, job);
            }
            Ok(())
        })?;
        self.push_file(name, rows);
        Ok(report)
    }
}
