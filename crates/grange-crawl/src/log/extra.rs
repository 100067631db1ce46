//! The last column of crawl.log: a JSON object that says where the record lies.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Extra information on a URI. What other writers add is read over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extra<'a> {
    /// Headers and body, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_size: Option<u64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub warc_filename: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warc_file_offset: Option<u64>,
}

impl Extra<'_> {
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        // Plain data into memory: there is nothing to fail.
        let _ = serde_json::to_writer(out, self);
    }
}
