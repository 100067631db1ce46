//! Inflating with libdeflate: one call for a whole deflate stream that lies in memory.
//!
//! The safe wrapper `libdeflater` does not tell how many bytes of input a stream used, and without that
//! the next gzip member cannot be found. This file is the only one of the crate with unsafe code: most
//! of the time of reading goes into inflating, and one call for a member beats streaming it.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;

use libdeflate_sys as sys;

/// Why a stream was not inflated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The output does not fit.
    Space,
    /// The input is corrupt or ends early; libdeflate does not tell which.
    Data,
}

/// A libdeflate decompressor.
pub(crate) struct Inflater(NonNull<sys::libdeflate_decompressor>);

// SAFETY: the decompressor is plain memory without thread affinity; all use is through `&mut self`.
unsafe impl Send for Inflater {}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inflater")
    }
}

impl Inflater {
    /// `None` only if memory is exhausted; the caller then streams with zlib-rs.
    pub(crate) fn new() -> Option<Inflater> {
        // SAFETY: no arguments; a null answer is handled.
        NonNull::new(unsafe { sys::libdeflate_alloc_decompressor() }).map(Inflater)
    }

    /// Inflates the raw deflate stream at the start of `input` into `output`.
    /// Answers the number of bytes used and the number of bytes made.
    pub(crate) fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), Failure> {
        let (mut used, mut made) = (0, 0);
        // SAFETY: both pointers are valid for the lengths that go with them, the slices do not overlap
        // (one is borrowed mutably), and libdeflate reads and writes only within these lengths.
        let result = unsafe {
            sys::libdeflate_deflate_decompress_ex(
                self.0.as_ptr(),
                input.as_ptr().cast(),
                input.len(),
                output.as_mut_ptr().cast(),
                output.len(),
                &raw mut used,
                &raw mut made,
            )
        };
        match result {
            sys::libdeflate_result_LIBDEFLATE_SUCCESS => Ok((used.min(input.len()), made.min(output.len()))),
            sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Err(Failure::Space),
            _ => Err(Failure::Data),
        }
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: allocated by libdeflate in `new`, freed once.
        unsafe { sys::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}
