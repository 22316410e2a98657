//! Tokens of verification and recovery links.

use postrider::identity::{AccountId, AddressId, RecoveryId};
use postrider::links::{LinkKey, LinkKeys, LinkToken, NoLinkKeys, TokenDigest};
use uuid::Uuid;

/// A secret that is one byte over and over.
pub fn key(byte: u8) -> LinkKey {
    LinkKey::from_bytes(&[byte; 32]).unwrap()
}

pub fn keys(bytes: &[u8]) -> LinkKeys {
    LinkKeys::new(&bytes.iter().map(|byte| key(*byte)).collect::<Vec<_>>()).unwrap()
}

/// An outside reckoning of what rows and links hold, so that no release can change it unnoticed: HKDF-SHA256 and
/// HMAC-SHA256 by Python's `hmac`.
#[test]
fn a_token_is_an_hmac_of_the_id_under_a_key_of_its_purpose() {
    let id = Uuid::from_bytes(*b"0123456789abcdef");
    let keys = keys(&[7]);
    let verification = keys.verification_token(AddressId(id));
    assert_eq!(verification.as_str(), "lTRf9sESmM_PElzrxm2e31gxPgdYzOOmyFS5J_n8TWQ");
    assert_eq!(keys.recovery_token(RecoveryId(id)).as_str(), "YALTKkkTz9OZCiAAjcP1R4iLSFaQguji7P7MnTOCtMc");
    let digest: String = verification.digest().0.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "81b0e1d0dfcc9be08b5c7e32cfb890090e9d41b623837dd3ca9754d971413186");
}

#[test]
fn a_token_for_one_id_or_purpose_is_none_for_another() {
    let keys = keys(&[1]);
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    let token = keys.verification_token(AddressId(one));
    assert_eq!(keys.verification_token(AddressId(one)), token, "the same each time");
    assert_ne!(keys.verification_token(AddressId(other)), token);
    assert_ne!(keys.recovery_token(RecoveryId(one)), token);
    let digest = token.digest();
    assert_eq!(keys.verification_token_for(AddressId(one), &digest), Some(token));
    assert_eq!(keys.verification_token_for(AddressId(other), &digest), None);
    assert_eq!(keys.recovery_token_for(RecoveryId(one), &digest), None);
}

#[test]
fn the_first_key_makes_tokens_and_each_key_finds_its_own_again() {
    let (address, recovery) = (AddressId(Uuid::now_v7()), RecoveryId(Uuid::now_v7()));
    let (old, both, new) = (keys(&[1]), keys(&[2, 1]), keys(&[2]));
    let (verification, recovering) = (old.verification_token(address), old.recovery_token(recovery));
    assert_eq!(both.verification_token_for(address, &verification.digest()), Some(verification.clone()));
    assert_eq!(both.recovery_token_for(recovery, &recovering.digest()), Some(recovering.clone()));
    assert_eq!(new.verification_token_for(address, &verification.digest()), None);
    assert_eq!(new.recovery_token_for(recovery, &recovering.digest()), None);
    assert_eq!(both.verification_token(address), new.verification_token(address));
    assert_eq!(both.recovery_token(recovery), new.recovery_token(recovery));
}

/// Each of the two sends and follows what the other made.
fn understand_each_other(one: &LinkKeys, other: &LinkKeys) -> bool {
    let (account, address, recovery) =
        (AccountId(Uuid::now_v7()), AddressId(Uuid::now_v7()), RecoveryId(Uuid::now_v7()));
    [(one, other), (other, one)].into_iter().all(|(maker, reader)| {
        let (verification, recovering) = (maker.verification_token(address), maker.recovery_token(recovery));
        reader.verification_token_for(address, &verification.digest()) == Some(verification)
            && reader.recovery_token_for(recovery, &recovering.digest()) == Some(recovering)
            && reader.read_unsubscribe_token(&maker.unsubscribe_token(account)) == Some(account)
    })
}

/// As docs/mail.md has it: last everywhere, then first everywhere, then alone.
#[test]
fn two_replicas_understand_each_others_links_at_every_moment_of_a_rotation() {
    let (old, new) = (1, 2);
    let steps = [keys(&[old]), keys(&[old, new]), keys(&[new, old]), keys(&[new])];
    for step in steps.windows(2).take(2) {
        assert!(understand_each_other(&step[0], &step[1]), "one replica is a step ahead");
    }
    let made_in_step_2 = steps[2].unsubscribe_token(AccountId(Uuid::nil()));
    assert!(steps[3].read_unsubscribe_token(&made_in_step_2).is_some(), "the old key is dropped");
    assert!(!understand_each_other(&steps[0], &steps[2]), "first at once, without the step between");
}

#[test]
fn a_digest_is_of_the_text_so_no_other_spelling_has_it() {
    let token = keys(&[1]).verification_token(AddressId(Uuid::now_v7()));
    let text = token.as_str();
    assert_eq!(text.len(), 43);
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
    assert_eq!(TokenDigest::of_text(text), token.digest());
    for other in [format!("{text}="), format!(" {text}"), text.to_lowercase(), String::new()] {
        assert_ne!(TokenDigest::of_text(&other), token.digest(), "{other}");
    }
    assert_eq!(TokenDigest::from_bytes(&token.digest().0), Some(token.digest()));
    assert_eq!(TokenDigest::from_bytes(&[0; 31]), None);
}

#[test]
fn debug_shows_neither_keys_nor_tokens() {
    let keys = keys(&[0x41]);
    let token: LinkToken = keys.verification_token(AddressId(Uuid::nil()));
    assert_eq!(format!("{token:?} {:?} {keys:?}", key(0x41)), "LinkToken LinkKey LinkKeys { count: 1, .. }");
}

#[test]
fn a_secret_has_32_bytes_and_there_is_one() {
    for (length, taken) in [(0, false), (31, false), (32, true), (1024, true), (1025, false)] {
        assert_eq!(LinkKey::from_bytes(&vec![1; length]).is_some(), taken, "{length}");
    }
    assert_eq!(LinkKeys::new(&[]).unwrap_err(), NoLinkKeys);
}
