//! A certificate authority of the test's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Its root is in a PEM file that goes with it.
pub struct Ca {
    issuer: CertifiedIssuer<'static, KeyPair>,
    path: PathBuf,
}

/// What a receiver presents.
pub struct Identity {
    pub certificate: CertificateDer<'static>,
    pub key: PrivateKeyDer<'static>,
}

impl Ca {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL takes a certificate for self-signed whose subject is its issuer's.
        params.distinguished_name.push(DnType::CommonName, "Postrider tests");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = format!("postrider-ca-{}-{}.pem", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, issuer.pem()).unwrap();
        Self { issuer, path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Certifies names and addresses.
    pub fn certify(&self, names: &[&str]) -> Identity {
        self.certify_with(names, |_| ())
    }

    /// Certifies names and addresses, with other things set as well.
    pub fn certify_with(&self, names: &[&str], set: impl FnOnce(&mut CertificateParams)) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        set(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate: certificate.der().clone(), key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() }
    }
}

impl Identity {
    /// Of a server that presents it.
    #[allow(dead_code)] // not every test that shares this presents one itself
    pub fn server_config(self) -> ServerConfig {
        ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], self.key)
            .unwrap()
    }
}

impl Drop for Ca {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
