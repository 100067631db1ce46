//! The vault: small secrets, such as passwords of web sites, sealed so that a copy of the database tells none of them.
//!
//! AES-256-GCM with a key in a file of its own; each secret is bound to what it belongs to, so that it cannot be moved
//! to another row. All nodes of one Grange share the file, as they share the node token.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, Aad, RandomizedNonceKey};
use data_encoding::BASE64;

use crate::durable;

/// Seals and opens secrets with one key.
pub struct Vault {
    key: RandomizedNonceKey,
}

/// Why a secret cannot be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("cannot {doing} the key of the vault {}: check the file and its folder", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the key of the vault {} cannot be used: {reason}", path.display())]
    Key { path: PathBuf, reason: String },
    #[error(
        "the secret of {what} cannot be opened: it was sealed with another key, for something else, or is damaged"
    )]
    Sealed { what: String },
}

/// AES-256.
const KEY_BYTES: usize = 32;

/// What sealed texts begin with, so that another way of sealing can follow.
const MARK: &str = "v1:";

impl Vault {
    /// Reads the key, or makes it when there is none.
    pub fn open(path: &Path) -> Result<Self, VaultError> {
        let file = |doing| move |source| VaultError::File { doing, path: path.to_owned(), source };
        let wrong = |reason: String| VaultError::Key { path: path.to_owned(), reason };
        let bytes = match std::fs::read(path) {
            Ok(bytes) => {
                let mode = std::fs::metadata(path).map_err(file("read"))?.permissions().mode();
                if mode & 0o077 != 0 {
                    return Err(wrong(format!("others may read it (mode {:o}): chmod 600", mode & 0o777)));
                }
                bytes
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => match make(path) {
                // Another process made it at the same moment.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Self::open(path),
                made => made.map_err(file("write"))?,
            },
            Err(error) => return Err(file("read")(error)),
        };
        if bytes.len() != KEY_BYTES {
            return Err(wrong(format!("it has {} bytes, not {KEY_BYTES}", bytes.len())));
        }
        let key =
            RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| wrong("it is no key".to_owned()))?;
        Ok(Self { key })
    }

    /// Seals a secret for what it belongs to.
    pub fn seal(&self, what: &str, secret: &str) -> Result<String, VaultError> {
        let mut bytes = secret.as_bytes().to_vec();
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(what.as_bytes()), &mut bytes)
            .map_err(|_| VaultError::Sealed { what: what.to_owned() })?;
        let mut all = nonce.as_ref().to_vec();
        all.append(&mut bytes);
        Ok(format!("{MARK}{}", BASE64.encode(&all)))
    }

    /// Opens what [`Vault::seal`] sealed for the same thing.
    pub fn unseal(&self, what: &str, sealed: &str) -> Result<String, VaultError> {
        let opened = || {
            let all = BASE64.decode(sealed.strip_prefix(MARK)?.as_bytes()).ok()?;
            let (nonce, rest) = all.split_at_checked(aws_lc_rs::aead::NONCE_LEN)?;
            let nonce = aws_lc_rs::aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut rest = rest.to_vec();
            let plain = self.key.open_in_place(nonce, Aad::from(what.as_bytes()), &mut rest).ok()?;
            String::from_utf8(plain.to_vec()).ok()
        };
        opened().ok_or_else(|| VaultError::Sealed { what: what.to_owned() })
    }
}

fn make(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; KEY_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| std::io::Error::other("no random bytes"))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    durable::create_new(path, &bytes, durable::SECRET)?;
    Ok(bytes)
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_only_with_its_key_and_for_what_it_was_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets/vault.key");
        let vault = Vault::open(&path).unwrap();
        let sealed = vault.seal("a.dk/login", "hunter2").unwrap();
        assert!(!sealed.contains("hunter2") && sealed != vault.seal("a.dk/login", "hunter2").unwrap());
        let again = Vault::open(&path).unwrap();
        assert_eq!(again.unseal("a.dk/login", &sealed).unwrap(), "hunter2");
        assert!(again.unseal("b.dk/login", &sealed).is_err());
        let other = Vault::open(&folder.path().join("other.key")).unwrap();
        assert!(other.unseal("a.dk/login", &sealed).is_err());
        for damaged in ["", "v1:", "v1:AAAA", "hunter2", &sealed[..sealed.len() - 4]] {
            assert!(vault.unseal("a.dk/login", damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vault.key");
        Vault::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Vault::open(&path).unwrap_err().to_string().contains("chmod 600"));
        let short = folder.path().join("short.key");
        std::fs::write(&short, "x").unwrap();
        std::fs::set_permissions(&short, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Vault::open(&short).unwrap_err().to_string().contains("1 bytes"));
    }
}
