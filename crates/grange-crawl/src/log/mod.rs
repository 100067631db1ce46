//! The words of the log files, column by column as Heritrix 3 writes them, so that tools made for its logs read
//! ours: `crawl.log`, `progress-statistics.log`, `uri-errors.log`, `nonfatal-errors.log`, `runtime-errors.log`,
//! `alerts.log`.
//!
//! Everything here turns values into bytes or bytes into values; files are opened, rotated and synced elsewhere.
//! Whatever a server puts into a URL, a type or an annotation, a line stays one line and its columns stay apart.

mod annotations;
mod column;
mod errors;
mod extra;
mod line;
mod progress;
mod time;

pub use annotations::{Annotations, Original, Revisit, split as split_annotations};
pub use errors::{AlertLevel, alert, nonfatal_error, runtime_error, uri_error};
pub use extra::Extra;
pub use line::{CrawlLine, Fetched, LineError, mime_column};
pub use progress::{LEGEND, Note, Progress};
pub(crate) use time::push_millis;
pub use time::seventeen as read_digits;
