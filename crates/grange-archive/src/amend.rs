//! Correcting a record: where every copy with bytes contradicts what was recorded when the file came in, two people may
//! decide that the record is wrong. Every copy is read again before it is changed.

use grange_base::Chain;
use grange_db::{Amendment, FileStatus, Holding, deciding};
use grange_model::{Ballot, Checksums, LogEvent, Presence, ReplicaKind, contradiction};
use serde_json::json;

use crate::archive::Archive;
use crate::error::Error;
use crate::replica::{Answer, Replica};

/// What every copy with bytes says against the record, by what the replicas answered last.
pub(crate) fn contradicted(status: &FileStatus) -> Option<(String, bool)> {
    let ballot = |holding: &Holding| {
        let ballot = Ballot {
            replica: holding.replica_id,
            presence: holding.presence,
            checksum: holding.checksum.clone(),
        };
        (ballot, holding.kind == ReplicaKind::Bitarchive)
    };
    let ballots: Vec<_> = status.holdings.iter().map(ballot).collect();
    let found = contradiction(&deciding(&status.file.checksums), &ballots)?;
    Some((found.checksum.to_owned(), found.record_confirmed))
}

impl Archive {
    /// Reads every copy again and, if all with bytes answer `confirmed`, records that. A checksum replica may say
    /// otherwise: the two people saw that, and it is corrupt from then on.
    pub(crate) async fn amend(
        &self,
        status: &FileStatus,
        replica: &Replica,
        confirmed: Option<&str>,
        by: &str,
        confirmed_by: Option<&str>,
    ) -> Result<FileStatus, Error> {
        let name = &status.file.name;
        let not = |reason: String| Error::NotOutvoted { name: name.clone(), reason };
        let was = deciding(&status.file.checksums);
        let algorithm = status.file.checksums.strongest().map(|(algorithm, _)| algorithm);
        let algorithm = algorithm.unwrap_or_else(|| self.0.settings.strongest());
        let mut ballots = Vec::new();
        for one in &self.0.replicas {
            // A replica that cannot be asked could be the one that knows better.
            let answer = one.checksum(name, algorithm).await;
            let answer = answer.map_err(|error| not(format!("{}: {}", one.name(), Chain(&error))))?;
            let presence = if answer == Answer::Missing { Presence::Missing } else { Presence::Ok };
            let ballot = Ballot { replica: one.name(), presence, checksum: crate::audit::text(answer) };
            ballots.push((ballot, one.keeps_bytes()));
        }
        let Some(found) = contradiction(&was, &ballots) else {
            return Err(not("the copies do not contradict it with one voice".to_owned()));
        };
        if confirmed != Some(found.checksum) {
            return Err(not(format!("the copies now say {}, which nobody confirmed", found.checksum)));
        }
        let said: Checksums =
            found.checksum.parse().map_err(|_| not(format!("{} is not a checksum", found.checksum)))?;
        let agreed: Vec<&str> = ballots
            .iter()
            .filter(|(ballot, _)| ballot.checksum.as_deref() == Some(found.checksum))
            .map(|(ballot, _)| ballot.replica)
            .collect();
        let (size, checksums) = self.sums_of(replica, status, said).await?;
        let detail = json!({
            "was": status.file.checksums, "was_size": status.file.size, "agreed": agreed,
            "confirmed_by": confirmed_by,
        });
        let mut record = self.record(LogEvent::Amended, status, None, by, detail);
        (record.checksum, record.size) = (Some(deciding(&checksums)), Some(size));
        let amendment = Amendment { file_id: status.file.id, was, size, checksums, record };
        if !self.0.db.files().amend(amendment).await? {
            return Err(not("the record was changed meanwhile".to_owned()));
        }
        self.file(name).await
    }

    /// Size and all configured checksums of the copy, which must be the one that all agree on.
    async fn sums_of(
        &self,
        replica: &Replica,
        status: &FileStatus,
        said: Checksums,
    ) -> Result<(u64, Checksums), Error> {
        let name = &status.file.name;
        let gone = || {
            let reason = format!("{} has no readable copy any more", replica.name());
            Error::NotOutvoted { name: name.clone(), reason }
        };
        let size = replica.size_of(name).await?.ok_or_else(gone)?;
        let mut all = said;
        for algorithm in &self.0.settings.checksums {
            if all.get(*algorithm).is_none() {
                let Answer::Sums(sums) = replica.checksum(name, *algorithm).await? else {
                    return Err(gone());
                };
                all = all.or(Some(&sums));
            }
        }
        Ok((size, all))
    }
}
