//! Content codings.

use std::io::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coding {
    Gzip,
    Deflate,
    Br,
}

impl Coding {
    pub const ALL: [Self; 3] = [Self::Gzip, Self::Deflate, Self::Br];

    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Br => "br",
        }
    }

    /// Whether an Accept-Encoding header offers it.
    pub(crate) fn offered_in(self, accept: &str) -> bool {
        accept.split(',').any(|part| {
            let mut words = part.split(';').map(str::trim);
            let named =
                words.next().is_some_and(|name| name.eq_ignore_ascii_case(self.name()) || name == "*");
            named && !words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
    }

    pub(crate) fn encode(self, bytes: &[u8]) -> Vec<u8> {
        // Writing into a Vec does not fail.
        match self {
            Self::Gzip => {
                let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                let _ = coder.write_all(bytes);
                coder.finish().unwrap_or_default()
            }
            Self::Deflate => {
                let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                let _ = coder.write_all(bytes);
                coder.finish().unwrap_or_default()
            }
            Self::Br => {
                let mut out = Vec::new();
                let mut coder = brotli::CompressorWriter::new(&mut out, 4_096, 5, 18);
                let _ = coder.write_all(bytes);
                drop(coder);
                out
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_as_the_standard_says() {
        for (accept, gzip) in [
            ("gzip, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("*", true),
            ("identity", false),
        ] {
            assert_eq!(Coding::Gzip.offered_in(accept), gzip, "{accept}");
        }
    }
}
