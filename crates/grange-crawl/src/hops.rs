//! The way from a seed to a URL, one letter per step, as Heritrix writes it in its logs.

use std::fmt;
use std::str::FromStr;

/// One step from a page to what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hop {
    /// `L`: a link a reader follows.
    Link,
    /// `E`: a part of the page.
    Embed,
    /// `R`: where the server sends us.
    Redirect,
    /// `X`: a string in a script that looks like a URL.
    Speculative,
    /// `P`: what must be asked first (name, robots.txt).
    Prerequisite,
    /// `I`: a guess by custom (favicon, Content-Location).
    Inferred,
    /// `M`: an entry of a site map.
    Manifest,
    /// `S`: a form we submitted.
    Submit,
}

impl Hop {
    pub const fn letter(self) -> char {
        match self {
            Hop::Link => 'L',
            Hop::Embed => 'E',
            Hop::Redirect => 'R',
            Hop::Speculative => 'X',
            Hop::Prerequisite => 'P',
            Hop::Inferred => 'I',
            Hop::Manifest => 'M',
            Hop::Submit => 'S',
        }
    }

    pub const fn from_letter(letter: u8) -> Option<Hop> {
        Some(match letter {
            b'L' => Hop::Link,
            b'E' => Hop::Embed,
            b'R' => Hop::Redirect,
            b'X' => Hop::Speculative,
            b'P' => Hop::Prerequisite,
            b'I' => Hop::Inferred,
            b'M' => Hop::Manifest,
            b'S' => Hop::Submit,
            _ => return None,
        })
    }
}

/// How many letters are kept; of longer ways only the number of the letters dropped in front is (as Heritrix
/// writes them: `<n>+<last 50 letters>`). Scope rules look at the end of the way and at its length, so nothing
/// they need is lost.
const KEPT: usize = 50;

/// The whole way from a seed. Empty for a seed itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hops {
    dropped: u32,
    /// Only letters of [`Hop`].
    letters: String,
}

impl Hops {
    /// The way of a seed: none.
    pub const fn seed() -> Hops {
        Hops { dropped: 0, letters: String::new() }
    }

    pub fn is_seed(&self) -> bool {
        self.letters.is_empty()
    }

    /// This way and one step more.
    #[must_use]
    pub fn and(&self, hop: Hop) -> Hops {
        let mut letters = String::with_capacity(self.letters.len() + 1);
        let full = self.letters.len() >= KEPT;
        letters.push_str(if full { &self.letters[1..] } else { &self.letters });
        letters.push(hop.letter());
        Hops { dropped: self.dropped.saturating_add(u32::from(full)), letters }
    }

    /// How many steps in all.
    pub fn count(&self) -> u32 {
        self.dropped.saturating_add(self.letters.len() as u32)
    }

    pub fn last(&self) -> Option<Hop> {
        self.back().next()
    }

    /// The steps from the last one backwards, as far as they are kept.
    pub fn back(&self) -> impl Iterator<Item = Hop> + '_ {
        self.letters.bytes().rev().filter_map(Hop::from_letter)
    }
}

/// As logs show it; empty for a seed (logs then write `-`).
impl fmt::Display for Hops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            write!(f, "{}+", self.dropped)?;
        }
        f.write_str(&self.letters)
    }
}

/// The text is not a way of hops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no way of hops: letters of LERXPIMS, at most {KEPT}, or `n+` and the last {KEPT}")]
pub struct NotHops(String);

impl FromStr for Hops {
    type Err = NotHops;

    fn from_str(text: &str) -> Result<Hops, NotHops> {
        let not = || NotHops(text.chars().take(80).collect());
        let (dropped, letters) = match text.split_once('+') {
            Some((n, letters)) => (n.parse().map_err(|_| not())?, letters),
            None => (0, text.strip_prefix('-').unwrap_or(text)),
        };
        let sound = letters.bytes().all(|b| Hop::from_letter(b).is_some());
        if !sound || letters.len() > KEPT || (dropped > 0 && letters.len() < KEPT) {
            return Err(not());
        }
        Ok(Hops { dropped, letters: letters.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ways_keep_their_length_and_their_end() {
        let mut hops = Hops::seed();
        assert_eq!((hops.count(), hops.to_string(), hops.last()), (0, String::new(), None));
        for _ in 0..60 {
            hops = hops.and(Hop::Link);
        }
        hops = hops.and(Hop::Embed);
        assert_eq!(hops.count(), 61);
        assert_eq!(hops.to_string(), format!("11+{}E", "L".repeat(49)));
        assert_eq!(hops.back().take(2).collect::<Vec<_>>(), [Hop::Embed, Hop::Link]);
        assert_eq!(hops.to_string().parse::<Hops>(), Ok(hops));
    }

    #[test]
    fn what_is_no_way_is_refused() {
        for text in ["LQ", "l", "3+L", "x+LL", "-1+L", &"L".repeat(51)] {
            assert!(text.parse::<Hops>().is_err(), "{text}");
        }
        assert_eq!("-".parse::<Hops>(), Ok(Hops::seed()));
        assert_eq!("".parse::<Hops>(), Ok(Hops::seed()));
        assert_eq!("LLE".parse::<Hops>().map(|hops| hops.count()), Ok(3));
    }
}
