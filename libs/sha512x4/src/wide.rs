//! The compression function on four blocks at once: each 256-bit register holds the same word of four streams.
//!
//! One stream cannot fill a core's vector units, because every round needs the one before. Four streams do not need
//! each other.

// The arithmetic below is safe where AVX2 is; only the call into it needs the promise that it is there.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_extract_epi64, _mm256_or_si256, _mm256_set_epi64x,
    _mm256_set1_epi64x, _mm256_shuffle_epi8, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_xor_si256,
};

use crate::{BLOCK_BYTES, State};

/// FIPS 180-4, 4.2.3: the first 64 bits of the fractional parts of the cube roots of the first eighty primes.
#[rustfmt::skip]
const ROUND: [u64; 80] = [
    0x428a_2f98_d728_ae22, 0x7137_4491_23ef_65cd, 0xb5c0_fbcf_ec4d_3b2f, 0xe9b5_dba5_8189_dbbc,
    0x3956_c25b_f348_b538, 0x59f1_11f1_b605_d019, 0x923f_82a4_af19_4f9b, 0xab1c_5ed5_da6d_8118,
    0xd807_aa98_a303_0242, 0x1283_5b01_4570_6fbe, 0x2431_85be_4ee4_b28c, 0x550c_7dc3_d5ff_b4e2,
    0x72be_5d74_f27b_896f, 0x80de_b1fe_3b16_96b1, 0x9bdc_06a7_25c7_1235, 0xc19b_f174_cf69_2694,
    0xe49b_69c1_9ef1_4ad2, 0xefbe_4786_384f_25e3, 0x0fc1_9dc6_8b8c_d5b5, 0x240c_a1cc_77ac_9c65,
    0x2de9_2c6f_592b_0275, 0x4a74_84aa_6ea6_e483, 0x5cb0_a9dc_bd41_fbd4, 0x76f9_88da_8311_53b5,
    0x983e_5152_ee66_dfab, 0xa831_c66d_2db4_3210, 0xb003_27c8_98fb_213f, 0xbf59_7fc7_beef_0ee4,
    0xc6e0_0bf3_3da8_8fc2, 0xd5a7_9147_930a_a725, 0x06ca_6351_e003_826f, 0x1429_2967_0a0e_6e70,
    0x27b7_0a85_46d2_2ffc, 0x2e1b_2138_5c26_c926, 0x4d2c_6dfc_5ac4_2aed, 0x5338_0d13_9d95_b3df,
    0x650a_7354_8baf_63de, 0x766a_0abb_3c77_b2a8, 0x81c2_c92e_47ed_aee6, 0x9272_2c85_1482_353b,
    0xa2bf_e8a1_4cf1_0364, 0xa81a_664b_bc42_3001, 0xc24b_8b70_d0f8_9791, 0xc76c_51a3_0654_be30,
    0xd192_e819_d6ef_5218, 0xd699_0624_5565_a910, 0xf40e_3585_5771_202a, 0x106a_a070_32bb_d1b8,
    0x19a4_c116_b8d2_d0c8, 0x1e37_6c08_5141_ab53, 0x2748_774c_df8e_eb99, 0x34b0_bcb5_e19b_48a8,
    0x391c_0cb3_c5c9_5a63, 0x4ed8_aa4a_e341_8acb, 0x5b9c_ca4f_7763_e373, 0x682e_6ff3_d6b2_b8a3,
    0x748f_82ee_5def_b2fc, 0x78a5_636f_4317_2f60, 0x84c8_7814_a1f0_ab72, 0x8cc7_0208_1a64_39ec,
    0x90be_fffa_2363_1e28, 0xa450_6ceb_de82_bde9, 0xbef9_a3f7_b2c6_7915, 0xc671_78f2_e372_532b,
    0xca27_3ece_ea26_619c, 0xd186_b8c7_21c0_c207, 0xeada_7dd6_cde0_eb1e, 0xf57d_4f7f_ee6e_d178,
    0x06f0_67aa_7217_6fba, 0x0a63_7dc5_a2c8_98a6, 0x113f_9804_bef9_0dae, 0x1b71_0b35_131c_471b,
    0x28db_77f5_2304_7d84, 0x32ca_ab7b_40c7_2493, 0x3c9e_be0a_15c9_bebc, 0x431d_67c4_9c10_0d4c,
    0x4cc5_d4be_cb3e_42b6, 0x597f_299c_fc65_7e2a, 0x5fcb_6fab_3ad6_faec, 0x6c44_198c_4a47_5817,
];

/// Takes as many whole blocks as the shortest input has, the same number of each. `None`: not on this processor.
pub(crate) fn compress(states: &mut [State; 4], inputs: [&[[u8; BLOCK_BYTES]]; 4]) -> Option<()> {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return None;
    }
    // SAFETY: the processor was just asked and has AVX2, the only thing the function needs.
    unsafe { compress_avx2(states, inputs) };
    Some(())
}

#[target_feature(enable = "avx2")]
fn compress_avx2(states: &mut [State; 4], [one, two, three, four]: [&[[u8; BLOCK_BYTES]]; 4]) {
    let mut state: [__m256i; 8] =
        std::array::from_fn(|word| side_by_side(std::array::from_fn(|lane| states[lane][word])));
    for (((one, two), three), four) in one.iter().zip(two).zip(three).zip(four) {
        let mut words = [_mm256_set1_epi64x(0); 16];
        for (index, word) in words.iter_mut().enumerate() {
            *word = side_by_side([one, two, three, four].map(|block| big_endian(block, index)));
        }
        state = block(state, words);
    }
    for (word, value) in state.into_iter().enumerate() {
        states[0][word] = _mm256_extract_epi64::<0>(value) as u64;
        states[1][word] = _mm256_extract_epi64::<1>(value) as u64;
        states[2][word] = _mm256_extract_epi64::<2>(value) as u64;
        states[3][word] = _mm256_extract_epi64::<3>(value) as u64;
    }
}

#[inline]
fn big_endian(block: &[u8; BLOCK_BYTES], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&block[index * 8..index * 8 + 8]);
    u64::from_be_bytes(word)
}

#[inline]
#[target_feature(enable = "avx2")]
fn side_by_side([one, two, three, four]: [u64; 4]) -> __m256i {
    _mm256_set_epi64x(four as i64, three as i64, two as i64, one as i64)
}

/// Eighty rounds, sixteen at a time; the message schedule lives in a ring of sixteen words.
#[inline]
#[target_feature(enable = "avx2")]
fn block(before: [__m256i; 8], mut words: [__m256i; 16]) -> [__m256i; 8] {
    let mut state = before;
    for (lap, keys) in ROUND.as_chunks::<16>().0.iter().enumerate() {
        for index in 0..16 {
            if lap > 0 {
                let older = small_0(words[(index + 1) % 16]);
                let newer = small_1(words[(index + 14) % 16]);
                let sum = _mm256_add_epi64(words[index], words[(index + 9) % 16]);
                words[index] = _mm256_add_epi64(_mm256_add_epi64(sum, older), newer);
            }
            let key = _mm256_add_epi64(words[index], _mm256_set1_epi64x(keys[index] as i64));
            state = round(state, key);
        }
    }
    std::array::from_fn(|word| _mm256_add_epi64(before[word], state[word]))
}

// The letters of the standard.
#[allow(clippy::many_single_char_names)]
#[inline]
#[target_feature(enable = "avx2")]
fn round([a, b, c, d, e, f, g, h]: [__m256i; 8], key: __m256i) -> [__m256i; 8] {
    // "Choose" and "majority" in the forms with the fewest steps.
    let choose = _mm256_xor_si256(g, _mm256_and_si256(e, _mm256_xor_si256(f, g)));
    let majority = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(c, _mm256_or_si256(a, b)));
    let first = _mm256_add_epi64(_mm256_add_epi64(h, key), _mm256_add_epi64(big_1(e), choose));
    let second = _mm256_add_epi64(big_0(a), majority);
    [_mm256_add_epi64(first, second), a, b, c, _mm256_add_epi64(d, first), e, f, g]
}

/// Rotates right by `RIGHT`; `LEFT` is the rest of 64.
#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const RIGHT: i32, const LEFT: i32>(word: __m256i) -> __m256i {
    const { assert!(RIGHT + LEFT == 64) };
    _mm256_xor_si256(_mm256_srli_epi64::<RIGHT>(word), _mm256_slli_epi64::<LEFT>(word))
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor3(one: __m256i, two: __m256i, three: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_xor_si256(one, two), three)
}

#[inline]
#[target_feature(enable = "avx2")]
fn big_0(word: __m256i) -> __m256i {
    xor3(rotate::<28, 36>(word), rotate::<34, 30>(word), rotate::<39, 25>(word))
}

#[inline]
#[target_feature(enable = "avx2")]
fn big_1(word: __m256i) -> __m256i {
    xor3(rotate::<14, 50>(word), rotate::<18, 46>(word), rotate::<41, 23>(word))
}

/// Rotating by eight moves whole bytes, which is one step instead of three.
#[inline]
#[target_feature(enable = "avx2")]
fn small_0(word: __m256i) -> __m256i {
    const BYTES: [i64; 2] = [0x0007_0605_0403_0201, 0x080f_0e0d_0c0b_0a09];
    let order = _mm256_set_epi64x(BYTES[1], BYTES[0], BYTES[1], BYTES[0]);
    xor3(rotate::<1, 63>(word), _mm256_shuffle_epi8(word, order), _mm256_srli_epi64::<7>(word))
}

#[inline]
#[target_feature(enable = "avx2")]
fn small_1(word: __m256i) -> __m256i {
    xor3(rotate::<19, 45>(word), rotate::<61, 3>(word), _mm256_srli_epi64::<6>(word))
}
