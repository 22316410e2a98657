//! New keys, and the files that they are written to.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use postrider::signing::{KeyProblem, SigningAlgorithm, SigningKey, SigningKeys};

use crate::checker::{Expected, failed_checks};
use crate::support::{key, token};

/// A path in the build's own temporary folder at which nothing is.
fn new_path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.pem", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn a_generated_key_signs_and_comes_back_from_its_pem_as_the_same_key() {
    for algorithm in SigningAlgorithm::ALL {
        let generated = SigningKey::generate(algorithm).unwrap();
        assert_eq!(generated.algorithm(), algorithm);
        let pem = generated.to_pkcs8_pem().unwrap();
        assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\n"), "PKCS#8 with plain line ends");
        let read_back = SigningKey::from_pem(&pem).unwrap();
        assert_eq!(read_back.jwk(), generated.jwk());

        let signed = token().sign(&SigningKeys::new(vec![read_back]).unwrap(), algorithm).unwrap();
        let published = SigningKeys::new(vec![generated]).unwrap().jwks();
        assert!(failed_checks(&signed, &published, &Expected::of(algorithm)).is_empty(), "{algorithm}");
    }
}

#[test]
fn two_generated_keys_differ() {
    for algorithm in SigningAlgorithm::ALL {
        let [first, second] = [(); 2].map(|()| SigningKey::generate(algorithm).unwrap());
        assert_ne!(first.kid(), second.kid(), "{algorithm}");
    }
}

#[test]
fn a_key_file_is_readable_by_its_owner_alone() {
    let path = new_path("private");
    let generated = SigningKey::generate(SigningAlgorithm::Es256).unwrap();
    generated.write_pem_file(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(SigningKey::from_pem_file(&path).unwrap().kid(), generated.kid());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_key_file_that_exists_is_never_overwritten() {
    let path = new_path("existing");
    key("ed25519_pkcs8.pem").write_pem_file(&path).unwrap();
    let error = key("p256_pkcs8.pem").write_pem_file(&path).unwrap_err();
    assert_eq!(error.problem, KeyProblem::Unwritable(ErrorKind::AlreadyExists));
    assert_eq!(error.path, path);
    assert_eq!(SigningKey::from_pem_file(&path).unwrap().kid(), key("ed25519_pkcs8.pem").kid());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn openssl_keys_are_written_back_as_openssl_wrote_them() {
    for file in ["p256_pkcs8.pem", "rsa2048_pkcs8.pem", "ed25519_pkcs8.pem"] {
        assert!(key(file).to_pkcs8_pem().unwrap() == crate::support::key_text(file), "{file} differs");
    }
}
