//! The oracle of a crawl: from the jobs it continues from to an answer for every capture.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use grange_archive::ArchiveClient;
use grange_crawl::record::{DuplicateOracle, NoOracle, Original};
use grange_model::FileName;
use grange_model::harvest::JobId;
use tokio::task::JoinSet;
use warc::Digest;

use super::anywhere::Anywhere;
use super::build::{ASIDE, Builder, By};
use super::cache::{Cache, Limits, Working};
use super::index::{Index, IndexError};
use super::source::{Fed, feed};
use super::stored::{self, FileEvidence};

/// What a crawl asks whether it has a capture already.
pub struct Prepared {
    pub oracle: Arc<dyn DuplicateOracle>,
    /// The jobs it knows.
    pub jobs: Vec<JobId>,
    /// Jobs asked for of which nothing is known.
    pub missing: Vec<JobId>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("jobs", &self.jobs)
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

/// Why no oracle could be made. The crawl goes on without one.
#[derive(Debug, thiserror::Error)]
pub enum DedupError {
    #[error("cannot read what earlier jobs stored")]
    Archive(#[source] Box<grange_archive::Error>),
    #[error("cannot use the folder of duplicate indexes {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl From<grange_archive::Error> for DedupError {
    fn from(error: grange_archive::Error) -> DedupError {
        DedupError::Archive(Box::new(error))
    }
}

/// How often an index is made for one crawl. One that is damaged as soon as it is made lies on a failing disk.
const MADE_MAX: u32 = 3;

/// Metadata files read side by side. Each is unpacked and parsed by one thread.
const READERS: usize = 2;

/// An oracle over what `jobs` have stored; its index is kept in the folder `cache`. Jobs without papers in the archive
/// are left out and told: an index over most of the jobs saves most of the bytes. `by` is what the crawl will ask:
/// payloads under other URLs have an index of their own, made only for those who want it.
pub async fn oracle_for(
    archive: &Arc<dyn ArchiveClient>,
    cache: &Path,
    jobs: &[JobId],
    by: By,
) -> Result<Prepared, DedupError> {
    let kinds = match by {
        By::Url => &[By::Url][..],
        By::Payload => &[By::Url, By::Payload],
    };
    let io = |error| DedupError::Io(cache.to_owned(), error);
    let folder = Cache::open(cache).map_err(io)?;
    let mut wanted = jobs.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let (mut missing, mut made) = (Vec::new(), 0);
    // The set whose index was built by this call: what it says of files was just asked.
    let mut fresh = None;
    let indexes = loop {
        if wanted.is_empty() {
            return Ok(Prepared { oracle: Arc::new(NoOracle), jobs: wanted, missing });
        }
        let mut opened =
            kinds.iter().map(|by| opened(&folder, *by, &wanted)).collect::<Result<Vec<_>, _>>()?;
        for index in opened.iter_mut().filter(|_| fresh.as_ref() != Some(&wanted)) {
            if let Some(kept) = index
                && !stored::still_holds(archive, kept.files()?).await?
            {
                tracing::info!(path = %kept.path().display(), "files of a duplicate index were verified, removed or found damaged since it was built; it is built again");
                remove(kept.path()).map_err(io)?;
                *index = None;
            }
        }
        let absent_kinds: Vec<_> =
            kinds.iter().zip(&opened).filter(|(_, index)| index.is_none()).map(|(by, _)| *by).collect();
        if absent_kinds.is_empty() {
            break opened.into_iter().flatten().collect::<Vec<_>>();
        }
        let papers = papers_of(&**archive, &wanted).await?;
        let absent: Vec<_> =
            papers.iter().filter(|(_, files)| files.is_empty()).map(|(job, _)| *job).collect();
        if absent.is_empty() {
            made += 1;
            if made > MADE_MAX + missing.len() as u32 {
                let error = io::Error::other("an index that was just made cannot be read; check the disk");
                return Err(io(error));
            }
            match make(archive, &folder, &wanted, &absent_kinds, papers).await? {
                Some(job) => {
                    wanted.retain(|one| *one != job);
                    missing.push(job);
                }
                None => fresh = Some(wanted.clone()),
            }
            continue;
        }
        wanted.retain(|job| !absent.contains(job));
        missing.extend(absent);
    };
    if !missing.is_empty() {
        tracing::warn!(
            ?missing,
            known = wanted.len(),
            "captures of these jobs are not known: they have no papers that can be read"
        );
    }
    let paths: Vec<_> = indexes.iter().map(Index::path).collect();
    for path in &paths {
        folder.touch(path);
    }
    match folder.trim(Limits::default(), &paths, SystemTime::now()) {
        Ok(gone) if !gone.is_empty() => {
            tracing::info!(indexes = gone.len(), "took unused indexes of duplicates away");
        }
        Err(error) => tracing::warn!(%error, "cannot trim the folder of duplicate indexes"),
        Ok(_) => {}
    }
    missing.sort_unstable();
    let mut indexes = indexes.into_iter();
    let (urls, payloads) = (indexes.next(), indexes.next());
    let oracle: Arc<dyn DuplicateOracle> = match (urls, payloads) {
        (Some(urls), Some(payloads)) => Arc::new(Anywhere::new(urls, payloads, archive.clone())),
        (Some(urls), None) => Arc::new(urls),
        (None, _) => Arc::new(NoOracle),
    };
    Ok(Prepared { oracle, jobs: wanted, missing })
}

/// The index of exactly these jobs, if there is one. One that is damaged or of another version is
/// removed.
fn opened(folder: &Cache, by: By, jobs: &[JobId]) -> Result<Option<Index>, DedupError> {
    match Index::open(&folder.path(by, jobs)) {
        Ok(index) => Ok(Some(index)),
        Err(IndexError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(IndexError::Io(path, error)) => Err(IndexError::Io(path, error).into()),
        Err(error @ (IndexError::Damaged { .. } | IndexError::OtherVersion { .. })) => {
            if matches!(error, IndexError::Damaged { .. }) {
                tracing::error!(%error, "the index is made anew");
            } else {
                tracing::info!(%error, "the index is built again");
            }
            remove(&folder.path(by, jobs))
                .map_err(|error| DedupError::Io(folder.folder().to_owned(), error))?;
            Ok(None)
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The metadata files of each job. A job that was tried several times may have several.
async fn papers_of(
    archive: &dyn ArchiveClient,
    jobs: &[JobId],
) -> Result<Vec<(JobId, Vec<FileName>)>, grange_archive::Error> {
    let mut papers = Vec::with_capacity(jobs.len());
    for job in jobs {
        papers.push((*job, crate::metadata::stored(archive, *job).await?));
    }
    Ok(papers)
}

/// Makes indexes of these jobs. Answers a job whose papers could not be read, if there is one; then no index is made.
async fn make(
    archive: &Arc<dyn ArchiveClient>,
    folder: &Cache,
    jobs: &[JobId],
    kinds: &[By],
    papers: Vec<(JobId, Vec<FileName>)>,
) -> Result<Option<JobId>, DedupError> {
    let io = |error| DedupError::Io(folder.folder().to_owned(), error);
    let began = Instant::now();
    let (cache, set) = (folder.clone(), jobs.to_vec());
    let working: Working = blocking(move || cache.lock(&set)).await.map_err(io)?;
    let paths: Vec<_> = kinds.iter().map(|by| folder.path(*by, jobs)).collect();
    if paths.iter().all(|path| path.exists()) {
        // Somebody else made it while we waited.
        return Ok(None);
    }
    let scratch = tempfile::Builder::new().prefix(ASIDE).tempdir_in(folder.folder()).map_err(io)?;
    let builders: Arc<Vec<_>> = Arc::new(kinds.iter().map(|by| Builder::new(*by, scratch.path())).collect());
    let mut readers: JoinSet<(JobId, io::Result<Fed>)> = JoinSet::new();
    let mut fed = Fed::default();
    let mut ended = |(job, result): (JobId, io::Result<Fed>)| match result {
        Ok(one) => {
            fed.lines += one.lines;
            fed.entries += one.entries;
            fed.unreadable += one.unreadable;
            None
        }
        Err(error) => {
            tracing::warn!(%job, %error, "the papers of a job cannot be read");
            Some(job)
        }
    };
    for (number, (job, name)) in
        papers.into_iter().flat_map(|(job, names)| names.into_iter().map(move |name| (job, name))).enumerate()
    {
        if readers.len() >= READERS
            && let Some(done) = readers.join_next().await
            && let Some(lost) = ended(done.unwrap_or_else(|error| (job, Err(io::Error::other(error)))))
        {
            return Ok(Some(lost));
        }
        let dest = scratch.path().join(number.to_string());
        if let Err(error) = archive.get(&name, &dest).await {
            tracing::warn!(%job, file = %name, error = %grange_base::Chain(&error), "cannot fetch the papers of a job");
            return Ok(Some(job));
        }
        let builders = builders.clone();
        readers.spawn_blocking(move || {
            let fed = feed(&builders.iter().collect::<Vec<_>>(), &dest);
            // It has served; the folder goes in any case.
            let _ = fs::remove_file(&dest);
            (job, fed)
        });
    }
    while let Some(done) = readers.join_next().await {
        let job = jobs[0];
        if let Some(lost) = ended(done.unwrap_or_else(|error| (job, Err(io::Error::other(error))))) {
            return Ok(Some(lost));
        }
    }
    let Some(builders) = Arc::into_inner(builders) else { return Ok(None) };
    let named = builders.iter().flat_map(Builder::named_files).collect();
    let evidence = Arc::new(stored::evidence(archive, named).await?);
    report_left_out(&evidence);
    for (builder, path) in builders.into_iter().zip(paths) {
        let (by, lines, evidence) = (builder.by(), fed.lines, evidence.clone());
        let built = blocking(move || builder.finish(&path, &evidence)).await.map_err(io)?;
        let (took_ms, bytes) = (began.elapsed().as_millis() as u64, built.size);
        let (jobs, entries, left_out, unplaced) = (jobs.len(), built.entries, built.left_out, built.unplaced);
        tracing::info!(
            ?by,
            jobs,
            lines,
            entries,
            left_out,
            unplaced,
            bytes,
            took_ms,
            "made an index of duplicates"
        );
    }
    drop(working);
    Ok(None)
}

/// Logs the files whose captures are stored again.
fn report_left_out(evidence: &HashMap<String, FileEvidence>) {
    let mut left_out: Vec<_> = evidence.iter().filter(|(_, file)| !file.is_verified()).collect();
    if left_out.is_empty() {
        return;
    }
    left_out.sort_unstable_by_key(|(name, _)| *name);
    metrics::counter!("grange_harvest_dedup_files_left_out_total").increment(left_out.len() as u64);
    let (files, of) = (left_out.len(), evidence.len());
    let (first, why) = left_out[0];
    tracing::warn!(
        files,
        of,
        first,
        ?why,
        "duplicate index: files that are not verified on every replica are left out; their captures are stored again"
    );
}

/// Runs what blocks where it may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

impl DuplicateOracle for Index {
    fn same_url(&self, url: &str, payload: &Digest) -> Option<Original> {
        believed(self, self.find(url, payload))
    }

    fn same_payload(&self, _: &Digest) -> Option<Original> {
        None
    }
}

/// What an index found. A damaged one is told and taken away, and nothing it says is believed.
pub(super) fn believed(index: &Index, found: Result<Option<Original>, IndexError>) -> Option<Original> {
    found.unwrap_or_else(|error| {
        tracing::error!(%error, "captures are stored in full; the index is made anew for the next job");
        // Whoever has it open keeps it; the next one makes a sound one.
        let _ = remove(index.path());
        None
    })
}
