//! The system itself: nodes and database.

use std::path::PathBuf;

use grange_db::Finding;
use grange_model::account::Permission;
use grange_model::node::{Liveness, NodeRecord};

use crate::{App, Error, Who};

impl App {
    /// All nodes, and whether they live.
    pub async fn nodes(&self, who: &Who) -> Result<Vec<(NodeRecord, Liveness)>, Error> {
        who.needs(Permission::ReadSystem)?;
        Ok(self.db.nodes().list(self.rules.lost_after).await?)
    }

    /// Forgets a node that will not come back. [`Error::NotFound`] when there is none of that name or id, or it lives.
    pub async fn forget_node(&self, who: &Who, name: &str) -> Result<NodeRecord, Error> {
        who.needs(Permission::ManageSystem)?;
        let gone = |(node, state): &(NodeRecord, Liveness)| {
            (node.name == name || node.id.to_string() == name) && *state != Liveness::Alive
        };
        let nodes = self.db.nodes().list(self.rules.lost_after).await?;
        let not_found = || Error::NotFound { noun: "stopped or lost node", name: name.to_owned() };
        let (node, _) = nodes.into_iter().find(gone).ok_or_else(not_found)?;
        self.db.nodes().forget_one(node.id, self.rules.lost_after, &who.actor()).await?;
        Ok(node)
    }

    /// States that need a person: the open ones, or those of the last months too. The newest first.
    pub async fn findings(&self, who: &Who, closed_too: bool, limit: u32) -> Result<Vec<Finding>, Error> {
        who.needs(Permission::ReadSystem)?;
        // What is shown is how it is now, also where no node runs.
        self.db.findings().look(self.rules.lost_after).await?;
        Ok(self.db.findings().list(closed_too, limit).await?)
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
