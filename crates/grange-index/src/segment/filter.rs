//! A Bloom filter of the keys of one block: most keys that are not there are known not to be, without reading it.

/// Ten bits a key and seven probes: one absent key in a hundred costs a block.
const BITS_PER_KEY: usize = 10;
const PROBES: u32 = 7;

pub(super) fn hash(surt: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(surt)
}

/// The filter of keys with these hashes.
pub(super) fn build(hashes: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; (hashes.len() * BITS_PER_KEY).div_ceil(8)];
    let bits = bytes.len() as u64 * 8;
    for hash in hashes {
        for probe in 0..PROBES {
            let bit = place(*hash, probe, bits);
            bytes[bit / 8] |= 1 << (bit % 8);
        }
    }
    bytes
}

/// Whether a key with this hash may be there.
pub(super) fn admits(filter: &[u8], hash: u64) -> bool {
    let bits = filter.len() as u64 * 8;
    (0..PROBES).all(|probe| {
        let bit = place(hash, probe, bits);
        filter.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
    })
}

fn place(hash: u64, probe: u32, bits: u64) -> usize {
    let (first, step) = (hash as u32, (hash >> 32) as u32 | 1);
    ((u64::from(first.wrapping_add(step.wrapping_mul(probe))) * bits) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_admitted_and_few_others() {
        let key = |n: u32| hash(format!("com,example)/page/{n}").as_bytes());
        let mut strangers = 0;
        for block in 0..100 {
            let members: Vec<u64> = (0..40).map(|n| key(block * 40 + n)).collect();
            let filter = build(&members);
            assert!(members.iter().all(|hash| admits(&filter, *hash)));
            strangers += (0..100).filter(|n| admits(&filter, key(1_000_000 + block * 100 + n))).count();
        }
        assert!(strangers < 300, "{strangers} of 10,000");
        assert!(!admits(&[], 7));
    }
}
