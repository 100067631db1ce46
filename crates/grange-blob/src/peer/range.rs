//! The two forms of `Range` that peers use (RFC 9110, 14.1.2).

/// Which bytes are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// From here to the end.
    From(u64),
    /// From the first to before the second.
    Between(u64, u64),
}

/// Reads the header; no header is the whole file. `None` for a form that is not spoken here.
pub(super) fn read(header: Option<&str>) -> Option<Part> {
    let Some(header) = header else { return Some(Part::From(0)) };
    let (start, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let start = start.parse().ok()?;
    if last.is_empty() {
        return Some(Part::From(start));
    }
    let end = last.parse::<u64>().ok()?.checked_add(1)?;
    (start < end).then_some(Part::Between(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_as_they_are_written() {
        for (header, part) in [
            (None, Some(Part::From(0))),
            (Some("bytes=0-"), Some(Part::From(0))),
            (Some("bytes=7-"), Some(Part::From(7))),
            (Some("bytes=7-7"), Some(Part::Between(7, 8))),
            (Some("bytes=0-4095"), Some(Part::Between(0, 4096))),
            (Some("bytes=8-7"), None),
            (Some("bytes=-5"), None),
            (Some("bytes=0-18446744073709551615"), None),
            (Some("bytes=1-2,4-5"), None),
            (Some("lines=1-2"), None),
            (Some(""), None),
        ] {
            assert_eq!(read(header), part, "{header:?}");
        }
    }
}
