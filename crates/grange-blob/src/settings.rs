//! The settings of one store. The doc comments are the reference page.

use std::path::PathBuf;

use grange_base::Size;
use grange_model::Algorithm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::disk::{DiskSettings, Placement};

/// Where files are kept, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The place: `file:FOLDER` or `file:FOLDER,FOLDER,…` on this machine's disks (a relative path is below the data
    /// folder), `s3://BUCKET/PREFIX?endpoint=URL&region=NAME` in a bucket, `swap://HOST:PORT/COLLECTION` in a
    /// collection of a SWAP network (any of its servers will do), `peer://HOST:PORT/STORE` on another node, or `memory:`
    /// for trying things out.
    pub url: String,

    /// The checksums computed while a file comes in. The strongest decides; the others are kept for people and
    /// programs that know files by them. SHA-512 costs most, then MD5.
    pub checksums: Vec<Algorithm>,

    /// Takes no files and removes none; folders are not even made.
    pub read_only: bool,

    /// How several folders fill up: `in-order`, one after the other, or `most-free`, the emptiest first.
    pub placement: Placement,

    /// A folder whose disk has no more than this free takes no more files. 2 GB is room for the largest usual WARC
    /// file and what else a full disk would break.
    pub min_space_left: Size,

    /// This much must stay free on the disk after a file was written.
    pub min_space_required: Size,

    /// File with the access key of the bucket. White space around it is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_file: Option<PathBuf>,

    /// File with the secret key of the bucket, or with the key of the SWAP network. White space around it is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        let disk = DiskSettings::new([]);
        Self {
            url: "file:archive".to_owned(),
            checksums: vec![Algorithm::Sha512, Algorithm::Sha256, Algorithm::Md5],
            read_only: disk.read_only,
            placement: disk.placement,
            min_space_left: disk.min_space_left,
            min_space_required: disk.min_space_required,
            access_key_file: None,
            secret_key_file: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_section_is_the_default_and_an_unknown_key_is_refused() {
        assert_eq!(serde_json::from_str::<Settings>("{}").unwrap(), Settings::default());
        let error = serde_json::from_str::<Settings>(r#"{"utl": "memory:"}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `utl`"));
        let given = r#"{"placement": "most-free", "checksums": ["sha256"], "min_space_left": "5GB"}"#;
        let given: Settings = serde_json::from_str(given).unwrap();
        assert_eq!((given.placement, given.min_space_left), (Placement::MostFree, Size(5_000_000_000)));
    }

    #[test]
    fn every_setting_is_described() {
        let schema = schemars::schema_for!(Settings);
        let properties = schema.get("properties").and_then(|p| p.as_object()).unwrap();
        assert_eq!(properties.len(), 8);
        for (name, property) in properties {
            assert!(property.get("description").is_some(), "{name}");
        }
    }
}
