//! One record out of the middle of a stored file.

use std::io::Read;

use grange_model::account::Permission;
use serde_json::json;
use warc::Reader;

use super::files::file_name;
use crate::{App, Error, Who};

/// Packed bytes read for one record at most. Larger records are rare; get the file for them.
const PACKED_BYTES_MAX: u64 = 16 << 20;
/// Plain bytes given at most: a small packed record may unpack to anything.
const PLAIN_BYTES_MAX: u64 = 64 << 20;

impl App {
    /// The record at an offset, unpacked: its header and its block. As with [`App::open_file`], access rules are not asked.
    pub async fn record(&self, who: &Who, name: &str, offset: u64) -> Result<Vec<u8>, Error> {
        who.needs(Permission::ReadSystem)?;
        let file = file_name(name)?;
        let packed = self.archive.get().await?.read_at(&file, offset, PACKED_BYTES_MAX).await?;
        let no_record =
            |reason: &str| Error::NoRecord { name: name.to_owned(), offset, reason: reason.to_owned() };
        let mut reader =
            Reader::from_bytes(packed.to_vec()).map_err(|error| no_record(&error.to_string()))?;
        let mut record = match reader.next() {
            Ok(Some(record)) => record,
            Ok(None) => return Err(no_record("the file ends there or holds no record")),
            Err(error) => return Err(no_record(&error.to_string())),
        };
        if record.place().offset != 0 {
            return Err(no_record("no record starts there"));
        }
        let mut bytes = record.header().raw().to_vec();
        let read = record.block().take(PLAIN_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| no_record(&error.to_string()))?;
        if bytes.len() as u64 > PLAIN_BYTES_MAX {
            return Err(no_record("it is larger than 64MiB unpacked; get the whole file instead"));
        }
        let what = json!({ "offset": offset });
        self.record_reading(who, "file.read-record", name, Some(what)).await?;
        Ok(bytes)
    }
}
