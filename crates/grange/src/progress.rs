//! A progress bar on a terminal, silence elsewhere.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often somebody else's progress is asked for: often enough for an eye, seldom enough for a database.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Bytes done of all files, with speed and time left. Shared by threads.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over the sizes of these files. Drawn only when standard error is a terminal and the work is long
    /// enough to be seen.
    pub(crate) fn over(files: &[PathBuf]) -> Self {
        let total = files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|meta| meta.len()).sum();
        Self::new(total, "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left  {msg}")
    }

    /// A bar over so many copies that somebody else looks at.
    pub(crate) fn of_copies(total: u64) -> Self {
        Self::new(total, "{bar:30} {pos}/{len} copies {per_sec} {eta} left")
    }

    /// A bar over the bytes of one file that comes.
    pub(crate) fn of_bytes(total: u64) -> Self {
        Self::new(total, "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left")
    }

    /// A count of copies where nobody knows how many there will be.
    pub(crate) fn counting() -> Self {
        Self::new(0, "{spinner} {pos} copies, {elapsed}")
    }

    fn new(total: u64, style: &str) -> Self {
        let bar = ProgressBar::new(total);
        // The template is a constant that a test of indicatif's own would have refused.
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar }
    }

    /// So many are done.
    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Asks every now and then how much is `done` while `work` goes on, and shows it.
    pub(crate) async fn beside<T>(
        &self,
        work: impl Future<Output = T>,
        done: impl AsyncFnMut() -> Option<u64>,
    ) -> T {
        let out = tokio::select! {
            out = work => out,
            never = self.watch(done) => match never {},
        };
        self.finish();
        out
    }

    async fn watch(&self, mut done: impl AsyncFnMut() -> Option<u64>) -> Infallible {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Some(done) = done().await {
                self.set(done);
            }
        }
    }

    /// Follows one file.
    pub(crate) fn file(&self, path: &Path) -> FileProgress<'_> {
        self.bar.set_message(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        FileProgress { progress: self, at: AtomicU64::new(0) }
    }

    /// Prints a line without tearing the bar.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The progress within one file.
#[derive(Debug)]
pub(crate) struct FileProgress<'p> {
    progress: &'p Progress,
    at: AtomicU64,
}

/// The bar moves in steps of this many bytes; asking it for every record would cost more than the record.
const STEP_BYTES: u64 = 1 << 20;

impl FileProgress<'_> {
    /// The reader is at this offset now.
    pub(crate) fn at(&self, offset: u64) {
        let before = self.at.load(Ordering::Relaxed);
        if offset >= before + STEP_BYTES {
            self.at.store(offset, Ordering::Relaxed);
            self.progress.bar.inc(offset - before);
        }
    }

    /// The file is done, all its bytes.
    pub(crate) fn done(&self, bytes: u64) {
        self.progress.bar.inc(bytes.saturating_sub(self.at.swap(bytes, Ordering::Relaxed)));
    }
}
