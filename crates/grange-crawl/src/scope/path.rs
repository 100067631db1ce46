//! Rules 7, 8 and 9: paths that go wrong.

use url::Url;

/// Rule 7: a part that stands more often in a row than it may. A part is one or more whole segments, so
/// `/a/b/a/b/a/b/` is seen too.
#[derive(Clone, Copy, Debug)]
pub(super) struct RepeatingPath(pub(super) u32);

/// How many segments one repeated part may have. Loops of real sites have a few; the work for a URL stays linear.
const PART_SEGMENTS_MAX: usize = 16;
/// How many segments are looked at: a URL deeper than this is refused by depth anywhere.
const SEGMENTS_MAX: usize = 128;

impl RepeatingPath {
    pub(super) fn takes(self, url: &Url) -> bool {
        if self.0 == 0 {
            return false;
        }
        let allowed = self.0 as usize;
        let text = url.as_str();
        // As in Heritrix the host counts as a segment and the query is looked at; the last segment counts only when
        // a slash ends it.
        // Where each segment begins; its end is the slash before the next.
        let mut starts = [0_u16; SEGMENTS_MAX + 1];
        let mut slashes = 0;
        for at in memchr::memchr_iter(b'/', text.as_bytes()) {
            let Ok(start) = u16::try_from(at + 1) else { break };
            if slashes > SEGMENTS_MAX {
                break;
            }
            starts[slashes] = start;
            slashes += 1;
        }
        let count = slashes.saturating_sub(1);
        let segment = |index: usize| &text[usize::from(starts[index])..usize::from(starts[index + 1]) - 1];
        for part in 1..=(count / (allowed.saturating_add(1))).min(PART_SEGMENTS_MAX) {
            let mut same = 0;
            for at in part..count {
                same = if segment(at) == segment(at - part) { same + 1 } else { 0 };
                if same >= part * allowed {
                    return true;
                }
            }
        }
        false
    }
}

/// Rule 8: more slashes in the path than a person would click.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeepPath(pub(super) u32);

impl DeepPath {
    pub(super) fn takes(self, url: &Url) -> bool {
        self.0 > 0 && url.path().bytes().filter(|b| *b == b'/').count() > self.0 as usize
    }
}

/// Rule 9: longer than a browser would send.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongUrl(pub(super) u32);

impl LongUrl {
    pub(super) fn takes(self, url: &Url) -> bool {
        self.0 > 0 && url.as_str().len() > self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse(&format!("http://h.example{path}")).unwrap()
    }

    #[test]
    fn a_part_may_stand_twice_in_a_row_and_not_three_times() {
        for (path, takes) in [
            ("/", false),
            ("/a/a/", false),
            ("/a/a/a", false),
            ("/a/a/a/", true),
            ("/a/a/a/b", true),
            ("/x/a/a/a/b", true),
            ("/a/b/a/b/a", false),
            ("/a/b/a/b/a/b/", true),
            ("/a/b/c/a/b/c/a/b/c/x", true),
            ("/a/b/a/a/b/a/", false),
            ("/aa/a/aa/a/", false),
            ("////", true),
            ("///", false),
            ("/x?u=/a/a/a/", true),
            ("/h.example/h.example/", true),
            ("/ab/b/b/", false),
        ] {
            assert_eq!(RepeatingPath(2).takes(&url(path)), takes, "{path}");
        }
        assert!(RepeatingPath(1).takes(&url("/a/a/")));
        assert!(!RepeatingPath(0).takes(&url("/a/a/a/a/a/")));
        assert!(!RepeatingPath(2).takes(&Url::parse("dns:a").unwrap()));
        assert!(RepeatingPath(2).takes(&url(&"/a".repeat(900))));
        assert!(!RepeatingPath(u32::MAX).takes(&url(&"/a".repeat(900))));
    }

    #[test]
    fn slashes_of_the_path_count() {
        for (path, most, takes) in
            [("/a/b", 2, false), ("/a/b/", 2, true), ("/a?x=////////", 2, false), ("/a/b/c/d", 0, false)]
        {
            assert_eq!(DeepPath(most).takes(&url(path)), takes, "{path}");
        }
    }

    #[test]
    fn the_whole_url_has_a_longest_length() {
        let length = url("/").as_str().len() as u32;
        assert!(!LongUrl(length).takes(&url("/")) && LongUrl(length).takes(&url("/a")));
        assert!(!LongUrl(0).takes(&url(&"/a".repeat(5000))));
    }
}
