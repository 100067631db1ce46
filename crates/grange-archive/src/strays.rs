//! Files that the replicas hold and no row knows: found without reading a byte of them.

use grange_base::Chain;
use grange_db::StrayRange;
use grange_model::FileName;

use crate::archive::Archive;
use crate::error::Error;
use crate::replica::Replica;

/// Names that are compared at once.
const PAGE: usize = 1000;

impl Archive {
    /// Compares the names that one replica knows with the rows, so that numbers in names of files that the rows forgot
    /// are not given again. Asks a checksum replica where there is one: it knows every name and lists it from memory.
    /// Gives how many strays there are; `None` if no replica answered. An audit looks at every replica.
    pub async fn look_for_strays(&self) -> Result<Option<u64>, Error> {
        let mut replicas: Vec<&Replica> = self.0.replicas.iter().collect();
        replicas.sort_by_key(|replica| replica.keeps_bytes());
        for replica in replicas {
            match self.strays_on(replica).await {
                Ok(found) => return Ok(Some(found)),
                Err(Error::Db(error)) => return Err(Error::Db(error)),
                Err(error) => {
                    tracing::warn!(replica = replica.name(), error = %Chain(&error), "cannot compare the names on this replica with the database");
                }
            }
        }
        Ok(None)
    }

    async fn strays_on(&self, replica: &Replica) -> Result<u64, Error> {
        let (mut after, mut strays): (Option<FileName>, u64) = (None, 0);
        loop {
            let (listed, next) = replica.list(after.as_ref(), PAGE).await?;
            let known =
                self.0.db.files().recorded(listed.iter().map(|one| one.name.clone()).collect()).await?;
            let found: Vec<_> = listed
                .into_iter()
                .filter(|one| !known.contains_key(one.name.as_str()))
                .map(|one| (one.name, one.size.unwrap_or_default()))
                .collect();
            strays += found.len() as u64;
            let (replica_id, text) = (replica.row.id, |name: &FileName| name.to_string());
            let range = StrayRange {
                replica_id,
                after: after.as_ref().map(text),
                upto: next.as_ref().map(text),
                found,
            };
            self.0.db.strays().keep(range).await?;
            match next {
                Some(next) => after = Some(next),
                None => return Ok(strays),
            }
        }
    }
}
