//! A stored file without the records that a reader may not see.

use std::io::{self, Write};
use std::sync::Arc;

use tokio::runtime::Handle;

use super::record_access::RecordAccess;
use crate::capture::{About, Place, reader_at};
use crate::export::{copy_range, pack_record};

/// Records that begin in one place: one, or those that share a gzip member.
#[derive(Debug)]
struct Member {
    offset: u64,
    /// Whether its first record is not the first in its place: it belongs to the one before.
    shared: bool,
    /// Where it ends, damage behind it not included.
    end: u64,
    /// Of each record, whether it is visible.
    visible: Vec<bool>,
}

/// Writes a file. What is visible keeps its bytes; a record that shares its gzip member with a hidden one is packed alone.
///
/// Without rules bytes between records go along, also where they are damaged: then only whole documents of crawls are left
/// out. With rules they do not, for they may be the remains of anything.
pub(super) fn write(
    access: &RecordAccess,
    file: &str,
    runtime: &Handle,
    out: &mut impl Write,
) -> io::Result<()> {
    let whole = access.is_without_rules();
    let place = Place { file: file.to_owned(), ..Place::default() };
    let mut reader = reader_at(&access.holdings, &place, runtime)?;
    // It begins with the dictionary that all frames need.
    let zstd = reader.container() == warc::Container::Zstd;
    let mut member: Option<Member> = None;
    loop {
        // Also where everything is hidden and nothing is written: a client that left ends it.
        out.flush()?;
        let next = match reader.next()? {
            None => None,
            Some(mut record) => {
                let about = About::of(&mut record)?;
                let place = record.place();
                let visible = access.hides(&about, place.offset).is_none();
                record.finish()?;
                let end = place.offset + record.stored_len().unwrap_or(0);
                Some(Member {
                    offset: place.offset,
                    end,
                    shared: !place.is_seekable(),
                    visible: vec![visible],
                })
            }
        };
        match (&mut member, &next) {
            (Some(member), Some(next)) if next.shared => {
                member.visible.extend(&next.visible);
                member.end = member.end.max(next.end);
                continue;
            }
            (None, Some(next)) if whole || zstd => {
                copy_range(&access.holdings, file, 0..next.offset, runtime, out)?;
            }
            // A file without records, such as a list, has nothing that could be hidden by record.
            (None, None) if whole => return rest(access, file, 0, runtime, out),
            _ => {}
        }
        if let Some(done) = member.take() {
            let end = if whole { next.as_ref().map(|next| next.offset) } else { Some(done.end) };
            // A zstd frame of several records cannot be made again without the dictionary.
            if !(zstd && done.visible.contains(&false)) {
                give(access, file, &done, end, runtime, out)?;
            }
        }
        if next.is_none() {
            return Ok(());
        }
        member = next;
    }
}

/// Writes one member; without `end` up to the end of the file.
fn give(
    access: &RecordAccess,
    file: &str,
    member: &Member,
    end: Option<u64>,
    runtime: &Handle,
    out: &mut impl Write,
) -> io::Result<()> {
    if member.visible.iter().all(|visible| *visible) {
        return match end {
            Some(end) => copy_range(&access.holdings, file, member.offset..end, runtime, out),
            None => rest(access, file, member.offset, runtime, out),
        };
    }
    if !member.visible.contains(&true) {
        return Ok(());
    }
    let place = Place { file: file.to_owned(), offset: member.offset, ..Place::default() };
    let mut reader = reader_at(&access.holdings, &place, runtime)?;
    for visible in &member.visible {
        let Some(mut record) = reader.next()? else { break };
        if *visible {
            pack_record(&mut record, out)?;
        }
    }
    Ok(())
}

/// Read at a time.
const READ_BYTES: u64 = 1 << 20;

/// Copies everything from a byte on.
fn rest(
    access: &RecordAccess,
    file: &str,
    mut at: u64,
    runtime: &Handle,
    out: &mut impl Write,
) -> io::Result<()> {
    loop {
        let holdings = Arc::clone(&access.holdings);
        let piece = runtime.block_on(holdings.read_at(file, at, READ_BYTES)).map_err(io::Error::other)?;
        match piece {
            Some(piece) if !piece.is_empty() => {
                out.write_all(&piece)?;
                at += piece.len() as u64;
            }
            _ => return Ok(()),
        }
    }
}
