//! The set of keys: which one signs, which ones are published, and under which names.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use postrider::signing::{KeyProblem, SigningAlgorithm, SigningKeys, SigningKeysError};
use serde_json::{Value, json};

use crate::checker::{Expected, failed_checks, take_apart};
use crate::support::{KEY_FILES, key, key_path, keys, token};

const OLD: &str = "p256_pkcs8.pem";
const NEW: &str = "p256_second_pkcs8.pem";

fn kids(keys: &SigningKeys) -> Vec<Value> {
    keys.jwks()["keys"].as_array().unwrap().iter().map(|jwk| jwk["kid"].clone()).collect()
}

fn kid_of(signed: &str) -> Value {
    take_apart(signed).unwrap().header["kid"].clone()
}

#[test]
fn the_first_key_of_an_algorithm_signs_and_all_are_published() {
    let before = SigningKeys::new(vec![key(OLD), key(NEW), key("ed25519_pkcs8.pem")]).unwrap();
    let after = SigningKeys::new(vec![key("ed25519_pkcs8.pem"), key(NEW), key(OLD)]).unwrap();
    let [by_old, by_new] = [&before, &after].map(|keys| token().sign(keys, SigningAlgorithm::Es256).unwrap());
    assert_eq!(kid_of(&by_old), key(OLD).kid());
    assert_eq!(kid_of(&by_new), key(NEW).kid());

    // Neither a token from before nor one from after meets a receiver whose copy of the set lacks its key.
    for signed in [by_old, by_new] {
        for published in [before.jwks(), after.jwks()] {
            let failed = failed_checks(&signed, &published, &Expected::of(SigningAlgorithm::Es256));
            assert!(failed.is_empty(), "failed {failed:?}");
        }
    }
    assert_eq!(kids(&after), [key("ed25519_pkcs8.pem").kid(), key(NEW).kid(), key(OLD).kid()]);
}

#[test]
fn a_key_that_was_dropped_no_longer_vouches_for_its_tokens() {
    let signed = token().sign(&SigningKeys::new(vec![key(OLD)]).unwrap(), SigningAlgorithm::Es256).unwrap();
    let published = SigningKeys::new(vec![key(NEW)]).unwrap().jwks();
    assert_eq!(failed_checks(&signed, &published, &Expected::of(SigningAlgorithm::Es256)), [3].into());
}

#[test]
fn a_signer_is_found_by_algorithm_or_not_at_all() {
    for (algorithm, file) in KEY_FILES {
        assert_eq!(keys().signer(algorithm).unwrap().kid(), key(file).kid());
        let alone = SigningKeys::new(vec![key(file)]).unwrap();
        for other in SigningAlgorithm::ALL {
            assert_eq!(alone.signer(other).is_some(), other == algorithm, "{algorithm} {other}");
        }
    }
}

#[test]
fn no_key_and_the_same_key_twice_are_no_set() {
    assert_eq!(SigningKeys::new(vec![]).unwrap_err(), SigningKeysError::Empty);
    assert_eq!(SigningKeys::from_pem_files(&[]).unwrap_err(), SigningKeysError::Empty);
    let kid = key(OLD).kid().to_owned();
    let twice = SigningKeys::new(vec![key(OLD), key(NEW), key("p256_sec1.pem")]).unwrap_err();
    assert_eq!(twice, SigningKeysError::Duplicate { kid });
}

#[test]
fn files_are_read_in_order_and_the_first_bad_one_is_named() {
    let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(|name| key_path(name)).collect() };
    let read = SigningKeys::from_pem_files(&paths(&[NEW, "rsa2048_pkcs1.pem", OLD])).unwrap();
    assert_eq!(kids(&read), [key(NEW).kid(), key("rsa2048_pkcs8.pem").kid(), key(OLD).kid()]);
    assert_eq!(read.iter().count(), 3);

    match SigningKeys::from_pem_files(&paths(&[OLD, "refused_rsa1024_pkcs8.pem", "no_such_file.pem"])) {
        Err(SigningKeysError::File(error)) => {
            assert_eq!((error.path, error.problem), (key_path("refused_rsa1024_pkcs8.pem"), KeyProblem::RsaTooShort));
        }
        other => panic!("{other:?}"),
    }

    let (first, second) = (key_path(OLD), key_path("p256_sec1.pem"));
    let twice = SigningKeys::from_pem_files(&[first.clone(), key_path(NEW), second.clone()]).unwrap_err();
    assert_eq!(twice, SigningKeysError::DuplicateFiles { kid: key(OLD).kid().to_owned(), first, second });
}

#[test]
fn kid_is_the_thumbprint_that_another_library_computes() {
    for jwk in keys().jwks()["keys"].as_array().unwrap() {
        let theirs: Jwk = serde_json::from_value(jwk.clone()).unwrap();
        assert_eq!(jwk["kid"], theirs.thumbprint(ThumbprintHash::SHA256).unwrap());
    }
}

#[test]
fn kid_and_public_key_are_those_of_rfc_8037_appendix_a() {
    let jwk = key("ed25519_rfc8037.pem").jwk();
    assert_eq!(
        jwk,
        json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
            "alg": "EdDSA",
            "use": "sig",
        })
    );
}

#[test]
fn published_numbers_are_the_ones_in_the_key_files() {
    // By jsonwebtoken from the same files; and the coordinates have their full length (RFC 7518 6.2.1.2).
    for (algorithm, file) in KEY_FILES {
        let pem = crate::support::key_text(file);
        let (theirs, alg) = match algorithm {
            SigningAlgorithm::Es256 => {
                (jsonwebtoken::EncodingKey::from_ec_pem(pem.as_bytes()), jsonwebtoken::Algorithm::ES256)
            }
            SigningAlgorithm::Rs256 => {
                (jsonwebtoken::EncodingKey::from_rsa_pem(pem.as_bytes()), jsonwebtoken::Algorithm::RS256)
            }
            SigningAlgorithm::EdDsa => {
                (jsonwebtoken::EncodingKey::from_ed_pem(pem.as_bytes()), jsonwebtoken::Algorithm::EdDSA)
            }
        };
        let theirs = serde_json::to_value(Jwk::from_encoding_key(&theirs.unwrap(), alg).unwrap()).unwrap();
        let ours = key(file).jwk();
        for member in ["kty", "crv", "x", "y", "n", "e", "alg"] {
            assert_eq!(ours.get(member), theirs.get(member), "{file}: {member}");
        }
        let lengths: Vec<usize> = ["x", "y", "n", "e"]
            .iter()
            .filter_map(|member| Some(URL_SAFE_NO_PAD.decode(ours.get(member)?.as_str()?).unwrap().len()))
            .collect();
        let expected: &[usize] = match algorithm {
            SigningAlgorithm::Es256 => &[32, 32],
            SigningAlgorithm::Rs256 => &[256, 3],
            SigningAlgorithm::EdDsa => &[32],
        };
        assert_eq!(lengths, expected, "{file}");
    }
}
