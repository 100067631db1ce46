//! Some thirty rows, stored column by column so that like stands beside like.
//!
//! ```text
//! packed   rows, length of each column but the last; then the columns:
//!            shared     bytes of the key shared with the row before
//!            fresh      number of bytes after them
//!            keys       those bytes
//!            times      difference from the row before ×2; or, odd, the time as it is
//!            kinds      number of flags + status + MIME type
//!            forms      form of the digest; 0x80: the one of the row before
//!            lengths    bytes of the record
//!            files      number of the file
//!            addresses  how the URL differs from the key
//!            literals   what is left to say about URLs, and further fields
//! plain    per row: digest, offset (4 bytes; 0xffffffff: 8 more follow)
//! ```
//!
//! `packed` is compressed. `plain` is not: digests and offsets are as good as random.

use bytes::Bytes;

use crate::address;
use crate::digest::{self, Form};
use crate::row::Row;
use crate::stamp::Stamp;
use crate::varint::{self, Malformed, unzigzag, zigzag};

const COLUMNS: usize = 10;
const SHARED: usize = 0;
const FRESH: usize = 1;
const KEYS: usize = 2;
const TIMES: usize = 3;
const KINDS: usize = 4;
const FORMS: usize = 5;
const LENGTHS: usize = 6;
const FILES: usize = 7;
const ADDRESSES: usize = 8;
const LITERALS: usize = 9;

const SAME_DIGEST: u8 = 0x80;
const LONG_OFFSET: u32 = u32::MAX;

/// Collects the rows of a block.
#[derive(Debug, Default)]
pub(crate) struct BlockEncoder {
    rows: u32,
    columns: [Vec<u8>; COLUMNS],
    plain: Vec<u8>,
    surt: Vec<u8>,
    time: i64,
    digest: Vec<u8>,
    form: u8,
}

impl BlockEncoder {
    pub(crate) fn push(&mut self, row: &Row<'_>) {
        let shared = address::common_prefix(&self.surt, row.surt);
        varint::put(&mut self.columns[SHARED], shared as u64);
        varint::put(&mut self.columns[FRESH], (row.surt.len() - shared) as u64);
        self.columns[KEYS].extend_from_slice(&row.surt[shared..]);
        self.surt.truncate(shared);
        self.surt.extend_from_slice(&row.surt[shared..]);
        match row.time.dense() {
            Some(dense) => {
                varint::put(&mut self.columns[TIMES], zigzag(dense - self.time) << 1);
                self.time = dense;
            }
            None => {
                // The code takes 62 bits.
                varint::put(&mut self.columns[TIMES], row.time.code() << 1 | 1);
            }
        }
        varint::put(&mut self.columns[KINDS], u64::from(row.kind));
        let form = row.form as u8;
        if row.form != Form::None && form == self.form && row.digest == self.digest {
            self.columns[FORMS].push(form | SAME_DIGEST);
        } else {
            self.columns[FORMS].push(form);
            digest::put(row.form, row.digest, &mut self.plain);
            self.form = form;
            self.digest.clear();
            self.digest.extend_from_slice(row.digest);
        }
        varint::put(&mut self.columns[LENGTHS], row.length);
        varint::put(&mut self.columns[FILES], u64::from(row.file));
        match u32::try_from(row.offset) {
            Ok(offset) if offset != LONG_OFFSET => self.plain.extend_from_slice(&offset.to_le_bytes()),
            _ => {
                self.plain.extend_from_slice(&LONG_OFFSET.to_le_bytes());
                self.plain.extend_from_slice(&row.offset.to_le_bytes());
            }
        }
        self.columns[ADDRESSES].push(row.address);
        self.columns[LITERALS].extend_from_slice(row.literals);
        self.rows += 1;
    }

    pub(crate) const fn rows(&self) -> u32 {
        self.rows
    }

    /// The bytes that the packed part will have, about.
    pub(crate) fn packed_len(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    /// Writes both parts and begins anew.
    pub(crate) fn finish(&mut self, packed: &mut Vec<u8>, plain: &mut Vec<u8>) {
        varint::put(packed, u64::from(self.rows));
        for column in &self.columns[..COLUMNS - 1] {
            varint::put(packed, column.len() as u64);
        }
        for column in &mut self.columns {
            packed.extend_from_slice(column);
            column.clear();
        }
        plain.append(&mut self.plain);
        self.rows = 0;
        self.surt.clear();
        self.digest.clear();
        self.form = 0;
        self.time = 0;
    }
}

/// The rows of a block, uncompressed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    pub(crate) packed: Bytes,
    pub(crate) plain: Bytes,
}

/// Goes through the rows of a block, one after another.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockCursor {
    block: Block,
    left: u32,
    at: [usize; COLUMNS],
    plain_at: usize,
    surt: Vec<u8>,
    dense: i64,
    time: Stamp,
    kind: u32,
    form: u8,
    digest: (usize, usize),
    length: u64,
    file: u32,
    offset: u64,
    address: u8,
    literals: (usize, usize),
}

impl BlockCursor {
    pub(crate) fn reset(&mut self, block: Block) -> Result<(), Malformed> {
        let at = &mut 0;
        self.left = 0;
        let rows = u32::try_from(varint::get(&block.packed, at)?).map_err(|_| Malformed)?;
        let mut lens = [0; COLUMNS];
        for len in &mut lens[..COLUMNS - 1] {
            *len = varint::get_usize(&block.packed, at)?;
        }
        let mut start = *at;
        for (place, len) in self.at.iter_mut().zip(lens) {
            *place = start;
            start = start.checked_add(len).filter(|end| *end <= block.packed.len()).ok_or(Malformed)?;
        }
        self.block = block;
        self.left = rows;
        self.plain_at = 0;
        self.surt.clear();
        self.dense = 0;
        self.form = 0;
        self.digest = (0, 0);
        Ok(())
    }

    /// Moves to the next row; false after the last.
    pub(crate) fn advance(&mut self) -> Result<bool, Malformed> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        let packed = &self.block.packed[..];
        let at = &mut self.at;
        let shared = varint::get_usize(packed, &mut at[SHARED])?;
        let fresh = varint::get_usize(packed, &mut at[FRESH])?;
        if shared > self.surt.len() {
            return Err(Malformed);
        }
        self.surt.truncate(shared);
        self.surt.extend_from_slice(varint::take(packed, &mut at[KEYS], fresh)?);
        let time = varint::get(packed, &mut at[TIMES])?;
        if time & 1 == 0 {
            self.dense = self.dense.checked_add(unzigzag(time >> 1)).ok_or(Malformed)?;
            self.time = Stamp::from_dense(self.dense).ok_or(Malformed)?;
        } else {
            self.time = Stamp::from_code(time >> 1);
        }
        self.kind = varint::get(packed, &mut at[KINDS])? as u32;
        let form = varint::take(packed, &mut at[FORMS], 1)?[0];
        self.length = varint::get(packed, &mut at[LENGTHS])?;
        self.file = varint::get(packed, &mut at[FILES])? as u32;
        self.address = varint::take(packed, &mut at[ADDRESSES], 1)?[0];
        let literals = at[LITERALS];
        if self.address & (address::DIFFERS | address::EXTRA) != 0 {
            address::skip(self.address, packed, &mut at[LITERALS])?;
            if self.address & address::EXTRA != 0 {
                varint::get_bytes(packed, &mut at[LITERALS])?;
            }
        }
        self.literals = (literals, at[LITERALS]);

        let plain = &self.block.plain[..];
        if form & SAME_DIGEST == 0 {
            let end = digest::get(Form::from_code(form)?, plain, &mut self.plain_at)?.len();
            self.digest = (self.plain_at - end, self.plain_at);
            self.form = form;
        } else if form & !SAME_DIGEST != self.form {
            return Err(Malformed);
        }
        self.offset = u64::from(u32::from_le_bytes(four(plain, &mut self.plain_at)?));
        if self.offset == u64::from(LONG_OFFSET) {
            let low = u32::from_le_bytes(four(plain, &mut self.plain_at)?);
            let high = u32::from_le_bytes(four(plain, &mut self.plain_at)?);
            self.offset = u64::from(low) | u64::from(high) << 32;
        }
        Ok(true)
    }

    /// The row that [`advance`](Self::advance) moved to.
    pub(crate) fn row(&self) -> Row<'_> {
        Row {
            surt: &self.surt,
            time: self.time,
            file: self.file,
            offset: self.offset,
            kind: self.kind,
            length: self.length,
            form: Form::from_code(self.form).unwrap_or(Form::None),
            digest: &self.block.plain[self.digest.0..self.digest.1],
            address: self.address,
            literals: &self.block.packed[self.literals.0..self.literals.1],
        }
    }
}

/// A row of a block that was passed, to come back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SavedRow {
    surt: (usize, usize),
    time: Stamp,
    file: u32,
    offset: u64,
    kind: u32,
    length: u64,
    form: u8,
    digest: (usize, usize),
    address: u8,
    literals: (usize, usize),
}

impl BlockCursor {
    /// Keeps the current row; its key is appended to `surts`.
    pub(crate) fn save(&self, surts: &mut Vec<u8>) -> SavedRow {
        let start = surts.len();
        surts.extend_from_slice(&self.surt);
        SavedRow {
            surt: (start, surts.len()),
            time: self.time,
            file: self.file,
            offset: self.offset,
            kind: self.kind,
            length: self.length,
            form: self.form,
            digest: self.digest,
            address: self.address,
            literals: self.literals,
        }
    }
}

impl SavedRow {
    /// The row again, out of the block and keys that it was saved from.
    pub(crate) fn row<'b>(&self, block: &'b Block, surts: &'b [u8]) -> Row<'b> {
        Row {
            surt: &surts[self.surt.0..self.surt.1],
            time: self.time,
            file: self.file,
            offset: self.offset,
            kind: self.kind,
            length: self.length,
            form: Form::from_code(self.form).unwrap_or(Form::None),
            digest: &block.plain[self.digest.0..self.digest.1],
            address: self.address,
            literals: &block.packed[self.literals.0..self.literals.1],
        }
    }
}

fn four(bytes: &[u8], at: &mut usize) -> Result<[u8; 4], Malformed> {
    varint::take(bytes, at, 4)?.try_into().map_err(|_| Malformed)
}
