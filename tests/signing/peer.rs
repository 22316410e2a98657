//! Verification by joserfc, in a process of its own: a token that only our own reading finds good proves little.

use std::io::Write;
use std::process::{Command, Stdio};

use chrono::TimeDelta;
use postrider::signing::{LogoutSubject, LogoutToken, SigningAlgorithm, SigningKey, SigningKeys};
use serde_json::{Value, json};

use crate::mutations::{self, Mutation};
use crate::python::{python, script};
use crate::support::{CLIENT_ID, ISSUER, SID, SUB, delivery, issued_at, key, keys, token};

/// What joserfc says: what it read, or why it refused.
fn ask(request: &Value) -> Result<Value, String> {
    let mut peer = Command::new(python())
        .arg(script("verify_logout_token.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    peer.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let ended = peer.wait_with_output().unwrap();
    let complaint = String::from_utf8(ended.stderr).unwrap();
    match ended.status.code() {
        Some(0) => Ok(serde_json::from_slice(&ended.stdout).unwrap()),
        Some(1) if complaint.starts_with("refused: ") => Err(complaint),
        _ => panic!("the peer broke (run scripts/install-test-peers.sh?): {complaint}"),
    }
}

fn request(signed: &str, jwks: Value) -> Value {
    json!({
        "token": signed,
        "jwks": jwks,
        "issuer": ISSUER,
        "client_id": CLIENT_ID,
        "now": issued_at().timestamp() + 1,
    })
}

fn joserfc_accepts(algorithm: SigningAlgorithm) {
    let signed = token().sign(&keys(), algorithm).unwrap();
    let accepted = ask(&request(&signed, keys().jwks())).unwrap();
    assert_eq!(accepted["header"]["alg"], algorithm.as_str());
    assert_eq!(accepted["header"]["kid"], keys().signer(algorithm).unwrap().kid());
    assert_eq!(
        accepted["claims"],
        json!({
            "iss": ISSUER,
            "aud": CLIENT_ID,
            "iat": issued_at().timestamp(),
            "exp": issued_at().timestamp() + 120,
            "jti": delivery().to_string(),
            "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
            "sub": SUB,
            "sid": SID,
        })
    );
}

fn joserfc_refuses(mutations: Vec<Mutation>, algorithm: SigningAlgorithm) {
    for mutation in mutations {
        let refused = ask(&request(&mutation.apply(algorithm), keys().jwks()));
        assert!(refused.is_err(), "{algorithm}: {}: accepted as {refused:?}", mutation.what);
    }
}

#[test]
fn joserfc_accepts_es256() {
    joserfc_accepts(SigningAlgorithm::Es256);
}

#[test]
fn joserfc_accepts_rs256() {
    joserfc_accepts(SigningAlgorithm::Rs256);
}

#[test]
fn joserfc_accepts_eddsa() {
    joserfc_accepts(SigningAlgorithm::EdDsa);
}

#[test]
fn joserfc_refuses_an_es256_token_mutated_in_any_way() {
    joserfc_refuses(mutations::all(), SigningAlgorithm::Es256);
}

#[test]
fn joserfc_refuses_an_rs256_token_with_a_mutated_signature_or_header() {
    joserfc_refuses(mutations::of_signature_and_header(), SigningAlgorithm::Rs256);
}

#[test]
fn joserfc_refuses_an_eddsa_token_with_a_mutated_signature_or_header() {
    joserfc_refuses(mutations::of_signature_and_header(), SigningAlgorithm::EdDsa);
}

#[test]
fn joserfc_accepts_sub_alone_and_sid_alone() {
    for (sub, sid) in [(Some(SUB), None), (None, Some(SID))] {
        let subject = LogoutSubject::new(sub, sid).unwrap();
        let signed = LogoutToken { subject, ..token() }.sign(&keys(), SigningAlgorithm::Es256).unwrap();
        let claims = ask(&request(&signed, keys().jwks())).unwrap()["claims"].clone();
        assert_eq!(
            (claims.get("sub"), claims.get("sid")),
            (sub.map(Value::from).as_ref(), sid.map(Value::from).as_ref())
        );
    }
}

#[test]
fn joserfc_accepts_generated_keys_and_a_token_from_before_the_rotation() {
    for algorithm in SigningAlgorithm::ALL {
        let pem = SigningKey::generate(algorithm).unwrap().to_pkcs8_pem().unwrap();
        let read = || SigningKey::from_pem(&pem).unwrap();
        let signed = token().sign(&SigningKeys::new(vec![read()]).unwrap(), algorithm).unwrap();
        let newer = SigningKey::generate(algorithm).unwrap();
        let rotated = SigningKeys::new(vec![newer, read()]).unwrap();
        let accepted = ask(&request(&signed, rotated.jwks())).unwrap();
        assert_eq!(accepted["header"]["kid"], read().kid(), "{algorithm}");
    }
}

#[test]
fn joserfc_refuses_an_expired_token_and_accepts_the_next_attempts() {
    let [first, second] = [0, 3600].map(|seconds| {
        let issued_at = issued_at() + TimeDelta::seconds(seconds);
        LogoutToken { issued_at, ..token() }.sign(&keys(), SigningAlgorithm::Es256).unwrap()
    });
    let an_hour_later = |signed: &str| {
        let mut request = request(signed, keys().jwks());
        request["now"] = json!(issued_at().timestamp() + 3601);
        ask(&request)
    };
    assert!(an_hour_later(&first).unwrap_err().contains("ExpiredTokenError"));
    assert_eq!(an_hour_later(&second).unwrap()["claims"]["jti"], delivery().to_string());
}

#[test]
fn joserfc_refuses_another_issuer_another_client_and_another_set_of_keys() {
    let signed = token().sign(&keys(), SigningAlgorithm::Es256).unwrap();
    let good = request(&signed, keys().jwks());
    let other_set = SigningKeys::new(vec![key("p256_second_pkcs8.pem")]).unwrap().jwks();
    for (name, value) in
        [("issuer", json!("https://id.example.com")), ("client_id", json!("client-0000")), ("jwks", other_set)]
    {
        let mut request = good.clone();
        request[name] = value;
        assert!(ask(&request).is_err(), "{name}");
    }
    assert!(ask(&good).is_ok());
}

#[test]
fn kid_is_the_thumbprint_that_joserfc_computes() {
    let signed = token().sign(&keys(), SigningAlgorithm::Es256).unwrap();
    let kids: Vec<&str> = vec!["p256_pkcs8.pem", "rsa2048_pkcs8.pem", "ed25519_pkcs8.pem"];
    let kids: Vec<String> = kids.into_iter().map(|file| key(file).kid().to_owned()).collect();
    assert_eq!(ask(&request(&signed, keys().jwks())).unwrap()["thumbprints"], json!(kids));
}
