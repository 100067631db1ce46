//! All records of a repository as one stream.

use std::collections::VecDeque;
use std::path::PathBuf;

use futures_util::stream::{self, Stream};
use grange_db::Db;
use grange_model::account::Permission;
use grange_model::oai::{OaiRecord, RecordStatus, RepositoryId};

use crate::{App, Error, Who};

/// Records read ahead: a few milliseconds of files, some hundred kilobytes.
const PAGE: u32 = 200;

/// A record and what its file holds; nothing for deleted ones.
type Exported = (OaiRecord, Option<String>);

struct Walk {
    db: Db,
    folder: PathBuf,
    repository: RepositoryId,
    prefix: String,
    after: String,
    ready: VecDeque<Exported>,
}

impl App {
    /// Every record of a repository in one format, in order of identifiers.
    pub async fn oai_export(
        &self,
        who: &Who,
        id: RepositoryId,
        prefix: &str,
    ) -> Result<impl Stream<Item = Result<Exported, Error>> + Send + use<>, Error> {
        who.needs(Permission::View)?;
        let (repository, _) = self.oai_repository(who, id).await?;
        let walk = Walk {
            db: self.db.clone(),
            folder: self.oai()?.folder(id, &repository.rules),
            repository: id,
            prefix: prefix.to_owned(),
            after: String::new(),
            ready: VecDeque::new(),
        };
        Ok(stream::try_unfold(walk, |mut walk| async move {
            if walk.ready.is_empty() {
                walk.read_on().await?;
            }
            Ok(walk.ready.pop_front().map(|next| (next, walk)))
        }))
    }
}

impl Walk {
    async fn read_on(&mut self) -> Result<(), Error> {
        let records = self.db.oai_records().list(self.repository, &self.prefix, &self.after, PAGE).await?;
        let Some(last) = records.last() else { return Ok(()) };
        self.after.clone_from(&last.identifier);
        let folder = self.folder.clone();
        let read = tokio::task::spawn_blocking(move || {
            let with = |record: OaiRecord| {
                let active = record.status == RecordStatus::Active;
                let path = folder.join(&record.filename);
                let content = active.then(|| std::fs::read_to_string(&path)).transpose();
                content.map(|content| (record, content)).map_err(|error| {
                    Error::Invalid(format!("the file {} cannot be read: {error}", path.display()))
                })
            };
            records.into_iter().map(with).collect::<Result<VecDeque<_>, _>>()
        });
        self.ready = match read.await {
            Ok(read) => read?,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => return Err(Error::Invalid("the node stops; try again when it runs".to_owned())),
            },
        };
        Ok(())
    }
}
