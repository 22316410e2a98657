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
