//! Payload digests as the bytes they stand for. A base32 SHA-1 is 32 characters of text and 20 bytes of truth.

use data_encoding::{BASE32, HEXLOWER};

use crate::varint::{self, Malformed};

/// How the digest of a row is stored. The label is part of the form, so that every digest reads as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Form {
    #[default]
    None = 0,
    /// 32 characters of base32 without a label, as CDX has them.
    BareSha1 = 1,
    /// `sha1:` and base32.
    Sha1 = 2,
    /// `sha256:` and hexadecimal.
    Sha256Hex = 3,
    /// `sha256:` and base32 with its padding.
    Sha256 = 4,
    /// Anything else, as text.
    Text = 5,
}

impl Form {
    pub(crate) const fn from_code(code: u8) -> Result<Self, Malformed> {
        Ok(match code {
            0 => Self::None,
            1 => Self::BareSha1,
            2 => Self::Sha1,
            3 => Self::Sha256Hex,
            4 => Self::Sha256,
            5 => Self::Text,
            _ => return Err(Malformed),
        })
    }

    /// The bytes of a digest in this form; text carries its length before it.
    pub(crate) const fn fixed_len(self) -> Option<usize> {
        match self {
            Self::None => Some(0),
            Self::BareSha1 | Self::Sha1 => Some(20),
            Self::Sha256Hex | Self::Sha256 => Some(32),
            Self::Text => None,
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1:",
            Self::Sha256Hex | Self::Sha256 => "sha256:",
            Self::None | Self::BareSha1 | Self::Text => "",
        }
    }
}

/// Packs `text` into `out` and says how. `out` is emptied first.
pub(crate) fn pack(text: Option<&str>, out: &mut Vec<u8>) -> Form {
    out.clear();
    let Some(text) = text else { return Form::None };
    let tried = match text.len() {
        32 => Some((Form::BareSha1, text)),
        37 => text.strip_prefix("sha1:").map(|rest| (Form::Sha1, rest)),
        71 => text.strip_prefix("sha256:").map(|rest| (Form::Sha256Hex, rest)),
        63 => text.strip_prefix("sha256:").map(|rest| (Form::Sha256, rest)),
        _ => None,
    };
    if let Some((form, rest)) = tried {
        let encoding = if form == Form::Sha256Hex { &HEXLOWER } else { &BASE32 };
        let mut bytes = [0; 40];
        let room = encoding.decode_len(rest.len()).ok().and_then(|len| bytes.get_mut(..len));
        if let Some(room) = room
            && let Ok(len) = encoding.decode_mut(rest.as_bytes(), room)
            && Some(len) == form.fixed_len()
        {
            out.extend_from_slice(&bytes[..len]);
            return form;
        }
    }
    out.extend_from_slice(text.as_bytes());
    Form::Text
}

/// Appends the text of a packed digest to `out`.
pub(crate) fn unpack(form: Form, bytes: &[u8], out: &mut String) {
    out.push_str(form.label());
    match form {
        Form::None => {}
        Form::BareSha1 | Form::Sha1 | Form::Sha256 => BASE32.encode_append(bytes, out),
        Form::Sha256Hex => HEXLOWER.encode_append(bytes, out),
        Form::Text => out.push_str(&String::from_utf8_lossy(bytes)),
    }
}

/// The part that says whether two digests mean the same: without label, whatever the spelling.
pub(crate) fn essence(form: Form, bytes: &[u8]) -> &[u8] {
    if form == Form::Text {
        let start = memchr::memrchr(b':', bytes).map_or(0, |at| at + 1);
        return &bytes[start..];
    }
    bytes
}

/// The number under which postings keep a digest: forty bits, enough that a stranger shares it once in 65,000
/// lookups among sixteen million.
pub(crate) fn hash(essence: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(essence) >> (64 - HASH_BITS)
}

pub(crate) const HASH_BITS: u32 = 40;

/// Reads a packed digest of `form` at `at`.
pub(crate) fn get<'b>(form: Form, bytes: &'b [u8], at: &mut usize) -> Result<&'b [u8], Malformed> {
    match form.fixed_len() {
        Some(len) => varint::take(bytes, at, len),
        None => varint::get_bytes(bytes, at),
    }
}

/// Writes a packed digest so that [`get`] reads it.
pub(crate) fn put(form: Form, bytes: &[u8], out: &mut Vec<u8>) {
    if form.fixed_len().is_none() {
        varint::put(out, bytes.len() as u64);
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn through(text: &str) -> (Form, String) {
        let (mut packed, mut again) = (Vec::new(), String::new());
        let form = pack(Some(text), &mut packed);
        unpack(form, &packed, &mut again);
        (form, again)
    }

    #[test]
    fn known_spellings_are_packed_and_others_kept() {
        let sha256 = "2bdf1b5e2b2f1d34f04f4b3c2d7a6a7e0e7d3c1b5a49382716050403020100ff";
        let base32 = "FPPRWXRLF4OTJ4CPJM6C26TKPYHH2PA3LJETQJYWAUCAGAQBAD7Q====";
        for (text, form) in [
            ("3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".to_owned(), Form::BareSha1),
            ("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".to_owned(), Form::Sha1),
            (format!("sha256:{sha256}"), Form::Sha256Hex),
            (format!("sha256:{base32}"), Form::Sha256),
            ("3i42h3s6nnfq2msvx7xzkyayscx5qbyj".to_owned(), Form::Text),
            ("md5:d41d8cd98f00b204e9800998ecf8427e".to_owned(), Form::Text),
            (String::new(), Form::Text),
        ] {
            assert_eq!(through(&text), (form, text.clone()), "{text}");
        }
    }

    #[test]
    fn a_label_does_not_make_another_digest() {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let bare = pack(Some("3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), &mut a);
        let labelled = pack(Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), &mut b);
        assert_eq!(essence(bare, &a), essence(labelled, &b));
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in "(sha1:|sha256:)?[A-Z2-7=a-f0-9é]{0,72}") {
            prop_assert_eq!(through(&text).1, text);
        }
    }
}
