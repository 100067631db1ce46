//! Secrets on disk: made from the system's randomness, written aside and renamed, readable only by their owner.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use data_encoding::HEXLOWER;

/// 256 random bits as 64 hexadecimal characters.
pub fn random() -> String {
    HEXLOWER.encode(&rand::random::<[u8; 32]>())
}

/// Writes a secret so that nobody else can read it, not even for a moment, and never half of it.
pub fn write(path: &Path, secret: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let aside = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(secret.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&aside, path)
}
