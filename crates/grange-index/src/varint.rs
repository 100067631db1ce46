//! Numbers in as few bytes as they need: seven bits a byte, low bits first, the high bit says that more follow.

/// What was to be read is not there, or is not what a writer of ours writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number at `at` and moves `at` past it.
#[inline]
pub(crate) fn get(bytes: &[u8], at: &mut usize) -> Result<u64, Malformed> {
    let first = *bytes.get(*at).ok_or(Malformed)?;
    *at += 1;
    if first < 0x80 {
        return Ok(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(Malformed)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

/// Reads a number that must fit a length or a table number.
#[inline]
pub(crate) fn get_usize(bytes: &[u8], at: &mut usize) -> Result<usize, Malformed> {
    get(bytes, at).and_then(|value| usize::try_from(value).map_err(|_| Malformed))
}

/// The next `len` bytes.
#[inline]
pub(crate) fn take<'b>(bytes: &'b [u8], at: &mut usize, len: usize) -> Result<&'b [u8], Malformed> {
    let end = at.checked_add(len).ok_or(Malformed)?;
    let taken = bytes.get(*at..end).ok_or(Malformed)?;
    *at = end;
    Ok(taken)
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads a length and that many bytes.
pub(crate) fn get_bytes<'b>(bytes: &'b [u8], at: &mut usize) -> Result<&'b [u8], Malformed> {
    let len = get_usize(bytes, at)?;
    take(bytes, at, len)
}

/// Small numbers of either sign as small numbers without one.
pub(crate) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(crate) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(value: u64, signed: i64) {
            let mut out = Vec::new();
            put(&mut out, value);
            let mut at = 0;
            prop_assert_eq!(get(&out, &mut at), Ok(value));
            prop_assert_eq!(at, out.len());
            prop_assert_eq!(get(&out[..out.len() - 1], &mut 0), Err(Malformed));
            prop_assert_eq!(unzigzag(zigzag(signed)), signed);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let mut at = 0;
            while at < bytes.len() && get_bytes(&bytes, &mut at).is_ok() {}
        }
    }
}
