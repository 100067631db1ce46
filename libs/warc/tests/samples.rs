//! Reads every sample of the shared collection and compares with `expect/samples.tsv`.
//!
//! The samples are foreign and stay outside the repository; without them the test says so and passes.
//! `UPDATE_EXPECT=1` rewrites the numbers and keeps the remarks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use warc::{Kind, Level, Problem, Reader};

#[path = "../../skipped.rs"]
mod skipped;

const EXPECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/expect/samples.tsv");

fn samples() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/warc-samples");
    folder.join("README.tsv").exists().then_some(folder)
}

/// What reading a file gave: the number of records and of problems of each kind.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    records: u64,
    problems: BTreeMap<&'static str, u64>,
}

impl Outcome {
    fn count(&mut self, problems: &[Problem], counts: impl Fn(Kind) -> bool) {
        for problem in problems.iter().filter(|problem| counts(problem.kind)) {
            *self.problems.entry(problem.kind.code()).or_default() += 1;
        }
    }

    fn kinds(&self) -> String {
        let list: Vec<_> = self.problems.iter().map(|(code, count)| format!("{code}={count}")).collect();
        if list.is_empty() { "-".to_owned() } else { list.join(",") }
    }
}

/// Reads a file twice: once for the digests, once for the content behind the codings.
fn read(path: &Path) -> io::Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut reader = Reader::open(path)?;
    let mut places = Vec::new();
    while let Some(mut record) = reader.next()? {
        record.http()?;
        record.digest_check()?;
        record.finish()?;
        outcome.records += 1;
        outcome.count(record.problems(), |_| true);
        places.push((record.place(), record.target_uri().map(<[u8]>::to_vec)));
    }
    outcome.count(reader.problems(), |_| true);

    let codings = [
        Kind::NotChunked,
        Kind::BrokenChunk,
        Kind::MissingLastChunk,
        Kind::EncodingLie,
        Kind::EncodingBroken,
        Kind::UnknownEncoding,
    ];
    let mut reader = Reader::open(path)?;
    while let Some(mut record) = reader.next()? {
        io::copy(&mut record.content()?, &mut io::sink())?;
        outcome.count(record.problems(), |kind| codings.contains(&kind));
    }

    // Every record that can be reached by its offset is found there.
    for (place, uri) in places.iter().filter(|(place, _)| place.is_seekable()) {
        let mut reader = Reader::open_at(path, place.offset)?;
        let record = reader.next()?.unwrap_or_else(|| panic!("{}: nothing at {place:?}", path.display()));
        assert_eq!(record.target_uri(), uri.as_deref(), "{}: {place:?}", path.display());
        assert_eq!(record.place().offset, place.offset);
    }
    Ok(outcome)
}

#[test]
fn every_sample_reads_as_expected() {
    let Some(folder) = samples() else {
        return skipped::note_skipped("the corpus ../shared/warc-samples");
    };
    let table = fs::read_to_string(EXPECT).unwrap_or_default();
    let expected: BTreeMap<&str, (&str, &str, &str)> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut fields = line.split('\t');
            Some((fields.next()?, (fields.next()?, fields.next()?, fields.next().unwrap_or_default())))
        })
        .collect();

    let readme = fs::read_to_string(folder.join("README.tsv")).unwrap();
    let mut fresh = String::from(
        "# Every sample: records, problems (kind=count), and why the number of records differs from what\n\
         # warcio 1.8.1 (w) and FastWARC 1.1.0 (f) read, where it does.\n",
    );
    let mut wrong = String::new();
    let mut files = 0;
    for line in readme.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let name = fields[0];
        if ![".warc", ".arc"].iter().any(|kind| name.contains(kind)) || name.ends_with("cdx") {
            continue;
        }
        files += 1;
        let outcome = read(&folder.join(name)).unwrap();
        let (records, kinds) = (outcome.records.to_string(), outcome.kinds());
        let (old_records, old_kinds, remark) = expected.get(name).copied().unwrap_or(("?", "?", ""));
        if (old_records, old_kinds) != (&records, &kinds) {
            writeln!(wrong, "{name}: expected {old_records} {old_kinds}, got {records} {kinds}").unwrap();
        }
        let (warcio, fastwarc) = (fields[6], fields[8]);
        let differs = |count: &str| count != "-" && count != records;
        // FastWARC reads no ARC; its count says nothing there.
        let differs = differs(warcio) || differs(fastwarc);
        if differs && remark.is_empty() {
            writeln!(wrong, "{name}: {records} records, w={warcio} f={fastwarc}, and no remark says why")
                .unwrap();
        }
        if !differs && !remark.is_empty() {
            writeln!(wrong, "{name}: the remark is out of date").unwrap();
        }
        writeln!(fresh, "{}", format!("{name}\t{records}\t{kinds}\t{remark}").trim_end()).unwrap();
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(EXPECT, fresh).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(files, expected.len());
}

/// What came without a content encoding is in none, whatever a head might say.
#[test]
fn no_plain_body_of_the_samples_is_taken_for_an_encoded_one() {
    use std::io::Read as _;
    let Some(folder) = samples() else {
        return skipped::note_skipped("the corpus ../shared/warc-samples");
    };
    // More of a body is not looked at either way.
    const LOOKED_AT: u64 = 64 << 10;
    let readme = fs::read_to_string(folder.join("README.tsv")).unwrap();
    let (mut bodies, mut wrong) = (0, String::new());
    for name in readme.lines().skip(1).filter_map(|line| line.split('\t').next()) {
        if ![".warc", ".arc"].iter().any(|kind| name.contains(kind)) || name.ends_with("cdx") {
            continue;
        }
        let mut reader = Reader::open(folder.join(name)).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            if record.http().unwrap().is_some_and(|head| head.get("Content-Encoding").is_some()) {
                continue;
            }
            let uri = String::from_utf8_lossy(record.target_uri().unwrap_or_default()).into_owned();
            let mut body = Vec::new();
            record.payload().unwrap().take(LOOKED_AT).read_to_end(&mut body).unwrap();
            let whole = (body.len() as u64) < LOOKED_AT;
            bodies += 1;
            for coding in ["br", "deflate"] {
                if warc::encoding_form(coding.as_bytes(), &body, whole).is_some() {
                    writeln!(wrong, "{name} {uri}: {coding}, {} bytes", body.len()).unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(bodies > 1000, "{bodies}");
}

/// Sound files that every tool reads the same must not be accused of damage.
#[test]
fn sound_samples_show_no_damage() {
    let Some(folder) = samples() else {
        return skipped::note_skipped("the corpus ../shared/warc-samples");
    };
    for name in [
        "pywb/iana.warc.gz",
        "warcio/example.warc",
        "warcio/example.warc.gz",
        "chatnoir-resiliparse/warcfile.warc.gz",
        "jwat/IAH-20080430204825-00000-blackbook.arc.gz",
        "derived/baseline.warc.gz",
        "derived/dict-raw.warc.zst",
        "derived/v2.arc",
    ] {
        let mut reader = Reader::open(folder.join(name)).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            record.http().unwrap();
            record.finish().unwrap();
            let damage: Vec<_> =
                record.problems().iter().filter(|problem| problem.kind.level() == Level::Damage).collect();
            assert!(damage.is_empty(), "{name}: {damage:?}");
        }
        assert!(reader.problems().is_empty(), "{name}: {:?}", reader.problems());
    }
}
