//! Files: stored, listed, read.

use std::path::Path;

use grange_archive::{Got, Store, StoreOutcome};
use grange_blob::Opened;
use grange_db::{FileFilter, FileStatus, Record};
use grange_model::account::Permission;
use grange_model::{Checksums, FileName};
use serde_json::Value;
use tokio::io::AsyncRead;

use crate::{App, Error, Who};

impl App {
    /// Stores a file of the node's machine from where it lies. Only for people of that machine: others would learn
    /// what lies there.
    pub async fn store_path(
        &self,
        who: &Who,
        path: &Path,
        name: Option<&str>,
    ) -> Result<StoreOutcome, Error> {
        who.needs(Permission::ManageSystem)?;
        if !who.is_local() {
            return Err(Error::NotLocal { what: "name a file of it" });
        }
        let own = path.file_name().unwrap_or_default().to_string_lossy();
        let store = Store::new(name.unwrap_or(&own).parse::<FileName>()?, who.name());
        Ok(self.archive.get().await?.store(path, &store).await?)
    }

    /// Whether somebody may store a file of that name, before its bytes are sent.
    pub fn may_store(&self, who: &Who, name: &str) -> Result<(), Error> {
        who.needs(Permission::ManageSystem)?;
        name.parse::<FileName>()?;
        Ok(())
    }

    /// Stores what is sent, provided it is what the sender says.
    pub async fn store_bytes(
        &self,
        who: &Who,
        name: &str,
        announced: Option<Checksums>,
        bytes: impl AsyncRead + Send + Unpin,
    ) -> Result<StoreOutcome, Error> {
        who.needs(Permission::ManageSystem)?;
        let store = Store { expected: announced, ..Store::new(name.parse::<FileName>()?, who.name()) };
        Ok(self.archive.get().await?.store_reader(bytes, &store).await?)
    }

    /// Takes back a deposit of which no replica has the bytes, so that its name is free.
    pub async fn withdraw_deposit(&self, who: &Who, name: &str) -> Result<FileStatus, Error> {
        who.needs(Permission::ManageSystem)?;
        Ok(self.archive.get().await?.withdraw_deposit(&file_name(name)?, &who.actor()).await?)
    }

    /// The bytes of a file, from a proven copy. All of them, whatever access rules hide of it from readers: custody of bits needs
    /// the whole file. So it is for staff only, and each reading is in the record of changes.
    pub async fn open_file(&self, who: &Who, name: &str) -> Result<(Opened, Got), Error> {
        who.needs(Permission::ReadSystem)?;
        let opened = self.archive.get().await?.open_file(&file_name(name)?).await?;
        self.record_reading(who, "file.read", name, None).await?;
        Ok(opened)
    }

    /// Says in the record of changes who read what of a file.
    pub(super) async fn record_reading(
        &self,
        who: &Who,
        act: &'static str,
        name: &str,
        what: Option<Value>,
    ) -> Result<(), Error> {
        let record = Record { act, subject: format!("file:{name}"), before: None, after: what };
        Ok(self.db.audit().append(record, &who.actor()).await?)
    }

    /// Files in the order of their names, after one of them.
    pub async fn files(&self, who: &Who, after: Option<&str>, limit: u32) -> Result<Vec<FileStatus>, Error> {
        who.needs(Permission::ReadSystem)?;
        let after = after.map(file_name).transpose()?;
        let filter = FileFilter { after, limit, ..FileFilter::default() };
        Ok(self.archive.get().await?.list(&filter).await?)
    }

    pub async fn file(&self, who: &Who, name: &str) -> Result<FileStatus, Error> {
        who.needs(Permission::ReadSystem)?;
        let status = self.archive.get().await?.status(&file_name(name)?).await?;
        status.ok_or_else(|| Error::NotFound { noun: "file", name: name.to_owned() })
    }
}

/// A name that cannot be one is not there either.
pub(super) fn file_name(name: &str) -> Result<FileName, Error> {
    name.parse().map_err(|_| Error::NotFound { noun: "file", name: name.to_owned() })
}
