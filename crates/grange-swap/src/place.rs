//! Which slice keeps a file: `MD5(path) mod n`, the digest read as one unsigned big-endian number.
//!
//! The paper says no more than "MD5(path) % slices". What it leaves open is settled so that every server, and anyone
//! with `md5sum` and a calculator, comes to the same slice: the path is relative to the collection, UTF-8, with `/`
//! between components and none in front; the 16 bytes are one unsigned big-endian number. The namespace is no part
//! of it, so a collection can be renamed without moving a byte.

use std::num::NonZeroU32;

use md5::{Digest as _, Md5};

/// The position of a path on the ring of all digests; every number of slices is derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point(pub u128);

impl Point {
    /// Of a path relative to its collection.
    pub fn of(path: &str) -> Self {
        Self(u128::from_be_bytes(Md5::digest(path.as_bytes()).into()))
    }

    /// The slice among `slices`.
    pub fn slice(self, slices: NonZeroU32) -> u32 {
        let slices = slices.get();
        if slices.is_power_of_two() {
            // The same answer without dividing 128 bits.
            return self.0 as u32 & (slices - 1);
        }
        (self.0 % u128::from(slices)) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slices(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    /// Worked out with `md5sum` and `bc`; they bind every implementation of SWAP.
    #[test]
    fn golden_vectors_hold() {
        for (path, digest, expected) in [
            ("documents/myfile1.txt", 0xa4d6_3ba9_b136_820f_6611_316d_e41c_18eb, [1, 1, 3, 3, 11]),
            ("documents/myfile2.txt", 0xd046_75a4_2c4f_caee_72d2_fe3c_9f49_a3ff, [1, 1, 3, 7, 15]),
            ("documents/project1", 0x4288_b432_aaf0_28fc_f903_57d2_2ac0_3ee7, [1, 2, 3, 7, 7]),
            ("documents/project1/readme.txt", 0x51f3_cb9e_857d_3daf_fc3d_b087_89b8_ae4e, [0, 0, 2, 6, 14]),
            ("oct2004/35/crawlfile.arc.gz", 0x7d25_31ca_1d7c_28e5_992b_77ff_28b0_db66, [0, 1, 2, 6, 6]),
            ("a", 0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661, [1, 1, 1, 1, 1]),
        ] {
            let point = Point::of(path);
            assert_eq!(point, Point(digest), "{path}");
            let found = [2, 3, 4, 8, 16].map(|n| point.slice(slices(n)));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn doubling_moves_half_and_slices_are_even() {
        let (mut moved, mut shares) = (0, [0_u32; 8]);
        for number in 0..20_000 {
            let point = Point::of(&format!("crawl/{:02}/{number}.warc.gz", number % 100));
            shares[point.slice(slices(8)) as usize] += 1;
            moved += u32::from(point.slice(slices(8)) != point.slice(slices(16)));
        }
        assert!((9_600..=10_400).contains(&moved), "{moved} of 20000 move");
        assert!(shares.iter().all(|share| (2_300..=2_700).contains(share)), "{shares:?}");
    }

    proptest! {
        #[test]
        fn a_doubled_collection_keeps_a_file_or_moves_it_to_the_new_peer(value: u128, n in 1_u32..=1 << 20) {
            let (point, old) = (Point(value), Point(value).slice(slices(n)));
            prop_assert_eq!(u128::from(old), value % u128::from(n));
            let new = point.slice(slices(2 * n));
            prop_assert!(new == old || new == old + n);
        }
    }
}
