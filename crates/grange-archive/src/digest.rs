//! The checksums of bytes that pass by in async code.

use grange_model::{Algorithm, Checksums, Md5, Sha256, Sha512};
use sha2::Digest as _;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

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

/// Which end of a copy failed.
#[derive(Debug)]
pub(crate) enum CopyError {
    Read(std::io::Error),
    Write(std::io::Error),
}

/// Copies a reader into a file and sums it up on the way.
pub(crate) async fn copy_summed(
    mut from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    mut sums: Sums,
) -> Result<(u64, Checksums), CopyError> {
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = from.read(&mut buffer).await.map_err(CopyError::Read)?;
        if count == 0 {
            to.flush().await.map_err(CopyError::Write)?;
            return Ok((sums.size, sums.finish()));
        }
        sums.update(&buffer[..count]);
        to.write_all(&buffer[..count]).await.map_err(CopyError::Write)?;
    }
}
