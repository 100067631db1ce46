//! A collection as its partitions know it: `<collection id>.txt` beside the data.
//!
//! Every partition with a slice keeps the whole record, so any surviving disk tells where the others belong. A change
//! (doubling, halving, removal) is a new record with the next epoch; of two records the higher epoch holds.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::lifecycle::Standing;
use crate::name::Namespace;
use crate::place::Point;
use crate::properties::{self, Properties};

/// Most slices of one collection; the paper speaks of dozens. Keeps records and status answers small.
pub const MAX_SLICES: u32 = 4096;

/// One slice: its own id, and the partition it lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    pub uuid: Uuid,
    pub partition: Uuid,
}

/// Where a collection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Layout {
    /// Every file lies at `MD5 % slices`.
    Stable { slices: NonZeroU32 },
    /// Files lie at `MD5 % to`, or still at `MD5 % from`.
    Moving { from: NonZeroU32, to: NonZeroU32 },
    /// As stable, but taking no names: it is removed if all slices are found empty.
    Closing { slices: NonZeroU32 },
    /// Taken out of service; what was there is in the attics.
    Gone,
}

/// The slice a name belongs to, and the one it may still be found on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub slice: usize,
    /// Only while moving, and only when it differs.
    pub before: Option<usize>,
}

impl Layout {
    /// `None` when the collection is gone.
    pub fn spot(self, point: Point) -> Option<Spot> {
        match self {
            Self::Stable { slices } | Self::Closing { slices } => {
                Some(Spot { slice: point.slice(slices) as usize, before: None })
            }
            Self::Moving { from, to } => {
                let (slice, before) = (point.slice(to) as usize, point.slice(from) as usize);
                Some(Spot { slice, before: (before != slice).then_some(before) })
            }
            Self::Gone => None,
        }
    }

    /// How many slices the record names.
    pub fn named(self) -> u32 {
        match self {
            Self::Stable { slices } | Self::Closing { slices } => slices.get(),
            Self::Moving { from, to } => from.max(to).get(),
            Self::Gone => 0,
        }
    }
}

/// The record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    pub uuid: Uuid,
    pub namespace: Namespace,
    /// Counts the changes; the first is 1.
    pub epoch: u64,
    pub layout: Layout,
    /// Whether everybody may read.
    pub public: bool,
    pub slices: Vec<Slice>,
}

impl Collection {
    /// The index of the slice that lies on a partition.
    pub fn slice_on(&self, partition: Uuid) -> Option<usize> {
        self.slices.iter().position(|slice| slice.partition == partition)
    }

    pub fn standing(&self) -> Standing {
        Standing { epoch: self.epoch, layout: self.layout }
    }

    /// The record after a step that leaves the slices where they are.
    pub(crate) fn at(&self, standing: Standing) -> Self {
        let Standing { epoch, layout } = standing;
        let mut next = Self { epoch, layout, ..self.clone() };
        next.slices.truncate(layout.named() as usize);
        next
    }

    pub fn file_name(&self) -> String {
        format!("{}.txt", self.uuid)
    }

    /// The text of the file on the partition that holds slice `local`.
    pub fn to_text(&self, local: usize) -> String {
        let mut entries: Vec<(String, String)> = vec![("swap.uuid".into(), self.uuid.to_string())];
        for (index, name) in self.namespace.components().enumerate() {
            entries.push((format!("swap.path.{index}"), name.to_owned()));
        }
        for (index, slice) in self.slices.iter().enumerate() {
            entries.push((format!("swap.uuid.{index}"), slice.uuid.to_string()));
            entries.push((format!("swap.partition.{index}"), slice.partition.to_string()));
        }
        if let Some(slice) = self.slices.get(local) {
            entries.push(("swap.localuuid".into(), slice.uuid.to_string()));
        }
        entries.push(("swap.epoch".into(), self.epoch.to_string()));
        match self.layout {
            Layout::Stable { slices } => entries.push(("swap.slices".into(), slices.to_string())),
            Layout::Moving { from, to } => {
                entries.push(("swap.slices".into(), from.to_string()));
                entries.push(("swap.slices.moving_to".into(), to.to_string()));
            }
            Layout::Closing { slices } => {
                entries.push(("swap.slices".into(), slices.to_string()));
                entries.push(("swap.closing".into(), "true".into()));
            }
            Layout::Gone => entries.push(("swap.slices".into(), "0".into())),
        }
        entries.push(("swap.read".into(), if self.public { "public" } else { "key" }.into()));
        properties::write(
            "A collection with a slice on this partition. The slice of a file is MD5(path) as a big-endian number \
             modulo swap.slices.",
            entries.iter().map(|(key, value)| (key.as_str(), value.clone())),
        )
    }

    /// Reads such a file; the error says what is wrong with it.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let found = properties::read(text);
        let uuid = |key: &str| -> Result<Uuid, String> {
            let text = found.get(key).ok_or_else(|| format!("{key} is missing"))?;
            Uuid::try_parse(text).map_err(|_| format!("{key} is no UUID"))
        };
        let number = |key: &str| -> Result<Option<u64>, String> {
            found.get(key).map(|text| text.parse().map_err(|_| format!("{key} is no number"))).transpose()
        };
        let names: Vec<_> = numbered(&found, "swap.path.").collect();
        let namespace = Namespace::new(names.join("/")).map_err(|error| error.to_string())?;
        let count = number("swap.slices")?.ok_or("swap.slices is missing")?;
        let count =
            u32::try_from(count).ok().filter(|count| *count <= MAX_SLICES).ok_or("too many slices")?;
        let moving = number("swap.slices.moving_to")?.map(|to| u32::try_from(to).unwrap_or(u32::MAX));
        let layout = match (NonZeroU32::new(count), moving) {
            (None, _) => Layout::Gone,
            (Some(slices), None) if found.get("swap.closing").is_some_and(|closing| closing == "true") => {
                Layout::Closing { slices }
            }
            (Some(slices), None) => Layout::Stable { slices },
            (Some(from), Some(to)) if (1..=MAX_SLICES).contains(&to) => {
                Layout::Moving { from, to: NonZeroU32::new(to).unwrap_or(NonZeroU32::MIN) }
            }
            _ => return Err("swap.slices.moving_to is out of range".to_owned()),
        };
        let slices = (0..layout.named())
            .map(|index| {
                let partition = uuid(&format!("swap.partition.{index}"))?;
                Ok(Slice { uuid: uuid(&format!("swap.uuid.{index}"))?, partition })
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            uuid: uuid("swap.uuid")?,
            namespace,
            epoch: number("swap.epoch")?.unwrap_or(1),
            layout,
            public: found.get("swap.read").is_some_and(|read| read == "public"),
            slices,
        })
    }
}

/// The values of `prefix0`, `prefix1`, … up to the first gap.
fn numbered<'a>(found: &'a Properties, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    (0..).map_while(move |index: u32| found.get(&format!("{prefix}{index}")).map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(layout: Layout) -> Collection {
        let slice = |index: u32| Slice {
            uuid: Uuid::from_u128(u128::from(index) + 100),
            partition: Uuid::from_u128(u128::from(index) + 200),
        };
        Collection {
            uuid: Uuid::from_u128(7),
            namespace: Namespace::new("chronopolis/umiacs/kö de").unwrap(),
            epoch: 3,
            layout,
            public: true,
            slices: (0..layout.named()).map(slice).collect(),
        }
    }

    fn n(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    #[test]
    fn a_record_survives_its_file() {
        for layout in [
            Layout::Stable { slices: n(3) },
            Layout::Moving { from: n(2), to: n(4) },
            Layout::Closing { slices: n(2) },
            Layout::Gone,
        ] {
            let record = record(layout);
            let text = record.to_text(1);
            assert_eq!(Collection::from_text(&text).unwrap(), record, "{text}");
        }
        let text = record(Layout::Stable { slices: n(2) }).to_text(1);
        for line in [
            "swap.uuid=00000000-0000-0000-0000-000000000007",
            "swap.path.0=chronopolis",
            "swap.path.2=k\\u00f6 de",
            "swap.uuid.1=00000000-0000-0000-0000-000000000065",
            "swap.localuuid=00000000-0000-0000-0000-000000000065",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn damaged_records_are_named_not_believed() {
        let text = record(Layout::Stable { slices: n(2) }).to_text(0);
        for (from, to, reason) in [
            ("swap.uuid=", "swap.xuid=", "swap.uuid is missing"),
            ("swap.partition.1=0", "swap.partition.1=g", "swap.partition.1 is no UUID"),
            ("swap.slices=2", "swap.slices=999999", "too many slices"),
            ("swap.slices=2", "swap.slices=3", "swap.partition.2 is missing"),
            ("swap.path.0=chronopolis", "swap.path.0=..", "\"..\" is not a name: . and .. are not allowed"),
        ] {
            assert!(text.contains(from), "{from}");
            assert_eq!(Collection::from_text(&text.replacen(from, to, 1)).unwrap_err(), reason);
        }
        assert!(Collection::from_text("").is_err());
    }

    #[test]
    fn a_moving_collection_knows_both_places() {
        let point = Point(0b0111);
        let spot = Layout::Moving { from: n(4), to: n(8) }.spot(point).unwrap();
        assert_eq!(spot, Spot { slice: 7, before: Some(3) });
        let spot = Layout::Moving { from: n(8), to: n(4) }.spot(point).unwrap();
        assert_eq!(spot, Spot { slice: 3, before: Some(7) });
        let spot = Layout::Moving { from: n(2), to: n(4) }.spot(Point(1)).unwrap();
        assert_eq!(spot, Spot { slice: 1, before: None });
        assert_eq!(Layout::Gone.spot(point), None);
    }
}
