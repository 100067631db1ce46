//! A state of the model: disks, memories, messages and acts under way, and what clients were told.

use std::num::NonZeroU32;

use crate::collection::Layout;
use crate::lifecycle::Standing;
use crate::place::Point;

pub(super) const SERVERS: usize = 3;
pub(super) const COLLECTIONS: usize = 2;
/// By every number of slices up to three this file belongs to the last one.
pub(super) const FILE: Point = Point(5);

/// How much may happen in one life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    pub servers: u8,
    /// Attempts to make a collection of the one name; two at most.
    pub creates: u8,
    pub puts: u8,
    pub deletes: u8,
    pub reslices: u8,
    pub removals: u8,
    pub crashes: u8,
}

/// Bytes of the file, by the upload they came with; 0 is none.
pub(super) type Bytes = u8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub down: bool,
    /// The records on its partition.
    pub disk: [Option<Standing>; COLLECTIONS],
    /// The folder of the namespace: who made it, 0 when there is none, and the file in it.
    pub folder: u8,
    pub file: Bytes,
    /// In memory: the folder that each collection's handle leads to.
    pub tree: [u8; COLLECTIONS],
    /// In memory: the last record of what has left.
    pub left: [Option<Standing>; COLLECTIONS],
    /// In memory: the file was removed since the move began.
    pub removed: [bool; COLLECTIONS],
    /// Epochs that may still be under way to it, as bits.
    pub coming: [u16; COLLECTIONS],
}

/// An attempt to make a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Creation {
    #[default]
    None,
    /// On its way to the server of slice 0.
    Asked,
    /// That server holds the name and asks the others.
    Held {
        free: u8,
        /// Servers that have heard of the removals which made it free.
        told: u8,
    },
    Over,
}

/// A removal of an empty collection, by the server of slice 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Closing {
    pub collection: u8,
    pub epoch: u64,
    /// Servers that found nothing.
    pub empty: u8,
}

/// An upload that has looked where it must and is about to get its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Put {
    pub server: u8,
    pub collection: u8,
    pub by: Standing,
    pub bytes: Bytes,
}

/// A removal of the file: at the old place first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Delete {
    pub server: u8,
    pub collection: u8,
    pub by: Standing,
    pub found: bool,
}

/// A file on its way from its old slice to its new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Copy {
    pub collection: u8,
    pub by: Standing,
    pub from: u8,
    pub to: u8,
    pub bytes: Bytes,
    /// The sender still waits for the answer.
    pub waited_for: bool,
    /// It has arrived and was read back.
    pub proven: bool,
}

/// What clients were told of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Told {
    #[default]
    Nothing,
    Stored(Bytes),
    Removed,
    /// A removal was asked for and not answered.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) servers: [Server; SERVERS],
    pub(super) count: u8,
    /// The server of slice 0 of each collection, and the epoch-ordered records decided for it.
    pub(super) first: [u8; COLLECTIONS],
    pub(super) slices: [u8; COLLECTIONS],
    pub(super) decided: [Vec<Layout>; COLLECTIONS],
    /// Servers that had nothing left to move, by the last epoch.
    pub(super) settled: [u8; COLLECTIONS],
    pub(super) creations: [Creation; COLLECTIONS],
    pub(super) closing: Option<Closing>,
    pub(super) puts: [Option<Put>; 2],
    pub(super) delete: Option<Delete>,
    pub(super) copies: [Option<Copy>; 2],
    pub(super) told: [Told; COLLECTIONS],
    pub(super) next_bytes: Bytes,
    pub(super) left: Bounds,
    /// Set by a step that breaks a rule at once.
    pub(super) broken: Option<&'static str>,
}

pub(super) fn n(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN)
}

impl State {
    pub(super) fn first(bounds: Bounds) -> Self {
        Self {
            servers: [Server::default(); SERVERS],
            count: bounds.servers.clamp(1, SERVERS as u8),
            first: [0; COLLECTIONS],
            slices: [0; COLLECTIONS],
            decided: [Vec::new(), Vec::new()],
            settled: [0; COLLECTIONS],
            creations: [Creation::None; COLLECTIONS],
            closing: None,
            puts: [None; 2],
            delete: None,
            copies: [None; 2],
            told: [Told::Nothing; COLLECTIONS],
            next_bytes: 1,
            left: bounds,
            broken: None,
        }
    }

    pub(super) fn everybody(&self) -> std::ops::Range<usize> {
        0..usize::from(self.count)
    }

    pub(super) fn all(&self) -> u8 {
        (1 << self.count) - 1
    }

    /// The server of a slice: in turn from the first.
    pub(super) fn host(&self, collection: usize, slice: usize) -> usize {
        (usize::from(self.first[collection]) + slice) % usize::from(self.count)
    }

    pub(super) fn hosts(&self, collection: usize, layout: Layout) -> impl Iterator<Item = usize> + '_ {
        (0..layout.named() as usize).map(move |slice| self.host(collection, slice))
    }

    /// The record that holds, wherever it is known.
    pub(super) fn newest(&self, collection: usize) -> Option<Standing> {
        let layout = *self.decided[collection].last()?;
        Some(Standing { epoch: self.decided[collection].len() as u64, layout })
    }

    pub(super) fn record(&self, collection: usize, epoch: u64) -> Option<Standing> {
        let layout = *self.decided[collection].get(usize::try_from(epoch).ok()?.checked_sub(1)?)?;
        Some(Standing { epoch, layout })
    }

    /// The file in the tree of a collection on a server.
    pub(super) fn file(&self, server: usize, collection: usize) -> Bytes {
        let server = &self.servers[server];
        let here = server.disk[collection].is_some_and(|own| own.layout != Layout::Gone);
        if here { server.file } else { 0 }
    }
}
