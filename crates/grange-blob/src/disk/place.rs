//! Which base directory takes the next file: a pure function over the free space.

use std::io;
use std::path::Path;

use grange_base::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the base directories fill up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// One after the other, in the order given.
    #[default]
    InOrder,
    /// Always the one with the most free space.
    MostFree,
}

/// Free and total bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub free: u64,
    pub total: u64,
}

/// Who knows the free space. The system does; tests pretend.
pub trait FreeSpace: std::fmt::Debug + Send + Sync {
    fn of(&self, base: &Path) -> io::Result<Room>;
}

/// Asks the file system, for what a user who is not root may use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct System;

impl FreeSpace for System {
    fn of(&self, base: &Path) -> io::Result<Room> {
        // A folder that was not written to yet will lie on the disk of the one above.
        let there = base.ancestors().find(|folder| folder.exists()).unwrap_or(base);
        let stat = rustix::fs::statvfs(there)?;
        Ok(Room { free: stat.f_bavail * stat.f_frsize, total: stat.f_blocks * stat.f_frsize })
    }
}

/// The bounds of the settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// A base with no more than this free takes no more files.
    pub(super) left: Size,
    /// This much must remain free after a file was written.
    pub(super) required: Size,
}

impl Bounds {
    /// The largest file that a disk takes.
    pub(super) fn largest(&self, free: u64) -> u64 {
        if free <= self.left.0 { 0 } else { free.saturating_sub(self.required.0) }
    }

    /// Bases that take a file of this size (unknown counts as nothing), the first to be tried first.
    pub(super) fn candidates(
        &self,
        placement: Placement,
        free: &[Option<u64>],
        size: Option<u64>,
    ) -> Vec<usize> {
        let takes = |free: u64| {
            let largest = self.largest(free);
            largest > 0 && size.unwrap_or(0) <= largest
        };
        let known = free.iter().enumerate().filter_map(|(index, free)| Some((index, (*free)?)));
        let mut fit: Vec<_> = known.filter(|(_, free)| takes(*free)).collect();
        if placement == Placement::MostFree {
            fit.sort_by_key(|(_, free)| std::cmp::Reverse(*free));
        }
        fit.into_iter().map(|(index, _)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_takes_files_while_enough_is_left() {
        let bounds = Bounds { left: Size(2000), required: Size(10) };
        let in_order = |free: &[u64], size| {
            let free: Vec<_> = free.iter().copied().map(Some).collect();
            bounds.candidates(Placement::InOrder, &free, size)
        };
        assert_eq!(in_order(&[2000, 2001, 9000], Some(1)), [1, 2]);
        assert_eq!(in_order(&[2001, 2001], Some(1991)), [0, 1]);
        assert_eq!(in_order(&[2001, 2001], Some(1992)), [] as [usize; 0]);
        assert_eq!(in_order(&[2000, 2001], None), [1]);
        // A disk that cannot be asked takes nothing.
        assert_eq!(bounds.candidates(Placement::InOrder, &[None, Some(9000)], None), [1]);
        let most = bounds.candidates(Placement::MostFree, &[Some(3000), Some(1), Some(9000)], None);
        assert_eq!(most, [2, 0]);
    }

    #[test]
    fn the_system_knows_the_space_of_a_folder() {
        let room = System.of(Path::new("/")).unwrap();
        assert!(room.total > 0 && room.free <= room.total);
    }
}
