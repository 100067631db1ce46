//! The virus gate between fetch and write.
//!
//! An answer is shown to a clamd, if one is set. What it calls infected is kept, but where it can do no harm: as a
//! `conversion` record in a WARC file whose name says `-VIRAL`, every byte turned so that no reader takes it for the
//! file, and reversibly, so that nothing is lost. What could not be scanned is never taken for clean: it goes the
//! same way, or is written with a flag, as the settings say.

mod clamd;
mod convert;
mod gate;
mod settings;

pub use clamd::{Scanner, ScannerError};
pub use convert::{CONTENT_TYPE, KEY, KeyOfType, Xor, xor};
pub use gate::{Place, Unscanned, Verdict};
pub use settings::{OnUnscanned, Settings};

#[cfg(test)]
mod tests;
