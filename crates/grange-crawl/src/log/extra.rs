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
    /// Of a duplicate: the URL of its original, where that is another.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub original_url: Option<Cow<'a, str>>,
}

impl<'a> Extra<'a> {
    /// Reads the column; none when it is no JSON object. A value of an unexpected kind is as good as none.
    pub(super) fn parse(text: &'a str) -> Option<Extra<'a>> {
        if let Ok(extra) = serde_json::from_str(text) {
            return Some(extra);
        }
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
        let number = |key: &str| object.get(key).and_then(serde_json::Value::as_u64);
        let text = |key: &str| {
            object.get(key).and_then(serde_json::Value::as_str).map(|text| Cow::Owned(text.to_owned()))
        };
        Some(Extra {
            content_size: number("contentSize"),
            warc_filename: text("warcFilename"),
            warc_file_offset: number("warcFileOffset"),
            original_url: text("originalUrl"),
        })
    }

    pub(super) fn push(&self, out: &mut Vec<u8>) {
        // Plain data into memory: there is nothing to fail.
        let _ = serde_json::to_writer(out, self);
    }
}
