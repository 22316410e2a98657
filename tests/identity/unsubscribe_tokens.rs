//! One-click unsubscribe tokens (RFC 8058 3.1).

use postrider::identity::{AccountId, AddressId, RecoveryId};
use uuid::Uuid;

use crate::link_tokens::keys;

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[test]
fn a_token_alone_tells_whose_it_is() {
    let keys = keys(&[1]);
    let account = AccountId(Uuid::now_v7());
    let token = keys.unsubscribe_token(account);
    assert_eq!(token.len(), 43);
    assert_eq!(keys.read_unsubscribe_token(&token), Some(account));
    assert_eq!(keys.unsubscribe_token(account), token, "the same in every attempt");
}

/// With every other character of the alphabet in each of the 43 places: that covers the last one's two spare bits.
#[test]
fn any_changed_character_makes_it_none() {
    let keys = keys(&[1]);
    let token = keys.unsubscribe_token(AccountId(Uuid::now_v7())).into_bytes();
    for place in 0..token.len() {
        for other in ALPHABET.iter().filter(|other| **other != token[place]) {
            let mut changed = token.clone();
            changed[place] = *other;
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(keys.read_unsubscribe_token(&changed), None, "{place}: {}", char::from(*other));
        }
    }
}

#[test]
fn no_other_text_is_one() {
    let keys = keys(&[1]);
    let id = Uuid::now_v7();
    let token = keys.unsubscribe_token(AccountId(id));
    let long = "A".repeat(10_000);
    for other in [
        "",
        "A",
        &token[..42],
        &format!("{token}A"),
        &format!("{token}="),
        &format!(" {token}"),
        &token.replace(['-', '_'], "+"),
        &"A".repeat(43),
        &long,
        "é",
        keys.verification_token(AddressId(id)).as_str(),
        keys.recovery_token(RecoveryId(id)).as_str(),
    ] {
        let same = other == token;
        assert!(same || keys.read_unsubscribe_token(other).is_none(), "{other}");
    }
}

#[test]
fn it_outlives_a_change_of_keys_for_as_long_as_the_old_key_is_configured() {
    let account = AccountId(Uuid::now_v7());
    let token = keys(&[1]).unsubscribe_token(account);
    assert_eq!(keys(&[2, 1]).read_unsubscribe_token(&token), Some(account));
    assert_eq!(keys(&[2]).read_unsubscribe_token(&token), None);
    assert_eq!(keys(&[2, 1]).unsubscribe_token(account), keys(&[2]).unsubscribe_token(account), "the first makes it");
}

#[test]
fn it_shows_no_id() {
    use base64::Engine;
    let account = AccountId(Uuid::now_v7());
    let token = keys(&[1]).unsubscribe_token(account);
    let bytes = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(&token).unwrap();
    for part in account.0.as_bytes().windows(4) {
        assert!(!bytes.windows(4).any(|shown| shown == part), "{token}");
    }
    let near = AccountId(Uuid::from_u128(account.0.as_u128() ^ 1));
    let other = keys(&[1]).unsubscribe_token(near);
    let alike = token.bytes().zip(other.bytes()).filter(|(one, other)| one == other).count();
    assert!(alike < 15, "ids that differ in one bit have nothing alike: {alike} of 43");
}
