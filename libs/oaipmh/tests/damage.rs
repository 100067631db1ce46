//! Sound pages and the quirks, damaged at random: nothing panics, nothing grows, and the cut changes nothing.

#[path = "common/entry.rs"]
mod entry;

use oaipmh::write::Envelope;
use oaipmh::{Datestamp, Header, Item, Kind, Limits, PageReader, Record, ResumptionToken};
use proptest::prelude::*;

fn quirks() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/quirks");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let pages = paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "xml"));
    pages.map(|path| std::fs::read(path).unwrap()).collect()
}

/// Pieces of mark-up that change what everything behind them means.
const SPLINTERS: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<record>",
    "</record>",
    "<header>",
    "</metadata>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "--",
    "<?",
    "?>",
    "<?xml ?>",
    "<!DOCTYPE a [",
    "]>",
    "&",
    "&amp",
    "&#0;",
    "&#x;",
    "\"",
    "'",
    "=",
    " xmlns=''",
    " xmlns:a=''",
    " xmlns:xml='a'",
    " a:b='1' a:b='2'",
    "<a:b:c>",
    "<xmlns:a>",
    "<1>",
    "\u{b}",
    "\u{ffff}",
    "\u{e9}",
    "</ListRecords>",
    "</OAI-PMH>",
    "<a b=c d>",
    "<a b='<'>",
    "\u{0}",
    "<record><header>",
    "]]",
    "<é>",
    "<a\u{d7}>",
];

#[derive(Clone, Debug)]
enum Blow {
    Cut(usize),
    Flip(usize, u8),
    Drop(usize, usize),
    Splinter(usize, usize),
    Repeat(usize, usize),
}

fn blow() -> impl Strategy<Value = Blow> {
    let at = any::<usize>();
    prop_oneof![
        1 => at.prop_map(Blow::Cut),
        3 => (at, any::<u8>()).prop_map(|(at, byte)| Blow::Flip(at, byte)),
        2 => (at, 1_usize..40).prop_map(|(at, length)| Blow::Drop(at, length)),
        6 => (at, 0..SPLINTERS.len()).prop_map(|(at, which)| Blow::Splinter(at, which)),
        1 => (at, 1_usize..400).prop_map(|(at, length)| Blow::Repeat(at, length)),
    ]
}

fn strike(body: &mut Vec<u8>, blow: &Blow) {
    let size = body.len() + 1;
    match *blow {
        Blow::Cut(at) => body.truncate(at % size),
        Blow::Flip(at, byte) => {
            if let Some(place) = body.get_mut(at % size) {
                *place = byte;
            }
        }
        Blow::Drop(at, length) => {
            let at = at % size;
            let end = (at + length).min(body.len());
            body.drain(at..end);
        }
        Blow::Splinter(at, which) => {
            let at = at % size;
            body.splice(at..at, SPLINTERS[which].bytes());
        }
        Blow::Repeat(at, length) => {
            let at = at % size;
            let piece = body[at..(at + length).min(body.len())].to_vec();
            body.splice(at..at, piece);
        }
    }
}

/// `DAMAGE_CASES=20000` makes a long run of it.
fn cases() -> u32 {
    std::env::var("DAMAGE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_answers_are_read(which in any::<prop::sample::Index>(), blows in prop::collection::vec(blow(), 0..8)) {
        let quirks = quirks();
        let mut body = which.get(&quirks).clone();
        for blow in &blows {
            strike(&mut body, blow);
        }
        entry::answer(&body);
    }

    #[test]
    fn any_cut_gives_the_same(which in any::<prop::sample::Index>(), lengths in prop::collection::vec(1_usize..200, 1..20)) {
        let quirks = quirks();
        let body = which.get(&quirks);
        prop_assert_eq!(entry::read_in_pieces(body, &lengths), PageReader::read(body, entry::limits()));
    }

    #[test]
    fn any_bytes_are_read(body in prop::collection::vec(any::<u8>(), 0..300)) {
        entry::answer(&body);
    }

    #[test]
    fn any_sound_record_comes_out_as_it_went_in(
        identifier in "[ -~é€]{1,20}",
        title in "\\PC{0,40}",
        deleted in any::<bool>(),
        token in prop::option::of("[ -~]{1,20}"),
    ) {
        prop_assume!(!identifier.trim().is_empty());
        prop_assume!(token.as_ref().is_none_or(|token| !token.trim().is_empty()));
        let escaped = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let record = Record {
            header: Header {
                identifier: identifier.trim().to_owned(),
                datestamp: Datestamp::parse("2020-01-01"),
                sets: vec![],
                deleted,
            },
            metadata: (!deleted).then(|| format!("<a xmlns=\"urn:a\">{escaped}</a>")),
            ..Record::default()
        };
        let date = Datestamp::parse("2026-11-16T00:00:00Z").unwrap();
        let envelope = Envelope { base_url: "http://x/", response_date: date, request: None };
        let token = token.map(|value| ResumptionToken { value: value.trim().to_owned(), ..ResumptionToken::default() });
        let page = PageReader::read(envelope.records([&record], token.as_ref()).as_bytes(), Limits::default());
        prop_assert!(page.complete && page.problems.is_empty());
        prop_assert_eq!(page.token, token);
        let [Item::Record(read)] = &page.items[..] else { panic!("{:?}", page.items) };
        prop_assert_eq!(&read.header, &record.header);
        prop_assert_eq!(&read.metadata, &record.metadata);
        prop_assert!(read.problems.is_empty());
    }
}

#[test]
fn an_endless_record_is_given_up_and_memory_stays_small() {
    let mut reader = PageReader::new(Limits { record_bytes_max: 128 << 10, depth_max: 64 });
    reader.push(
        b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><ListRecords><record><header><identifier>oai:x:1\
          </identifier><datestamp>2020-01-01</datestamp></header><metadata><a>",
    );
    let kinds: [&[u8]; 5] = [b"text ", b"<b>&</b>", b"<b>", b"&#0;", b"</x>"];
    for round in 0..200 {
        reader.push(&kinds[round % kinds.len()].repeat(1000));
        assert!(reader.next_item().is_none());
        assert!(reader.held_bytes() < 256 << 10, "{} bytes after {round}", reader.held_bytes());
    }
    reader.push(
        b"</a></metadata></record><record><header><identifier>oai:x:2</identifier><datestamp>2020-01-01</datestamp>\
          </header><metadata><a xmlns='urn:a'/></metadata></record></ListRecords></OAI-PMH>",
    );
    let page = reader.finish().into_records();
    let kinds: Vec<_> =
        page.items.iter().map(|record| record.problems.first().map(|problem| problem.kind)).collect();
    assert!(
        matches!(kinds[..], [Some(Kind::TooLarge | Kind::TooDeep | Kind::TooDamaged), None]),
        "{kinds:?}"
    );
    assert_eq!(page.items[0].header.identifier, "oai:x:1");
    assert_eq!(
        (page.items[0].metadata.as_ref(), page.items[1].metadata.as_deref()),
        (None, Some("<a xmlns='urn:a'/>"))
    );
}

#[test]
fn endless_sections_comments_tags_and_fields_do_not_grow() {
    let open = b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><ListRecords>";
    for start in [
        &b"<record><header><identifier>"[..],
        b"<record><header><identifier><![CDATA[",
        b"<record><metadata><a><![CDATA[",
        b"<record><metadata><a><!--",
        b"<record><metadata><a><?x ",
        b"<record><metadata><a><!DOCTYPE ",
        b"<record><metadata><a b='",
        b"<!--",
        b"<resumptionToken>",
        b"<record",
    ] {
        let mut reader = PageReader::new(Limits { record_bytes_max: 128 << 10, depth_max: 64 });
        reader.push(open);
        reader.push(start);
        for _ in 0..40 {
            reader.push(&b"x".repeat(16 << 10));
            assert!(reader.next_item().is_none());
            assert!(
                reader.held_bytes() < 256 << 10,
                "{}: {} bytes",
                start.escape_ascii(),
                reader.held_bytes()
            );
        }
        assert!(!reader.finish().complete);
    }
}
