//! Collections: what they may be called, and what the names of their files promise.

use std::path::Path;

/// The collection of everything that is stored here.
pub const ARCHIVE: &str = "archive";

/// Whether a text may be the name of a collection: 1 to 64 small letters, digits, `-` and `_`, a letter or digit first. It
/// is a folder, and the first part of every replay URL, where some words are taken.
pub fn check_name(name: &str) -> Result<(), String> {
    const CHARS_MAX: usize = 64;
    const TAKEN: &[&str] = &["cdx", "static", "proxy", "health", "robots"];
    let alnum = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let shown = || name.escape_debug().to_string().chars().take(CHARS_MAX + 1).collect::<String>();
    let fits = name.len() <= CHARS_MAX && name.chars().all(|c| alnum(c) || c == '-' || c == '_');
    if !fits || !name.chars().next().is_some_and(alnum) {
        return Err(format!(
            "\"{}\" cannot be a collection: use 1 to {CHARS_MAX} small letters, digits, - and _, a letter or digit first",
            shown()
        ));
    }
    if TAKEN.contains(&name) {
        return Err(format!("\"{name}\" cannot be a collection: replay has a page of that name"));
    }
    // Fourteen digits or fewer would be read as a time in URLs.
    if name.len() <= 14 && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("\"{name}\" cannot be a collection: it reads like a time"));
    }
    Ok(())
}

/// What can be indexed, by the name of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// WARC or ARC, plain or compressed.
    Records,
    Wacz,
    /// CDX or CDXJ lines about files beside them.
    Lines,
    /// Nothing with captures in it.
    Other,
}

impl FileKind {
    pub fn of(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let bare = lower.strip_suffix(".gz").or_else(|| lower.strip_suffix(".zst")).unwrap_or(&lower);
        match Path::new(bare).extension().and_then(|end| end.to_str()) {
            Some("warc" | "arc") => Self::Records,
            Some("wacz") => Self::Wacz,
            Some("cdx" | "cdxj") => Self::Lines,
            _ => Self::Other,
        }
    }
}

/// The job in the name of a file: `<job>-<harvest>-….warc.gz` and `<job>-metadata-<n>.warc.gz`.
pub fn job_of(name: &str) -> Option<&str> {
    let (job, _) = name.split_once('-')?;
    (!job.is_empty() && job.len() <= 18 && job.bytes().all(|byte| byte.is_ascii_digit())).then_some(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_kind_and_job() {
        for (name, kind, job) in [
            ("7-1-20260101-00000.warc.gz", FileKind::Records, Some("7")),
            ("7-metadata-1.warc.gz", FileKind::Records, Some("7")),
            ("IA-001102.ARC.GZ", FileKind::Records, None),
            ("a.warc.zst", FileKind::Records, None),
            ("a.warc", FileKind::Records, None),
            ("a.wacz", FileKind::Wacz, None),
            ("index.cdxj", FileKind::Lines, None),
            ("index.cdx.gz", FileKind::Lines, None),
            ("notes.txt", FileKind::Other, None),
            ("20260101120000123456789-x.warc", FileKind::Records, None),
            ("-x.gz", FileKind::Other, None),
        ] {
            assert_eq!((FileKind::of(name), job_of(name)), (kind, job), "{name}");
        }
    }

    #[test]
    fn names_of_collections() {
        for (name, fine) in [
            ("news", true),
            ("event-2026_1", true),
            ("2026", false),
            ("202601010000001", true),
            ("cdx", false),
            ("", false),
            ("-x", false),
            ("..", false),
            ("a/b", false),
            ("News", false),
            ("a.b", false),
        ] {
            assert_eq!(check_name(name).is_ok(), fine, "{name}");
        }
        assert!(check_name(&"a".repeat(65)).is_err());
    }
}
