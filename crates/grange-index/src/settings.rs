//! How an index is kept.

/// Numbers that trade memory, disk and time.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Memory for blocks that were read lately. A quarter of the gigabyte that an index may take.
    pub cache_bytes: u64,
    /// The head is written out as a segment beyond this. Reading it back at a start takes well below a second.
    pub head_bytes: u64,
    /// Bytes of a block before compression, digests and offsets not counted: some thirty rows. Twice as much saves a byte
    /// and a half per capture (of 42) and costs up to a third of the lookups per second.
    pub block_bytes: usize,
    /// zstd's level. Blocks are written once or a few times and read for years.
    pub level: i32,
    /// What merging in the background may write per second; `None` is as fast as it goes.
    pub merge_bytes_per_s: Option<u64>,
    /// Memory for the lines of one run while loading; two or three are in hand at a time.
    pub load_bytes: usize,
    /// Threads that prepare runs while loading.
    pub load_threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            head_bytes: 16 << 20,
            block_bytes: 1 << 10,
            level: 3,
            merge_bytes_per_s: None,
            load_bytes: 64 << 20,
            load_threads: 2,
        }
    }
}
