//! How captures are written down.

use grange_base::{Period, Size};
use serde::{Deserialize, Serialize};
use warc::write::Compression;

/// The `[write]` part of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Write {
    /// How records are packed: `gzip`, `zstd` or `none`.
    pub compression: Packing,
    /// The effort of packing; 6 is what other tools use. gzip 1 to 12, zstd 1 to 19.
    pub level: u8,
    /// The size at which a new WARC file is begun. A gigabyte is what archives exchange.
    pub roll_at: Size,
    /// How file names begin.
    pub prefix: String,
    /// The file name without suffix. `{prefix}`, `{job}`, `{timestamp14}`, `{timestamp17}`, `{serial}`,
    /// `{host}`.
    pub name: String,
    /// How many WARC files are written side by side.
    pub writers: u8,
    /// Whether requests are kept.
    pub requests: bool,
    /// Whether a metadata record (via, hops, outlinks) is kept for each capture.
    pub metadata: bool,
    /// A chunk is closed when its WARC files reach this size together; 0 for never.
    pub chunk_size: Size,
    /// A chunk is closed when it is this old; 0 for never.
    pub chunk_age: Period,
    /// How often files are forced to the disk. A power cut costs at most this much crawling, never a URL.
    pub sync_every: Period,
}

/// How records are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    #[default]
    Gzip,
    Zstd,
    None,
}

impl Default for Write {
    fn default() -> Write {
        Write {
            compression: Packing::Gzip,
            level: 6,
            roll_at: Size(1_000_000_000),
            prefix: "GRANGE".to_owned(),
            name: "{prefix}-{timestamp17}-{serial:5}-{host}".to_owned(),
            writers: 1,
            requests: true,
            metadata: true,
            chunk_size: Size(0),
            chunk_age: Period::from_secs(0),
            sync_every: Period::from_secs(5),
        }
    }
}

impl Write {
    pub fn packing(&self) -> Compression {
        match self.compression {
            Packing::Gzip => Compression::Gzip(self.level),
            Packing::Zstd => Compression::Zstd(i32::from(self.level)),
            Packing::None => Compression::None,
        }
    }

    /// What is wrong with these settings, if anything.
    pub fn problem(&self) -> Option<String> {
        let top = match self.compression {
            Packing::Gzip => 12,
            Packing::Zstd => 19,
            Packing::None => u8::MAX,
        };
        if self.compression != Packing::None && !(1..=top).contains(&self.level) {
            return Some(format!("write.level is {}; it goes from 1 to {top}", self.level));
        }
        if !(1..=32).contains(&self.writers) {
            return Some(format!("write.writers is {}; it goes from 1 to 32", self.writers));
        }
        None
    }
}

/// The `[dedup]` part of a template: when a capture is written as a revisit of an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dedup {
    /// `url`: the same URL with the same payload. `digest`: the same payload anywhere. `off`.
    pub by: DedupBy,
    /// Media types that are always written in full, as regular expressions over the whole type. Text is small
    /// and changes often.
    pub skip_types: Vec<String>,
    /// Payloads below this size are always written in full: a revisit record is not smaller.
    pub min_size: Size,
    /// Whether a server is asked only for what changed, when an earlier capture tells its validators. Only for
    /// types without links, such as pictures: the links of a page that is not sent again cannot be followed.
    pub conditional: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DedupBy {
    #[default]
    Url,
    Digest,
    Off,
}

impl Default for Dedup {
    fn default() -> Dedup {
        Dedup {
            by: DedupBy::Url,
            skip_types: vec!["text/.*".to_owned()],
            min_size: Size(0),
            conditional: true,
        }
    }
}
