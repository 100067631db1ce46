//! What the three dialects answer, parameter by parameter (access.md 6.1).

use std::sync::Arc;

use crate::dialect::{Failure, Params, PostFailure, ia, outback, outback_post, pywb, xml};
use crate::{Batch, Capture, Index, Settings, Snapshot, Stamp};

const LINES: &str = r#"com,example)/ 20140102030405 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "length": "100", "offset": "0", "filename": "a.warc.gz"}
com,example)/ 20140105000000 {"url": "http://example.com/", "mime": "warc/revisit", "status": "200", "digest": "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "length": "50", "offset": "200", "filename": "a.warc.gz"}
com,example)/ 20150101000000 {"url": "https://www.example.com/", "mime": "text/html", "status": "301", "digest": "sha1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB", "redirect": "http://example.com/", "length": "60", "offset": "300", "filename": "b.warc.gz"}
com,example)/ 20150101000000 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB", "length": "61", "offset": "400", "filename": "b.warc.gz"}
com,example)/a.png 20140301000000 {"url": "http://example.com/a.png", "mime": "image/png", "status": "200", "digest": "sha1:CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC", "length": "70", "offset": "500", "filename": "a.warc.gz"}
com,example)/a/b 20140302000000 {"url": "http://example.com/A/b", "mime": "text/html", "status": "404", "length": "80", "offset": "600", "filename": "a.warc.gz"}
com,example,shop)/ 20140401000000 {"url": "http://shop.example.com/", "mime": "text/html", "status": "200", "digest": "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "length": "90", "offset": "700", "filename": "a.warc.gz"}
com,examplf)/ 20140501000000 {"url": "http://examplf.com/", "mime": "text/html", "status": "200", "digest": "sha1:DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD", "length": "95", "offset": "800", "filename": "a.warc.gz"}
"#;

type Dialect = fn(&Snapshot, &str) -> Result<String, Failure>;

fn as_ia(snapshot: &Snapshot, query: &str) -> Result<String, Failure> {
    let mut out = Vec::new();
    ia(snapshot, &Params::parse(query), &|_| true, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn as_pywb(snapshot: &Snapshot, query: &str) -> Result<String, Failure> {
    let mut out = Vec::new();
    pywb(snapshot, &Params::parse(query), "http://w/coll/", &|_| true, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn as_outback(snapshot: &Snapshot, query: &str) -> Result<String, Failure> {
    let mut out = Vec::new();
    outback(snapshot, &Params::parse(query), &|_| true, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn check(dialect: Dialect, table: &[(&str, &[&str])]) {
    let (_folder, snapshot) = super::loaded(LINES);
    for (query, expected) in table {
        let answer = dialect(&snapshot, query).unwrap_or_else(|error| panic!("{query}: {error}"));
        assert_eq!(answer.lines().collect::<Vec<_>>(), *expected, "{query}");
    }
}

#[test]
fn the_internet_archives_dialect() {
    check(
        as_ia,
        &[
            (
                "url=example.com&limit=1",
                &[
                    "com,example)/ 20140102030405 http://example.com/ text/html 200 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA 100",
                ],
            ),
            // Which keys.
            (
                "url=example.com&fl=timestamp,length",
                &["20140102030405 100", "20140105000000 50", "20150101000000 60", "20150101000000 61"],
            ),
            ("url=example.com/a*&fl=original", &["http://example.com/a.png", "http://example.com/A/b"]),
            ("url=example.com/a&matchType=prefix&fl=length", &["70", "80"]),
            ("url=example.com&matchType=host&fl=length", &["100", "50", "60", "61", "70", "80"]),
            ("url=*.example.com&fl=length", &["100", "50", "60", "61", "70", "80", "90"]),
            ("url=example.com&matchType=domain&fl=length&filter=statuscode:404", &["80"]),
            ("url=nothing.example", &[]),
            // Which times, both ends included, short ones meaning the whole span.
            ("url=example.com&from=2014&to=2014&fl=length", &["100", "50"]),
            ("url=example.com&from=20150101000000&fl=length", &["60", "61"]),
            ("url=example.com&to=201401&fl=length", &["100", "50"]),
            // Order and number.
            ("url=example.com&limit=2&offset=1&fl=length", &["50", "60"]),
            ("url=example.com&limit=-2&fl=length", &["60", "61"]),
            ("url=example.com&limit=1&fastLatest=true&fl=length", &["61"]),
            ("url=example.com&sort=reverse&fl=length", &["61", "60", "50", "100"]),
            ("url=example.com&sort=closest&closest=20140104&fl=length", &["50", "100", "60", "61"]),
            // A filter is a pattern for the whole field; without a field, for the whole line.
            ("url=example.com&filter=statuscode:30.&fl=length", &["60"]),
            ("url=example.com&filter=statuscode:30&fl=length", &[]),
            ("url=example.com&filter=!statuscode:200&fl=length", &["60"]),
            ("url=*.example.com&filter=mimetype:text/.*&filter=!statuscode:200&fl=length", &["60", "80"]),
            ("url=example.com&filter=.*www.*&fl=length", &["60"]),
            // Collapsing, with counters.
            ("url=example.com&collapse=timestamp:4&fl=length", &["100", "60"]),
            ("url=example.com&collapse=digest&fl=length", &["100", "60"]),
            ("url=*.example.com&collapse=urlkey&fl=length", &["100", "70", "80", "90"]),
            ("url=*.example.com&collapse=urlkey&collapse=statuscode&fl=length", &["100", "80", "90"]),
            (
                "url=example.com&collapse=timestamp:4&showSkipCount=true&lastSkipTimestamp=true&fl=length",
                &["100 1 20140105000000", "60 1 20150101000000"],
            ),
            (
                "url=example.com&collapse=timestamp:4&showGroupCount=true&showUniqCount=true&fl=length",
                &["100 2 1", "60 2 1"],
            ),
            ("url=example.com&showDupeCount=true&fl=length", &["100 0", "50 1", "60 0", "61 1"]),
            ("url=example.com&collapse=timestamp:4&limit=-1&fl=length", &["60"]),
            // Pages.
            ("url=*.example.com&showNumPages=true", &["1"]),
            ("url=*.example.com&page=0&fl=length", &["100", "50", "60", "61", "70", "80", "90"]),
            ("url=*.example.com&page=1&fl=length", &[]),
            ("url=*.example.com&showPagedIndex=true", &["com,example)/ 20140102030405\trows\t0\t7\t1"]),
            // JSON with a row of names.
            (
                "url=example.com&from=2015&fl=timestamp,digest&output=json",
                &[
                    r#"[["timestamp","digest"],"#,
                    r#"["20150101000000","BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"],"#,
                    r#"["20150101000000","BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"]]"#,
                ],
            ),
            ("url=nothing.example&fl=urlkey&output=json", &[r#"[["urlkey"]]"#]),
            ("url=example.com/a/b&fl=digest,length", &["- 80"]),
        ],
    );
}

#[test]
fn pywbs_dialect() {
    check(
        as_pywb,
        &[
            (
                "url=example.com&limit=1",
                &[
                    r#"com,example)/ 20140102030405 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "length": "100", "offset": "0", "filename": "a.warc.gz"}"#,
                ],
            ),
            (
                "url=example.com&limit=1&output=json&fields=urlkey,timestamp,status",
                &[r#"{"urlkey": "com,example)/", "timestamp": "20140102030405", "status": "200"}"#],
            ),
            ("url=example.com&fl=length&output=text", &["100", "50", "60", "61"]),
            ("url=*.example.com&fl=length&output=text", &["100", "50", "60", "61", "70", "80", "90"]),
            ("url=example.com/*&fl=length&output=text", &["100", "50", "60", "61", "70", "80"]),
            // A filter is a part of the field; `=` the whole; `~` a pattern from its beginning.
            ("url=example.com&filter=status:30&fl=length&output=text", &["60"]),
            ("url=example.com&filter==status:30&fl=length&output=text", &[]),
            ("url=example.com&filter=!=status:200&fl=length&output=text", &["60"]),
            ("url=example.com&filter=~status:[3-5]&fl=length&output=text", &["60"]),
            ("url=example.com&filter=~status:01&fl=length&output=text", &[]),
            ("url=example.com&filter=!~status:[3-5]&fl=length&output=text", &["100", "50", "61"]),
            ("url=example.com&filter=mime:revisit&fl=length&output=text", &["50"]),
            ("url=example.com&from=2015&to=2015&fl=length&output=text", &["60", "61"]),
            ("url=example.com&sort=reverse&limit=2&fl=length&output=text", &["61", "60"]),
            ("url=example.com&closest=20140104&limit=3&fl=length&output=text", &["50", "100", "60"]),
            ("url=example.com&collapseTime=4&fl=length&output=text", &["100", "60", "61"]),
            (
                "url=example.com&from=201401050&to=201402&resolveRevisits=true&output=json&fields=mime,orig.length,orig.offset,orig.filename",
                &[
                    r#"{"mime": "text/html", "orig.length": "100", "orig.offset": "0", "orig.filename": "a.warc.gz"}"#,
                ],
            ),
            (
                "url=example.com&to=20140103&resolveRevisits=true&output=json&fields=mime,orig.filename",
                &[r#"{"mime": "text/html", "orig.filename": "-"}"#],
            ),
            ("url=*.example.com&showNumPages=true", &[r#"{"blocks": 1, "pages": 1, "pageSize": 10}"#]),
            (
                "url=example.com&from=2014&to=20140103&output=link",
                &[
                    r#"<example.com>; rel="original","#,
                    r#"<http://w/coll/20140102030405/http://example.com/>; rel="first memento"; datetime="Thu, 02 Jan 2014 03:04:05 GMT","#,
                ],
            ),
        ],
    );
}

#[test]
fn outbackcdxs_dialect() {
    check(
        as_outback,
        &[
            (
                "url=example.com&limit=1",
                &[
                    "com,example)/ 20140102030405 http://example.com/ text/html 200 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA - - 100 0 a.warc.gz",
                ],
            ),
            ("urlkey=com,example)/&fl=length", &["100", "50", "60", "61"]),
            ("url=example.com&matchType=prefix&fl=length", &["100", "50", "60", "61", "70", "80"]),
            ("url=*.example.com&fl=length", &["100", "50", "60", "61", "70", "80", "90"]),
            ("url=shop.example.com&matchType=range&fl=length", &["90", "95"]),
            ("url=example.com&from=2015&fl=length", &["60", "61"]),
            ("url=example.com&sort=reverse&limit=2&fl=length", &["61", "60"]),
            ("url=example.com&sort=closest&closest=20140104000000&fl=length", &["50", "100", "60", "61"]),
            // A filter is a pattern for the whole field; `~` a part of it.
            ("url=example.com&filter=status:30.&fl=length", &["60"]),
            ("url=example.com&filter=statuscode:30&fl=length", &[]),
            ("url=example.com&filter=~statuscode:30&fl=length", &["60"]),
            ("url=example.com&filter=!status:200&fl=length", &["60"]),
            ("url=example.com&filter=~!mime:revisit&fl=length", &["100", "60", "61"]),
            ("url=example.com&collapse=timestamp:4&fl=length", &["100", "60"]),
            ("url=example.com&collapseToFirst=digest&fl=length", &["100", "60"]),
            ("url=example.com&collapseToLast=timestamp:4&fl=length", &["50", "61"]),
            ("url=example.com&collapseToLast=timestamp:4&fl=length&limit=1", &["50"]),
            ("url=example.com&omitSelfRedirects=true&fl=length", &["100", "50", "61"]),
            (
                "url=example.com&fl=timestamp,redirecturl&filter=status:301",
                &["20150101000000 http://example.com/"],
            ),
            (
                "url=example.com&from=2015&fl=length&output=json",
                &[r#"[["length"],"#, r#"["60"],"#, r#"["61"]]"#],
            ),
            (
                "url=example.com&from=2015&fl=length,robotflags&output=jsondict",
                &[r#"[{"length":"60"},"#, r#"{"length":"61"}]"#],
            ),
            ("url=nothing.example&output=jsondict", &["[]"]),
            ("url=nothing.example&fl=urlkey&output=json", &[r#"[["urlkey"]]"#]),
            (
                "url=example.com/a.png&output=cdxj",
                &[
                    r#"com,example)/a.png 20140301000000 {"url": "http://example.com/a.png", "mime": "image/png", "status": "200", "digest": "sha1:CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC", "length": "70", "offset": "500", "filename": "a.warc.gz"}"#,
                ],
            ),
        ],
    );
}

#[test]
fn what_cannot_be_answered_is_refused_before_anything_is_written() {
    let (_folder, snapshot) = super::loaded(LINES);
    let cases: [(Dialect, &str); 12] = [
        (as_ia, "limit=1"),
        (as_ia, "url=example.com&from=soon"),
        (as_ia, "url=example.com&limit=few"),
        (as_ia, "url=example.com&filter=statuscode:("),
        (as_ia, "url=example.com&resumeKey=nonsense"),
        (as_ia, "url=example.com&collapse=timestamp:x"),
        (as_ia, "url=example.com&matchType=near"),
        (as_pywb, "url=example.com&output=xml"),
        (as_outback, "url=example.com&sort=closest"),
        (as_outback, "url=*.example.com&from=2015"),
        (as_outback, "url=*.example.com&sort=reverse"),
        (as_outback, "url=example.com&closest=2015&from=2014"),
    ];
    for (dialect, query) in cases {
        assert!(matches!(dialect(&snapshot, query), Err(Failure::Request(_))), "{query}");
    }
}

#[test]
fn resuming_tells_every_capture_once_while_the_index_changes() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    index.load(LINES.as_bytes(), None).unwrap();
    let (mut told, mut resume) = (Vec::new(), String::new());
    for round in 0.. {
        let query = format!("url=*.example.com&limit=2&showResumeKey=true&fl=length{resume}");
        let answer = as_ia(&index.snapshot(), &query).unwrap();
        let (rows, key) =
            answer.split_once("\n\n").map_or((answer.as_str(), None), |(rows, key)| (rows, Some(key)));
        told.extend(rows.lines().map(ToOwned::to_owned));
        // Captures before and behind the place reached, and a merge.
        let mut batch = Batch::new();
        for (surt, length) in [("com,example)/".to_owned(), 1), (format!("com,example,zoo)/{round}"), 2)] {
            let (time, file) = (Stamp::parse("20130101000000").unwrap(), format!("late-{round}"));
            batch.add(&Capture { surt, time, length: Some(length), file, ..Capture::default() });
        }
        if round < 3 {
            index.commit(batch).unwrap();
            index.merge_all().unwrap();
        }
        let Some(key) = key else { break };
        resume = format!("&resumeKey={}", key.trim());
    }
    let old: Vec<&str> = told.iter().map(String::as_str).filter(|length| length.len() > 1).collect();
    assert_eq!(old, ["100", "50", "60", "61", "70", "80", "90"]);
    assert_eq!(told.iter().filter(|length| *length == "2").count(), 3, "added behind the place: told");
    assert_eq!(told.iter().filter(|length| *length == "1").count(), 0, "added before it: not told");
}

/// Keys and their URLs: lines are listed under the keys of these.
const PAGES: [(&str, &str); 3] = [
    ("com,example)/", "http://example.com/"),
    ("com,example)/a", "http://example.com/a"),
    ("com,example,shop)/", "http://shop.example.com/"),
];

/// All rows that pages of `limit` give together.
fn paged(snapshot: &Snapshot, query: &str, limit: usize) -> Vec<String> {
    let (mut told, mut resume) = (Vec::new(), String::new());
    loop {
        let answer = as_ia(snapshot, &format!("{query}&limit={limit}&showResumeKey=true{resume}")).unwrap();
        let (rows, key) =
            answer.split_once("\n\n").map_or((answer.as_str(), None), |(rows, key)| (rows, Some(key)));
        told.extend(rows.lines().map(ToOwned::to_owned));
        let Some(key) = key else { return told };
        let next = format!("&resumeKey={}", key.trim());
        // A key that leads nowhere new would page for ever.
        assert!(next != resume && told.len() < 1000, "{query} by {limit}: {next} after {resume}");
        resume = next;
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]

    /// The model of paging is the answer without pages.
    #[test]
    fn pages_together_are_the_whole_answer(
        rows in proptest::collection::vec((0_usize..3, 0_u32..20, 0_usize..3, 0_usize..2), 0..16),
        limit in 1_usize..5,
    ) {
        let mut lines: Vec<String> = rows
            .iter()
            .enumerate()
            .map(|(offset, (url, time, digest, status))| {
                let (key, url) = PAGES[*url];
                let (digest, status) = (["A", "B", "C"][*digest].repeat(32), [200, 404][*status]);
                format!(
                    "{key} {} {{\"url\": \"{url}\", \"mime\": \"text/html\", \"status\": \"{status}\", \
                     \"digest\": \"sha1:{digest}\", \"length\": \"{offset}\", \"offset\": \"{offset}\", \
                     \"filename\": \"a.warc.gz\"}}\n",
                    // Midnights and noons.
                    20_140_101_000_000_u64 + u64::from(*time / 2) * 1_000_000 + u64::from(*time % 2) * 120_000
                )
            })
            .collect();
        lines.sort();
        let (_folder, snapshot) = super::loaded(&lines.concat());
        for what in ["url=*.example.com", "url=example.com", "url=example.com&sort=reverse", "url=example.com&closest=20140105",
            "url=*.example.com&filter=statuscode:200"] {
            for how in ["", "&collapse=digest", "&collapse=timestamp:8", "&collapse=urlkey", "&collapse=urlkey:10",
                "&collapse=statuscode&collapse=digest", "&collapse=digest&showSkipCount=true&lastSkipTimestamp=true",
                "&collapse=timestamp:6&showGroupCount=true&showUniqCount=true", "&showDupeCount=true",
                "&collapse=statuscode&showDupeCount=true"] {
                let query = format!("{what}{how}");
                let whole: Vec<String> =
                    as_ia(&snapshot, &query).unwrap().lines().map(ToOwned::to_owned).collect();
                proptest::prop_assert_eq!(paged(&snapshot, &query, limit), whole, "{} by {}", query, limit);
            }
        }
    }
}

/// Rows of three pages of one block, and one of a fourth; by their offsets all differ.
fn many_lines() -> String {
    let mut lines: Vec<String> = (0..9001_u64)
        .map(|offset| {
            let (key, url) = PAGES[offset as usize % 3];
            let (digest, status) =
                (["A", "B"][offset as usize / 1000 % 2].repeat(32), [200, 404][offset as usize % 7 / 5]);
            format!(
                "{key} {} {{\"url\": \"{url}\", \"mime\": \"text/html\", \"status\": \"{status}\", \
                 \"digest\": \"sha1:{digest}\", \"length\": \"{offset}\", \"offset\": \"{offset}\", \
                 \"filename\": \"a.warc.gz\"}}\n",
                20_140_101_000_000 + offset / 2000 * 1_000_000 + offset / 60 % 24 * 10_000 + offset % 60
            )
        })
        .collect();
    lines.sort();
    lines.concat()
}

/// The model of numbered pages is the answer without pages; there are no fewer of them than it takes, and behind the last one
/// is nothing.
#[test]
fn numbered_pages_together_are_the_whole_answer() {
    let (_folder, snapshot) = super::loaded(&many_lines());
    let count_ia = |text: &str| text.trim().parse::<usize>().unwrap();
    let count_pywb = |text: &str| {
        let counted: serde_json::Value = serde_json::from_str(text).unwrap();
        counted["pages"].as_u64().unwrap() as usize
    };
    let whats = ["url=*.example.com", "url=example.com&matchType=prefix&from=20140102&to=2014"];
    let ia: [&str; 8] = [
        "",
        "&sort=reverse",
        "&filter=statuscode:200",
        "&collapse=timestamp:10",
        "&collapse=digest&showSkipCount=true&lastSkipTimestamp=true",
        "&showDupeCount=true",
        "&collapse=timestamp:10&showGroupCount=true&showUniqCount=true",
        "&collapse=statuscode&showDupeCount=true",
    ];
    let pywb = ["", "&sort=reverse", "&filter==status:404", "&collapseTime=10", "&resolveRevisits=true"];
    type Count<'c> = &'c dyn Fn(&str) -> usize;
    let dialects: [(&str, Dialect, Count<'_>, &[&str]); 2] =
        [("ia", as_ia, &count_ia, &ia), ("pywb", as_pywb, &count_pywb, &pywb)];
    let mut asked = 0;
    for (name, dialect, count, hows) in dialects {
        for (what, how) in whats.into_iter().flat_map(|what| hows.iter().map(move |how| (what, *how))) {
            let query = format!("{what}{how}");
            let whole = dialect(&snapshot, &query).unwrap();
            for size in ["&pageSize=1", "&pageSize=2"] {
                let ask = |more: &str| dialect(&snapshot, &format!("{query}{size}{more}")).unwrap();
                let pages = count(&ask("&showNumPages=true"));
                let together: String = (0..pages).map(|page| ask(&format!("&page={page}"))).collect();
                assert!(together == whole, "{name} {query}{size}: {pages} pages");
                assert_eq!(ask(&format!("&page={pages}")), "", "{name} {query}{size}");
                asked += pages;
            }
        }
    }
    assert!(asked > 60, "{asked}");
}

#[test]
fn the_last_captures_behind_a_place_are_the_last_of_all() {
    let (_folder, snapshot) = super::loaded(LINES);
    let first = as_ia(&snapshot, "url=example.com&limit=1&showResumeKey=true&fl=length").unwrap();
    let key = first.lines().last().unwrap();
    let last = as_ia(&snapshot, &format!("url=example.com&limit=-2&fl=length&resumeKey={key}")).unwrap();
    assert_eq!(last, "60\n61\n");
    let last = as_ia(&snapshot, &format!("url=example.com&limit=-9&fl=length&resumeKey={key}")).unwrap();
    assert_eq!(last, "50\n60\n61\n");
}

#[test]
fn posted_lines_are_added_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    let lines = " CDX N b a m s k r M S V g\n\
        - 20140102030405 http://example.com/ text/html 200 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA - - 100 0 a.warc.gz\n\
        @alias http://a/ http://b/\n\
        - 20150102030405 http://example.com/ text/html 200 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA - - 101 1 a.warc.gz\n";
    let failed = outback_post(lines.as_bytes(), &index, false, false).unwrap_err();
    assert!(matches!(failed, PostFailure::Line { number: 3 }), "{failed}");
    assert_eq!(as_outback(&index.snapshot(), "url=example.com&fl=length").unwrap(), "");
    let posted = outback_post(lines.as_bytes(), &index, false, true).unwrap();
    assert_eq!((posted.captures, posted.bad_count), (2, 1));
    assert_eq!(as_outback(&index.snapshot(), "url=example.com&fl=length").unwrap(), "100\n101\n");
    outback_post(lines.lines().nth(1).unwrap().as_bytes(), &index, true, false).unwrap();
    assert_eq!(as_outback(&index.snapshot(), "url=example.com&fl=length").unwrap(), "101\n");
}

#[test]
fn openwaybacks_xml() {
    let (_folder, snapshot) = super::loaded(LINES);
    let ask = |query: &str| {
        let mut out = Vec::new();
        xml(&snapshot, &Params::parse(query), &|_| true, &mut out).map(|_| String::from_utf8(out).unwrap())
    };
    let of = |text: &str, name: &str| -> Vec<String> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let found = text.split(&open).skip(1).filter_map(|rest| rest.split(&close).next());
        found.map(ToOwned::to_owned).collect()
    };
    let captures = ask("q=type:urlquery+url:http%253A%252F%252Fexample.com%252F+limit:2+offset:1").unwrap();
    assert_eq!(of(&captures, "capturedate"), ["20140105000000", "20150101000000"]);
    assert_eq!(of(&captures, "redirecturl"), ["-", "http://example.com/"]);
    let urls = ask("q=type:prefixquery+url:example.com/a").unwrap();
    assert_eq!(of(&urls, "originalurl"), ["http://example.com/a.png", "http://example.com/A/b"]);
    assert_eq!(of(&urls, "numcaptures"), ["1", "1"]);
    let urls = ask("q=type:prefixquery+url:example.com/+limit:1").unwrap();
    assert_eq!(
        (of(&urls, "numcaptures"), of(&urls, "lastcapturets")),
        (vec!["4".into()], vec!["20150101000000".into()])
    );
    assert!(matches!(ask("q=type:urlquery"), Err(Failure::Request(_))));
    assert!(matches!(ask("q=url:a.com+limit:x"), Err(Failure::Request(_))));
}

#[test]
fn an_answer_beyond_its_rows_is_unfinished_and_not_shortened() {
    let (_folder, snapshot) = super::loaded(LINES);
    let ends = "url=example.com&to=2014&filter=status:404";
    let begins = "url=example.com&from=2015&sort=reverse&filter=status:404";
    // Of one URL nothing is read behind the row that is out of time.
    for (query, most, finished) in [
        ("url=example.com&filter=status:404", 3, false),
        ("url=example.com&filter=status:404", 4, true),
        (ends, 1, false),
        (ends, 2, true),
        (begins, 1, false),
        (begins, 2, true),
    ] {
        let mut params = Params::parse(query);
        params.rows_most = Some(most);
        let answer = pywb(&snapshot, &params, "", &|_| true, &mut Vec::new());
        match answer {
            Ok(_) => assert!(finished),
            Err(Failure::Index(crate::Error::Unfinished { .. })) => assert!(!finished),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn what_is_not_visible_is_in_no_answer_and_no_count() {
    let (_folder, snapshot): (_, Arc<Snapshot>) = super::loaded(LINES);
    let mut out = Vec::new();
    let params = Params::parse("url=example.com&limit=1&showDupeCount=true&fl=length");
    ia(&snapshot, &params, &|view| view.length() != Some(100), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "50 0\n");
}

/// Most lines are written field by field, others are put together first; nobody can tell which from the line.
#[test]
fn pywbs_lines_are_the_same_however_they_are_written() {
    let (_folder, snapshot) = super::loaded(LINES);
    let all = "fields=urlkey,timestamp,url,mime,status,digest,redirect,length,offset,filename";
    let inner = "fields=url,mime,status,digest,redirect,length,offset,filename";
    for (output, named) in [("json", all), ("cdxj", inner)] {
        let query = format!("url=*.example.com&filter=!=status:301&output={output}");
        let plain = as_pywb(&snapshot, &query).unwrap();
        assert_eq!(plain, as_pywb(&snapshot, &format!("{query}&{named}")).unwrap(), "{output}");
        assert_eq!(plain.lines().count(), 6, "{plain}");
    }
}
