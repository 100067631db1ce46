//! Searches in the input. Tests count the bytes that are looked at; otherwise the count costs nothing.

#[cfg(test)]
thread_local! {
    pub(crate) static LOOKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// So many bytes were looked at.
#[inline]
pub(crate) fn looked(bytes: usize) {
    #[cfg(test)]
    LOOKED.set(LOOKED.get() + bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

/// What is behind the hit was not looked at; without one, all of it was.
#[inline]
fn counted(found: Option<usize>, text: &[u8]) -> Option<usize> {
    looked(found.map_or(text.len(), |at| at + 1));
    found
}

#[inline]
pub(crate) fn find(byte: u8, text: &[u8]) -> Option<usize> {
    counted(memchr::memchr(byte, text), text)
}

#[inline]
pub(crate) fn find_either(one: u8, other: u8, text: &[u8]) -> Option<usize> {
    counted(memchr::memchr2(one, other, text), text)
}

#[inline]
pub(crate) fn find_text(text: &[u8], wanted: &[u8]) -> Option<usize> {
    counted(memchr::memmem::find(text, wanted), text)
}

/// The last one.
#[inline]
pub(crate) fn find_last(byte: u8, text: &[u8]) -> Option<usize> {
    let found = memchr::memrchr(byte, text);
    looked(text.len() - found.unwrap_or(0));
    found
}
