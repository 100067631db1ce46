//! The key that signs the log: Ed25519, made once, in a file that only its owner can read.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use data_encoding::HEXLOWER;
use grange_base::durable;

use crate::error::Error;
use crate::journal::{sync_folder, sync_names};

pub(crate) struct SigningKey(Ed25519KeyPair);

/// Where the key lies, and the next one beside it while keys are rotated.
#[derive(Clone, Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    next: PathBuf,
}

impl KeyFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        let next = path.with_extension("key.next");
        Self { path, next }
    }

    /// Reads the key, or makes it. A rotation that was cut short ends here: with the new key if the rows know it, with
    /// the old one otherwise.
    pub(crate) fn open(&self, known: &[String]) -> Result<SigningKey, Error> {
        if self.next.exists() {
            let next = SigningKey::open(&self.next);
            if next.is_ok_and(|next| known.contains(&next.public_key())) {
                self.take_next()?;
            } else {
                std::fs::remove_file(&self.next).map_err(Error::io("remove", &self.next))?;
            }
        }
        SigningKey::open(&self.path)
    }

    /// Makes the key that comes next; one that a rotation cut short left is made again.
    pub(crate) fn create_next(&self) -> Result<SigningKey, Error> {
        match std::fs::remove_file(&self.next) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &self.next)(error))
            }
            _ => SigningKey::open(&self.next),
        }
    }

    pub(crate) fn take_next(&self) -> Result<(), Error> {
        std::fs::rename(&self.next, &self.path).map_err(Error::io("rename", &self.next))?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        sync_folder(folder)
    }
}

impl SigningKey {
    /// Reads the key, or makes it when there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let broken = |reason: String| Error::Key { path: path.to_owned(), reason };
        match std::fs::read(path) {
            Ok(pkcs8) => {
                let mode = std::fs::metadata(path).map_err(Error::io("read", path))?.permissions().mode();
                if mode & 0o077 != 0 {
                    return Err(broken(format!("others may read it (mode {:o}): chmod 600", mode & 0o777)));
                }
                Ed25519KeyPair::from_pkcs8(&pkcs8)
                    .map(Self)
                    .map_err(|error| broken(format!("it is not an Ed25519 key in PKCS#8 ({error})")))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key =
                    Ed25519KeyPair::generate().map_err(|_| broken("no key could be made".to_owned()))?;
                let pkcs8 = key.to_pkcs8().map_err(|_| broken("the new key cannot be written".to_owned()))?;
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
                }
                match durable::create_new_with(path, pkcs8.as_ref(), durable::SECRET, sync_names) {
                    Ok(()) => Ok(Self(key)),
                    // Another process made it at the same moment.
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Self::open(path),
                    Err(error) => Err(Error::io("write", path)(error)),
                }
            }
            Err(error) => Err(Error::io("read", path)(error)),
        }
    }

    pub(crate) fn public_key(&self) -> String {
        HEXLOWER.encode(self.0.public_key().as_ref())
    }

    pub(crate) fn sign(&self, text: &str) -> String {
        HEXLOWER.encode(self.0.sign(text.as_bytes()).as_ref())
    }
}

/// Whether the signature, both in hexadecimal, is that key's on the text.
pub(crate) fn verified(public_key: &str, text: &str, signature: &str) -> bool {
    let (Ok(key), Ok(signature)) =
        (HEXLOWER.decode(public_key.as_bytes()), HEXLOWER.decode(signature.as_bytes()))
    else {
        return false;
    };
    UnparsedPublicKey::new(&ED25519, key).verify(text.as_bytes(), &signature).is_ok()
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.public_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::FOLDER_SYNCS_TO_FAIL;

    #[test]
    fn a_key_that_was_not_written_and_synced_is_not_there_and_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.key");
        FOLDER_SYNCS_TO_FAIL.lock().unwrap().push(folder.path().to_owned());
        assert!(SigningKey::open(&path).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let key = SigningKey::open(&path).unwrap().public_key();
        assert_eq!(SigningKey::open(&path).unwrap().public_key(), key);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
