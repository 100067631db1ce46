//! The list of images in `srcset`, as the HTML standard takes it apart.

/// The URLs of a `srcset`. Commas may be part of a URL; those at its end are not.
pub(super) fn urls(srcset: &str) -> impl Iterator<Item = &str> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        if url.ends_with(',') {
            rest = after;
            return Some(url.trim_end_matches(','));
        }
        // Descriptors up to a comma that is not in parentheses.
        let mut depth = 0_u32;
        let next = after.find(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        rest = next.map_or("", |at| &after[at + 1..]);
        Some(url)
    })
}

/// Whether an attribute of any name holds a list like that.
pub(super) fn is_srcset(name: &[u8]) -> bool {
    name.ends_with(b"srcset") || name == b"data-srcs"
}

/// A value that some script will put into `src` or `srcset`: pages mix the two up in `data-` attributes.
pub(super) fn has_descriptors(value: &str) -> bool {
    let last = value.trim_end().rsplit(|c: char| c.is_ascii_whitespace()).next().unwrap_or("");
    value.trim().contains(|c: char| c.is_ascii_whitespace())
        && last.strip_suffix(['w', 'x', 'h']).is_some_and(|number| number.parse::<f32>().is_ok())
}
