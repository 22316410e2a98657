//! `postrider keys`.

use std::os::unix::fs::PermissionsExt;

use crate::program::{Scratch, run};

#[tokio::test]
async fn a_key_is_its_owners_alone_and_never_overwritten() {
    let scratch = Scratch::new();
    for algorithm in ["ES256", "RS256", "EdDSA"] {
        let file = scratch.arg(algorithm);
        let kid = run(&["keys", "generate", "--algorithm", algorithm, &file]).await.ok();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let content = std::fs::read(&file).unwrap();
        run(&["keys", "generate", &file]).await.failed(1, &["never overwritten"]);
        assert_eq!(std::fs::read(&file).unwrap(), content);

        let keys = run(&["keys", "jwks", &file]).await.json();
        assert_eq!(keys["keys"][0]["kid"], kid.trim());
        assert_eq!(keys["keys"][0]["alg"], algorithm);
        assert!(keys["keys"][0].get("d").is_none(), "the private part");
    }
    let unknown = run(&["keys", "generate", "--algorithm", "none", &scratch.arg("none")]).await;
    unknown.failed(2, &["--algorithm", "ES256, RS256 or EdDSA"]);
    assert!(!scratch.path("none").exists());
}

#[tokio::test]
async fn a_key_set_holds_every_key_in_order_and_no_private_part() {
    let scratch = Scratch::new();
    let (first, second) = (scratch.arg("first"), scratch.arg("second"));
    let kids = [run(&["keys", "generate", &first]).await.ok(), run(&["keys", "generate", &second]).await.ok()];
    let set = run(&["keys", "jwks", &first, &second]).await.json();
    for (key, kid) in set["keys"].as_array().unwrap().iter().zip(kids) {
        assert_eq!(key["kid"], kid.trim());
    }
    run(&["keys", "jwks", &first, &first]).await.failed(2, &["the same signing key"]);
    run(&["keys", "jwks", &scratch.arg("absent")]).await.failed(2, &["absent", "cannot be read"]);
}

#[tokio::test]
async fn a_dkim_record_is_a_line_of_a_zone_file_in_strings_of_255_octets_at_most() {
    let scratch = Scratch::new();
    let (key, other) = (scratch.arg("rsa"), scratch.arg("ecdsa"));
    run(&["keys", "generate", "--algorithm", "RS256", &key]).await.ok();
    run(&["keys", "generate", "--algorithm", "ES256", &other]).await.ok();
    let record = |domain, selector, file| {
        ["keys", "dkim-record", "--domain", domain, "--selector", selector, file].map(str::to_owned)
    };
    let line = run(&record("idp.example", "s1", &key).each_ref().map(String::as_str)).await.ok();
    let text = line.strip_prefix("s1._domainkey.idp.example. TXT ").expect("name and type").trim();
    let strings: Vec<&str> = text.split('"').filter(|string| !string.trim().is_empty()).collect();
    assert!(strings.len() > 1 && strings.iter().all(|string| string.len() <= 255), "{text}");
    let joined = strings.concat();
    assert!(joined.starts_with("v=DKIM1; k=rsa; p=MII"), "{joined}");
    let refused = run(&record("idp.example", "s1", &other).each_ref().map(String::as_str)).await;
    refused.failed(2, &["neither RSA nor Ed25519"]);
    let refused = run(&record("idp example", "s1", &key).each_ref().map(String::as_str)).await;
    refused.failed(2, &["the domain is no host name"]);
}
