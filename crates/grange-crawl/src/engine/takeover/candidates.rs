//! Where the stored captures lead, on disk until all of them are known: only then is it clear which of these URLs were
//! fetched and which of them are in scope.

use std::fs::File;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use url::Url;

use crate::candidate::Candidate;
use crate::frontier::item;

/// Candidates remembered, to write each of them once: 2²⁰ × 8 bytes = 8 MiB. The pages of a site mostly lead to the same
/// pages; one that is forgotten is written again, which costs space and nothing else.
const REMEMBERED: usize = 1 << 20;

/// Candidates in a file of their own, in the order in which they were found.
#[derive(Debug)]
pub(super) struct Candidates {
    path: PathBuf,
    file: BufWriter<File>,
    remembered: Box<[u64]>,
}

impl Candidates {
    /// Begins with an empty file at `path`.
    pub(super) fn create(path: &Path) -> io::Result<Candidates> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        let remembered = vec![0; REMEMBERED].into_boxed_slice();
        Ok(Candidates { path: path.to_owned(), file: BufWriter::new(file), remembered })
    }

    /// Adds a candidate, unless one that the scope judges alike was added a moment ago.
    pub(super) fn add(&mut self, candidate: &Candidate) -> io::Result<()> {
        let via = candidate.via.as_deref().and_then(|via| Url::parse(via).ok());
        let via = via.as_ref().and_then(Url::host_str);
        let Candidate { url, hops, source, force, .. } = candidate;
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let hash = hasher.hash_one((url.as_str(), hops, via, source, force)).max(1);
        let slot = &mut self.remembered[hash as usize % REMEMBERED];
        if *slot == hash {
            return Ok(());
        }
        *slot = hash;
        let bytes = item::encode(candidate, 0);
        self.file.write_all(&(bytes.len() as u32).to_le_bytes())?;
        self.file.write_all(&bytes)
    }

    /// Gives all of them to `take` and removes the file.
    pub(super) fn drain<E: From<io::Error>>(
        self,
        mut take: impl FnMut(Candidate) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        let mut left = file.metadata()?.len();
        let mut file = BufReader::new(file);
        let mut bytes = Vec::new();
        while left > 0 {
            let mut length = [0; 4];
            file.read_exact(&mut length)?;
            let length = u32::from_le_bytes(length);
            bytes.resize(length as usize, 0);
            file.read_exact(&mut bytes)?;
            left = left.saturating_sub(4 + u64::from(length));
            if let Some((candidate, _)) = item::decode(&bytes) {
                take(candidate)?;
            }
        }
        Ok(std::fs::remove_file(&self.path)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hops::Hop;

    #[test]
    fn candidates_come_back_once_and_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("candidates");
        let seed = Candidate::seed(Url::parse("http://e.org/").unwrap());
        let found = |url: &str, via: &str| Candidate {
            url: Url::parse(url).unwrap(),
            via: Some(via.into()),
            hops: seed.hops.and(Hop::Link),
            ..seed.clone()
        };
        let (first, second) =
            (found("http://e.org/a", "http://e.org/"), found("http://e.org/b", "http://e.org/"));
        // The same way from another host may be judged otherwise.
        let elsewhere = found("http://e.org/a", "http://other.org/");
        let mut candidates = Candidates::create(&path).unwrap();
        for candidate in [&first, &second, &first, &found("http://e.org/a", "http://e.org/c"), &elsewhere] {
            candidates.add(candidate).unwrap();
        }
        let mut back = Vec::new();
        candidates
            .drain(|candidate| {
                back.push(candidate);
                Ok::<_, io::Error>(())
            })
            .unwrap();
        assert_eq!(back, [first, second, elsewhere]);
        assert!(!path.exists());
    }
}
