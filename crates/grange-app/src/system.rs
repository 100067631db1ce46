//! The system itself: nodes and database.

use std::path::PathBuf;

use grange_model::account::Permission;
use grange_model::node::{Liveness, NodeRecord};

use crate::{App, Error, Who};

impl App {
    /// All nodes, and whether they live.
    pub async fn nodes(&self, who: &Who) -> Result<Vec<(NodeRecord, Liveness)>, Error> {
        who.needs(Permission::ReadSystem)?;
        Ok(self.db.nodes().list(self.rules.lost_after).await?)
    }

    /// Which database this is and how old its tables are. An open one is up to date.
    pub fn database(&self, who: &Who) -> Result<&grange_db::Status, Error> {
        who.needs(Permission::ReadSystem)?;
        Ok(&self.rules.database)
    }

    /// Copies the embedded database, by default into the backup folder; gives the path and its size.
    pub async fn back_up(&self, who: &Who, path: Option<PathBuf>) -> Result<(PathBuf, u64), Error> {
        who.needs(Permission::ManageSystem)?;
        let path = match path {
            Some(path) => {
                self.db.backup_to(&path).await?;
                path
            }
            None => self.db.backup_into(&self.rules.backups).await?,
        };
        let bytes = std::fs::metadata(&path).map(|meta| meta.len()).unwrap_or_default();
        Ok((path, bytes))
    }
}
