//! DKIM signatures, verified by dkimpy.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use postrider::mail::{DkimError, DkimSigner, Message};
use postrider::signing::{SigningAlgorithm, SigningKey};
use serde_json::{Value, json};

use crate::corpus::corpus;
use crate::peer::Peer;
use crate::reader::{Read, Reader};
use crate::sample::{LINK, Sample, address};
use crate::wire::{lines, wire};

const DOMAIN: &str = "id.example.com";
const SELECTOR: &str = "s1.mail";
const KEYS: [&str; 2] = ["rsa2048_pkcs8.pem", "ed25519_pkcs8.pem"];

fn pem(file: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", "keys", file].iter().collect();
    std::fs::read_to_string(path).unwrap()
}

fn key(file: &str) -> SigningKey {
    SigningKey::from_pem(&pem(file)).unwrap()
}

fn signer(file: &str) -> DkimSigner {
    DkimSigner::new(DOMAIN, SELECTOR, key(file)).unwrap()
}

fn signed(file: &str, sample: &Sample) -> Message {
    signer(file).sign(sample.message()).unwrap()
}

struct Verifier(Peer);

impl Verifier {
    fn start() -> Self {
        Self(Peer::start("verify_dkim.py"))
    }

    fn verify(&mut self, file: &str, message: &[u8]) -> Value {
        let name = format!("{SELECTOR}._domainkey.{DOMAIN}");
        self.0.ask(&json!({ "message": STANDARD.encode(message), "private_key": pem(file), "name": name }))
    }

    fn accepts(&mut self, file: &str, message: &[u8]) -> bool {
        self.verify(file, message)["valid"].as_bool().unwrap()
    }
}

/// A message with one piece put in another's place.
fn changed(message: &Message, from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(message.bytes().to_vec()).unwrap();
    assert!(text.contains(from), "{from} is in it");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn dkimpy_verifies_every_message_by_either_algorithm() {
    let mut verifier = Verifier::start();
    for file in KEYS {
        assert_eq!(signer(file).record_name(), format!("{SELECTOR}._domainkey.{DOMAIN}"));
        for message in corpus() {
            let signed = signer(file).sign(message).unwrap();
            let verdict = verifier.verify(file, signed.bytes());
            assert_eq!(verdict["valid"], true, "{verdict} {}", String::from_utf8_lossy(signed.bytes()));
            assert_eq!(verdict["record"], signer(file).record().unwrap(), "the record that we name");
            assert_eq!((&verdict["tags"]["d"], &verdict["tags"]["s"]), (&json!(DOMAIN), &json!(SELECTOR)));
        }
    }
}

#[test]
fn dkimpy_refuses_a_message_that_was_changed() {
    let mut verifier = Verifier::start();
    for file in KEYS {
        let message =
            signed(file, &Sample { subject: "Plain".into(), unsubscribe: Some(LINK.into()), ..Sample::default() });
        assert!(verifier.accepts(file, message.bytes()));
        for (from, to) in [
            ("Hello", "Jello"),
            ("\r\nFrom: ", "\r\nFrom: v@e.x, "),
            ("\r\nFrom: ", "\r\nFrom: v@e.x\r\nFrom: "),
            ("DKIM-Signature", "From: v@e.x\r\nDKIM-Signature"),
            ("<ada@", "<eda@"),
            ("Subject: ", "Subject: x"),
            ("2026 00:10", "2026 00:11"),
            ("Message-ID: <0", "Message-ID: <1"),
            ("auto-generated", "auto-replied"),
            ("unsubscribe?token", "unsubscribe?tokem"),
            ("One-Click", "Two-Click"),
            ("MIME-Version: 1.0", "MIME-Version: 1.1"),
            ("multipart/alternative", "multipart/mixed"),
            ("d=id.example.com", "d=example.com"),
        ] {
            assert!(!verifier.accepts(file, &changed(&message, from, to)), "{from} -> {to}");
        }
        // Another key under the same name.
        assert!(!verifier.accepts(KEYS[usize::from(file == KEYS[0])], message.bytes()));
    }
}

#[test]
fn white_space_that_a_relay_changes_breaks_no_signature() {
    let mut verifier = Verifier::start();
    for file in KEYS {
        let message = signed(file, &Sample::rich());
        for (from, to) in [
            ("From: ", "FROM:\t "),
            ("\r\nTo: ", "\r\nTo:\r\n  "),
            ("; a=", ";\r\n\ta="),
            ("--\r\n", "--  \r\n\r\n\r\n"),
        ] {
            let relayed = changed(&message, from, to);
            assert_ne!(relayed, message.bytes());
            assert!(verifier.accepts(file, &relayed), "{from} -> {to}");
        }
    }
}

#[test]
fn unsubscribe_09_a_signature_covers_both_fields_and_lists_them() {
    let mut verifier = Verifier::start();
    let listed = |message: &Message, verifier: &mut Verifier| {
        let verdict = verifier.verify(KEYS[0], message.bytes());
        assert_eq!(verdict["valid"], true);
        verdict["tags"]["h"].as_str().unwrap().split(':').map(str::to_owned).collect::<Vec<_>>()
    };
    let subscribed = listed(&signed(KEYS[0], &Sample::rich()), &mut verifier);
    let expected = "from from reply-to to subject date message-id auto-submitted list-unsubscribe list-unsubscribe-post mime-version content-type";
    assert_eq!(subscribed.join(" "), expected);
    // Headers that are not there are not listed, as a relay may add some.
    let transactional = listed(&signed(KEYS[0], &Sample::default()), &mut verifier);
    assert_eq!(
        transactional.join(" "),
        expected.replace("reply-to ", "").replace("list-unsubscribe list-unsubscribe-post ", "")
    );
}

#[test]
fn a_signature_is_the_same_in_every_attempt_and_changes_nothing_else() {
    let mut reader = Reader::start();
    for file in KEYS {
        for sample in [Sample::rich(), Sample { to: address("josé@example.com"), ..Sample::default() }] {
            let (plain, signed_once, signed_again) = (sample.message(), signed(file, &sample), signed(file, &sample));
            assert_eq!(signed_once, signed_again);
            assert!(signed_once.bytes().ends_with(plain.bytes()), "it stands before all else");
            assert_eq!((signed_once.to(), signed_once.needs_smtputf8()), (plain.to(), plain.needs_smtputf8()));
            assert_eq!(wire(&signed_once).names()[0], "DKIM-Signature");
            assert!(lines(wire(&signed_once).header).iter().all(|line| line.len() <= 78));
            let Read { headers, .. } = reader.read(&signed_once);
            assert_eq!(headers[1..], reader.read(&plain).headers);
        }
    }
}

#[test]
fn what_cannot_sign_is_refused() {
    let with = |domain: &str, selector: &str, file: &str| DkimSigner::new(domain, selector, key(file)).map(drop);
    assert_eq!(with(DOMAIN, SELECTOR, "p256_pkcs8.pem"), Err(DkimError::Algorithm));
    for wrong in ["", "a b", "a;b", "a\r\nX: 1", ".", "a.", "a_b", "[192.0.2.1]", "a\u{2028}"] {
        assert_eq!(with(wrong, SELECTOR, KEYS[1]), Err(DkimError::Domain), "{wrong:?}");
        assert_eq!(with(DOMAIN, wrong, KEYS[1]), Err(DkimError::Selector), "{wrong:?}");
    }
    let international = DkimSigner::new("bücher.example", SELECTOR, key(KEYS[1])).unwrap();
    assert_eq!(international.record_name(), format!("{SELECTOR}._domainkey.xn--bcher-kva.example"));
    assert!(!format!("{:?}", signer(KEYS[1])).contains("PRIVATE"));
    assert_eq!(key(KEYS[0]).algorithm(), SigningAlgorithm::Rs256);
}
