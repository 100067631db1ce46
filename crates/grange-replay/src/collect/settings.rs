//! The `[index]` section of the settings.

use std::path::PathBuf;

use grange_base::{Period, Size};
use grange_blob::BucketSettings;
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
    /// Time without a sign of the node that keeps the index of a collection, after which another node with the role indexer
    /// takes it over: with the newest copy if there is `index.copies`, else by reading all files of the collection again. The
    /// same on all nodes.
    pub takeover_after: Period,
    /// Whether CDX lines may be posted to the replay port, as OutbackCDX's clients do. Whoever reaches the port can then
    /// change the index.
    pub accept_posts: bool,
    /// A store for copies of indexes: the node that keeps an index puts every change there, other nodes take from there what
    /// they replay, and what they take over. `url` is as that of a replica; empty: no copies.
    pub copies: CopiesSettings,
    /// Buckets whose files may be taken into collections and are read where they lie.
    pub buckets: Vec<BucketSettings>,
}

/// Where copies of indexes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CopiesSettings {
    /// `s3://BUCKET/PREFIX?endpoint=URL&region=NAME` or `file:FOLDER`; empty: indexes are not copied.
    pub url: String,
    /// File with the access key of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_file: Option<PathBuf>,
    /// File with the secret key of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_file: Option<PathBuf>,
    /// How often copies are made, and looked for.
    pub every: Period,
}

impl Default for CopiesSettings {
    fn default() -> Self {
        Self {
            url: String::new(),
            access_key_file: None,
            secret_key_file: None,
            // A listing of the bucket each time; readers elsewhere can wait that long for what was just harvested.
            every: Period::from_secs(60),
        }
    }
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self {
            // An eighth of the gigabyte that an index may take.
            cache: Size(128 << 20),
            merge_bytes_per_second: Size(0),
            // Soon enough for people who wait for a page to appear.
            look_every: Period::from_secs(3),
            // A machine restarts within this, and without copies a takeover reads the whole collection.
            takeover_after: Period::from_secs(600),
            accept_posts: false,
            copies: CopiesSettings::default(),
            buckets: Vec::new(),
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
