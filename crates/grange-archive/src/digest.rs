//! The checksums of a file that comes in: all that are wanted, in one pass.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use grange_model::{Algorithm, Checksums, Md5, Sha256, Sha512};
use sha2::Digest as _;

use crate::error::Error;

/// Large enough that the disk streams, small enough to stay in the processor's cache for all digests.
const CHUNK_BYTES: usize = 256 << 10;

/// Digests of bytes as they pass.
#[derive(Clone, Default)]
pub(crate) struct Sums {
    sha512: Option<sha2::Sha512>,
    sha256: Option<sha2::Sha256>,
    md5: Option<md5::Md5>,
    pub(crate) size: u64,
}

impl Sums {
    pub(crate) fn new(algorithms: &[Algorithm]) -> Self {
        Self {
            sha512: algorithms.contains(&Algorithm::Sha512).then(Default::default),
            sha256: algorithms.contains(&Algorithm::Sha256).then(Default::default),
            md5: algorithms.contains(&Algorithm::Md5).then(Default::default),
            size: 0,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        if let Some(digest) = &mut self.sha512 {
            digest.update(bytes);
        }
        if let Some(digest) = &mut self.sha256 {
            digest.update(bytes);
        }
        if let Some(digest) = &mut self.md5 {
            digest.update(bytes);
        }
    }

    pub(crate) fn finish(self) -> Checksums {
        Checksums {
            sha512: self.sha512.map(|digest| Sha512(digest.finalize().into())),
            sha256: self.sha256.map(|digest| Sha256(digest.finalize().into())),
            md5: self.md5.map(|digest| Md5(digest.finalize().into())),
        }
    }
}

/// Reads a local file through, off the async threads.
pub(crate) async fn sum_file(path: &Path, algorithms: &[Algorithm]) -> Result<(u64, Checksums), Error> {
    let (path, algorithms) = (path.to_owned(), algorithms.to_vec());
    let read = tokio::task::spawn_blocking(move || {
        let failed = || Error::io("read", &path);
        let mut file = File::open(&path).map_err(failed())?;
        let mut sums = Sums::new(&algorithms);
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let count = file.read(&mut buffer).map_err(failed())?;
            if count == 0 {
                return Ok((sums.size, sums.finish()));
            }
            sums.update(&buffer[..count]);
        }
    });
    match read.await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Only the named algorithms of these.
pub(crate) fn only(checksums: &Checksums, algorithms: &[Algorithm]) -> Checksums {
    Checksums {
        sha512: checksums.sha512.filter(|_| algorithms.contains(&Algorithm::Sha512)),
        sha256: checksums.sha256.filter(|_| algorithms.contains(&Algorithm::Sha256)),
        md5: checksums.md5.filter(|_| algorithms.contains(&Algorithm::Md5)),
    }
}
