use super::*;
use crate::tests::{Bed, gzip, http, record, revisit};

const T1: &str = "2020-01-01T00:00:01Z";
const T2: &str = "2020-01-02T00:00:02Z";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain";

async fn body(bed: &Bed, capture: &grange_index::Capture, undo: Undo) -> Result<Vec<u8>, String> {
    let loaded = load(&bed.snapshot(), &bed.collection, capture, move |_| undo, |_| true).await;
    let loaded = loaded.map_err(|error| error.to_string())?;
    loaded.body.collect(64 << 20).await.map(|bytes| bytes.to_vec()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn every_container_gives_the_same_body() {
    let one = http("http://e.org/a", T1, OK, b"first");
    let two = http("http://e.org/b", T1, OK, b"second");
    let both = [one.clone(), two.clone()].concat();
    let zst = [zstd::encode_all(&one[..], 3).unwrap(), zstd::encode_all(&two[..], 3).unwrap()].concat();
    let arc = b"filedesc://x.arc 0.0.0.0 20200101000001 text/plain 75\n1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n\n\
        http://e.org/a 1.2.3.4 20200101000001 text/plain 50\nHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nfirst\n\
        http://e.org/b 1.2.3.4 20200101000001 text/plain 51\nHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nsecond\n";
    for (name, bytes) in [
        ("plain.warc", both.clone()),
        ("members.warc.gz", [gzip(&one), gzip(&two)].concat()),
        ("whole.warc.gz", gzip(&both)),
        ("frames.warc.zst", zst),
        ("old.arc", arc.to_vec()),
    ] {
        let bed = Bed::new();
        bed.add(name, &bytes);
        for (url, expected) in [("http://e.org/a", "first"), ("http://e.org/b", "second")] {
            let captures = bed.captures(url);
            assert_eq!(captures.len(), 1, "{name} {url}");
            let got = body(&bed, &captures[0], Undo::Transfer).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&got), expected, "{name} {url}");
            // An index that does not know lengths, or lies about them, finds the same.
            for length in [None, Some(9), Some(1 << 40)] {
                let capture = grange_index::Capture { length, ..captures[0].clone() };
                let got = body(&bed, &capture, Undo::Transfer).await.unwrap();
                assert_eq!(String::from_utf8_lossy(&got), expected, "{name} {url} {length:?}");
            }
        }
    }
}

#[tokio::test]
async fn codings_are_undone_as_far_as_asked() {
    let bed = Bed::new();
    let packed = gzip(b"hello hello hello");
    let chunked = [format!("{:x}\r\n", packed.len()).as_bytes(), &packed, b"\r\n0\r\n\r\n"].concat();
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked";
    let lie = "HTTP/1.1 200 OK\r\nContent-Encoding: br";
    bed.add_gz(
        "a.warc.gz",
        &[http("http://e.org/", T1, head, &chunked), http("http://e.org/lie", T1, lie, b"not packed")],
    );
    let content = Undo::Content { bytes_max: 1 << 20 };
    let capture = &bed.captures("http://e.org/")[0];
    assert_eq!(body(&bed, capture, Undo::Transfer).await.unwrap(), packed);
    assert_eq!(body(&bed, capture, content).await.unwrap(), b"hello hello hello");
    assert_eq!(body(&bed, &bed.captures("http://e.org/lie")[0], content).await.unwrap(), b"not packed");
}

#[tokio::test]
async fn a_bomb_is_stopped_at_the_limit() {
    let bed = Bed::new();
    // 64 MB of zeros in a gzip body in a gzip member: a few hundred bytes on disk.
    let bomb = gzip(&gzip(&vec![0; 64 << 20]));
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip";
    bed.add_gz("bomb.warc.gz", &[http("http://e.org/bomb", T1, head, &gzip(&vec![0; 64 << 20]))]);
    assert!(bomb.len() < 1 << 10);
    let capture = &bed.captures("http://e.org/bomb")[0];
    let limit = Undo::Content { bytes_max: 4 << 20 };
    let error = body(&bed, capture, limit).await.unwrap_err();
    assert!(error.contains("more than 4194304 bytes"), "{error}");
    assert!(body(&bed, capture, Undo::Transfer).await.unwrap().len() < 1 << 17);
}

#[tokio::test]
async fn a_body_of_two_gigabytes_streams() {
    use std::io::{Seek, SeekFrom, Write};
    const LEN: u64 = (2 << 30) + 1234;
    let bed = Bed::new();
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n";
    let record = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: {T1}\r\n\
         WARC-Target-URI: http://e.org/film\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n",
        LEN + head.len() as u64
    );
    // A sparse file: the zeros of the body take no room.
    let mut file = std::fs::File::create(bed.folder.path().join("big.warc")).unwrap();
    file.write_all(record.as_bytes()).unwrap();
    file.write_all(head).unwrap();
    file.seek(SeekFrom::Current(LEN as i64)).unwrap();
    file.write_all(b"\r\n\r\n").unwrap();
    let section = crate::holdings::Section::whole(bed.folder.path().join("big.warc")).unwrap();
    bed.files.add("big.warc", section);
    let place = Place { file: "big.warc".into(), ..Place::default() };
    let (about, mut body) = open(&bed.collection, &place, |_| Undo::Transfer).await.unwrap();
    assert_eq!((about.payload_len, body.len()), (Some(LEN), Some(LEN)));
    // A hundred pieces show that it flows; reading all of it would only show the speed of the disk.
    let mut read = 0;
    for _ in 0..100 {
        read += body.next().await.unwrap().unwrap().len();
    }
    assert!(read >= 6 << 20, "{read}");
}

#[tokio::test]
async fn revisits_get_the_body_of_their_original() {
    let bed = Bed::new();
    let page = http("http://e.org/page", T1, OK, b"the page");
    let image = http("http://cdn.org/logo", T1, OK, b"the logo");
    bed.add_gz("first.warc.gz", &[page, image]);
    let with_head = "HTTP/1.1 200 OK\r\nX-Second: yes\r\nContent-Type: text/plain";
    bed.add_gz(
        "second.warc.gz",
        &[
            // The same URL; another URL by digest alone; another URL that is referred to, without a digest known here.
            revisit("http://e.org/page", T2, with_head, b"the page", ""),
            revisit("http://e.org/logo.png", T2, "", b"the logo", ""),
            record(
                "revisit",
                "http://e.org/named",
                T2,
                &format!(
                    "Content-Type: application/http\r\nWARC-Refers-To-Target-URI: http://cdn.org/logo\r\n\
                     WARC-Refers-To-Date: {T1}\r\n"
                ),
                b"",
            ),
            revisit("http://e.org/gone", T2, with_head, b"nobody has this", ""),
            revisit("http://e.org/empty", T2, with_head, b"", ""),
            revisit("http://e.org/moved", T2, "HTTP/1.1 301 Moved\r\nLocation: /x", b"moved away", ""),
        ],
    );
    for (url, expected) in [
        ("http://e.org/page", Ok("the page")),
        ("http://e.org/logo.png", Ok("the logo")),
        ("http://e.org/named", Ok("the logo")),
        ("http://e.org/gone", Err("no record with that content can be read (tried 0)")),
        ("http://e.org/empty", Ok("")),
        ("http://e.org/moved", Ok("")),
    ] {
        let captures = bed.captures(url);
        let got = body(&bed, captures.last().unwrap(), Undo::Transfer).await;
        match expected {
            Ok(text) => assert_eq!(got, Ok(text.as_bytes().to_vec()), "{url}"),
            Err(text) => assert!(got.as_ref().is_err_and(|error| error.contains(text)), "{url}: {got:?}"),
        }
    }
    let captures = bed.captures("http://e.org/page");
    let loaded =
        load(&bed.snapshot(), &bed.collection, &captures[1], |_| Undo::Transfer, |_| true).await.unwrap();
    assert_eq!(loaded.about.http.as_ref().unwrap().get("X-Second"), Some(&b"yes"[..]));
    assert_eq!(loaded.original.unwrap().capture.time, captures[0].time);
}

#[tokio::test]
async fn digests_of_different_algorithms_say_nothing_and_address_and_date_decide() {
    let t3 = "2020-01-03T00:00:03Z";
    let sha256 = |body: &[u8]| {
        let digest = warc::Digest::of(warc::Algorithm::Sha256, body);
        format!("Content-Type: application/http\r\nWARC-Payload-Digest: sha256:{}\r\n", digest.hex())
    };
    let bed = Bed::new();
    bed.add_gz(
        "first.warc.gz",
        &[
            http("http://e.org/page", T1, OK, b"the first"),
            http("http://e.org/page", T2, OK, b"the second"),
            http("http://e.org/page", "2020-02-01T00:00:00Z", OK, b"the third"),
            http("http://e.org/other", T1, OK, b"the other"),
        ],
    );
    let to = |uri: &str, date: &str| {
        format!("WARC-Refers-To-Target-URI: {uri}\r\nWARC-Refers-To-Date: {date}\r\n")
    };
    let again = |uri: &str, date: &str, refers: &str| {
        record("revisit", uri, date, &(sha256(b"nobody knows") + refers), b"")
    };
    bed.add_gz(
        "second.warc.gz",
        &[
            // The last one before it; the one that it names; that of another address.
            again("http://e.org/page", t3, ""),
            again("http://e.org/page", "2020-01-04T00:00:00Z", &to("http://e.org/page", T1)),
            again("http://e.org/copy", t3, &to("http://e.org/other", T1)),
            again("http://e.org/alone", t3, ""),
            // A digest that can be compared, and is another.
            revisit("http://e.org/other", t3, "", b"something else", ""),
        ],
    );
    for (url, date, expected) in [
        ("http://e.org/page", "20200103", Ok("the second")),
        ("http://e.org/page", "20200104", Ok("the first")),
        ("http://e.org/copy", "20200103", Ok("the other")),
        ("http://e.org/alone", "20200103", Err("tried 0")),
        ("http://e.org/other", "20200103", Err("tried 0")),
    ] {
        let captures = bed.captures(url);
        let capture = captures.iter().find(|capture| capture.time.to_string().starts_with(date)).unwrap();
        let got = body(&bed, capture, Undo::Transfer).await;
        match expected {
            Ok(text) => assert_eq!(got, Ok(text.as_bytes().to_vec()), "{url} {date}"),
            Err(text) => assert!(got.as_ref().is_err_and(|error| error.contains(text)), "{url}: {got:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_with_its_name() {
    let bed = Bed::new();
    bed.add_gz("a.warc.gz", &[http("http://e.org/", T1, OK, b"x")]);
    let capture = bed.captures("http://e.org/")[0].clone();
    let gone = grange_index::Capture { file: "b.warc.gz".into(), ..capture.clone() };
    let error = body(&bed, &gone, Undo::Transfer).await.unwrap_err();
    assert!(error.contains("b.warc.gz") && error.contains("not here"), "{error}");
    let beyond = grange_index::Capture { offset: Some(99_999), ..capture };
    let error = body(&bed, &beyond, Undo::Transfer).await.unwrap_err();
    assert!(error.contains("no such record at byte 99999"), "{error}");
}

/// Holdings that count how often they are read.
#[derive(Debug)]
struct Counted {
    inner: std::sync::Arc<dyn crate::Holdings>,
    reads: std::sync::atomic::AtomicUsize,
}

#[async_trait::async_trait]
impl crate::Holdings for Counted {
    async fn read_at(
        &self,
        file: &str,
        offset: u64,
        len: u64,
    ) -> Result<Option<bytes::Bytes>, crate::HoldingsError> {
        self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.inner.read_at(file, offset, len).await
    }
}

#[tokio::test]
async fn a_record_is_read_once_in_each_form() {
    use std::sync::Arc;
    let bed = Bed::new();
    let packed = gzip(b"<p>hello</p>");
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip";
    let long = vec![b'x'; 300 << 10];
    bed.add_gz(
        "a.warc.gz",
        &[http("http://e.org/", T1, head, &packed), http("http://e.org/long", T1, OK, &long)],
    );
    let inner = bed.collection.holdings.clone();
    let counted = Arc::new(Counted { inner, reads: 0.into() });
    let collection = crate::Collection::new("c", bed.collection.index.clone(), counted.clone());
    let content = Undo::Content { bytes_max: 1 << 20 };
    let page = bed.captures("http://e.org/")[0].clone();
    let unknown = grange_index::Capture { digest: None, ..page.clone() };
    let replaced = grange_index::Capture { digest: Some("sha1:OTHER".into()), ..page.clone() };
    let long = bed.captures("http://e.org/long")[0].clone();
    for (capture, undo, len, reads, why) in [
        (&page, Undo::Transfer, packed.len(), 1, "the first time it is read"),
        (&page, Undo::Transfer, packed.len(), 1, "the second time it is here"),
        (&page, content, 12, 2, "another form is another body"),
        (&page, content, 12, 2, "both forms are here"),
        (&page, Undo::Transfer, packed.len(), 2, "both forms are here"),
        (&page, Undo::Skip, 0, 2, "no body is needed"),
        (&replaced, Undo::Transfer, packed.len(), 3, "another digest is another record"),
        (&unknown, Undo::Transfer, packed.len(), 4, "without a digest nobody can tell"),
        (&unknown, Undo::Transfer, packed.len(), 5, "without a digest nobody can tell"),
        (&long, Undo::Transfer, 300 << 10, 6, "long ones are not kept"),
        (&long, Undo::Transfer, 300 << 10, 7, "long ones are not kept"),
    ] {
        let loaded = load(&bed.snapshot(), &collection, capture, move |_| undo, |_| true).await.unwrap();
        assert_eq!(loaded.body.collect(1 << 20).await.unwrap().len(), len, "{why}");
        assert_eq!(counted.reads.load(std::sync::atomic::Ordering::Relaxed), reads, "{why}");
    }
}
