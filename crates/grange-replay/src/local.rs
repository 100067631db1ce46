//! A collection out of files on this machine, without any set-up: they are indexed aside and read where they lie.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use grange_index::{Batch, Index};
use warc::Level;

use crate::holdings::wacz::{self, WaczError};
use crate::holdings::{LocalFiles, Section};

/// What became of one file.
#[derive(Debug, Default)]
pub struct Added {
    /// Captures that the index has of it.
    pub captures: u64,
    /// What is lost of it; the rest is there all the same.
    pub problems: Vec<String>,
}

/// Why a file is no part of the collection.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    #[error("cannot read {}; check that it is there and may be read", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is no WACZ that can be read", path.display())]
    Wacz {
        path: PathBuf,
        #[source]
        source: WaczError,
    },
    #[error("{} holds neither WARC nor ARC records nor index lines", path.display())]
    Unknown { path: PathBuf },
    #[error(transparent)]
    Index(#[from] grange_index::Error),
}

/// Bad lines told of one file; more of the same would help nobody.
const LINES_TOLD_MAX: usize = 20;

/// Indexes a WARC, ARC, WACZ, CDX or CDXJ file and registers it in place. What it is, is told by its bytes.
pub fn add(path: &Path, index: &Index, files: &LocalFiles) -> Result<Added, AddError> {
    let failed = |source| AddError::Io { path: path.to_owned(), source };
    let mut first = [0; 64];
    let mut file = File::open(path).map_err(failed)?;
    let len = read_up_to(&mut file, &mut first).map_err(failed)?;
    let first = &first[..len];
    let name = free_name(path, files);
    let mut added = Added::default();
    if wacz::is_zip(first) {
        let members =
            wacz::members(path).map_err(|source| AddError::Wacz { path: path.to_owned(), source })?;
        for member in members.into_iter().filter(wacz::Member::is_archive) {
            let Some(section) = member.section.clone() else {
                added.problems.push(format!(
                    "{} is packed inside the zip file and cannot be read in place",
                    member.name
                ));
                continue;
            };
            let name = member.name_in(&name);
            let mut inner = Added::default();
            records(&name, section, index, files, &mut inner).map_err(failed)??;
            added.captures += inner.captures;
            added.problems.extend(inner.problems.iter().map(|problem| format!("{}: {problem}", member.name)));
        }
        return Ok(added);
    }
    if is_index(path, first) {
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        let input = BufReader::new(File::open(path).map_err(failed)?);
        let report = if first.starts_with(&[0x1f, 0x8b]) {
            index.load(BufReader::new(MultiGzDecoder::new(input)), None)?
        } else {
            index.load(input, None)?
        };
        if report.captures == 0 {
            return Err(AddError::Unknown { path: path.to_owned() });
        }
        files.add_folder(folder, index.snapshot().file_names());
        added.captures = report.captures;
        let bad = |problem: &grange_index::LoadProblem| {
            format!("the line at byte {} cannot be read", problem.offset)
        };
        added.problems.extend(report.problems.iter().take(LINES_TOLD_MAX).map(bad));
        return Ok(added);
    }
    let section = Section::whole(path).map_err(failed)?;
    records(&name, section, index, files, &mut added).map_err(failed)??;
    if added.captures == 0 && !added.problems.is_empty() {
        return Err(AddError::Unknown { path: path.to_owned() });
    }
    Ok(added)
}

fn read_up_to(file: &mut File, buf: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buf.len() {
        match file.read(&mut buf[len..])? {
            0 => break,
            read => len += read,
        }
    }
    Ok(len)
}

/// Whether a file holds index lines: by its name, as nothing in a line is like nothing else.
fn is_index(path: &Path, first: &[u8]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let named = [".cdx", ".cdxj", ".cdx.tmp"].iter().any(|end| name.ends_with(end));
    (named || first.starts_with(b" CDX ")) && !first.starts_with(b"WARC/") && !first.starts_with(b"filedesc:")
}

/// The name of the file, or with its folders if another one has that name.
fn free_name(path: &Path, files: &LocalFiles) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if files.get(&name).is_some() { path.to_string_lossy().into_owned() } else { name }
}

fn records(
    name: &str,
    section: Section,
    index: &Index,
    files: &LocalFiles,
    added: &mut Added,
) -> io::Result<Result<(), AddError>> {
    let mut reader = warc::Reader::seekable(section.open()?)?;
    let mut batch = Batch::new();
    let report = batch.add_records(&mut reader, name, None)?;
    let rows = match index.commit(batch) {
        Ok(committed) => committed.rows,
        Err(error) => return Ok(Err(error.into())),
    };
    added.captures += rows;
    added.problems.extend(report.summary(Level::Damage));
    files.add(name, section);
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{gzip, http};
    use grange_index::Settings;

    /// A folder for files and an index of nothing in it.
    fn aside() -> (tempfile::TempDir, Index, LocalFiles) {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path().join("index"), Settings::default()).unwrap();
        (folder, index, LocalFiles::default())
    }

    #[test]
    fn files_of_every_kind_are_told_by_their_bytes() {
        let (folder, index, files) = aside();
        let at = |name: &str| folder.path().join(name);
        let record = http("http://e.org/", "2020-01-01T00:00:01Z", "HTTP/1.1 200 OK", b"hello");
        // The extension lies.
        std::fs::write(at("a.dat"), gzip(&record)).unwrap();
        std::fs::write(at("b.warc"), &record).unwrap();
        std::fs::write(at("c.cdxj"), "org,e)/x 20200101000002 {\"url\": \"http://e.org/x\", \"filename\": \"b.warc\", \"offset\": \"0\"}\n").unwrap();
        std::fs::write(at("d.txt"), "nothing of the kind\n").unwrap();
        std::fs::write(at("e.zip"), "PK\x03\x04 but no more").unwrap();
        for (name, captures) in [
            ("a.dat", Some(1)),
            ("b.warc", Some(1)),
            ("c.cdxj", Some(1)),
            ("d.txt", None),
            ("e.zip", None),
            ("f", None),
        ] {
            let added = add(&at(name), &index, &files);
            assert_eq!(added.as_ref().ok().map(|added| added.captures), captures, "{name}: {added:?}");
        }
        assert_eq!(index.snapshot().stats().rows, 3);
    }

    #[test]
    fn of_the_files_beside_lines_only_those_that_they_name_are_there() {
        let (folder, index, files) = aside();
        let record = http("http://e.org/", "2020-01-01T00:00:01Z", "HTTP/1.1 200 OK", b"hello");
        for name in ["a.warc", "b.warc", "notes.txt"] {
            std::fs::write(folder.path().join(name), &record).unwrap();
        }
        let lines = "org,e)/ 20200101000001 {\"url\": \"http://e.org/\", \"filename\": \"old/a.warc\", \"offset\": \"0\"}\n";
        std::fs::write(folder.path().join("c.cdxj"), lines).unwrap();
        add(&folder.path().join("c.cdxj"), &index, &files).unwrap();
        for (name, there) in [
            ("old/a.warc", true),
            ("a.warc", false),
            ("b.warc", false),
            ("old/b.warc", false),
            ("notes.txt", false),
            ("c.cdxj", false),
        ] {
            assert_eq!(files.get(name).is_some(), there, "{name}");
        }
    }

    #[test]
    fn what_is_lost_is_told_and_what_is_odd_is_not() {
        let (folder, index, files) = aside();
        let at = |name: &str| folder.path().join(name);
        let sound = http("http://e.org/", "2020-01-01T00:00:01Z", "HTTP/1.1 200 OK", b"hello");
        let odd = String::from_utf8(sound.clone())
            .unwrap()
            .replace("WARC-Type: response\r\n", "WARC-Type: response\n");
        let cut = gzip(&http("http://e.org/cut", "2020-01-01T00:00:02Z", "HTTP/1.1 200 OK", &[7; 5000]));
        let cut = [gzip(&sound), cut[..cut.len() - 20].to_vec()].concat();
        for (name, bytes, told) in [
            ("sound.warc", sound, vec![]),
            ("odd.warc", odd.into_bytes(), vec![]),
            ("cut.warc.gz", cut, vec!["ends inside a gzip member"]),
        ] {
            std::fs::write(at(name), bytes).unwrap();
            let added = add(&at(name), &index, &files).unwrap();
            assert_eq!(added.problems.len(), told.len(), "{name}: {:?}", added.problems);
            for (line, part) in added.problems.iter().zip(told) {
                assert!(line.contains(part), "{name}: {line}");
            }
        }
    }
}
