//! The dictionary that makes small blocks compress like large ones: trained on blocks of the same data.

/// Larger ones gain less than their place in the cache costs.
const DICTIONARY_BYTES: usize = 32 << 10;

/// With fewer samples there is little to learn, and the file is small anyway.
const SAMPLES_MIN: usize = 256;

/// Training time grows with the samples; a thousand blocks say it all.
const SAMPLES_MAX: usize = 1000;

/// Blocks collected for training.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    bytes: Vec<u8>,
    sizes: Vec<usize>,
}

impl Sampler {
    pub(crate) fn push(&mut self, packed: &[u8]) {
        self.bytes.extend_from_slice(packed);
        self.sizes.push(packed.len());
    }

    pub(crate) fn is_full(&self) -> bool {
        self.sizes.len() >= SAMPLES_MAX
    }

    pub(crate) const fn wanted() -> usize {
        SAMPLES_MAX
    }
}

/// A dictionary, if there is enough to learn from.
pub(crate) fn train(samples: &Sampler) -> Option<Vec<u8>> {
    if samples.sizes.len() < SAMPLES_MIN {
        return None;
    }
    zstd::dict::from_continuous(&samples.bytes, &samples.sizes, DICTIONARY_BYTES).ok()
}
