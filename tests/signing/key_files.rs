//! Which keys are taken, and what is said of those that are not.

use std::io::ErrorKind;
use std::path::Path;

use postrider::signing::{KeyProblem, SigningAlgorithm, SigningKey, SigningKeyError};

use crate::support::{key, key_path, key_text};

#[test]
fn the_algorithm_follows_from_the_key_in_every_accepted_form() {
    for (file, algorithm) in [
        ("p256_pkcs8.pem", SigningAlgorithm::Es256),
        ("p256_second_pkcs8.pem", SigningAlgorithm::Es256),
        ("p256_sec1.pem", SigningAlgorithm::Es256),
        ("p256_sec1_with_parameters.pem", SigningAlgorithm::Es256),
        ("rsa2048_pkcs8.pem", SigningAlgorithm::Rs256),
        ("rsa2048_pkcs1.pem", SigningAlgorithm::Rs256),
        ("ed25519_pkcs8.pem", SigningAlgorithm::EdDsa),
        ("ed25519_rfc8037.pem", SigningAlgorithm::EdDsa),
    ] {
        assert_eq!(key(file).algorithm(), algorithm, "{file}");
    }
}

#[test]
fn a_key_has_one_kid_whatever_file_it_came_from() {
    assert_eq!(key("p256_pkcs8.pem").kid(), key("p256_sec1.pem").kid());
    assert_eq!(key("rsa2048_pkcs8.pem").kid(), key("rsa2048_pkcs1.pem").kid());
    assert_ne!(key("p256_pkcs8.pem").kid(), key("p256_second_pkcs8.pem").kid());
}

#[test]
fn line_ends_and_surrounding_text_do_not_matter() {
    let pem = key_text("p256_pkcs8.pem");
    let kid = key("p256_pkcs8.pem").kid().to_owned();
    for variant in [
        pem.replace('\n', "\r\n"),
        format!("Bag Attributes\n    friendlyName: signing\n{pem}\n\n"),
        pem.trim_end().to_owned(),
        format!("\u{feff}{pem}"),
    ] {
        assert_eq!(SigningKey::from_pem(&variant).unwrap().kid(), kid, "{variant:?}");
    }
}

#[test]
fn every_other_file_is_refused_with_its_path_and_what_is_wrong() {
    for (file, problem) in [
        ("no_such_file.pem", KeyProblem::Unreadable(ErrorKind::NotFound)),
        ("README.md", KeyProblem::NotPem),
        ("refused_binary.der", KeyProblem::NotPem),
        ("refused_cut_off.pem", KeyProblem::Damaged),
        ("refused_second_cut_off.pem", KeyProblem::Damaged),
        ("refused_not_base64.pem", KeyProblem::Damaged),
        ("refused_not_a_key.pem", KeyProblem::Unsupported),
        ("refused_public_spki.pem", KeyProblem::PublicKey),
        ("refused_public_pkcs1.pem", KeyProblem::PublicKey),
        ("refused_certificate.pem", KeyProblem::Certificate),
        ("refused_encrypted_pkcs8.pem", KeyProblem::Encrypted),
        ("refused_encrypted_sec1.pem", KeyProblem::Encrypted),
        ("refused_openssh.pem", KeyProblem::OtherSection),
        ("refused_parameters_only.pem", KeyProblem::OtherSection),
        ("refused_two_keys.pem", KeyProblem::SeveralKeys),
        ("refused_key_and_certificate.pem", KeyProblem::SeveralKeys),
        ("refused_p384_pkcs8.pem", KeyProblem::OtherCurve("P-384")),
        ("refused_p384_sec1.pem", KeyProblem::OtherCurve("P-384")),
        ("refused_p521_pkcs8.pem", KeyProblem::OtherCurve("P-521")),
        ("refused_secp256k1_pkcs8.pem", KeyProblem::OtherCurve("secp256k1")),
        ("refused_rsa1024_pkcs8.pem", KeyProblem::RsaTooShort),
        ("refused_rsa1024_pkcs1.pem", KeyProblem::RsaTooShort),
        ("refused_rsa_pss.pem", KeyProblem::Unsupported),
        ("refused_x25519.pem", KeyProblem::Unsupported),
        ("refused_ed448.pem", KeyProblem::Unsupported),
    ] {
        let path = key_path(file);
        let error = SigningKey::from_pem_file(&path).expect_err(file);
        assert_eq!(error, SigningKeyError { path: path.clone(), problem }, "{file}");
        let said = error.to_string();
        assert_eq!(said, format!("signing key {} {problem}", path.display()), "{file}");
    }
}

#[test]
fn every_committed_refused_key_is_in_the_table_above() {
    let source = include_str!("key_files.rs");
    let folder = std::fs::read_dir(key_path("")).unwrap();
    for file in folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        assert!(source.contains(&format!("(\"{file}\"")), "{file} is in no table");
    }
}

#[test]
fn a_folder_and_an_endless_file_are_refused() {
    let folder = SigningKey::from_pem_file(&key_path("")).unwrap_err();
    assert_eq!(folder.problem, KeyProblem::Unreadable(ErrorKind::IsADirectory));
    let endless = SigningKey::from_pem_file(Path::new("/dev/zero")).unwrap_err();
    assert_eq!(endless.problem, KeyProblem::TooLarge);
}

#[test]
fn a_private_key_that_does_not_belong_to_its_public_key_is_refused() {
    // SEC 1 holds both halves: the last byte of the public point is changed, which takes it off the curve.
    let mut section = pem::parse(key_text("p256_sec1.pem")).unwrap().into_contents();
    *section.last_mut().unwrap() ^= 1;
    let spoilt = pem::encode(&pem::Pem::new("EC PRIVATE KEY", section));
    assert_eq!(SigningKey::from_pem(&spoilt).unwrap_err(), KeyProblem::Unsupported);
}

#[test]
fn algorithm_names_are_those_of_jose_and_nothing_else() {
    assert_eq!(SigningAlgorithm::default(), SigningAlgorithm::Es256);
    for (algorithm, name) in SigningAlgorithm::ALL.into_iter().zip(["ES256", "RS256", "EdDSA"]) {
        assert_eq!(algorithm.as_str(), name);
        assert_eq!(algorithm.to_string(), name);
        assert_eq!(name.parse(), Ok(algorithm));
        assert_eq!(serde_json::to_value(algorithm).unwrap(), name);
        assert_eq!(serde_json::from_value::<SigningAlgorithm>(name.into()).unwrap(), algorithm);
    }
    for unknown in ["", "none", "es256", "EDDSA", "HS256", "ES384", "PS256", "Es256", " ES256"] {
        assert!(unknown.parse::<SigningAlgorithm>().is_err(), "{unknown:?}");
        assert!(serde_json::from_value::<SigningAlgorithm>(unknown.into()).is_err(), "{unknown:?}");
    }
}
