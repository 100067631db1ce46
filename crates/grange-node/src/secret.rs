//! Secrets on disk: made from the system's randomness, written aside and renamed, readable only by their owner.

use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use grange_base::durable;

/// 256 random bits as 64 hexadecimal characters.
pub fn random() -> String {
    HEXLOWER.encode(&rand::random::<[u8; 32]>())
}

/// Writes a secret so that nobody else can read it, not even for a moment, and never half of it.
pub fn write(path: &Path, secret: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    durable::replace(path, format!("{secret}\n").as_bytes(), durable::SECRET)
}
