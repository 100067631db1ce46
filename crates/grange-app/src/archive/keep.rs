//! Keeping copies true: replicas, checks, repairs, the log.

use grange_archive::{LogReport, Proof, Rebuilt, RepairReport, Second};
use grange_db::{AuditRow, DepositCounts, LogKey, RepairRow, ReplicaOverview, StrayFile, WaitingDeposit};
use grange_model::account::Permission;
use grange_model::{AuditKind, RepairChoice};

use super::files::file_name;
use crate::{App, Error, Who};

/// Repairs that have ended, listed at once. Open ones are listed whole, however old they are: people must act on them.
const ENDED_REPAIRS_MAX: u32 = 1000;

impl App {
    pub async fn replicas(&self, who: &Who) -> Result<Vec<ReplicaOverview>, Error> {
        who.needs(Permission::ReadSystem)?;
        Ok(self.archive.get().await?.overview().await?)
    }

    /// Takes a replica as it is now, emptied or replaced: its places get its marker, and it is filled by repairs again.
    pub async fn adopt_replica(&self, who: &Who, name: &str) -> Result<Vec<String>, Error> {
        who.needs(Permission::ManageSystem)?;
        Ok(self.archive.get().await?.adopt_replica(name, &who.actor()).await?)
    }

    /// Asks for checks of one replica or of all. They run in the background; see [`App::audits`].
    pub async fn start_audits(
        &self,
        who: &Who,
        kind: AuditKind,
        replica: Option<&str>,
    ) -> Result<Vec<AuditRow>, Error> {
        who.needs(Permission::ManageSystem)?;
        let archive = self.archive.get().await?;
        let mut started = Vec::new();
        // A challenge is answered by replicas with bytes; one that is named says why it is not.
        let any = |one: &grange_archive::Replica| kind != AuditKind::Challenge || one.keeps_bytes();
        for one in archive.replicas() {
            if replica.map_or_else(|| any(one), |name| name == one.name()) {
                started.push(archive.start_audit(one.name(), kind, &who.actor()).await?);
            }
        }
        if let (true, Some(name)) = (started.is_empty(), replica) {
            // Says which replicas there are.
            archive.replica(name)?;
        }
        Ok(started)
    }

    /// Files that replicas hold and no row knows: how many copies, and the first of them by name.
    pub async fn strays(&self, who: &Who, limit: u32) -> Result<(u64, Vec<StrayFile>), Error> {
        who.needs(Permission::ReadSystem)?;
        Ok((self.db.strays().count().await?, self.db.strays().list(None, limit).await?))
    }

    /// What waits for a replica: files of the archive that are not everywhere yet, and job folders on harvesters.
    pub async fn deposits(
        &self,
        who: &Who,
        limit: u32,
    ) -> Result<(DepositCounts, Vec<WaitingDeposit>), Error> {
        who.needs(Permission::View)?;
        Ok((self.db.deposits().counts().await?, self.db.deposits().list(limit).await?))
    }

    pub async fn audits(&self, who: &Who, limit: u32) -> Result<Vec<AuditRow>, Error> {
        who.needs(Permission::ReadSystem)?;
        Ok(self.archive.get().await?.audits(limit).await?)
    }

    /// Repairs whatever is missing or corrupt. Corrupt copies are only replaced with a second person's word, or with
    /// the replica's credential, which people of the node's machine can use.
    pub async fn repair_all(
        &self,
        who: &Who,
        dry_run: bool,
        credentials: bool,
    ) -> Result<RepairReport, Error> {
        who.needs(Permission::ManageSystem)?;
        if credentials && !who.is_local() {
            return Err(Error::NotLocal { what: "use the credentials that lie there" });
        }
        let archive = self.archive.get().await?;
        let mut known = std::collections::BTreeMap::new();
        for replica in archive.replicas().iter().filter(|_| credentials) {
            known.insert(replica.name().to_owned(), archive.credential(replica.name())?);
        }
        let second = |replica: &grange_archive::Replica| {
            known.get(replica.name()).cloned().map_or(Second::None, Second::Credential)
        };
        Ok(archive.repair_all(&who.actor(), second, dry_run).await?)
    }

    /// The open repairs, then the newest of those that have ended.
    pub async fn repairs(&self, who: &Who) -> Result<Vec<RepairRow>, Error> {
        who.needs(Permission::ReadSystem)?;
        Ok(self.db.repairs().open_first(ENDED_REPAIRS_MAX).await?)
    }

    /// Asks for the repairs that put a file right whose copies contradict its record. Each waits for a second person.
    pub async fn decide_repair(
        &self,
        who: &Who,
        name: &str,
        keep: RepairChoice,
    ) -> Result<Vec<RepairRow>, Error> {
        who.needs(Permission::ManageSystem)?;
        Ok(self.archive.get().await?.decide(&file_name(name)?, keep, &who.actor()).await?)
    }

    /// The second person's word.
    pub async fn confirm_repair(&self, who: &Who, id: &str) -> Result<RepairRow, Error> {
        who.needs(Permission::ManageSystem)?;
        let id = id.parse().map_err(|_| Error::NotFound { noun: "repair", name: id.to_owned() })?;
        Ok(self.archive.get().await?.confirm_repair(id, &who.actor()).await?)
    }

    /// Takes back a repair that waits for a second person.
    pub async fn withdraw_repair(&self, who: &Who, id: &str) -> Result<RepairRow, Error> {
        who.needs(Permission::ManageSystem)?;
        let id = id.parse().map_err(|_| Error::NotFound { noun: "repair", name: id.to_owned() })?;
        Ok(self.archive.get().await?.withdraw_repair(id, &who.actor()).await?)
    }

    /// Proves that nothing in the log was rewritten, or says what was.
    pub async fn verify_log(&self, who: &Who) -> Result<LogReport, Error> {
        who.needs(Permission::ReadAudit)?;
        Ok(self.archive.get().await?.verify_log().await?)
    }

    /// The keys that sign the log, or once did.
    pub async fn log_keys(&self, who: &Who) -> Result<Vec<LogKey>, Error> {
        who.needs(Permission::ReadAudit)?;
        Ok(self.archive.get().await?.log_keys().await?)
    }

    /// Takes a new key for the log on this node; the old one vouches for it.
    pub async fn rotate_log_key(&self, who: &Who) -> Result<LogKey, Error> {
        who.needs(Permission::ManageSystem)?;
        Ok(self.archive.get().await?.rotate_log_key(&who.actor()).await?)
    }

    /// A proof about a file that a third party can check.
    pub async fn prove(&self, who: &Who, name: &str) -> Result<Proof, Error> {
        who.needs(Permission::ReadAudit)?;
        Ok(self.archive.get().await?.prove(&file_name(name)?).await?)
    }

    /// Enters every file that lies on the replicas and has no row.
    pub async fn rebuild(&self, who: &Who) -> Result<Rebuilt, Error> {
        who.needs(Permission::ManageSystem)?;
        Ok(self.archive.get().await?.rebuild(who.name()).await?)
    }
}
