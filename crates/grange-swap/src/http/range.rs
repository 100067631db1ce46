//! Which bytes of a file are asked for.

/// Most ranges in one request: more is a way to make a server send a file many times over.
const MAX_RANGES: usize = 16;

/// The bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u64,
    pub end: u64,
}

impl Span {
    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }
}

/// What to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    Parts(Vec<Span>),
    /// Nothing of what was asked for exists: 416.
    Beyond,
}

/// Reads a `Range` header. What cannot be read counts as none at all, as the standard asks; so do overlapping or too
/// many ranges.
pub(crate) fn wanted(header: &str, size: u64) -> Wanted {
    let Some(specs) = header.strip_prefix("bytes=") else { return Wanted::Whole };
    let mut parts: Vec<Span> = Vec::new();
    for (count, spec) in specs.split(',').enumerate() {
        let Some((first, last)) = spec.trim().split_once('-') else { return Wanted::Whole };
        let number = |text: &str| -> Option<u64> {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
        };
        let span = match (first, last) {
            ("", "") => return Wanted::Whole,
            ("", last) => match number(last) {
                Some(0) => None,
                Some(count) => Some(Span { start: size.saturating_sub(count), end: size }),
                None => return Wanted::Whole,
            },
            (first, last) => {
                let end = if last.is_empty() { Some(u64::MAX) } else { number(last) };
                let (Some(start), Some(last)) = (number(first), end) else { return Wanted::Whole };
                if last < start {
                    return Wanted::Whole;
                }
                Some(Span { start, end: last.saturating_add(1).min(size) })
            }
        };
        if count >= MAX_RANGES {
            return Wanted::Whole;
        }
        parts.extend(span.filter(|span| span.start < span.end && span.start < size));
    }
    let mut sorted = parts.clone();
    sorted.sort_by_key(|span| span.start);
    if sorted.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return Wanted::Whole;
    }
    if parts.is_empty() { Wanted::Beyond } else { Wanted::Parts(parts) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let parts = |spans: &[(u64, u64)]| {
            Wanted::Parts(spans.iter().map(|(start, end)| Span { start: *start, end: *end }).collect())
        };
        for (header, expected) in [
            ("bytes=0-0", parts(&[(0, 1)])),
            ("bytes=0-", parts(&[(0, 100)])),
            ("bytes=90-200", parts(&[(90, 100)])),
            ("bytes=-10", parts(&[(90, 100)])),
            ("bytes=-200", parts(&[(0, 100)])),
            ("bytes=0-1, 10-19", parts(&[(0, 2), (10, 20)])),
            ("bytes=50-59,0-9", parts(&[(50, 60), (0, 10)])),
            ("bytes=0-1,100-", parts(&[(0, 2)])),
            ("bytes=100-", Wanted::Beyond),
            ("bytes=-0", Wanted::Beyond),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=0-9,5-14", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
        ] {
            assert_eq!(wanted(header, 100), expected, "{header}");
        }
        let many = format!("bytes={}", (0..17).map(|n| format!("{n}-{n}")).collect::<Vec<_>>().join(","));
        assert_eq!(wanted(&many, 100), Wanted::Whole);
        assert_eq!(wanted("bytes=0-0", 0), Wanted::Beyond);
    }

    proptest! {
        #[test]
        fn no_range_leaves_the_file(header in "bytes=[0-9,-]{0,30}", size in 0_u64..1000) {
            if let Wanted::Parts(parts) = wanted(&header, size) {
                prop_assert!(parts.iter().all(|span| span.start < span.end && span.end <= size));
            }
        }
    }
}
