//! Several segments into one: what merging, writing out the head and loading have in common.

use std::path::Path;

use bytes::Bytes;

use crate::error::Result;
use crate::merge::{Layer, Merge};
use crate::row::{FileEntry, Kind, Row, SHARED};
use crate::segment::{Cursor, Position, Sampler, SegmentOptions, SegmentWriter, train};
use crate::settings::Settings;

/// What was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Combined {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// Rows between two looks at the throttle.
const PACE_ROWS: u64 = 4096;

/// Writes the live rows of `layers` (newest first) into a new segment at `path`. Damage in any of them is an error:
/// nothing is dropped in silence. `bottom` says that nothing older is left that a deleting row could take away.
pub(crate) fn combine(
    layers: &[Layer],
    path: &Path,
    bottom: bool,
    settings: &Settings,
    pace: impl FnMut(u64),
) -> Result<Combined> {
    let dictionary = dictionary(layers)?;
    let options =
        SegmentOptions { block_bytes: settings.block_bytes, level: Some(settings.level), dictionary };
    let mut writer = SegmentWriter::create(path, options)?;
    copy(layers, &mut writer, bottom, pace)?;
    let finished = writer.finish()?;
    Ok(Combined { rows: finished.rows, bytes: finished.bytes })
}

fn copy(layers: &[Layer], writer: &mut SegmentWriter, bottom: bool, mut pace: impl FnMut(u64)) -> Result<()> {
    let numbers = number_names(layers, writer);
    let cursors =
        layers.iter().map(|layer| (Cursor::new(layer.segment.clone(), Position::default()), layer.clone()));
    let mut merge = Merge::new(cursors).rewriting(bottom);
    while merge.advance()? {
        let names = &numbers[merge.age()];
        if let Some((row, segment)) = merge.current() {
            let (Some(Some(file)), Some(kind)) =
                (names.files.get(row.file as usize), names.kinds.get(row.kind as usize))
            else {
                return Err(crate::error::Error::damaged(segment.path(), 0, "a block"));
            };
            let mut kind = *kind;
            if merge.shares() {
                let of_row = segment.kinds.get(row.kind as usize).cloned().unwrap_or_default();
                kind = writer.tables.kind(&Kind { flags: of_row.flags | SHARED, ..of_row });
            }
            writer.push(&Row { file: *file, kind, ..row })?;
        }
        if writer.rows().is_multiple_of(PACE_ROWS) {
            pace(writer.position());
        }
    }
    Ok(())
}

/// Old numbers to new ones.
struct Numbers {
    files: Vec<Option<u32>>,
    kinds: Vec<u32>,
}

/// Live files get their numbers in the order of their names, which is mostly that of their times: rows that stand together
/// then have numbers that are close. Files without rows keep their place, because they count as indexed.
fn number_names(layers: &[Layer], writer: &mut SegmentWriter) -> Vec<Numbers> {
    let live = |layer: &Layer| {
        let dead = layer.dead.clone();
        move |at: usize| !dead.as_ref().is_some_and(|dead| dead[at])
    };
    let mut files: Vec<&FileEntry> = Vec::new();
    for layer in layers {
        let live = live(layer);
        files
            .extend(layer.segment.files.iter().enumerate().filter(|(at, _)| live(*at)).map(|(_, file)| file));
    }
    files.sort_unstable_by_key(|file| (&file.name, &file.job, file.whole));
    for file in files {
        writer.tables.file(file);
    }
    layers
        .iter()
        .map(|layer| {
            let live = live(layer);
            let files = layer.segment.files.iter().enumerate();
            Numbers {
                files: files.map(|(at, file)| live(at).then(|| writer.tables.file(file))).collect(),
                kinds: layer.segment.kinds.iter().map(|kind| writer.tables.kind(&alone(kind))).collect(),
            }
        })
        .collect()
}

/// A kind of rows whose captures have no other.
fn alone(kind: &Kind) -> Kind {
    Kind { flags: kind.flags & !SHARED, ..kind.clone() }
}

/// A dictionary learnt from blocks spread evenly over the input, or the one that the largest input used.
fn dictionary(layers: &[Layer]) -> Result<Option<Vec<u8>>> {
    let blocks: u64 = layers.iter().map(|layer| layer.segment.blocks()).sum();
    let stride = (blocks / Sampler::wanted() as u64).max(1);
    let mut sampler = Sampler::default();
    let mut next = 0;
    for layer in layers {
        while next < layer.segment.blocks() && !sampler.is_full() {
            sampler.push(&layer.segment.block(next, false)?.packed);
            next += stride;
        }
        next = next.saturating_sub(layer.segment.blocks());
    }
    let learnt = train(&sampler);
    Ok(learnt.or_else(|| {
        let largest = layers.iter().max_by_key(|layer| layer.segment.bytes());
        largest.and_then(|layer| layer.segment.dictionary().map(<[u8]>::to_vec))
    }))
}

/// The rows of small layers (newest first) as one segment in memory.
pub(crate) fn join_in_memory(layers: &[Layer]) -> Result<Bytes> {
    let mut writer = SegmentWriter::in_memory(SegmentOptions::memory())?;
    copy(layers, &mut writer, false, |_| {})?;
    Ok(writer.finish()?.memory)
}
