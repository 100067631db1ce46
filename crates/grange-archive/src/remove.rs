//! Taking a copy out of its place: never alone, never a good one, never without keeping it in the attic.

use std::path::Path;

use grange_base::durable;
use grange_db::{Begun, FileStatus, IfStored, NewFile, deciding};
use grange_model::{Actor, Checksums, FileName, LogEvent};
use serde_json::json;
use subtle::ConstantTimeEq;

use crate::archive::Archive;
use crate::digest::{CopyError, Sums, copy_summed};
use crate::error::Error;
use crate::held_file::HeldFile;
use crate::replica::{Answer, Replica};
use crate::store::LOOK_AGAIN;

/// The second pair of eyes.
#[derive(Clone, Debug)]
pub enum Second {
    /// Nobody yet: the repair waits.
    None,
    /// Another person, whoever it was that asked.
    Person(String),
    /// The replica's credential.
    Credential(String),
}

/// Refuses an actor who may be any person, for an act in which persons are compared.
pub(crate) fn identified(actor: &Actor, doing: &'static str) -> Result<(), Error> {
    if actor.is_identified() { Ok(()) } else { Err(Error::Unidentified { doing, who: actor.who.clone() }) }
}

impl Archive {
    /// Checks the second pair of eyes and gives its name for the books. `None` when there is none yet: then a person will be
    /// compared with the one who asks.
    pub(crate) fn seconded(
        &self,
        replica: &Replica,
        asked_by: &Actor,
        second: &Second,
    ) -> Result<Option<String>, Error> {
        match second {
            Second::None => {
                identified(asked_by, "ask for a repair that a second person confirms")?;
                Ok(None)
            }
            Second::Person(who) if *who == asked_by.who => Err(Error::SamePerson { who: who.clone() }),
            Second::Person(who) => {
                identified(asked_by, "ask for a repair")?;
                identified(&Actor::new(who.clone(), asked_by.via.clone()), "confirm a repair")?;
                Ok(Some(who.clone()))
            }
            Second::Credential(given) => {
                let known = self.credential(replica.name())?;
                if known.as_bytes().ct_eq(given.trim().as_bytes()).into() {
                    Ok(Some(format!("credential of {}", replica.name())))
                } else {
                    Err(Error::Credential { replica: replica.name().to_owned() })
                }
            }
        }
    }

    /// The credential of a replica, as it lies on this machine: whoever can read it may take copies out alone. Made
    /// at first use where the settings name no file.
    pub fn credential(&self, replica: &str) -> Result<String, Error> {
        let replica = self.replica(replica)?;
        let named =
            self.0.settings.replicas.get(&replica.row.name).and_then(|one| one.credential_file.clone());
        let made = named.is_none();
        let path = named.unwrap_or_else(|| format!("secrets/replica-{}.credential", replica.name()).into());
        let path = self.0.data_dir.join(path);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let line = text.lines().next().unwrap_or_default().trim().to_owned();
                if line.is_empty() {
                    return Err(Error::Key { path, reason: "its first line is empty".to_owned() });
                }
                Ok(line)
            }
            Err(error) if made && error.kind() == std::io::ErrorKind::NotFound => {
                let secret = data_encoding::HEXLOWER.encode(&rand::random::<[u8; 16]>());
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
                }
                match durable::create_new(&path, format!("{secret}\n").as_bytes(), durable::SECRET) {
                    Ok(()) => Ok(secret),
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                        self.credential(replica.name())
                    }
                    Err(error) => Err(Error::io("write", &path)(error)),
                }
            }
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Replaces one copy that answers `bad` by a proven one. The old bytes go to the attic.
    pub async fn correct(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        actor: &Actor,
    ) -> Result<FileStatus, Error> {
        let replica = self.replica(replica)?;
        let status = self.file(name).await?;
        if self.seconded(replica, actor, second)?.is_none() {
            return Err(Error::Credential { replica: replica.name().to_owned() });
        }
        let file = HeldFile::default();
        let replaced = self.replace(replica, &status, Some(bad), &actor.who, &file).await;
        self.give_back(&file).await;
        replaced
    }

    /// Takes the copy out and a proven one in. `bad`: what it must answer, or anything that is not the file. The caller gives
    /// the file back that is `held`.
    pub(crate) async fn replace(
        &self,
        replica: &Replica,
        status: &FileStatus,
        bad: Option<&Checksums>,
        by: &str,
        held: &HeldFile,
    ) -> Result<FileStatus, Error> {
        let (name, file) = (&status.file.name, &status.file);
        let answer = self.bad_answer(replica, status, bad).await?;
        // Read now: a row may be older than the disk, and nothing leaves its place before another copy is known to be good.
        if !self.good_copy_elsewhere(status, replica).await {
            return Err(Error::NoCopy { name: name.clone(), reason: NO_GOOD_COPY.to_owned(), away: false });
        }
        // Claimed before anything is moved: if we die in between, the queue makes the copy again.
        let (new, owner) = (again(status), &self.0.owner);
        let claim = loop {
            match self.0.db.files().begin(new.clone(), owner, self.0.settings.lease.0, IfStored::Skip).await?
            {
                Begun::Claimed(_, claim) => break claim,
                Begun::Busy(_) => tokio::time::sleep(LOOK_AGAIN).await,
                Begun::Refused(known) => {
                    let (known, given) = (known.checksums, file.checksums);
                    return Err(Error::OtherBytes { name: name.clone(), known, given });
                }
                Begun::Proven(_) => {
                    // The rows think well of a copy that does not answer well: what it answers counts.
                    let asked_at = self.0.clock.now();
                    let answer = self.bad_answer(replica, status, bad).await?;
                    let answers = vec![(replica.row.id, crate::audit::text(answer))];
                    self.0.db.audits().observe(file.id, asked_at, answers, by).await?;
                }
            }
        };
        let act = async {
            // Whoever was away for longer than its lease takes nothing out any more.
            self.0.db.work().renew(&claim, self.0.settings.lease.0).await?;
            match answer {
                Answer::Sums(sums) => replica.remove(name, &sums).await?,
                // Without a checksum a replica lets go only of what it cannot read itself.
                Answer::Unreadable => replica.remove(name, &Checksums::default()).await?,
                Answer::Missing => {}
            }
            let fresh = self.file(name).await?;
            self.drive(&fresh, &claim, None, by).await
        };
        self.settling(held, &claim, act).await?;
        self.file(name).await
    }

    /// Whether the bytes to make the copy again are there now: another replica answers the recorded checksum, the
    /// depositor's file lies here, or the replica keeps no bytes.
    async fn good_copy_elsewhere(&self, status: &FileStatus, replica: &Replica) -> bool {
        let Some((algorithm, _)) = status.file.checksums.strongest() else { return false };
        for other in
            self.0.replicas.iter().filter(|other| other.keeps_bytes() && other.row.id != replica.row.id)
        {
            let answer = other.checksum(&status.file.name, algorithm).await;
            if matches!(answer, Ok(Answer::Sums(sums)) if sums.same_as(&status.file.checksums)) {
                return true;
            }
        }
        !replica.keeps_bytes() || self.deposited_file(status).await.is_some()
    }

    /// The copy's answer now, provided it is the bad one.
    async fn bad_answer(
        &self,
        replica: &Replica,
        status: &FileStatus,
        bad: Option<&Checksums>,
    ) -> Result<Answer, Error> {
        let file = &status.file;
        let (name, replica_name) = (file.name.clone(), replica.name().to_owned());
        let algorithm = bad.and_then(Checksums::strongest).or_else(|| file.checksums.strongest());
        let Some((algorithm, _)) = algorithm else { return Ok(Answer::Unreadable) };
        let answer = replica.checksum(&file.name, algorithm).await?;
        match answer {
            Answer::Sums(sums) if sums.same_as(&file.checksums) => {
                Err(Error::IsGood { name, replica: replica_name })
            }
            Answer::Sums(sums) if bad.is_some_and(|bad| !bad.same_as(&sums)) => {
                Err(Error::NotThatBad { name, replica: replica_name, found: deciding(&sums) })
            }
            answer => Ok(answer),
        }
    }

    /// Takes a wrong copy out and hands its bytes over; they also stay in the attic.
    pub async fn remove_and_get(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        dest: &Path,
        actor: &Actor,
    ) -> Result<FileStatus, Error> {
        let replica = self.replica(replica)?;
        let status = self.file(name).await?;
        if self.seconded(replica, actor, second)?.is_none() {
            return Err(Error::Credential { replica: replica.name().to_owned() });
        }
        self.bad_answer(replica, &status, Some(bad)).await?;
        if replica.keeps_bytes() {
            let opened = replica.get(name).await?;
            // Never over another file.
            let mut file = tokio::fs::File::create_new(dest).await.map_err(Error::io("write", dest))?;
            let copied = copy_summed(opened, &mut file, Sums::default()).await.map_err(|error| match error {
                CopyError::Read(error) => Error::io("copy its bytes to", dest)(error),
                CopyError::Write(error) => Error::io("write", dest)(error),
            });
            let synced = file.sync_all().await.map_err(Error::io("sync", dest));
            if let Err(error) = copied.and(synced) {
                let _ = tokio::fs::remove_file(dest).await;
                return Err(error);
            }
        }
        replica.remove(name, bad).await?;
        let (file, removed_at) = (status.file.id, self.0.clock.now());
        let answers = vec![(replica.row.id, None)];
        self.0.db.audits().observe(file, removed_at, answers, &actor.who).await?;
        let detail = json!({ "bad": bad });
        let record = self.record(LogEvent::Removed, &status, Some(replica.name()), &actor.who, detail);
        self.0.db.logbook().append(vec![record]).await?;
        self.file(name).await
    }
}

/// Why a copy cannot be made again.
pub(crate) const NO_GOOD_COPY: &str =
    "no other replica holds the recorded bytes: store the original file again, then repeat the repair";

/// The known file, to be stored again from its proven copies.
pub(crate) fn again(status: &FileStatus) -> NewFile {
    let file = &status.file;
    NewFile { name: file.name.clone(), size: file.size, checksums: file.checksums, source: None }
}
