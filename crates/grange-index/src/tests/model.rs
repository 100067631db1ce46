//! Random changes to an index and to a map: both must say the same.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tempfile::TempDir;

use crate::{Batch, Capture, Index, Position, Settings, Snapshot, Stamp};

#[derive(Debug, Clone)]
enum Act {
    Files(Vec<(u8, u8, Vec<Shot>)>),
    Loose(Vec<Shot>),
    Delete(Vec<Shot>),
    RemoveFile(u8),
    /// Lines under a job, also about captures that files themselves or lines of other jobs tell of.
    Lines(u8, Vec<Shot>),
    RemoveLines(u8),
    Flush,
    MergeStep,
    MergeAll,
    Reopen,
}

/// A capture of a small world, so that changes meet.
#[derive(Debug, Clone)]
struct Shot {
    page: u8,
    time: u8,
    offset: u8,
    file: u8,
    content: u8,
}

impl Shot {
    fn capture(&self) -> Capture {
        let page = ["", "a", "a/b", "a?b=1", "A", "zz"][self.page as usize % 6];
        let url = format!(
            "http{}://www.example{}.com/{page}",
            if self.content.is_multiple_of(2) { "s" } else { "" },
            self.page % 3
        );
        let time = format!("2026010203{:02}{:02}", self.time / 2, self.time % 2);
        let time = if self.time == 9 { "2026".to_owned() } else { time };
        let offset = if self.offset == 3 { 5_000_000_000 } else { u64::from(self.offset) * 100 };
        let mut extra = serde_json::Map::new();
        if self.content == 4 {
            extra.insert("method".to_owned(), "POST".into());
        }
        Capture {
            surt: urlkey::key(&url),
            time: Stamp::parse(&time).unwrap(),
            url: (self.content != 5).then_some(url),
            mime: Some(if self.content == 3 { "warc/revisit" } else { "text/html" }.to_owned()),
            status: (self.content != 2).then_some(200),
            digest: Some(digest(self.content)),
            length: Some(1000 + u64::from(self.content)),
            offset: Some(offset),
            file: name(self.file),
            job: None,
            extra,
        }
    }
}

fn digest(content: u8) -> String {
    // Revisits (3) repeat the content of 0.
    let content = if content == 3 { 0 } else { content };
    if content == 1 {
        "odd".to_owned()
    } else {
        format!("sha1:{}", ["A", "B", "C"][content as usize % 3].repeat(32))
    }
}

fn name(file: u8) -> String {
    format!("file-{file}.warc.gz")
}

type Key = (String, Stamp, String, u64);

/// A row as it was added.
#[derive(Debug)]
struct Added {
    capture: Capture,
    whole: bool,
}

#[derive(Debug, Default)]
struct Model {
    /// All that was added of each capture since it was deleted, oldest first.
    rows: BTreeMap<Key, Vec<Added>>,
    /// Names, and the jobs under which they came; whether as a file.
    files: BTreeMap<String, BTreeSet<(Option<String>, bool)>>,
}

fn key(capture: &Capture) -> Key {
    (capture.surt.clone(), capture.time, capture.file.clone(), capture.offset.unwrap_or_default())
}

impl Model {
    fn put(&mut self, capture: Capture, whole: bool) {
        self.files.entry(capture.file.clone()).or_default().insert((capture.job.clone(), whole));
        self.rows.entry(key(&capture)).or_default().push(Added { capture, whole });
    }

    /// The captures that are shown: lines give way to all others.
    fn shown(&self) -> Vec<&Capture> {
        let of = |rows: &'_ Vec<Added>| {
            let stays = rows.iter().rposition(|row| row.whole || row.capture.job.is_none());
            stays.or_else(|| rows.len().checked_sub(1))
        };
        self.rows.values().filter_map(|rows| of(rows).map(|at| &rows[at].capture)).collect()
    }

    fn is_whole(&self, name: &str) -> bool {
        self.files.get(name).is_some_and(|jobs| jobs.iter().any(|(_, whole)| *whole))
    }

    fn remove(&mut self, taken: impl Fn(&str, Option<&str>, bool) -> bool) {
        for rows in self.rows.values_mut() {
            rows.retain(|row| !taken(&row.capture.file, row.capture.job.as_deref(), row.whole));
        }
        for (name, jobs) in &mut self.files {
            jobs.retain(|(job, whole)| !taken(name, job.as_deref(), *whole));
        }
        self.files.retain(|_, jobs| !jobs.is_empty());
    }
}

fn settings() -> Settings {
    // Small enough that a few rows make several blocks.
    Settings { block_bytes: 64, head_bytes: 4096, ..Settings::default() }
}

fn act(index: &mut Index, model: &mut Model, folder: &TempDir, act: &Act) {
    match act {
        Act::Files(files) => {
            let mut batch = Batch::new();
            let mut known = Vec::new();
            for (file, job, shots) in files {
                let (name, job) = (name(*file), (*job > 0).then(|| format!("job-{job}")));
                let captures: Vec<Capture> = shots.iter().map(Shot::capture).collect();
                batch.add_file(&name, job.as_deref(), captures.clone());
                if model.is_whole(&name) {
                    known.push(name);
                    continue;
                }
                model.files.entry(name.clone()).or_default().insert((job.clone(), true));
                for mut capture in captures {
                    (capture.file, capture.job) = (name.clone(), job.clone());
                    model.put(capture, true);
                }
            }
            assert_eq!(index.commit(batch).unwrap().known, known);
        }
        Act::Loose(shots) => {
            let mut batch = Batch::new();
            for shot in shots {
                batch.add(&shot.capture());
                model.put(shot.capture(), false);
            }
            index.commit(batch).unwrap();
        }
        Act::Delete(shots) => {
            let mut batch = Batch::new();
            for shot in shots {
                batch.delete(&shot.capture());
                model.rows.remove(&key(&shot.capture()));
                model.files.entry(name(shot.file)).or_default().insert((None, false));
            }
            index.commit(batch).unwrap();
        }
        Act::RemoveFile(file) => {
            let name = name(*file);
            assert_eq!(index.remove_file(&name).unwrap(), model.files.contains_key(&name));
            model.remove(|file, _, _| file == name);
        }
        Act::Lines(job, shots) => {
            let mut lines = Vec::new();
            for shot in shots {
                let mut line = Vec::new();
                shot.capture().to_entry().write_cdxj(&mut line);
                let cdx::Line::Entry(entry, _) = cdx::parse_line(line.trim_ascii_end(), None) else {
                    panic!("{}", String::from_utf8_lossy(&line))
                };
                let capture = Capture { job: Some(format!("job-{job}")), ..Capture::from_entry(entry) };
                lines.extend(&line);
                model.put(capture, false);
            }
            index.load(&lines[..], Some(&format!("job-{job}"))).unwrap();
        }
        Act::RemoveLines(job) => {
            let job = format!("job-{job}");
            let expected =
                model.files.values().filter(|jobs| jobs.contains(&(Some(job.clone()), false))).count();
            assert_eq!(index.remove_lines(&job).unwrap(), expected as u64);
            model.remove(|_, of, whole| !whole && of == Some(&job));
        }
        Act::Flush => index.flush().unwrap(),
        Act::MergeStep => drop(index.merge_step().unwrap()),
        Act::MergeAll => index.merge_all().unwrap(),
        Act::Reopen => {
            let empty = tempfile::tempdir().unwrap();
            *index = Index::open(empty.path(), settings()).unwrap();
            *index = Index::open(folder.path(), settings()).unwrap();
        }
    }
}

fn check(snapshot: &Snapshot, model: &Model) {
    let expected = model.shown();
    let mut rows = Vec::new();
    let mut ascending = snapshot.ascending(Position::default(), None);
    while let Some(view) = ascending.next().unwrap() {
        rows.push(view.to_capture());
    }
    assert_eq!(rows.iter().collect::<Vec<_>>(), expected);

    let mut back = Vec::new();
    let mut descending = snapshot.descending(Vec::new(), Position::before("\u{7f}"));
    while let Some(view) = descending.next().unwrap() {
        back.push(view.to_capture());
    }
    back.reverse();
    assert_eq!(back.iter().collect::<Vec<_>>(), expected);

    for surt in (0..6).map(|page| Shot { page, time: 0, offset: 0, file: 0, content: 0 }.capture().surt) {
        let time = Stamp::parse("20260102030201").unwrap();
        let mut found = Vec::new();
        let mut captures = snapshot.captures(&surt, time).unwrap();
        while let Some(view) = captures.next().unwrap() {
            found.push(view.to_capture());
        }
        let of_page = || expected.iter().filter(|capture| capture.surt == surt);
        assert_eq!(
            found,
            of_page().filter(|capture| capture.time >= time).map(|c| (*c).clone()).collect::<Vec<_>>()
        );
        let distance = |capture: &Capture| (capture.time.seconds() - time.seconds()).abs();
        let closest = snapshot.closest(&surt, time).unwrap();
        assert_eq!(closest.as_ref().map(distance), of_page().map(|capture| distance(capture)).min());
    }

    for content in 0..6 {
        let digest = digest(content);
        let of_digest = || expected.iter().filter(|capture| capture.digest.as_ref() == Some(&digest));
        let found = snapshot.digest(&digest).unwrap();
        assert_eq!(found.as_ref().map_or(0, |found| found.count), of_digest().count() as u64);
        let order = |capture: &Capture| (capture.is_revisit(), capture.time);
        assert_eq!(found.map(|found| order(&found.first)), of_digest().map(|capture| order(capture)).min());
    }
}

fn shots() -> impl Strategy<Value = Vec<Shot>> {
    let wide = (0u8..6, 0u8..10, 0u8..4, 0u8..5, 0u8..6);
    // The same captures again and again.
    let narrow = (0u8..2, 0u8..2, 0u8..1, 0u8..2, 0u8..6);
    let shot = prop_oneof![wide, narrow].prop_map(|(page, time, offset, file, content)| Shot {
        page,
        time,
        offset,
        file,
        content,
    });
    prop::collection::vec(shot, 0..12)
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let one = prop_oneof![
        6 => prop::collection::vec((0u8..5, 0u8..3, shots()), 0..3).prop_map(Act::Files),
        3 => shots().prop_map(Act::Loose),
        2 => shots().prop_map(Act::Delete),
        2 => (0u8..5).prop_map(Act::RemoveFile),
        2 => (1u8..3, shots()).prop_map(|(job, shots)| Act::Lines(job, shots)),
        1 => (1u8..3).prop_map(Act::RemoveLines),
        3 => Just(Act::Flush),
        2 => Just(Act::MergeStep),
        1 => Just(Act::MergeAll),
        2 => Just(Act::Reopen),
    ];
    prop::collection::vec(one, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn an_index_says_what_a_map_says(acts in acts()) {
        let folder = tempfile::tempdir().unwrap();
        let mut index = Index::open(folder.path(), settings()).unwrap();
        let mut model = Model::default();
        for one in &acts {
            let before = index.snapshot();
            let rows_before = before.stats();
            act(&mut index, &mut model, &folder, one);
            check(&index.snapshot(), &model);
            prop_assert_eq!(before.stats(), rows_before, "an old snapshot stays as it was");
            for name in (0..5).map(name) {
                prop_assert_eq!(index.holds_file(&name), model.is_whole(&name), "{}", name);
            }
        }
        let reader = Index::open_read_only(folder.path(), settings()).unwrap();
        check(&reader.snapshot(), &model);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "seg") {
                let report = crate::verify(&path).unwrap();
                prop_assert_eq!(report.problem_count, 0, "{:?}", report);
            }
        }
    }
}
