use proptest::prelude::*;

use super::super::{Annotations, Revisit};
use super::*;
use crate::hops::Hop;

fn sample() -> CrawlLine<'static> {
    CrawlLine {
        logged: "2026-11-16T00:51:01.123Z".parse().unwrap(),
        status: FetchStatus(200),
        size: Some(5120),
        url: "http://example.com/a".into(),
        hops: Cow::Owned(Hops::seed().and(Hop::Link).and(Hop::Embed)),
        via: Some("http://example.com/".into()),
        mime: "text/html; charset=utf-8".into(),
        worker: 7,
        fetched: Some(Fetched { began: "2026-11-16T00:51:00.900Z".parse().unwrap(), millis: 81 }),
        digest: Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".into()),
        source: Some("http://example.com/".into()),
        annotations: "2t".into(),
        extra: Some(Extra {
            content_size: Some(5403),
            warc_filename: Some("1-2-20261116.warc.gz".into()),
            warc_file_offset: Some(77),
            original_url: None,
        }),
    }
}

fn written(line: &CrawlLine<'_>) -> String {
    let mut out = Vec::new();
    line.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_thirteen_columns_are_exact() {
    assert_eq!(
        written(&sample()),
        "2026-11-16T00:51:01.123Z   200       5120 http://example.com/a LE http://example.com/ text/html #007 \
         20261116005100900+81 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ http://example.com/ 2t \
         {\"contentSize\":5403,\"warcFilename\":\"1-2-20261116.warc.gz\",\"warcFileOffset\":77}\n"
    );
    let bare = CrawlLine {
        status: FetchStatus(-9998),
        size: None,
        hops: Cow::Owned(Hops::seed()),
        via: None,
        mime: "".into(),
        worker: 1234,
        fetched: None,
        digest: None,
        source: None,
        annotations: "".into(),
        extra: None,
        ..sample()
    };
    assert_eq!(
        written(&bare),
        "2026-11-16T00:51:01.123Z -9998          - http://example.com/a - - no-type #1234 - - - -\n"
    );
}

#[test]
fn what_servers_send_cannot_break_a_line() {
    let line = CrawlLine {
        url: "http://a.example/a b\nc".into(),
        via: Some("x\ty".into()),
        mime: "text/html\r\nfoo".into(),
        source: Some("a b".into()),
        annotations: "a b".into(),
        ..sample()
    };
    let text = written(&line);
    assert_eq!(text.matches('\n').count(), 1);
    assert_eq!(text.split_whitespace().count(), 13);
}

#[test]
fn lines_of_heritrix_are_read() {
    // As Heritrix 3, its older versions and the Danish deduplicator of Heritrix 1 write them.
    let line = CrawlLine::parse(
        "2011-04-29T00:29:35.462Z     1         62 dns:www.smokebox.net P http://www.smokebox.net/ text/dns #015 \
         20110429002935331+131 sha1:EYV5SQ7QVFNKUBWYB2T7TWUTJY2YIVQK - -",
    )
    .unwrap();
    assert_eq!((line.status, line.size, line.worker), (FetchStatus::DNS_OK, Some(62), 15));
    assert_eq!(line.hops.to_string(), "P");
    assert_eq!((line.source.as_deref(), &*line.annotations, &line.extra), (None, "", &None));
    assert_eq!(line.fetched.map(|fetched| fetched.millis), Some(131));

    let line = CrawlLine::parse(
        "2009-01-01T00:00:00.000Z   404          - http://a.dk/x?y={z} LLE http://a.dk/ text/html #001 \
         20090101000000000+5 sha1:A a.dk duplicate:\"a-1.arc,12,2008\",content-size:99\r\n",
    )
    .unwrap();
    assert_eq!((line.revisit(), line.content_size()), (Some(Revisit::Digest), 99));
    assert_eq!(line.annotations().count(), 2);

    let line = CrawlLine::parse(
        "2024-01-01T00:00:00.000Z   200         10 http://a.dk/ - - text/html #001 - - - ip:1.2.3.4,three words \
         {\"warcPrefix\":\"X\",\"contentSize\":12,\"warcFileOffset\":9,\"scopeDecision\":\"ACCEPT by rule #2\"}",
    )
    .unwrap();
    assert_eq!(&*line.annotations, "ip:1.2.3.4,three words");
    assert_eq!(line.content_size(), 12);

    let line = CrawlLine::parse(
        "2024-01-01T00:00:00.000Z   200 - http://a.dk/ - - text/html #001 - - - - \
         {\"contentSize\":-1,\"warcFilename\":\"a.warc\",\"warcFileOffset\":\"9\"}",
    )
    .unwrap();
    let extra = line.extra.unwrap();
    assert_eq!((extra.content_size, extra.warc_filename.as_deref()), (None, Some("a.warc")));
    assert_eq!(&*line.annotations, "");

    // Only eleven columns: old writers left the annotations out.
    let line = CrawlLine::parse("2024-01-01T00:00:00.000Z 200 - http://a.dk/ - - x/y #001 - - -").unwrap();
    assert_eq!(&*line.annotations, "");
}

#[test]
fn what_is_no_line_is_refused_with_its_column() {
    assert_eq!(CrawlLine::parse(""), Err(LineError::Short(0)));
    assert_eq!(CrawlLine::parse("a b c"), Err(LineError::Short(3)));
    let whole = "2024-01-01T00:00:00.000Z 200 - http://a.dk/ - - x/y #001 - - -";
    for (from, to, column) in
        [("2024-01-01T", "yesterday", 1), (" 200 ", " ok ", 2), (" - - x", " q - x", 5), ("#001", "001", 8)]
    {
        let broken = whole.replacen(from, to, 1);
        let Err(LineError::Column { column: told, .. }) = CrawlLine::parse(&broken) else {
            panic!("{broken} was read")
        };
        assert_eq!(told, column, "{broken}");
    }
}

#[test]
fn a_size_is_said_by_the_best_column() {
    let extra = sample();
    assert_eq!(extra.content_size(), 5403);
    let noted = CrawlLine { extra: None, annotations: "content-size:99".into(), ..sample() };
    assert_eq!(noted.content_size(), 99);
    let body = CrawlLine { extra: None, annotations: "".into(), ..sample() };
    assert_eq!(body.content_size(), 5120);
}

fn word() -> impl Strategy<Value = String> {
    // What a column may hold without being changed: no blank, no control, not a lone dash.
    "[!-~æ漢]{1,30}".prop_filter("a dash means nothing", |text| text != "-")
}

fn times() -> impl Strategy<Value = Timestamp> {
    (0_i64..253_402_300_799_000).prop_map(|ms| Timestamp::from_millisecond(ms).unwrap())
}

prop_compose! {
    fn lines()(
        (logged, began, millis) in (times(), times(), any::<u32>()),
        (status, worker) in (-10_000_i32..1_000, any::<u32>()),
        size in proptest::option::of(0..i64::MAX as u64),
        (url, hops) in (word(), "[LERXPIMS]{0,50}"),
        (via, digest, source) in (proptest::option::of(word()), proptest::option::of(word()), proptest::option::of(word())),
        mime in "[a-z]{1,9}/[a-z.+-]{1,9}",
        words in proptest::collection::vec("\\PC{0,20}", 0..4),
        fetched in any::<bool>(),
        extra in proptest::option::of((proptest::option::of(any::<u64>()), proptest::option::of("\\PC{0,20}"))),
    ) -> CrawlLine<'static> {
        let mut annotations = Annotations::new();
        for word in &words {
            // Braces after a blank begin the next column, and blanks are gone already.
            annotations.add(word.trim_matches('-'));
        }
        CrawlLine {
            logged,
            status: FetchStatus(status),
            size,
            url: url.into(),
            hops: Cow::Owned(hops.parse().unwrap()),
            via: via.map(Into::into),
            mime: mime.into(),
            worker,
            fetched: fetched.then_some(Fetched { began, millis: u64::from(millis) }),
            digest: digest.map(Into::into),
            source: source.map(Into::into),
            annotations: annotations.as_str().to_owned().into(),
            extra: extra.map(|(content_size, name)| Extra {
                content_size,
                warc_filename: name.clone().map(Into::into),
                warc_file_offset: content_size,
                original_url: name.map(|name| format!("http://{name}/").into()),
            }),
        }
    }
}

proptest! {
    #[test]
    fn a_line_written_is_read_back_the_same(line in lines()) {
        let text = written(&line);
        prop_assert_eq!(text.matches('\n').count(), 1);
        let again = CrawlLine::parse(&text).unwrap();
        prop_assert_eq!(&again, &line);
        prop_assert_eq!(written(&again), text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,300}") {
        let _ = CrawlLine::parse(&text);
    }

    #[test]
    fn no_damage_makes_the_reader_panic(line in lines(), at in any::<prop::sample::Index>(), junk in "\\PC{0,5}") {
        let mut text = written(&line);
        let at = text.floor_char_boundary(at.index(text.len()));
        text.insert_str(at, &junk);
        let _ = CrawlLine::parse(&text);
        let _ = CrawlLine::parse(&text[at..]);
    }
}
