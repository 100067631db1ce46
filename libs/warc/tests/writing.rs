//! What is written is read back equal, survives a crash, and rolls over.

mod common;

use std::fs;
use std::io::{self, Cursor, Read as _};
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use warc::write::{
    Compression, FileOptions, NameTemplate, NewRecord, Press, RecordId, Series, SeriesOptions, SyncPolicy,
    Truncated, WarcFile,
};
use warc::{Algorithm, Check, Date, Digest, Profile, Reader, RecordType};

const PACKINGS: [Compression; 3] = [Compression::None, Compression::Gzip(6), Compression::Zstd(3)];

fn now() -> Date {
    Date::parse(b"2026-01-02T03:04:05.678901Z").unwrap()
}

fn options(compression: Compression) -> FileOptions {
    let info = vec![("software".to_owned(), "test".to_owned())];
    FileOptions { compression, sync: SyncPolicy::Never, info, id: None }
}

/// Reads a file that must be free of problems; answers the number of records.
fn check_clean(path: &Path) -> u64 {
    let mut reader = Reader::open(path).unwrap();
    let (mut records, mut end) = (0, 0);
    while let Some(mut record) = reader.next().unwrap() {
        let check = record.digest_check().unwrap();
        assert!(!matches!(check.block, Check::Bad(_)) && !matches!(check.payload, Check::Bad(_)));
        record.finish().unwrap();
        assert_eq!(record.problems(), [], "{} record {records}", path.display());
        assert_eq!(record.place().offset, end);
        end += record.stored_len().unwrap();
        records += 1;
    }
    assert_eq!(reader.problems(), []);
    assert_eq!(end, fs::metadata(path).unwrap().len());
    records
}

/// One response to write.
#[derive(Debug, Clone)]
struct Page {
    uri: String,
    chunked: bool,
    body: Vec<u8>,
    field: Vec<u8>,
    micros: i64,
}

fn pages() -> impl Strategy<Value = Vec<Page>> {
    let body = prop_oneof![
        vec(any::<u8>(), 0..200),
        "[a-z \r\n]{0,400}".prop_map(String::into_bytes),
        Just(b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n".to_vec()),
        Just(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0]),
    ];
    let field = "[ -~]{0,40}".prop_map(|text| text.trim().as_bytes().to_vec());
    let page = ("[!-~]{1,60}", any::<bool>(), body, field, 0..4_000_000_000_000_000_i64).prop_map(
        |(path, chunked, body, field, micros)| Page {
            uri: format!("http://example.org/{path}"),
            chunked,
            body,
            field,
            micros,
        },
    );
    vec(page, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_record_is_read_back_equal(pages in pages(), packing in 0..3_usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.warc");
        let mut file = WarcFile::create(&path, &options(PACKINGS[packing]), now()).unwrap();
        let mut expected = Vec::new();
        for page in &pages {
            let coding = if page.chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
            let head = format!("HTTP/1.1 200 OK\r\nServer: x\r\n{coding}\r\n");
            let body = if page.chunked {
                let mut body = Vec::new();
                for piece in page.body.chunks(50) {
                    body.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                    body.extend_from_slice(piece);
                    body.extend_from_slice(b"\r\n");
                }
                body.extend_from_slice(b"0\r\n\r\n");
                body
            } else {
                page.body.clone()
            };
            let date = Date::from(jiff::Timestamp::from_microsecond(page.micros).unwrap());
            let mut record = NewRecord::response(&page.uri, date, head.as_bytes(), &body).field("X-Any", &page.field);
            let written = file.write(&mut record).unwrap();
            prop_assert_eq!(written.payload_digest, Some(Digest::of(Algorithm::Sha1, &page.body)));
            expected.push((written, date, head.into_bytes(), body));
        }
        let path = file.close().unwrap();
        prop_assert_eq!(check_clean(&path), pages.len() as u64 + 1);

        for (page, (written, date, head, body)) in pages.iter().zip(&expected) {
            let mut reader = Reader::open_at(&path, written.offset).unwrap();
            let mut record = reader.next().unwrap().unwrap();
            prop_assert_eq!(record.target_uri(), Some(page.uri.as_bytes()));
            prop_assert_eq!(record.date(), Some(*date));
            prop_assert_eq!(record.header().get("X-Any"), Some(&page.field[..]));
            prop_assert_eq!(record.record_id().and_then(RecordId::parse), Some(written.id));
            let mut block = Vec::new();
            record.block().read_to_end(&mut block).unwrap();
            prop_assert_eq!(block, [&head[..], &body[..]].concat());
            record.finish().unwrap();
            prop_assert_eq!(record.stored_len(), Some(written.length));

            let mut reader = Reader::open_at(&path, written.offset).unwrap();
            let mut payload = Vec::new();
            reader.next().unwrap().unwrap().payload().unwrap().read_to_end(&mut payload).unwrap();
            prop_assert_eq!(&payload, &page.body);
        }
    }
}

#[test]
fn all_types_are_written_and_clean() {
    for compression in PACKINGS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.warc");
        let mut file = WarcFile::create(&path, &options(compression), now()).unwrap();
        assert!(folder.path().join("x.warc.open").exists() && !path.exists());
        write_all_types(&mut file);
        let path = file.close().unwrap();
        assert!(path.exists() && !folder.path().join("x.warc.open").exists());
        assert_eq!(check_clean(&path), 8);

        let mut reader = Reader::open(&path).unwrap();
        let mut kinds = Vec::new();
        let mut warcinfo = None;
        while let Some(record) = reader.next().unwrap() {
            kinds.push(record.kind());
            if record.kind() == RecordType::Warcinfo {
                warcinfo = record.record_id().map(<[u8]>::to_vec);
            } else {
                let id = record.header().get_text("WARC-Warcinfo-ID").unwrap();
                assert_eq!(id.trim_matches(['<', '>']).as_bytes(), warcinfo.as_deref().unwrap());
            }
            if record.kind() == RecordType::Revisit {
                let revisit = record.revisit().unwrap();
                assert_eq!(revisit.profile, Profile::IdenticalPayloadDigest);
                assert_eq!(revisit.target_uri, Some(&b"http://example.org/"[..]));
                assert_eq!(revisit.date, Some(now()));
            }
        }
        assert_eq!(kinds.len(), 8);
    }
}

/// Writes a record of each type.
fn write_all_types(file: &mut WarcFile) {
    let uri = "http://example.org/";
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let mut response = NewRecord::response(uri, now(), head, b"hello")
        .ip("192.0.2.1".parse().unwrap())
        .truncated(Truncated::Length);
    let id = response.record_id();
    let written = file.write(&mut response).unwrap();
    let request = b"POST / HTTP/1.1\r\nHost: example.org\r\n\r\n";
    file.write(&mut NewRecord::request(uri, now(), request, b"a=b").concurrent_to(id)).unwrap();
    file.write(&mut NewRecord::metadata(uri, now(), b"via: http://example.com/\r\n").concurrent_to(id))
        .unwrap();
    file.write(
        &mut NewRecord::resource("urn:x:y", now(), "text/plain", b"resource").algorithm(Algorithm::Sha256),
    )
    .unwrap();
    file.write(&mut NewRecord::conversion(uri, now(), id, "text/plain", b"converted")).unwrap();
    let digest = written.payload_digest.unwrap();
    let revisit = NewRecord::revisit(uri, now(), Profile::IdenticalPayloadDigest, digest, head);
    file.write(&mut revisit.refers_to(id).refers_to_capture(uri, now())).unwrap();
    // A body that is not in memory, larger than what is packed in one call.
    let body: Vec<u8> = (0..5_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let len = body.len() as u64;
    let mut spilled = Cursor::new(body);
    file.write(&mut NewRecord::response(uri, now(), b"", b"").stream(head, &mut spilled, len)).unwrap();
}

#[test]
fn a_file_cut_anywhere_is_whole_after_reopening() {
    for compression in PACKINGS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.warc");
        let open = folder.path().join("x.warc.open");
        let mut file = WarcFile::create(&path, &options(compression), now()).unwrap();
        let head = b"HTTP/1.1 200 OK\r\n\r\n";
        file.write(&mut NewRecord::response("http://example.org/1", now(), head, b"one")).unwrap();
        let last = file.write(&mut NewRecord::response("http://example.org/2", now(), head, b"two")).unwrap();
        drop(file);
        let bytes = fs::read(&open).unwrap();
        for cut in last.offset..=bytes.len() as u64 {
            fs::write(&open, &bytes[..cut as usize]).unwrap();
            let mut file = WarcFile::reopen(&path, &options(compression), now()).unwrap();
            let whole = cut == bytes.len() as u64;
            assert_eq!(file.size(), if whole { cut } else { last.offset }, "{compression:?} cut at {cut}");
            let written =
                file.write(&mut NewRecord::response("http://example.org/3", now(), head, b"three")).unwrap();
            assert_eq!(written.offset, if whole { cut } else { last.offset });
            drop(file);
            assert_eq!(check_clean(&open), 3 + u64::from(whole), "{compression:?} cut at {cut}");
        }
        // Cut in the very first record: nothing is left, and a new warcinfo record is written.
        fs::write(&open, &bytes[..9]).unwrap();
        drop(WarcFile::reopen(&path, &options(compression), now()).unwrap());
        assert_eq!(check_clean(&open), 1);
    }
}

#[test]
fn records_packed_elsewhere_are_appended_and_cut_back() {
    for compression in PACKINGS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.warc");
        let open = folder.path().join("x.warc.open");
        let mut file = WarcFile::create(&path, &options(compression), now()).unwrap();
        let head = b"HTTP/1.1 200 OK\r\n\r\n";
        let mut press = Press::new(compression).unwrap();
        let mut ends = vec![(file.size(), file.records())];
        for n in 0..5 {
            let uri = format!("http://example.org/{n}");
            let mut packed = Vec::new();
            let mut response = NewRecord::response(&uri, now(), head, b"body");
            let mut request = NewRecord::request(&uri, now(), b"GET / HTTP/1.1\r\n\r\n", b"");
            let first = press.pack(&mut response, file.warcinfo(), &mut packed).unwrap();
            let second = press.pack(&mut request, file.warcinfo(), &mut packed).unwrap();
            assert_eq!(first.length + second.length, packed.len() as u64);
            let at = file.append_packed(&mut packed.as_slice(), packed.len() as u64, 2).unwrap();
            assert_eq!(at, ends.last().unwrap().0);
            ends.push((file.size(), file.records()));
        }
        // What ends before its length is not appended at all.
        let size = file.size();
        assert!(file.append_packed(&mut &b"half"[..], 9, 1).is_err());
        assert_eq!(file.size(), size);
        let info = file.warcinfo();
        drop(file);
        assert_eq!(check_clean(&open), 11);
        for &(end, records) in ends.iter().rev() {
            let file = WarcFile::reopen_at(&path, end, records, &options(compression)).unwrap();
            assert_eq!((file.size(), file.records(), file.warcinfo()), (end, records, info));
            drop(file);
            assert_eq!(check_clean(&open), records);
        }
    }
}

#[test]
fn a_series_rolls_over_and_keeps_groups_together() {
    let folder = tempfile::tempdir().unwrap();
    let name = NameTemplate::new("{prefix}-{timestamp17}-{serial:3}", &[("prefix", "T")]).unwrap();
    let options = SeriesOptions {
        folder: folder.path().to_owned(),
        name,
        roll_at: 3000,
        file: options(Compression::Gzip(1)),
    };
    let mut series = Series::new(options, 7);
    let head = b"HTTP/1.1 200 OK\r\n\r\n";
    for _ in 0..20 {
        let response = NewRecord::response("http://example.org/", now(), head, b"body");
        let request = NewRecord::request("http://example.org/", now(), b"GET / HTTP/1.1\r\n\r\n", b"")
            .concurrent_to(response.record_id());
        series.write(&mut [response, request]).unwrap();
    }
    let files = series.finish().unwrap();
    assert!(files.len() > 2);
    let mut total = 0;
    for (at, path) in files.iter().enumerate() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("T-") && name.ends_with(&format!("-{:03}.warc.gz", at + 7)), "{name}");
        let records = check_clean(path);
        assert_eq!(records % 2, 1, "a warcinfo record and pairs");
        total += records - 1;
    }
    assert_eq!(total, 40);
}

#[test]
fn what_cannot_be_written_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.warc");
    let mut file = WarcFile::create(&path, &options(Compression::None), now()).unwrap();
    let bad = |value: &[u8]| NewRecord::new(RecordType::Metadata, now()).field("X-Any", value);
    let size = file.size();
    assert!(file.write(&mut bad(b"two\r\nlines")).is_err());
    assert!(file.write(&mut NewRecord::new(RecordType::Metadata, now()).field("X Any", b"x")).is_err());
    let mut short = Cursor::new(vec![0; 10]);
    let digest = Digest::of(Algorithm::Sha1, b"");
    let mut stream = NewRecord::resource("urn:x", now(), "x/y", b"")
        .stream(b"", &mut short, 6_000_000)
        .block_digest(digest)
        .payload_digest(digest);
    assert_eq!(file.write(&mut stream).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(file.size(), size);
    let uri = "http://example.org/\r\nX-Injected: yes";
    file.write(&mut NewRecord::response(uri, now(), b"HTTP/1.1 200 OK\r\n\r\n", b"")).unwrap();
    let path = file.close().unwrap();
    assert_eq!(check_clean(&path), 2);
    assert!(WarcFile::create(&path, &options(Compression::None), now()).is_err());
}
