//! The TLS client configuration: the platform's roots and the operator's, TLS 1.2 or newer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls_platform_verifier::Verifier;

/// TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// The file of extra roots could not be read or is not PEM.
    #[error("cannot read the extra root certificates in {path}")]
    ExtraRoots {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: pem::Error,
    },
    /// The file of extra roots holds no certificate.
    #[error("no certificate in {path}")]
    NoExtraRoots {
        /// The file.
        path: PathBuf,
    },
    /// An extra root is not a certificate, or the platform has no roots and no extra ones are set.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
}

/// Without ALPN. Sessions are not resumed, so that every attempt verifies the certificate.
pub(crate) fn client_config(extra_roots: Option<&Path>) -> Result<ClientConfig, TlsSetupError> {
    let roots = extra_roots.map(read_roots).transpose()?.unwrap_or_default();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new_with_extra_roots(roots, Arc::clone(&provider))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous() // rustls' word for any verifier but its own: this one is its own, over the platform's roots
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let unreadable = |source| TlsSetupError::ExtraRoots { path: path.to_owned(), source };
    let roots: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)?;
    if roots.is_empty() { Err(TlsSetupError::NoExtraRoots { path: path.to_owned() }) } else { Ok(roots) }
}
