//! TLS: what is trusted, and what was found.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::error::FetchError;
use super::settings::{Settings, Trust};

/// What was found out about a TLS connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub certificate: Verdict,
    /// Such as `TLSv1.3`.
    pub version: String,
    /// Such as `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// Whether the server is who it says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Verified,
    /// It was not asked.
    NotChecked,
    /// Why it cannot be believed.
    Failed(String),
}

/// One line for the metadata record.
impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} certificate ", self.version, self.cipher)?;
        match &self.certificate {
            Verdict::Verified => f.write_str("verified"),
            Verdict::NotChecked => f.write_str("not checked"),
            Verdict::Failed(why) => write!(f, "not verified: {why}"),
        }
    }
}

/// What all TLS connections share.
#[derive(Clone, Debug)]
pub(super) struct TlsSetup {
    pub(super) config: Arc<ClientConfig>,
    /// Asked afterwards, when the handshake lets everybody in.
    verifier: Option<Arc<WebPkiServerVerifier>>,
    trust: Trust,
}

impl TlsSetup {
    pub(super) fn new(settings: &Settings) -> Result<TlsSetup, FetchError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if !settings.extra_roots.as_os_str().is_empty() {
            add_roots(&mut roots, &settings.extra_roots)?;
        }
        let roots = Arc::new(roots);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| FetchError::Tls(Error::General(error.to_string())))?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(FetchError::Tls)?;
        let (builder, verifier) = match settings.trust {
            Trust::Verify => (builder.with_webpki_verifier(verifier), None),
            Trust::Record | Trust::TrustAll => {
                let open = Arc::new(LetIn { provider });
                let verifier = (settings.trust == Trust::Record).then_some(verifier);
                (builder.dangerous().with_custom_certificate_verifier(open), verifier)
            }
        };
        let config = Arc::new(builder.with_no_client_auth());
        Ok(TlsSetup { config, verifier, trust: settings.trust })
    }

    /// What is to be written down about a finished handshake with `name`.
    pub(super) fn describe(&self, connection: &ClientConnection, name: &ServerName<'_>) -> Tls {
        let certificate = match (&self.verifier, connection.peer_certificates()) {
            (Some(verifier), Some([server, others @ ..])) => {
                match verifier.verify_server_cert(server, others, name, &[], UnixTime::now()) {
                    Ok(_) => Verdict::Verified,
                    Err(error) => Verdict::Failed(error.to_string()),
                }
            }
            (Some(_), _) => Verdict::Failed("the server showed no certificate".to_owned()),
            (None, _) if self.trust == Trust::Verify => Verdict::Verified,
            (None, _) => Verdict::NotChecked,
        };
        Tls {
            certificate,
            version: connection.protocol_version().map_or_else(String::new, version_name),
            cipher: connection
                .negotiated_cipher_suite()
                .map_or_else(String::new, |suite| format!("{:?}", suite.suite())),
        }
    }
}

fn version_name(version: rustls::ProtocolVersion) -> String {
    version.as_str().map_or_else(|| format!("{version:?}"), |name| name.replace("TLSv1_", "TLSv1."))
}

fn add_roots(roots: &mut RootCertStore, path: &Path) -> Result<(), FetchError> {
    let bad = |why: String| FetchError::Roots { path: path.to_owned(), why };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| bad(error.to_string()))?;
    let mut any = false;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| bad(error.to_string()))?;
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
        any = true;
    }
    if any { Ok(()) } else { Err(bad("there is no certificate in it".to_owned())) }
}

/// Lets every server in. That it holds the key of its certificate is still checked.
#[derive(Debug)]
struct LetIn {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for LetIn {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
