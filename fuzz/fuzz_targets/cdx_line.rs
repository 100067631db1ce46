//! Any bytes as an index line, and as the body of a request: what is read is written and read again the same.
#![no_main]

use cdx::{Legend, Line, Spelling, body_query, modern_spelling, parse_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (first, rest) = match data.iter().position(|b| *b == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (&[][..], data),
    };
    let legend = Legend::parse(first);
    if let Line::Entry(entry, _) = parse_line(rest, legend.as_ref()) {
        let mut line = Vec::new();
        entry.write_cdxj(&mut line);
        // A key or timestamp with a space in it (a tab-separated file) cannot be told apart in CDXJ.
        if !entry.key.contains(' ') && !entry.timestamp.contains(' ') && !entry.key.starts_with('!') {
            if let Line::Entry(again, _) = parse_line(&line, None) {
                assert_eq!(
                    (&entry.url, entry.offset, entry.status),
                    (&again.url, again.offset, again.status)
                );
            }
        }
        line.clear();
        entry.write_cdx(&Legend::cdx14(), &mut line);
        assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
    }
    let content_type = String::from_utf8_lossy(first);
    for spelling in [Spelling::Modern, Spelling::Python] {
        let query = body_query(&content_type, rest, spelling);
        assert!(query.chars().count() <= cdx::QUERY_CHARS_MAX);
        let _ = modern_spelling(&query);
    }
});
