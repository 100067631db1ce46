//! Limits: how much of one domain a harvest may fetch. They hold per domain, never for a job as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// One limit. `-1` is none, `0` fetches nothing: the numbers NetarchiveSuite's users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Limit(i64);

/// A number that is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a limit: write -1 for none, 0 for nothing, or how much")]
pub struct LimitError(i64);

impl Limit {
    pub const NONE: Self = Self(-1);
    pub const NOTHING: Self = Self(0);

    pub fn new(number: i64) -> Result<Self, LimitError> {
        if number >= -1 { Ok(Self(number)) } else { Err(LimitError(number)) }
    }

    /// At most so much.
    pub fn of(number: u64) -> Self {
        Self(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// The number as it is stored and shown.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// The limit, or `None` for none.
    pub const fn get(self) -> Option<i64> {
        if self.0 < 0 { None } else { Some(self.0) }
    }

    pub const fn is_none(self) -> bool {
        self.0 < 0
    }

    /// For comparing: no limit is larger than any.
    pub const fn rank(self) -> i64 {
        if self.0 < 0 { i64::MAX } else { self.0 }
    }

    /// The tighter of two.
    #[must_use]
    pub fn tighter(self, other: Self) -> Self {
        if self.rank() <= other.rank() { self } else { other }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::NONE
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(i64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The limits of a configuration, a harvest or a job, each for one domain; the running time is the job's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub objects: Limit,
    pub bytes: Limit,
    /// Seconds.
    pub running_s: Limit,
}

impl Limits {
    pub const NONE: Self = Self { objects: Limit::NONE, bytes: Limit::NONE, running_s: Limit::NONE };

    /// The tighter of each.
    #[must_use]
    pub fn tighter(self, other: Self) -> Self {
        Self {
            objects: self.objects.tighter(other.objects),
            bytes: self.bytes.tighter(other.bytes),
            running_s: self.running_s.tighter(other.running_s),
        }
    }

    /// Whether nothing can be fetched within them.
    pub fn forbid_everything(self) -> bool {
        [self.objects, self.bytes, self.running_s].contains(&Limit::NOTHING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_looser_than_any_and_nothing_is_tightest() {
        let limit = |n| Limit::new(n).unwrap();
        for (a, b, tighter) in [(-1, -1, -1), (-1, 5, 5), (5, -1, 5), (5, 6, 5), (0, 5, 0), (0, -1, 0)] {
            assert_eq!(limit(a).tighter(limit(b)), limit(tighter), "{a} {b}");
        }
        assert!(Limit::new(-2).is_err());
        assert!(serde_json::from_str::<Limit>("-2").is_err());
        assert_eq!(Limit::of(u64::MAX).number(), i64::MAX);
        assert!(Limits { objects: Limit::NOTHING, ..Limits::NONE }.forbid_everything());
        assert!(!Limits::NONE.forbid_everything());
    }
}
