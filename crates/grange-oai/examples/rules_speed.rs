//! How fast records are filtered, normalized and validated on one core.
//!
//! The records are oai_dc of about 1.2 kB, in batches of 100 as a page has them; the rules are the examples of the
//! Illinois document. Processor time is what counts, so other load on the machine does not.

use std::time::Instant;

use grange_oai::filter::Filter;
use grange_oai::normalize::Normalizer;
use grange_oai::rules::Document;
use grange_oai::validate::{Validator, Verdict};

const RECORDS: usize = 20_000;
const DC: &str = "xmlns:dc='http://purl.org/dc/elements/1.1/'";

fn record(number: usize) -> String {
    const SUBJECTS: [&str; 6] =
        ["Cultural heritage", "Physics", "History of science", "Maps", "HERITAGE studies", "Botany"];
    const TYPES: [&str; 5] = ["jpeg", "text", "book", "image", "sound"];
    format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>Record number {number} – étude &amp; \
         &lt;test&gt;</dc:title><dc:creator>Author, A. {}</dc:creator><dc:creator>Other, B.</dc:creator>\
         <dc:subject>{}</dc:subject><dc:subject>keyword {}</dc:subject><dc:description>{}</dc:description>\
         <dc:date>{}</dc:date><dc:type>{}</dc:type><dc:format>image/jpeg</dc:format>\
         <dc:identifier>https://prov.example/item/{number}</dc:identifier><dc:language>en</dc:language>\
         <dc:rights>CC0</dc:rights></oai_dc:dc>",
        number % 97,
        SUBJECTS[number % 6],
        number % 300,
        "Lorem ipsum dolor sit amet ".repeat(12),
        1900 + number % 120,
        TYPES[number % 5],
    )
}

/// Seconds of processor this process has used, or of the clock where the system does not tell.
fn used(start: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

fn measure(what: &str, mut work: impl FnMut() -> usize) {
    let start = Instant::now();
    let before = used(start);
    let count = work();
    let (wall, cpu) = (start.elapsed().as_secs_f64(), used(start) - before);
    println!(
        "{what}: {count} of {RECORDS}; {:.0} records/s of clock, {:.0} records/s of this thread's processor time",
        RECORDS as f64 / wall,
        RECORDS as f64 / cpu.max(1e-9),
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let records: Vec<String> = (0..RECORDS).map(record).collect();
    let filter = Filter::parse(&format!(
        "<filters match='any'><selectionNamespaces>{DC}</selectionNamespaces>\
         <filter invert='false' xpath='//dc:subject' regexp='cultural' ignoreCase='true'/>\
         <filter invert='false' xpath='//dc:subject' regexp='heritage' ignoreCase='true'/></filters>"
    ))?;
    let normalizer = Normalizer::parse(&format!(
        "<normalize><selectionNamespaces>{DC}</selectionNamespaces><mapping xpath='//dc:type'>\
         <newElement name='dc:type' regexp='jpeg' ignoreCase='true'><newValue>image</newValue></newElement>\
         <newElement name='dc:type' regexp='book' ignoreCase='true'><newValue>text</newValue></newElement>\
         </mapping></normalize>"
    ))?;
    let complete = Filter::parse(&format!(
        "<filters><selectionNamespaces>{DC}</selectionNamespaces>\
         <filter xpath='(//dc:subject)[1]' regexp='heritage' ignoreCase='true'/></filters>"
    ))?;
    let validator = Validator::shipped()?;

    let wanted = |filter: &Filter, xml: &String| filter.matches(xml).is_ok_and(|wanted| wanted);
    measure("filter", || records.iter().filter(|xml| wanted(&filter, xml)).count());
    measure("filter by the complete engine", || records.iter().filter(|xml| wanted(&complete, xml)).count());
    measure("filter and normalizer, every record through both", || {
        let both = |xml: &&String| {
            let Ok(document) = Document::parse(xml) else { return false };
            let wanted = filter.matches_document(&document);
            let changed = normalizer
                .apply_document(&document)
                .is_ok_and(|xml| matches!(xml, std::borrow::Cow::Owned(_)));
            wanted.is_ok() && changed
        };
        records.iter().filter(both).count()
    });
    // The thread that validates is another one: here only the clock counts.
    measure("XML Schema, 100 at a time", || {
        let verdicts = records.chunks(100).flat_map(|page| validator.validate_all(page.to_vec()));
        verdicts.filter(|verdict| *verdict == Verdict::Valid).count()
    });
    measure("XML Schema, one at a time", || {
        records.iter().filter(|xml| validator.validate(xml) == Verdict::Valid).count()
    });
    Ok(())
}
