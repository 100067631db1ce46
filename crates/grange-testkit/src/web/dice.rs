//! Chance without chance: numbers and words that follow from a seed and from where they stand.

/// One number from several: the same ones give the same, on every machine and in every release.
pub(crate) fn mix(values: &[u64]) -> u64 {
    values
        .iter()
        .fold(0x5EED_0F7A_9E37_79B9, |state, value| scramble(state.rotate_left(17) ^ scramble(*value)))
}

/// A number for a text (FNV-1a, then scrambled).
pub(crate) fn of_text(text: &str) -> u64 {
    scramble(
        text.bytes().fold(0xCBF2_9CE4_8422_2325, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        }),
    )
}

/// The finisher of SplitMix64: every input bit reaches every output bit.
fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// Bytes of an endless random stream: those from `offset` on.
pub(crate) fn fill(seed: u64, offset: u64, out: &mut [u8]) {
    let mut at = offset;
    let mut rest = out;
    while !rest.is_empty() {
        let word = mix(&[seed, at / 8]).to_le_bytes();
        let within = (at % 8) as usize;
        let count = rest.len().min(8 - within);
        rest[..count].copy_from_slice(&word[within..within + count]);
        rest = &mut rest[count..];
        at += count as u64;
    }
}

/// About `bytes` of text in paragraphs, as compressible as prose: words repeat, sentences do not.
pub(crate) fn prose(seed: u64, bytes: usize) -> String {
    const SYLLABLES: [&str; 24] = [
        "ba", "ren", "ti", "lo", "mar", "ke", "so", "du", "van", "ri", "pe", "hol", "ga", "ne", "wi", "tor",
        "sta", "mu", "fel", "ja", "co", "din", "u", "er",
    ];
    let mut text = String::with_capacity(bytes + 64);
    let mut draw = (0u64..).map(|index| mix(&[seed, index]));
    let mut next = move || draw.next().unwrap_or_default();
    while text.len() < bytes {
        text.push_str("<p>");
        for _ in 0..40 {
            // 2,000 words, the early ones far more often.
            let word = mix(&[(next() % 2_000).min(next() % 2_000)]);
            for part in 0..=(word >> 8) % 3 {
                text.push_str(SYLLABLES[((word >> (16 + part * 8)) % 24) as usize]);
            }
            text.push(' ');
        }
        text.push_str("</p>\n");
    }
    text
}
