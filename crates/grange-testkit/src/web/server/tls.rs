//! TLS with certificates signed by themselves, one for each name that a client asks for.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

/// Certificates kept at hand, a kilobyte each; all are forgotten when full.
const CERTIFICATES_KEPT: usize = 10_000;
/// For clients that name no host.
const NAMELESS: &str = "localhost";

pub(super) fn acceptor() -> io::Result<TlsAcceptor> {
    let resolver = Resolver { key: KeyPair::generate().map_err(io::Error::other)?, made: Mutex::default() };
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    Ok(TlsAcceptor::from(Arc::new(config)))
}

struct Resolver {
    /// One key for all names: a fresh one each would only cost time.
    key: KeyPair,
    made: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or(NAMELESS);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(certified) = made.get(name) {
            return Some(Arc::clone(certified));
        }
        let certified = Arc::new(self.certify(name)?);
        if made.len() >= CERTIFICATES_KEPT {
            made.clear();
        }
        made.insert(name.to_owned(), Arc::clone(&certified));
        Some(certified)
    }
}

impl Resolver {
    fn certify(&self, name: &str) -> Option<CertifiedKey> {
        let certificate = CertificateParams::new(vec![name.to_owned()]).ok()?.self_signed(&self.key).ok()?;
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).ok()?;
        let signing = aws_lc_rs::sign::any_supported_type(&key).ok()?;
        Some(CertifiedKey::new(vec![certificate.der().clone()], signing))
    }
}
