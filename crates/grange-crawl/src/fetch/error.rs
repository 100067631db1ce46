//! Faults of our own. What servers and networks do is never one of them.

use std::path::PathBuf;

use super::settings::BadSetting;

/// Why a fetcher could not be made, or could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Setting(#[from] BadSetting),
    #[error("cannot read the certificate authorities in {path} (fetch.extra_roots): {why}")]
    Roots { path: PathBuf, why: String },
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    #[error("cannot set up the name servers in fetch.dns: {0}")]
    Dns(String),
    #[error(
        "cannot keep a long answer in the scratch folder {folder}: free some space or name another folder"
    )]
    Scratch {
        folder: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot read back an answer from the scratch folder")]
    Reread(#[source] std::io::Error),
    #[error("cannot {act} the cookies in {path}")]
    Cookies {
        act: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}
