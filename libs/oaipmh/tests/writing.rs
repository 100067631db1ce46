//! What is written is sound XML, and is read again as it was.

use oaipmh::write::Envelope;
use oaipmh::{
    Datestamp, DeletedRecord, ErrorCode, Granularity, Header, Identify, Item, Limits, MetadataFormat,
    OaiError, Page, PageReader, Record, Request, ResumptionToken, Selection, Set, Verb,
};

fn stamp(text: &str) -> Option<Datestamp> {
    Datestamp::parse(text)
}

fn envelope(request: Option<&Request>) -> Envelope<'_> {
    Envelope {
        base_url: "http://x/oai?a=1&b=2",
        response_date: stamp("2026-11-16T04:00:00Z").unwrap(),
        request,
    }
}

fn read(xml: &str) -> Page<Item> {
    let document = roxmltree::Document::parse(xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
    assert_eq!(document.root_element().tag_name().namespace(), Some(oaipmh::NAMESPACE));
    let page = PageReader::read(xml.as_bytes(), Limits::default());
    assert!(page.complete && page.problems.is_empty(), "{:?}", page.problems);
    page
}

fn record(number: u32) -> Record {
    Record {
        header: Header {
            identifier: format!("oai:x:<{number}>&\"é"),
            datestamp: stamp("2020-01-01T00:00:00Z"),
            sets: vec!["a".into(), "a:b".into()],
            deleted: number % 3 == 2,
        },
        metadata: (number % 3 != 2).then(|| match number % 3 {
            0 => "<m:a xmlns:m=\"urn:m\"><m:b>&lt;&#233;</m:b></m:a>".into(),
            _ => "<a xmlns=\"urn:a\"><b/></a>".into(),
        }),
        about: if number == 3 {
            vec!["<p xmlns=\"urn:p\"/>".into(), "<p xmlns=\"urn:q\"/>".into()]
        } else {
            vec![]
        },
        offset: 0,
        problems: vec![],
    }
}

fn token() -> ResumptionToken {
    ResumptionToken {
        value: "a&b<c>\" '+%20".into(),
        cursor: Some(0),
        complete_list_size: Some(1000),
        expiration_date: stamp("2026-11-17T00:00:00Z"),
    }
}

#[test]
fn a_page_of_records() {
    let request = Request::ListRecords(Selection {
        metadata_prefix: "oai_dc".into(),
        from: stamp("2020-01-01"),
        set: Some("a&b".into()),
        until: None,
    });
    let records: Vec<_> = (0..7).map(record).collect();
    let xml = envelope(Some(&request)).records(&records, Some(&token()));
    assert!(xml.contains(
        "<request verb=\"ListRecords\" from=\"2020-01-01\" metadataPrefix=\"oai_dc\" set=\"a&amp;b\">\
         http://x/oai?a=1&amp;b=2</request>"
    ));
    let mut page = read(&xml).into_records();
    page.items.iter_mut().for_each(|record| record.offset = 0);
    assert_eq!(page.items, records);
    assert_eq!(page.token, Some(token()));
    assert_eq!(page.verb, Some(Verb::ListRecords));
    assert_eq!(page.response_date, stamp("2026-11-16T04:00:00Z"));
}

#[test]
fn the_other_verbs() {
    let headers: Vec<_> = (0..3).map(|number| record(number).header).collect();
    let page = read(&envelope(None).identifiers(&headers, None)).into_headers();
    assert_eq!((page.items, page.token), (headers, None));

    let one = record(0);
    let page = read(&envelope(None).record(&one)).into_records();
    assert_eq!((&page.items[0].header, &page.items[0].metadata), (&one.header, &one.metadata));

    let set = |spec: &str, descriptions| Set { spec: spec.into(), name: "A & B".into(), descriptions };
    let sets = vec![set("a", vec![]), set("a:b", vec!["<d xmlns=\"urn:d\"/>".into()])];
    let empty = ResumptionToken::default();
    let page = read(&envelope(None).sets(&sets, Some(&empty))).into_sets();
    assert_eq!(page.next_token(), None);
    assert_eq!((page.items, page.token), (sets, Some(empty)));

    let format =
        MetadataFormat { prefix: "oai_dc".into(), schema: "http://s".into(), namespace: "http://n".into() };
    let page = read(&envelope(None).formats(std::slice::from_ref(&format))).into_formats();
    assert_eq!(page.items, [format]);

    let identify = Identify {
        repository_name: "Bücher & mehr".into(),
        base_url: "http://x/oai".into(),
        protocol_version: "2.0".into(),
        admin_emails: vec!["a@x".into(), "b@x".into()],
        earliest_datestamp: stamp("1990-01-01"),
        deleted_record: DeletedRecord::Transient,
        granularity: Some(Granularity::Day),
        compressions: vec!["gzip".into()],
        descriptions: vec!["<d xmlns=\"urn:d\"/>".into()],
    };
    let page = read(&envelope(Some(&Request::Identify)).identify(&identify)).into_identify();
    assert_eq!(page.items, [identify]);
}

#[test]
fn errors_repeat_the_request_only_where_it_made_sense() {
    let request = Request::resume(Verb::ListRecords, "x");
    for (code, echoed) in
        [(ErrorCode::BadVerb, false), (ErrorCode::BadArgument, false), (ErrorCode::BadResumptionToken, true)]
    {
        let error = OaiError::new(code, "no <such> thing");
        let xml = envelope(Some(&request)).errors(std::slice::from_ref(&error));
        assert_eq!(xml.contains("resumptionToken=\"x\""), echoed);
        assert_eq!(read(&xml).errors, [error]);
    }
}

#[test]
fn foreign_documents_keep_their_namespace_inside_an_answer() {
    for (stored, stands) in [
        (
            "<?xml version=\"1.0\"?>\n<!-- x --><dc><t/></dc>\n",
            "<metadata><dc xmlns=\"\"><t/></dc></metadata>",
        ),
        (
            "<a:dc xmlns:a=\"urn:a\"><t/></a:dc>",
            "<metadata><a:dc xmlns=\"\" xmlns:a=\"urn:a\"><t/></a:dc></metadata>",
        ),
        (
            "<a:dc xmlns:a=\"urn:a\"><a:t/></a:dc>",
            "<metadata><a:dc xmlns:a=\"urn:a\"><a:t/></a:dc></metadata>",
        ),
        ("<dc xmlns='urn:a'><t/></dc>", "<metadata><dc xmlns='urn:a'><t/></dc></metadata>"),
    ] {
        let one = Record { metadata: Some(stored.into()), ..record(0) };
        let xml = envelope(None).record(&one);
        assert!(xml.contains(stands), "{xml}");
        read(&xml);
    }
}
