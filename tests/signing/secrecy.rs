//! A private key shows nowhere: not in what is published, printed, reported or traced.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use postrider::signing::{SigningAlgorithm, SigningKey, SigningKeys};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{KEY_FILES, key, key_path, key_text, keys, token};

/// Every spelling in which the private part of a test key might leak.
fn secrets(file: &str, algorithm: SigningAlgorithm) -> Vec<String> {
    let pem = key_text(file);
    let der = pem::parse(&pem).unwrap().into_contents();
    // Where OpenSSL's PKCS#8 holds the private number: the EC scalar, the seed, RSA's d behind n and e.
    let private = match algorithm {
        SigningAlgorithm::Es256 => &der[36..68],
        SigningAlgorithm::EdDsa => &der[16..48],
        SigningAlgorithm::Rs256 => &der[308..340],
    };
    let mut secrets = vec![
        STANDARD_NO_PAD.encode(&private[..30]),
        URL_SAFE_NO_PAD.encode(&private[..30]),
        private.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}")),
        format!("{:?}", &private[..8]).trim_matches(['[', ']']).to_owned(),
        "PRIVATE KEY".to_owned(),
    ];
    secrets.extend(pem.lines().filter(|line| !line.starts_with('-')).map(str::to_owned));
    secrets
}

fn holds_no_secret(said: &str, whence: &str) {
    for (algorithm, file) in KEY_FILES {
        for secret in secrets(file, algorithm) {
            assert!(!said.contains(&secret), "{whence} holds a private part of {file}");
        }
    }
}

#[test]
fn the_search_finds_a_secret_where_there_is_one() {
    for (algorithm, file) in KEY_FILES {
        let pem = key(file).to_pkcs8_pem().unwrap();
        let found = secrets(file, algorithm).iter().filter(|secret| pem.contains(secret.as_str())).count();
        assert!(found >= 2, "{file}");
    }
}

#[test]
fn debug_shows_kid_and_alg_alone() {
    for (algorithm, file) in KEY_FILES {
        let key = key(file);
        let expected = format!("SigningKey {{ kid: {:?}, alg: {:?}, .. }}", key.kid(), algorithm.as_str());
        assert_eq!(format!("{key:?}"), expected);
    }
    holds_no_secret(&format!("{0:?} {0:#?}", keys()), "Debug of the set");
}

#[test]
fn the_published_set_holds_public_members_only() {
    let jwks = keys().jwks();
    let members: Vec<BTreeSet<&str>> = jwks["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|jwk| jwk.as_object().unwrap().keys().map(String::as_str).collect())
        .collect();
    assert_eq!(
        members,
        [
            BTreeSet::from(["kty", "crv", "x", "y", "kid", "alg", "use"]),
            BTreeSet::from(["kty", "n", "e", "kid", "alg", "use"]),
            BTreeSet::from(["kty", "crv", "x", "kid", "alg", "use"]),
        ]
    );
    assert_eq!(jwks.as_object().unwrap().len(), 1);
    holds_no_secret(&jwks.to_string(), "the published set");
}

#[test]
fn errors_repeat_nothing_of_a_file() {
    for file in std::fs::read_dir(key_path("")).unwrap() {
        let path = file.unwrap().path();
        let Err(error) = SigningKey::from_pem_file(&path) else { continue };
        let said = format!("{error} {error:?}").replace(&path.display().to_string(), "");
        let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        for line in content.lines().filter(|line| line.len() > 3) {
            let is_named_form = line.starts_with("-----BEGIN");
            assert!(is_named_form || !said.contains(line), "{}: {said}", path.display());
        }
        assert!(said.len() < 300, "{said}");
    }
}

#[test]
fn nothing_that_is_traced_holds_a_private_part() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let paths: Vec<_> = KEY_FILES.iter().map(|(_, file)| key_path(file)).collect();
        let keys = SigningKeys::from_pem_files(&paths).unwrap();
        let refused = SigningKey::from_pem_file(&key_path("refused_two_keys.pem")).unwrap_err();
        for algorithm in SigningAlgorithm::ALL {
            token().sign(&keys, algorithm).unwrap();
        }
        tracing::info!(?keys, %refused, ?refused, "as a host might log them");
    });
    let said = log.0.lock().unwrap().clone();
    assert!(said.contains("as a host might log them") && said.contains("kid:"), "the log works: {said}");
    holds_no_secret(&said, "the trace");
}

/// Writes down every field of every span and event, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
