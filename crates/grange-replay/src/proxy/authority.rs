//! The authority that signs for every host in proxy mode. Browsers that trust it see archived pages under https.
//!
//! It is made once and kept: its key never leaves the folder, and only who installs its certificate trusts it.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quick_cache::sync::Cache;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Hosts whose certificates are kept; making one takes a fraction of a millisecond.
const HOSTS_MAX: usize = 1000;
/// Longer names are no host names.
const HOST_BYTES_MAX: usize = 253;

#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("cannot {doing} {}; check the rights of the folder", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot make a certificate for \"{name}\"")]
    Sign { name: String, source: rcgen::Error },
    #[error("cannot use the certificate made for \"{name}\"")]
    Tls { name: String, source: tokio_rustls::rustls::Error },
    #[error("\"{name}\" is no name of a host")]
    Name { name: String },
}

/// Signs for hosts.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    /// One key for all hosts: whoever has the authority's key needs none of them.
    host_key: KeyPair,
    hosts: Cache<String, Arc<ServerConfig>>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Authority").field("hosts", &self.hosts.len()).finish_non_exhaustive()
    }
}

fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Grange replay proxy");
    params.distinguished_name.push(DnType::OrganizationName, "made on this machine, for archived pages only");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

impl Authority {
    /// Opens the authority of a folder, making it on the first call.
    pub fn open(folder: &Path) -> Result<Self, AuthorityError> {
        let (key_path, pem_path) = (folder.join("replay-proxy.key"), folder.join("replay-proxy.pem"));
        let io = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| AuthorityError::Io { doing, path, source }
        };
        let sign = |source| AuthorityError::Sign { name: "the authority".to_owned(), source };
        fs::create_dir_all(folder).map_err(io("create", folder))?;
        let key = match fs::read_to_string(&key_path) {
            Ok(pem) => KeyPair::from_pem(&pem).map_err(sign)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = KeyPair::generate().map_err(sign)?;
                let mut file = fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&key_path)
                    .map_err(io("create", &key_path))?;
                file.write_all(key.serialize_pem().as_bytes()).map_err(io("write", &key_path))?;
                file.sync_all().map_err(io("write", &key_path))?;
                key
            }
            Err(error) => return Err(io("read", &key_path)(error)),
        };
        let params = params();
        // Browsers hold the certificate they were given, so it stays as it is; signing needs only its name and key.
        let certificate = if let Ok(pem) = fs::read_to_string(&pem_path) {
            pem
        } else {
            let pem = params.self_signed(&key).map_err(sign)?.pem();
            fs::write(&pem_path, &pem).map_err(io("write", &pem_path))?;
            pem
        };
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
            host_key: KeyPair::generate().map_err(sign)?,
            hosts: Cache::new(HOSTS_MAX),
        })
    }

    /// What browsers must be told to trust.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate
    }

    /// How to speak as this host.
    pub(super) fn host(&self, name: &str) -> Result<Arc<ServerConfig>, AuthorityError> {
        let name = name.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        if name.is_empty() || name.len() > HOST_BYTES_MAX || !name.bytes().all(sound) {
            return Err(AuthorityError::Name { name });
        }
        if let Some(known) = self.hosts.get(&name) {
            return Ok(known);
        }
        let sign = |source| AuthorityError::Sign { name: name.clone(), source };
        let mut params = CertificateParams::new(vec![name.clone()]).map_err(sign)?;
        // Names longer than 64 bytes do not fit a common name; the alternative name is what counts.
        params.distinguished_name.push(DnType::CommonName, name.chars().take(64).collect::<String>());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&self.host_key, &self.issuer).map_err(sign)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.host_key.serialize_der()));
        let tls = |source| AuthorityError::Tls { name: name.clone(), source };
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(tls)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(tls)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        self.hosts.insert(name, Arc::clone(&config));
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_its_key_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let first = Authority::open(folder.path()).unwrap().certificate_pem().to_owned();
        assert!(first.contains("BEGIN CERTIFICATE"));
        assert_eq!(Authority::open(folder.path()).unwrap().certificate_pem(), first);
        let mode = fs::metadata(folder.path().join("replay-proxy.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn it_signs_for_names_and_addresses_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::open(folder.path()).unwrap();
        for name in ["example.org", "EXAMPLE.org", "127.0.0.1", "[::1]", "a_b.example"] {
            assert!(authority.host(name).is_ok(), "{name}");
        }
        for name in ["", "a b", "a/b", "*.org", "x\r\ny", &"a".repeat(300)] {
            assert!(authority.host(name).is_err(), "{name}");
        }
    }
}
