//! How fast answers are read on one core: `parse_speed [FILE…]`. Without files, pages of 100 records are made.
//!
//! Each page is pushed in pieces of 16 KB, as a socket gives them, and every record is taken and dropped.

use std::time::Instant;

use oaipmh::write::Envelope;
use oaipmh::{Datestamp, Header, Item, Limits, PageReader, Record, ResumptionToken};

/// What a read from a socket gives at once.
const PIECE_BYTES: usize = 16 << 10;

fn record(number: usize) -> Record {
    let metadata = format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
         http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"><dc:title>Record number {number} – étude &amp; \
         &lt;test&gt;</dc:title><dc:creator>Author, A. {}</dc:creator><dc:creator>Other, B.</dc:creator>\
         <dc:subject>Cultural heritage</dc:subject><dc:subject>keyword {}</dc:subject><dc:description>{}\
         </dc:description><dc:date>{}</dc:date><dc:type>jpeg</dc:type><dc:format>image/jpeg</dc:format>\
         <dc:identifier>https://prov.example/item/{number}</dc:identifier><dc:language>en</dc:language>\
         <dc:rights>CC0</dc:rights></oai_dc:dc>",
        number % 97,
        number % 300,
        "Lorem ipsum dolor sit amet ".repeat(12),
        1900 + number % 120,
    );
    Record {
        header: Header {
            identifier: format!("oai:prov.example:coll{}:{number}", number % 7),
            datestamp: Datestamp::parse("2020-01-01T00:00:00Z"),
            sets: vec![format!("coll{}", number % 7)],
            deleted: number % 50 == 49,
        },
        metadata: (number % 50 != 49).then_some(metadata),
        ..Record::default()
    }
}

/// Seconds of processor used so far, or of the clock where the system does not tell: other load does not count.
fn used(start: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

fn main() -> std::io::Result<()> {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    let pages: Vec<Vec<u8>> = if files.is_empty() {
        let date = Datestamp::parse("2026-11-16T00:00:00Z").unwrap_or_else(|| unreachable!("a date"));
        let envelope = Envelope { base_url: "http://prov.example/oai", response_date: date, request: None };
        let next = ResumptionToken { value: "next".into(), ..ResumptionToken::default() };
        (0..200)
            .map(|page| (0..100).map(|at| record(page * 100 + at)).collect::<Vec<_>>())
            .map(|records| envelope.records(&records, Some(&next)).into_bytes())
            .collect()
    } else {
        files.iter().map(std::fs::read).collect::<Result<_, _>>()?
    };
    let bytes: usize = pages.iter().map(Vec::len).sum();
    for round in 1..=5 {
        let start = Instant::now();
        let before = used(start);
        let (mut records, mut problems, mut metadata) = (0_usize, 0_usize, 0_usize);
        for page in &pages {
            let mut reader = PageReader::new(Limits::default());
            for piece in page.chunks(PIECE_BYTES) {
                reader.push(piece);
                while let Some(item) = reader.next_item() {
                    if let Item::Record(record) = item {
                        records += 1;
                        problems += record.problems.len();
                        metadata += record.metadata.map_or(0, |xml| xml.len());
                    }
                }
            }
            problems += reader.finish().problems.len();
        }
        let (wall, cpu) = (start.elapsed().as_secs_f64(), (used(start) - before).max(1e-9));
        println!(
            "round {round}: {records} records, {metadata} bytes of metadata, {problems} problems; {:.0} records/s of \
             clock, {:.0} records/s and {:.0} MB/s of processor time",
            records as f64 / wall,
            records as f64 / cpu,
            bytes as f64 / 1e6 / cpu,
        );
    }
    Ok(())
}
