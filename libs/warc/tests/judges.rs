//! Foreign tools must accept what we write: `warcio check` and FastWARC.
//!
//! Chunked bodies are left out: warcio hashes them as stored, the standard means them decoded.
//!
//! `GRANGE_TEST_PYTHON` names a Python that has both installed.

use std::path::Path;
use std::process::Command;

use warc::write::{Compression, FileOptions, NewRecord, Truncated, WarcFile};
use warc::{Algorithm, Date, Profile};

#[path = "../../skipped.rs"]
mod skipped;

const FASTWARC: &str = "
import sys
from fastwarc.warc import ArchiveIterator
count = 0
for record in ArchiveIterator(open(sys.argv[1], 'rb'), parse_http=False):
    assert record.verify_block_digest(), record.headers
    count += 1
for record in ArchiveIterator(open(sys.argv[1], 'rb'), parse_http=True):
    if record.is_http and record.headers['WARC-Type'] in ('response', 'request') and 'WARC-Payload-Digest' in record.headers:
        assert record.verify_payload_digest(), record.headers
print(count)
";

const WARCIO: &str = "
import sys
from warcio.archiveiterator import ArchiveIterator
print(sum(1 for _ in ArchiveIterator(open(sys.argv[1], 'rb'), check_digests='raise')))
";

fn write(path: &Path, compression: Compression) -> u64 {
    let now = Date::parse(b"2026-01-02T03:04:05.678901Z").unwrap();
    let info = vec![("software".to_owned(), "test".to_owned())];
    let options = FileOptions { compression, info, ..FileOptions::default() };
    let mut file = WarcFile::create(path, &options, now).unwrap();
    let uri = "http://example.org/";
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let mut response = NewRecord::response(uri, now, head, b"hello").ip("2001:db8::1".parse().unwrap());
    let id = response.record_id();
    let digest = file.write(&mut response).unwrap().payload_digest.unwrap();
    let ask = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
    file.write(&mut NewRecord::request(uri, now, ask, b"").concurrent_to(id)).unwrap();
    file.write(&mut NewRecord::metadata(uri, now, b"fetchTimeMs: 12\r\n").concurrent_to(id)).unwrap();
    let resource = NewRecord::resource("urn:x:y", now, "text/plain", b"resource");
    file.write(&mut resource.algorithm(Algorithm::Sha256)).unwrap();
    file.write(&mut NewRecord::conversion(uri, now, id, "text/plain", b"converted")).unwrap();
    let revisit = NewRecord::revisit(uri, now, Profile::IdenticalPayloadDigest, digest, head);
    file.write(&mut revisit.refers_to(id).refers_to_capture(uri, now).truncated(Truncated::Length)).unwrap();
    let big = vec![7; 6 << 20];
    file.write(&mut NewRecord::response("http://example.org/big", now, head, &big)).unwrap();
    let records = file.records();
    file.close().unwrap();
    records
}

#[test]
fn foreign_tools_accept_our_files() {
    let Some(python) = std::env::var_os("GRANGE_TEST_PYTHON") else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "GRANGE_TEST_PYTHON must be set in CI");
        return skipped::note_skipped("the Python of the judges (GRANGE_TEST_PYTHON)");
    };
    let folder = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Gzip(6), Compression::Zstd(3)] {
        let path = folder.path().join(format!("judged{}", compression.suffix()));
        let records = write(&path, compression);
        for (name, script) in [("warcio", WARCIO), ("FastWARC", FASTWARC)] {
            if name == "warcio" && matches!(compression, Compression::Zstd(_)) {
                continue; // It reads no zstd.
            }
            let output = Command::new(&python).args(["-c", script]).arg(&path).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name} on {compression:?}: {error}");
            assert_eq!(
                String::from_utf8_lossy(&output.stdout).trim(),
                records.to_string(),
                "{name} {compression:?}"
            );
        }
        if !matches!(compression, Compression::Zstd(_)) {
            let check =
                Command::new(&python).args(["-m", "warcio.cli", "check", "-v"]).arg(&path).output().unwrap();
            let text = String::from_utf8_lossy(&check.stdout).into_owned();
            assert!(check.status.success() && !text.contains("failed"), "warcio check: {text}");
        }
    }
}
