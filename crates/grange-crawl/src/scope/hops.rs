//! Rules 3, 4, 12 and 14: the way from the seed.

use crate::hops::{Hop, Hops};

/// Rule 3: too far from the seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooManyHops(pub(super) u32);

impl TooManyHops {
    pub(super) fn takes(self, hops: &Hops) -> bool {
        hops.count() > self.0
    }
}

/// Rule 4: a part of an accepted page. Looked at are the hops after the last one a reader would follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transclusion {
    pub(super) max_trans_hops: u32,
    pub(super) max_speculative_hops: u32,
}

impl Transclusion {
    pub(super) fn takes(self, hops: &Hops) -> bool {
        let (mut all, mut counted, mut speculative) = (0_u32, 0_u32, 0_u32);
        for hop in hops.back() {
            if matches!(hop, Hop::Link | Hop::Submit | Hop::Manifest) {
                break;
            }
            all += 1;
            counted += u32::from(hop != Hop::Redirect);
            speculative += u32::from(hop == Hop::Speculative);
        }
        all > 0 && speculative <= self.max_speculative_hops && counted <= self.max_trans_hops
    }
}

/// Rule 14: redirects that lead to redirects, by the server or by a page (meta refresh). 0 is no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooManyRedirects(pub(super) u32);

/// The redirects of a robots.txt that are followed (RFC 9309 §2.3.1.2).
const ROBOTS_REDIRECTS_MAX: u32 = 5;

impl TooManyRedirects {
    pub(super) fn takes(self, hops: &Hops) -> bool {
        if self.0 == 0 || hops.last() != Some(Hop::Redirect) {
            return false;
        }
        let mut chain = 0_u32;
        for hop in hops.back() {
            match hop {
                Hop::Redirect => chain += 1,
                Hop::Prerequisite => return chain > ROBOTS_REDIRECTS_MAX.min(self.0),
                _ => return chain > self.0,
            }
        }
        // Redirects as far back as the way is kept: all of it counts.
        hops.count() > self.0
    }
}

/// Rule 12: what must be asked before an accepted URL can be.
pub(super) fn is_prerequisite(hops: &Hops) -> bool {
    hops.last() == Some(Hop::Prerequisite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transclusion_counts_back_to_the_last_link() {
        let rule = Transclusion { max_trans_hops: 2, max_speculative_hops: 1 };
        for (hops, takes) in [
            ("", false),
            ("L", false),
            ("LLM", false),
            ("LS", false),
            ("E", true),
            ("LE", true),
            ("LEE", true),
            ("LEEE", false),
            ("R", true),
            ("RRRRR", true),
            ("LEREX", false),
            ("LERE", true),
            ("LX", true),
            ("LXE", true),
            ("LXX", false),
            ("LXRX", false),
            ("EEEL", false),
            ("EEELE", true),
            ("LP", true),
            ("LI", true),
        ] {
            assert_eq!(rule.takes(&hops.parse().unwrap()), takes, "{hops}");
        }
        let none = Transclusion { max_trans_hops: 0, max_speculative_hops: 0 };
        assert!(none.takes(&"LR".parse().unwrap()) && !none.takes(&"LE".parse().unwrap()));
    }

    #[test]
    fn all_hops_count_also_those_no_longer_shown() {
        let far = format!("7+{}", "L".repeat(50));
        for (hops, most, takes) in
            [("", 0, false), ("L", 0, true), ("LERL", 4, false), ("LERL", 3, true), (far.as_str(), 56, true)]
        {
            assert_eq!(TooManyHops(most).takes(&hops.parse().unwrap()), takes, "{hops} {most}");
        }
    }

    #[test]
    fn chains_of_redirects_have_an_end() {
        let long = format!("7+{}", "R".repeat(50));
        for (hops, most, takes) in [
            ("", 3, false),
            ("RRR", 3, false),
            ("RRRR", 3, true),
            ("LRRR", 3, false),
            ("RRRRL", 3, false),
            ("RRLRRRR", 3, true),
            ("PRRRRR", 9, false),
            ("LPRRRRRR", 9, true),
            ("RRRR", 0, false),
            (long.as_str(), 57, false),
            (long.as_str(), 56, true),
        ] {
            assert_eq!(TooManyRedirects(most).takes(&hops.parse().unwrap()), takes, "{hops} {most}");
        }
    }

    #[test]
    fn only_the_last_hop_makes_a_prerequisite() {
        for (hops, is) in [("P", true), ("LLP", true), ("PL", false), ("", false)] {
            assert_eq!(is_prerequisite(&hops.parse().unwrap()), is, "{hops}");
        }
    }
}
