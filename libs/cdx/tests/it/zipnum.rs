//! Clusters written and searched.

use cdx::zipnum::{Cluster, Flavour, Location, Summary, ZipNumOptions, ZipNumWriter};
use urlkey::KeyRange;

fn lines(count: usize) -> Vec<String> {
    // Five captures of each key, so that a key runs over the border of blocks.
    (0..count)
        .map(|n| {
            format!("com,example)/{:05} {:014} {{\"offset\": \"{n}\"}}", n / 5, 20_260_101_000_000 + n as u64)
        })
        .collect()
}

fn write(dir: &std::path::Path, lines: &[String], options: ZipNumOptions) -> std::path::PathBuf {
    let data = std::fs::File::create(dir.join("index.cdx.gz")).unwrap();
    let summary = dir.join("index.idx");
    let mut writer = ZipNumWriter::new(data, std::fs::File::create(&summary).unwrap(), options);
    for line in lines {
        writer.push(line.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    summary
}

fn options(flavour: Flavour) -> ZipNumOptions {
    let name = if flavour == Flavour::Wacz { "index.cdx.gz" } else { "index" };
    ZipNumOptions { lines: 7, name: name.to_owned(), flavour, digest: true, ..ZipNumOptions::default() }
}

#[test]
fn both_kinds_of_cluster_give_every_range() {
    let lines = lines(200);
    for flavour in [Flavour::Classic, Flavour::Wacz] {
        let dir = tempfile::tempdir().unwrap();
        let cluster = Cluster::open(write(dir.path(), &lines, options(flavour))).unwrap();
        assert_eq!(cluster.summary().blocks.len(), 200usize.div_ceil(7));
        for (start, end) in [
            ("com,example)/00003", "com,example)/00003!"),
            ("com,example)/0001", "com,example)/0002"),
            ("a", "z"),
            ("d", "e"),
            ("a", "b"),
        ] {
            let range = KeyRange { start: start.to_owned(), end: end.to_owned() };
            let got: Vec<String> =
                cluster.lines_in(&range).map(|line| String::from_utf8(line.unwrap()).unwrap()).collect();
            let want: Vec<String> = lines.iter().filter(|line| range.contains(line)).cloned().collect();
            assert_eq!(got, want, "{flavour:?} {start}");
        }
    }
}

#[test]
fn summaries_look_as_they_should() {
    let dir = tempfile::tempdir().unwrap();
    let classic = std::fs::read_to_string(write(dir.path(), &lines(8), options(Flavour::Classic))).unwrap();
    let first: Vec<&str> = classic.lines().next().unwrap().split('\t').collect();
    assert_eq!(
        (first[0], first[1], first[2], first[4]),
        ("com,example)/00000 20260101000000", "index", "0", "1")
    );
    let wacz = std::fs::read_to_string(write(dir.path(), &lines(8), options(Flavour::Wacz))).unwrap();
    let mut wacz = wacz.lines();
    assert_eq!(wacz.next(), Some(r#"!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}"#));
    let first = wacz.next().unwrap();
    assert!(
        first.starts_with(r#"com,example)/00000 20260101000000 {"offset": 0, "length": "#)
            && first.contains("sha256:"),
        "{first}"
    );
}

#[test]
fn bad_summary_lines_are_counted() {
    let text = "a 1\tpart\t0\t10\t1\nrubbish\nb 1\tpart\tx\t10\t2\nc 1\tpart\t10\t10\t3\n";
    let summary = Summary::read(text.as_bytes()).unwrap();
    assert_eq!((summary.blocks.len(), summary.bad_lines), (2, vec![2, 3]));
}

#[test]
fn pages_count_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Cluster::open(write(dir.path(), &lines(70), options(Flavour::Classic))).unwrap();
    let all = KeyRange { start: "a".to_owned(), end: "z".to_owned() };
    assert_eq!(cluster.summary().pages(&all, 4), 3);
    assert_eq!(cluster.summary().pages(&KeyRange { start: "x".to_owned(), end: "y".to_owned() }, 4), 1);
}

#[test]
fn a_missing_data_file_is_an_error_and_a_loc_file_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let summary = write(dir.path(), &lines(8), options(Flavour::Classic));
    std::fs::rename(dir.path().join("index.cdx.gz"), dir.path().join("moved.gz")).unwrap();
    let all = KeyRange { start: "a".to_owned(), end: "z".to_owned() };
    assert!(Cluster::open(&summary).unwrap().lines_in(&all).next().unwrap().is_err());
    std::fs::write(dir.path().join("index.loc"), "index\tgone.gz\tmoved.gz\n").unwrap();
    assert_eq!(Cluster::open(&summary).unwrap().lines_in(&all).count(), 8);
    assert!(Location::dir(dir.path()).find("index").is_none());
}
