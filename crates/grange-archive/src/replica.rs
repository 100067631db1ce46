//! One replica behind one face: bytes on its nodes, or a journal of checksums.

use std::sync::Arc;

use bytes::Bytes;
use grange_base::{Chain, Clock};
use grange_blob::{Blob, Opened, Source, Taking, UnlistedFiles};
use grange_db::ReplicaRow;
use grange_model::{Algorithm, Checksums, FileName, Sha512};

use crate::error::Error;
use crate::journal::{Entry, Line};
use crate::presence::Watch;
use crate::sums::Sums;
use crate::transfer::{From, bring};
use crate::witness;

/// What the journal answers for a line that does not fit.
pub(crate) use grange_model::UNREADABLE;

/// An opened replica.
#[derive(Clone, Debug)]
pub struct Replica {
    pub row: ReplicaRow,
    pub(crate) keeps: Keeps,
    pub(crate) clock: Clock,
    pub(crate) watch: Watch,
}

#[derive(Clone, Debug)]
pub(crate) enum Keeps {
    /// One per node; a file lies on one of them.
    Bytes(Vec<Arc<dyn Blob>>),
    /// Names and checksums.
    Sums(Arc<dyn Sums>),
}

/// One copy in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: FileName,
    /// Absent where the copy is there and cannot be looked at.
    pub(crate) size: Option<u64>,
}

/// What a replica answers about a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Sums(Checksums),
    /// It is there and cannot be read.
    Unreadable,
    Missing,
}

/// Why a copy was not taken.
#[derive(Debug)]
pub(crate) enum UploadFault {
    /// The replica that should take it is away.
    Keeper(Error),
    /// The bytes did not come over: the source or the replica is at fault.
    Transfer(Error),
}

impl Replica {
    pub fn name(&self) -> &str {
        self.row.name.as_str()
    }

    pub fn keeps_bytes(&self) -> bool {
        matches!(self.keeps, Keeps::Bytes(_))
    }

    fn nodes(&self) -> Result<&[Arc<dyn Blob>], Error> {
        match &self.keeps {
            Keeps::Bytes(nodes) => Ok(nodes),
            Keeps::Sums(_) => Err(Error::NoBytes { replica: self.name().to_owned() }),
        }
    }

    /// The node that has the file. A node that does not answer is only an error when no other has it.
    async fn holder(&self, name: &FileName) -> Result<Option<&Arc<dyn Blob>>, Error> {
        let mut failed = None;
        for node in self.nodes()? {
            match node.stat(name).await {
                Ok(Some(_)) => return Ok(Some(node)),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(None), |error| Err(error.into()))
    }

    async fn holder_or_fail(&self, name: &FileName) -> Result<&Arc<dyn Blob>, Error> {
        self.holder(name).await?.ok_or_else(|| {
            grange_blob::Error::NotFound { name: name.clone(), place: self.name().to_owned() }.into()
        })
    }

    /// The node with most room, or the one that has the name already.
    async fn taker(&self, name: &FileName) -> Result<&Arc<dyn Blob>, Error> {
        let nodes = self.nodes()?;
        if let [only] = nodes {
            return Ok(only);
        }
        if let Some(holder) = self.holder(name).await? {
            return Ok(holder);
        }
        let mut best: Option<(u64, &Arc<dyn Blob>)> = None;
        for node in nodes {
            let room = node.free().await.map_or(0, |space| space.largest_bytes);
            if best.is_none_or(|(most, _)| room > most) {
                best = Some((room, node));
            }
        }
        best.map(|(_, node)| node)
            .ok_or_else(|| Error::Settings { reason: format!("the replica {} has no place", self.name()) })
    }

    /// Puts the copy there. Gives the replica's own checksum of it, read back from where it now lies; `None` where that
    /// is to be asked for.
    pub(crate) async fn upload(
        &self,
        name: &FileName,
        size: u64,
        checksums: &Checksums,
        from: &From,
    ) -> Result<Option<Checksums>, UploadFault> {
        match &self.keeps {
            Keeps::Bytes(_) => {
                let taker = self.taker(name).await.map_err(UploadFault::Keeper)?;
                self.verify_node(taker).await.map_err(UploadFault::Keeper)?;
                self.bring_to(taker, name, size, checksums, from).await.map_err(UploadFault::Transfer)
            }
            Keeps::Sums(sums) => {
                self.add_line(&**sums, name, size, checksums).await.map_err(UploadFault::Keeper)?;
                Ok(None)
            }
        }
    }

    async fn bring_to(
        &self,
        taker: &Arc<dyn Blob>,
        name: &FileName,
        size: u64,
        checksums: &Checksums,
        from: &From,
    ) -> Result<Option<Checksums>, Error> {
        // The checksum that decides is enough to compare; the others were computed once, when the file came.
        let deciding: Vec<_> = checksums.algorithms().take(1).collect();
        let expected = checksums.only(&deciding);
        let stored = match from {
            From::File(path) => taker.put_file(name, path, Taking::Copy, Some(&expected)).await?,
            From::Replica(other) => {
                let holder = other.holder_or_fail(name).await?;
                bring(&**holder, &**taker, name, size, &expected).await?
            }
            // Nobody here has summed these bytes up: every checksum is compared where they are kept.
            From::Offered(holder) => bring(&**holder, &**taker, name, size, checksums).await?,
        };
        if !stored.already {
            let replica = self.name().to_owned();
            metrics::counter!("grange_archive_copies_sent_total", "replica" => replica).increment(1);
        }
        Ok(Some(stored.checksums))
    }

    async fn add_line(
        &self,
        sums: &dyn Sums,
        name: &FileName,
        size: u64,
        checksums: &Checksums,
    ) -> Result<(), Error> {
        self.verify().await?;
        let (name, at) = (name.clone(), self.clock.now());
        let line = Line { name: name.clone(), size, checksums: *checksums, removed: false, at };
        if sums.add(line).await? {
            return Ok(());
        }
        if let Some(Entry::Sums(_, known)) = sums.get(&name).await? {
            return Err(Error::OtherBytes { name, known, given: *checksums });
        }
        let found = "a line that is damaged".to_owned();
        Err(Error::NotThatBad { name, replica: self.name().to_owned(), found })
    }

    /// The replica's own checksum of the copy: bytes are read where they lie. An error is about the replica as a whole;
    /// a copy that cannot be read while the replica answers is [`Answer::Unreadable`].
    pub(crate) async fn checksum(&self, name: &FileName, algorithm: Algorithm) -> Result<Answer, Error> {
        match &self.keeps {
            Keeps::Bytes(_) => {
                let mut tries = 0;
                loop {
                    tries += 1;
                    let error = match self.read_sums(name, algorithm).await {
                        Ok(Some(sums)) => return Ok(Answer::Sums(sums)),
                        Ok(None) => {
                            self.verify().await?;
                            return Ok(Answer::Missing);
                        }
                        Err(error) => error,
                    };
                    self.verify().await?;
                    if is_shortage(&error) {
                        return Err(error);
                    }
                    let certain = matches!(&error, Error::Blob(grange_blob::Error::Unreadable { .. }));
                    // What only happened once may have been the line and not the copy.
                    if certain || tries > 1 {
                        let error = Chain(&error).to_string();
                        tracing::error!(replica = self.name(), %name, error, "a copy cannot be read");
                        return Ok(Answer::Unreadable);
                    }
                }
            }
            Keeps::Sums(sums) => Ok(match sums.get(name).await? {
                None => {
                    self.verify().await?;
                    Answer::Missing
                }
                Some(Entry::Damaged) => Answer::Unreadable,
                Some(Entry::Sums(_, checksums)) => Answer::Sums(checksums.only(&[algorithm])),
            }),
        }
    }

    async fn read_sums(&self, name: &FileName, algorithm: Algorithm) -> Result<Option<Checksums>, Error> {
        let Some(holder) = self.holder(name).await? else { return Ok(None) };
        Ok(holder.checksum(name, &[algorithm]).await?)
    }

    /// Several checksums of one copy, read together; none if the copy is missing or cannot be read.
    pub(crate) async fn checksums(
        &self,
        name: &FileName,
        algorithms: &[Algorithm],
    ) -> Result<Option<Checksums>, Error> {
        match &self.keeps {
            Keeps::Bytes(_) => {
                let Some(holder) = self.holder(name).await? else { return Ok(None) };
                match holder.checksum(name, algorithms).await {
                    Err(grange_blob::Error::Unreadable { .. }) => Ok(None),
                    answer => Ok(answer?),
                }
            }
            Keeps::Sums(sums) => Ok(match sums.get(name).await? {
                Some(Entry::Sums(_, checksums)) => Some(checksums),
                None | Some(Entry::Damaged) => None,
            }),
        }
    }

    /// The size of the copy, without reading it.
    pub(crate) async fn size_of(&self, name: &FileName) -> Result<Option<u64>, Error> {
        for node in self.nodes()? {
            if let Some(stat) = node.stat(name).await? {
                return Ok(Some(stat.size));
            }
        }
        Ok(None)
    }

    pub(crate) async fn get(&self, name: &FileName) -> Result<Opened, Error> {
        Ok(self.holder_or_fail(name).await?.get(name).await?)
    }

    pub(crate) async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error> {
        Ok(self.holder_or_fail(name).await?.read_at(name, offset, len).await?)
    }

    /// `None` where there is no copy, or none that can be read. An error is about the replica as a whole.
    pub(crate) async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error> {
        let answered = async {
            let Some(holder) = self.holder(name).await? else { return Ok(None) };
            Ok::<_, Error>(holder.challenge(name, salt).await?)
        };
        match answered.await {
            Ok(Some(answer)) => Ok(Some(answer)),
            Ok(None) => {
                self.verify().await?;
                Ok(None)
            }
            Err(error) => {
                self.verify().await?;
                if is_shortage(&error) {
                    return Err(error);
                }
                tracing::error!(replica = self.name(), %name, error = %Chain(&error), "a copy cannot be read");
                Ok(None)
            }
        }
    }

    /// Takes the copy out of sight; its bytes stay in the attic.
    pub(crate) async fn remove(&self, name: &FileName, bad: &Checksums) -> Result<(), Error> {
        match &self.keeps {
            // One that cannot be read may not even answer who holds it.
            Keeps::Bytes(nodes) if bad.is_empty() => {
                for node in nodes {
                    match node.remove_to_attic(name, bad).await {
                        Err(grange_blob::Error::NotFound { .. }) => {}
                        removed => return Ok(removed?),
                    }
                }
                Err(grange_blob::Error::NotFound { name: name.clone(), place: self.name().to_owned() }.into())
            }
            Keeps::Bytes(_) => Ok(self.holder_or_fail(name).await?.remove_to_attic(name, bad).await?),
            Keeps::Sums(sums) => {
                if sums.remove(name, bad, self.clock.now()).await? {
                    return Ok(());
                }
                let found = match sums.get(name).await? {
                    Some(Entry::Sums(_, sums)) => sums.to_string(),
                    Some(Entry::Damaged) | None => "no line that can be read".to_owned(),
                };
                Err(Error::NotThatBad { name: name.clone(), replica: self.name().to_owned(), found })
            }
        }
    }

    /// Copies after the name, in order, witnesses left out: as far as every node of the replica has listed. The second
    /// value is where the next page begins; only its absence is the end, for a node may list fewer than `limit` at any
    /// time.
    pub(crate) async fn list(
        &self,
        after: Option<&FileName>,
        limit: usize,
    ) -> Result<(Vec<Listed>, Option<FileName>), Error> {
        let mut pages: Vec<Vec<Listed>> = Vec::new();
        match &self.keeps {
            Keeps::Sums(sums) => {
                let listed = |(name, entry): (String, Entry)| {
                    let size = if let Entry::Sums(size, _) = entry { Some(size) } else { None };
                    Some(Listed { name: name.parse().ok()?, size })
                };
                pages.push(sums.list(after, limit).await?.into_iter().filter_map(listed).collect());
            }
            Keeps::Bytes(nodes) => {
                for node in nodes {
                    let page = node.list(after, limit).await?;
                    let listed = |copy: grange_blob::Listed| Listed { name: copy.name, size: copy.size };
                    pages.push(page.into_iter().map(listed).collect());
                }
            }
        }
        // After the list, so that it was made where the marker lies.
        self.verify().await?;
        let (mut found, next) = joined(pages);
        found.dedup_by(|a, b| {
            let twice = a.name == b.name;
            if twice {
                tracing::warn!(replica = self.name(), name = %a.name, "two nodes of a replica hold this file");
            }
            twice
        });
        found.retain(|copy| !witness::reserved(&copy.name));
        Ok((found, next))
    }

    /// Files on its nodes that no listing shows.
    pub(crate) async fn unlisted(&self, limit: usize) -> Result<UnlistedFiles, Error> {
        let Keeps::Bytes(nodes) = &self.keeps else { return Ok(UnlistedFiles::default()) };
        let mut all = UnlistedFiles::default();
        for node in nodes {
            let found = node.unlisted(limit.saturating_sub(all.paths.len())).await?;
            all.count += found.count;
            all.paths.extend(found.paths);
        }
        Ok(all)
    }

    /// Ends uploads that killed processes left on its nodes.
    pub(crate) async fn remove_abandoned_uploads(&self) -> Result<u64, Error> {
        let Keeps::Bytes(nodes) = &self.keeps else { return Ok(0) };
        let mut removed = 0;
        for node in nodes {
            removed += node.remove_abandoned_uploads().await?;
        }
        Ok(removed)
    }

    /// Keeps a witness beside the copies.
    pub(crate) async fn put_witness(&self, name: &FileName, text: &[u8]) -> Result<(), Error> {
        match &self.keeps {
            Keeps::Bytes(_) => {
                let taker = self.taker(name).await?;
                self.verify_node(taker).await?;
                taker.put(name, Source::from(text), None).await?;
                Ok(())
            }
            Keeps::Sums(sums) => {
                self.verify().await?;
                sums.put_witness(name, text).await
            }
        }
    }

    /// The names of the witnesses that lie here.
    pub(crate) async fn witness_names(&self) -> Result<Vec<FileName>, Error> {
        let mut found = Vec::new();
        match &self.keeps {
            Keeps::Bytes(nodes) => {
                for node in nodes {
                    let mut after: FileName = witness::before_first();
                    'pages: loop {
                        let page = node.list(Some(&after), 1000).await?;
                        let Some(last) = page.last() else { break };
                        after = last.name.clone();
                        for copy in page {
                            if !witness::is_witness(&copy.name) {
                                if copy.name.as_str() > witness::PREFIX {
                                    break 'pages;
                                }
                                continue;
                            }
                            found.push(copy.name);
                        }
                    }
                }
            }
            Keeps::Sums(sums) => found = sums.witness_names().await?,
        }
        Ok(found)
    }

    /// One of them. `None` where it lies here and cannot be read, or is longer than any; an error is about the replica.
    async fn read_witness(&self, name: &FileName) -> Result<Option<Bytes>, Error> {
        let read = match &self.keeps {
            Keeps::Bytes(_) => self.read_at(name, 0, witness::BYTES_MAX as usize + 1).await,
            Keeps::Sums(sums) => sums.read_witness(name).await,
        };
        match read {
            Ok(text) => Ok(Some(text).filter(|text| text.len() as u64 <= witness::BYTES_MAX)),
            Err(error) => {
                self.verify().await?;
                if is_shortage(&error) {
                    return Err(error);
                }
                tracing::warn!(replica = self.name(), %name, error = %Chain(&error), "a witness cannot be read");
                Ok(None)
            }
        }
    }

    /// The witnesses that are wanted, each with its text if it can be read: one bad file says nothing about the others.
    pub(crate) async fn witnesses(
        &self,
        wanted: impl Fn(&FileName) -> bool,
    ) -> Result<Vec<(FileName, Option<Bytes>)>, Error> {
        let mut found = Vec::new();
        for name in self.witness_names().await?.into_iter().filter(wanted) {
            let text = self.read_witness(&name).await?;
            found.push((name, text));
        }
        Ok(found)
    }
}

/// Whether the machine of the replica lacks descriptors or memory, which says nothing about the copy.
fn is_shortage(error: &Error) -> bool {
    matches!(error, Error::Blob(grange_blob::Error::Shortage { .. }))
}

/// Joins the pages of several nodes up to the name that all of them have listed to, which is where the next page begins.
/// A node that lists nothing has come to its end; any other may have more after its last name.
fn joined(pages: Vec<Vec<Listed>>) -> (Vec<Listed>, Option<FileName>) {
    let upto = pages.iter().filter_map(|page| page.last()).map(|copy| copy.name.clone()).min();
    let mut found: Vec<Listed> = pages.into_iter().flatten().collect();
    found.retain(|copy| upto.as_ref().is_some_and(|upto| copy.name <= *upto));
    found.sort_by(|a, b| a.name.cmp(&b.name));
    (found, upto)
}

/// The process stops before work on files began.
fn stopped() -> Error {
    let source = std::io::Error::other("the process stops");
    Error::Io { doing: "work on files of", path: "this node".into(), source }
}

/// Runs file work off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(act).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(stopped()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(names: &[&str]) -> Vec<Listed> {
        names.iter().map(|name| Listed { name: name.parse().unwrap(), size: Some(1) }).collect()
    }

    #[test]
    fn a_page_ends_where_the_first_node_stopped_and_only_empty_pages_are_the_end() {
        for (pages, found, next) in [
            (vec![page(&[])], vec![], None),
            (vec![page(&[]), page(&[])], vec![], None),
            (vec![page(&["a"])], vec!["a"], Some("a")),
            (vec![page(&["a", "c"]), page(&["b", "d", "e"])], vec!["a", "b", "c"], Some("c")),
            (vec![page(&["a", "c"]), page(&[])], vec!["a", "c"], Some("c")),
            (vec![page(&["x"]), page(&["a", "b"])], vec!["a", "b"], Some("b")),
        ] {
            let (listed, upto) = joined(pages.clone());
            let names: Vec<_> = listed.iter().map(|copy| copy.name.as_str()).collect();
            assert_eq!((names, upto.as_ref().map(FileName::as_str)), (found, next), "{pages:?}");
        }
    }
}
