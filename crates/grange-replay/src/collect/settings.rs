//! The `[index]` section of the settings.

use grange_base::{Period, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The indexes of collections: what they may take, and who may change them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IndexSettings {
    /// Memory for blocks of each index that were read lately.
    pub cache: Size,
    /// What merging in the background may write per second; `0B` is as fast as it goes.
    pub merge_bytes_per_second: Size,
    /// How often an idle indexer looks for files that nobody hinted at, and a replay node for what was indexed since.
    pub look_every: Period,
    /// Whether CDX lines may be posted to the replay port, as OutbackCDX's clients do. Whoever reaches the port can then
    /// change the index.
    pub accept_posts: bool,
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self {
            // An eighth of the gigabyte that an index may take.
            cache: Size(128 << 20),
            merge_bytes_per_second: Size(0),
            // Soon enough for people who wait for a page to appear.
            look_every: Period::from_secs(3),
            accept_posts: false,
        }
    }
}

impl IndexSettings {
    /// As the engine wants them.
    pub fn engine(&self) -> grange_index::Settings {
        grange_index::Settings {
            cache_bytes: self.cache.0,
            merge_bytes_per_s: Some(self.merge_bytes_per_second.0).filter(|bytes| *bytes > 0),
            ..grange_index::Settings::default()
        }
    }
}
