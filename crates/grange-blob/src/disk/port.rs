//! The port, on disks.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use grange_model::{Algorithm, Checksums, FileName, Sha512};
use uuid::Uuid;

use super::base::Base;
use super::{Disk, forget, take, write};
use crate::blob::{Blob, Listed, MarkedPart, Opened, Source, Space, Stat, Stored, Taking, UnlistedFiles};
use crate::check;
use crate::digest::Proving;
use crate::error::Error;

#[async_trait]
impl Blob for Disk {
    async fn put(
        &self,
        name: &FileName,
        source: Source<'_>,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        write::put(self, name, source, expected).await
    }

    async fn put_file(
        &self,
        name: &FileName,
        path: &Path,
        taking: Taking,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        let (name, path, expected) = (name.clone(), path.to_owned(), expected.copied());
        self.read(move |inner, wanted| take::put_file(inner, &name, &path, taking, expected.as_ref(), wanted))
            .await
    }

    async fn local_path(&self, name: &FileName) -> Result<Option<PathBuf>, Error> {
        self.path(name).await
    }

    async fn get(&self, name: &FileName) -> Result<Opened, Error> {
        let name = name.clone();
        let (size, file) = self
            .run(move |inner| {
                let (base, file) = inner.find_or_fail(&name)?;
                let data = file.metadata().map_err(Error::io("look at", &inner.bases[base].file(&name)))?;
                Ok((data.len(), file))
            })
            .await?;
        Ok(Opened::new(size, tokio::fs::File::from_std(file)))
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error> {
        let name = name.clone();
        self.run(move |inner| {
            let (base, file) = inner.find_or_fail(&name)?;
            let failed = || Error::io("read", &inner.bases[base].files);
            let size = file.metadata().map_err(failed())?.len();
            let len = (len as u64).min(size.saturating_sub(offset)) as usize;
            let mut bytes = vec![0; len];
            file.read_exact_at(&mut bytes, offset).map_err(failed())?;
            Ok(bytes.into())
        })
        .await
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<Listed>, Error> {
        let after = after.cloned();
        self.run(move |inner| inner.list(after, limit)).await
    }

    async fn unlisted(&self, limit: usize) -> Result<UnlistedFiles, Error> {
        self.run(move |inner| {
            let mut all = UnlistedFiles::default();
            for base in &inner.bases {
                let found = base.listing.unlisted(&base.files, limit.saturating_sub(all.paths.len()))?;
                all.count += found.count;
                all.paths.extend(found.paths);
            }
            Ok(all)
        })
        .await
    }

    async fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error> {
        let name = name.clone();
        self.run(move |inner| inner.stat(&name)).await
    }

    async fn checksum(&self, name: &FileName, algorithms: &[Algorithm]) -> Result<Option<Checksums>, Error> {
        if algorithms == [Algorithm::Sha512]
            && let Some((path, file)) = self.large(name).await?
        {
            let sum = self.0.lanes.sum(file).await;
            let sum = sum.map_err(|error| self.0.unreadable(name, &Error::io("read", &path)(error)))?;
            return Ok(Some(Checksums { sha512: Some(sum), ..Checksums::default() }));
        }
        let (name, algorithms) = (name.clone(), algorithms.to_vec());
        self.read(move |inner, wanted| {
            let found = inner.find(&name).map_err(|error| inner.unreadable(&name, &error))?;
            let Some((base, mut file)) = found else { return Ok(None) };
            let path = inner.bases[base].file(&name);
            let summed = inner.sum_wanted(&path, &mut file, &algorithms, wanted);
            let (_, sums) = summed.map_err(|error| inner.unreadable(&name, &error))?;
            // An audit reads everything once; it must not push out of memory what people are reading.
            forget(&file);
            Ok(Some(sums))
        })
        .await
    }

    async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error> {
        let (name, salt) = (name.clone(), salt.to_vec());
        self.read(move |inner, wanted| {
            let found = inner.find(&name).map_err(|error| inner.unreadable(&name, &error))?;
            let Some((base, file)) = found else { return Ok(None) };
            forget(&file);
            let proof = Proving::of(&salt, wanted.reader(&file), &inner.buffers);
            let path = inner.bases[base].file(&name);
            proof.map(Some).map_err(|error| inner.unreadable(&name, &Error::io("read", &path)(error)))
        })
        .await
    }

    async fn remove_to_attic(&self, name: &FileName, expected: &Checksums) -> Result<(), Error> {
        let (name, expected) = (name.clone(), *expected);
        self.read(move |inner, wanted| {
            inner.writable()?;
            let _lock = inner.lock(&name);
            let base = match check::deciding(&name, &expected) {
                Ok(deciding) => {
                    let (base, mut file) = inner.find_or_fail(&name)?;
                    let path = inner.bases[base].file(&name);
                    let (_, found) = inner.sum_wanted(&path, &mut file, &deciding, wanted)?;
                    check::removable(&name, &inner.place, &expected, found)?;
                    #[cfg(test)]
                    inner.bases[base].faults.replace(&path);
                    // Another process may have put the right file into its place while this one was read.
                    let id = |data: std::fs::Metadata| (data.dev(), data.ino());
                    let failed = || Error::io("look at", &path);
                    let now = std::fs::symlink_metadata(&path).map_err(failed())?;
                    if id(now) != id(file.metadata().map_err(failed())?) {
                        return Err(Error::io("remove", &path)(std::io::Error::other(
                            "it was replaced meanwhile; repeat the repair if it is still needed",
                        )));
                    }
                    base
                }
                Err(error) => inner.where_unreadable(&name)?.ok_or(error)?,
            };
            wanted.still().map_err(Error::io("remove", &inner.bases[base].file(&name)))?;
            let now = inner.clock.now().strftime("%Y%m%dT%H%M%SZ");
            let id = Uuid::new_v4().simple().to_string();
            inner.bases[base].retire(&name, &format!("{now}-{}", &id[..8]))
        })
        .await
    }

    async fn free(&self) -> Result<Space, Error> {
        self.run(|inner| {
            let rooms: Vec<_> = inner.rooms().into_iter().flatten().collect();
            let largest = rooms.iter().map(|room| inner.bounds.largest(room.free)).max().unwrap_or(0);
            Ok(Space {
                free_bytes: Some(rooms.iter().map(|room| room.free).sum()),
                total_bytes: Some(rooms.iter().map(|room| room.total).sum()),
                largest_bytes: if inner.read_only { 0 } else { largest },
            })
        })
        .await
    }

    async fn markers(&self) -> Result<Vec<MarkedPart>, Error> {
        self.run(|inner| inner.bases.iter().map(Base::marker).collect()).await
    }

    async fn mark(&self, part: &str, text: &str) -> Result<(), Error> {
        let (part, text) = (part.to_owned(), text.to_owned());
        self.run(move |inner| {
            inner.writable()?;
            let found = inner.bases.iter().find(|base| base.path.display().to_string() == part);
            let no_such = || Error::io("mark", Path::new(&part))(std::io::ErrorKind::NotFound.into());
            found.ok_or_else(no_such)?.mark(&text)
        })
        .await
    }

    fn place(&self) -> &str {
        &self.0.place
    }
}
