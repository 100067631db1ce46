//! What Grange itself wrote down when a file came in is one voice among others. Where every copy says otherwise it is
//! the record that is wrong, and it is put right: after every copy was read again, and by two pairs of eyes.

use grange_base::Chain;
use grange_db::{Amendment, FileStatus, deciding};
use grange_model::{Checksums, LogEvent, Presence, Verdict};
use serde_json::json;

use crate::archive::Archive;
use crate::error::Error;
use crate::replica::{Answer, Replica};

/// How many copies must say the same against the record. One against one is a tie.
const COPIES_MIN: usize = 2;

/// The checksum that outvotes the record, by what the replicas answered last: every one that holds the file says it.
pub(crate) fn outvoted_by(status: &FileStatus) -> Option<&str> {
    let held: Vec<_> = status.holdings.iter().filter(|holding| holding.presence == Presence::Ok).collect();
    let said = held.first()?.checksum.as_deref()?;
    let agreed = |holding: &&grange_db::Holding| {
        holding.checksum.as_deref() == Some(said) && holding.verdict == Verdict::Ok
    };
    let outvoted = held.len() >= COPIES_MIN
        && held.iter().all(agreed)
        && said != deciding(&status.file.checksums)
        && said.parse::<Checksums>().is_ok();
    outvoted.then_some(said)
}

impl Archive {
    /// Reads every copy again and, if all agree against the record, changes it to what they say.
    pub(crate) async fn amend(
        &self,
        status: &FileStatus,
        replica: &Replica,
        by: &str,
        confirmed_by: Option<&str>,
    ) -> Result<FileStatus, Error> {
        let name = &status.file.name;
        let not = |reason: String| Error::NotOutvoted { name: name.clone(), reason };
        let was = deciding(&status.file.checksums);
        let algorithm = status.file.checksums.strongest().map(|(algorithm, _)| algorithm);
        let algorithm = algorithm.unwrap_or_else(|| self.0.settings.strongest());
        let (mut agreed, mut said) = (Vec::new(), None);
        for one in &self.0.replicas {
            // A replica that cannot be asked could be the one that knows better.
            let answer = one.checksum(name, algorithm).await;
            let answer = answer.map_err(|error| not(format!("{}: {}", one.name(), Chain(&error))))?;
            match answer {
                Answer::Missing => {}
                Answer::Unreadable => return Err(not(format!("{} cannot read its copy", one.name()))),
                Answer::Sums(sums) if said.is_none_or(|said: Checksums| said.same_as(&sums)) => {
                    said = Some(sums);
                    agreed.push(one.name());
                }
                Answer::Sums(_) => return Err(not(format!("{} says otherwise", one.name()))),
            }
        }
        let Some(said) = said.filter(|_| agreed.len() >= COPIES_MIN) else {
            return Err(not("fewer than two replicas hold it".to_owned()));
        };
        if deciding(&said) == was {
            return Err(not("they say what the record says".to_owned()));
        }
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
