//! A throw-away certificate authority, whose root is in a file for as long as a client reads it.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivatePkcs8KeyDer;
use uuid::Uuid;

use super::DemoError;

pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TemporaryFolder,
}

impl Authority {
    pub(super) fn new() -> Result<Self, DemoError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Postrider demo, for one run");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let folder = TemporaryFolder::new().map_err(DemoError::TemporaryFolder)?;
        fs::write(folder.root_certificate(), issuer.pem()).map_err(DemoError::TemporaryFolder)?;
        Ok(Self { issuer, folder })
    }

    /// The PEM file of its root, which goes with this value.
    pub(super) fn root_certificate(&self) -> PathBuf {
        self.folder.root_certificate()
    }

    /// What a receiver of this name or address presents.
    pub(super) fn certify(&self, name: &str) -> Result<Arc<ServerConfig>, DemoError> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([name.to_owned()])?.signed_by(&key, &self.issuer)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())?;
        Ok(Arc::new(config))
    }
}

/// Gone with this value.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("postrider-demo-{}", Uuid::new_v4().simple()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn root_certificate(&self) -> PathBuf {
        Path::new(&self.0).join("root.pem")
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // a root whose key is gone
    }
}
