//! Which folder a new file goes to: at most so many files in one, the others in `starting_at_…` below it.

use std::collections::HashMap;

use super::path::RecordPath;

/// Hands out places in folders. Counts arrivals, so a record's place never depends on what was deleted.
#[derive(Debug)]
pub struct Places {
    files_per_folder: u32,
    /// Files ever placed, by leaf folder, as far as asked for.
    counts: HashMap<String, i64>,
    changed: Vec<String>,
}

/// Folders whose counts are kept between pages. A harvest rarely writes to more at a time; the others are asked again.
const KEPT_MAX: usize = 10_000;

impl Places {
    /// 0 files per folder: no limit.
    pub fn new(files_per_folder: u32) -> Self {
        Self { files_per_folder, counts: HashMap::new(), changed: Vec::new() }
    }

    /// Folders of new records whose counts have to be told before [`Places::assign`]. Called once per page, when the
    /// counts of the page before are kept.
    pub fn unknown<'p>(&mut self, paths: impl Iterator<Item = &'p RecordPath>) -> Vec<&'p str> {
        // Before the page is looked at, so that every folder it needs is either known or asked for.
        if self.counts.len() > KEPT_MAX && self.changed.is_empty() {
            self.counts.clear();
        }
        let mut folders: Vec<_> = paths
            .map(|path| path.folder.as_str())
            .filter(|folder| self.files_per_folder > 0 && !self.counts.contains_key(*folder))
            .collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    pub fn tell(&mut self, asked: &[&str], found: Vec<(String, i64)>) {
        self.counts.extend(asked.iter().map(|folder| ((*folder).to_owned(), 0)));
        self.counts.extend(found);
    }

    /// The file name of a new record, relative to the repository's folder.
    pub fn assign(&mut self, path: &RecordPath) -> String {
        let joined = |folder: &str| {
            if folder.is_empty() { path.file.clone() } else { format!("{folder}/{}", path.file) }
        };
        if self.files_per_folder == 0 {
            return joined(&path.folder);
        }
        let count = self.counts.entry(path.folder.clone()).or_default();
        let number = *count;
        *count += 1;
        if self.changed.last() != Some(&path.folder) && !self.changed.contains(&path.folder) {
            self.changed.push(path.folder.clone());
        }
        let cap = i64::from(self.files_per_folder);
        if number < cap {
            return joined(&path.folder);
        }
        let start = number / cap * cap;
        let slash = if path.folder.is_empty() { "" } else { "/" };
        joined(&format!("{}{slash}starting_at_{start}", path.folder))
    }

    /// The counts that changed since last asked, to be kept with the page.
    pub fn take_changed(&mut self) -> Vec<(String, i64)> {
        let changed = std::mem::take(&mut self.changed);
        changed
            .into_iter()
            .map(|folder| (folder.clone(), self.counts.get(&folder).copied().unwrap_or(0)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_folder_overflows_below_itself() {
        let path = |n: i64| RecordPath { folder: "ilLib/alliance".to_owned(), file: format!("{n}.xml") };
        let mut places = Places::new(5_000);
        let first = path(0);
        assert_eq!(places.unknown([&first, &first].into_iter()), ["ilLib/alliance"]);
        places.tell(&["ilLib/alliance"], vec![("ilLib/alliance".to_owned(), 4_999)]);
        assert!(places.unknown([&first].into_iter()).is_empty());
        assert_eq!(places.assign(&path(1)), "ilLib/alliance/1.xml");
        assert_eq!(places.assign(&path(2)), "ilLib/alliance/starting_at_5000/2.xml");
        assert_eq!(places.take_changed(), [("ilLib/alliance".to_owned(), 5_001)]);
        assert!(places.take_changed().is_empty());
        // The document's own example: the 12,346th file.
        places.tell(&["ilLib/alliance"], vec![("ilLib/alliance".to_owned(), 12_345)]);
        assert_eq!(places.assign(&path(12_345)), "ilLib/alliance/starting_at_10000/12345.xml");
    }

    #[test]
    fn no_folder_gets_more_files_than_it_may_however_many_folders_there_are() {
        const PER_FOLDER: u32 = 3;
        let mut kept: HashMap<String, i64> = HashMap::new();
        let mut files: HashMap<String, u32> = HashMap::new();
        let mut places = Places::new(PER_FOLDER);
        for page in 0..KEPT_MAX / 100 * 3 {
            let path = |folder: String| RecordPath { folder, file: format!("{page}.xml") };
            // A folder that every page has, and a hundred of the others in turn.
            let others = (0..100).map(|n| path(format!("f{}", (page * 100 + n) % (KEPT_MAX + 5_000))));
            let paths: Vec<_> = others.chain([path("common".to_owned())]).collect();
            let unknown = places.unknown(paths.iter());
            let found = unknown.iter().filter_map(|name| kept.get_key_value(*name));
            let found = found.map(|(name, count)| (name.clone(), *count)).collect();
            places.tell(&unknown, found);
            for path in &paths {
                let name = places.assign(path);
                let (folder, _) = name.rsplit_once('/').unwrap();
                *files.entry(folder.to_owned()).or_default() += 1;
            }
            kept.extend(places.take_changed());
        }
        let (folder, most) = files.iter().max_by_key(|(_, count)| **count).unwrap();
        assert!(*most <= PER_FOLDER, "{most} files in {folder}");
    }

    #[test]
    fn without_a_limit_all_files_share_the_folder() {
        let path = RecordPath { folder: String::new(), file: "1.xml".to_owned() };
        let mut places = Places::new(0);
        assert!(places.unknown([&path].into_iter()).is_empty());
        assert_eq!(places.assign(&path), "1.xml");
        assert!(places.take_changed().is_empty());
        assert_eq!(
            Places { counts: [(String::new(), 2)].into(), ..Places::new(2) }.assign(&path),
            "starting_at_2/1.xml"
        );
    }
}
