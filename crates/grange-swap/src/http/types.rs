//! The type of a file by its name. Stored files may be anything, so every answer also forbids guessing and running
//! (`nosniff`, `sandbox`); with that, naming the type is safe.

/// What an archive meets most; everything else is bytes.
const TYPES: &[(&str, &str)] = &[
    ("arc", "application/x-internet-archive"),
    ("avif", "image/avif"),
    ("bin", "application/octet-stream"),
    ("bmp", "image/bmp"),
    ("bz2", "application/x-bzip2"),
    ("cdx", "text/plain; charset=utf-8"),
    ("cdxj", "text/plain; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("epub", "application/epub+zip"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("jp2", "image/jp2"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("log", "text/plain; charset=utf-8"),
    ("md", "text/markdown; charset=utf-8"),
    ("mkv", "video/x-matroska"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("ps", "application/postscript"),
    ("rtf", "application/rtf"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("txt", "text/plain; charset=utf-8"),
    ("wacz", "application/wacz"),
    ("warc", "application/warc"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

pub(crate) fn of_name(name: &str) -> &'static str {
    let extension = match name.rsplit_once('.') {
        // Nothing in the table is longer.
        Some((_, extension)) if extension.len() <= 5 => extension,
        _ => return "application/octet-stream",
    };
    let mut lower = [0; 5];
    let lower = &mut lower[..extension.len()];
    lower.copy_from_slice(extension.as_bytes());
    lower.make_ascii_lowercase();
    match TYPES.binary_search_by(|(known, _)| known.as_bytes().cmp(lower)) {
        Ok(at) => TYPES[at].1,
        Err(_) => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_types() {
        assert!(TYPES.is_sorted_by(|one, two| one.0 < two.0));
        for (name, expected) in [
            ("a.PNG", "image/png"),
            ("a.warc.gz", "application/gzip"),
            ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
            ("png", "application/octet-stream"),
            ("a.", "application/octet-stream"),
            ("a.xlsxx1", "application/octet-stream"),
            ("a.é", "application/octet-stream"),
        ] {
            assert_eq!(of_name(name), expected, "{name}");
        }
    }
}
