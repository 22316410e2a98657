//! The checks of the logout token list that a token or its form can show, one test per number.
//!
//! Not here, because they are about the request, the client's registration or the answer: 22, 23, 26 to 33.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use postrider::signing::{
    FORM_CONTENT_TYPE, InvalidSubject, LogoutSubject, LogoutToken, SigningAlgorithm, SigningKeys, logout_token_form,
};
use postrider_actors::{DeliveryId, Reason};
use serde_json::{Map, Value, json};

use crate::checker::{Expected, Parts, failed_checks, take_apart};
use crate::support::{CLIENT_ID, ISSUER, SID, SUB, delivery, issued_at, key, keys, token};

/// Signs with every algorithm and hands over each token, taken apart.
fn for_each_algorithm(token: &LogoutToken<'_>, mut see: impl FnMut(SigningAlgorithm, &str, Parts)) {
    for algorithm in SigningAlgorithm::ALL {
        let signed = token.sign(&keys(), algorithm).unwrap();
        let parts = take_apart(&signed).expect("three parts of base64url");
        see(algorithm, &signed, parts);
    }
}

/// The token passes check `number`; the mutations prove that it could fail it.
fn passes(number: u8) {
    for_each_algorithm(&token(), |algorithm, signed, _| {
        let failed = failed_checks(signed, &keys().jwks(), &Expected::of(algorithm));
        assert!(!failed.contains(&number), "{algorithm}: check {number} failed");
    });
}

fn claim(name: &str, expected: Value) {
    for_each_algorithm(&token(), |algorithm, _, parts| {
        assert_eq!(parts.claims.get(name), Some(&expected), "{algorithm}: {name}");
    });
}

#[test]
fn every_check_that_a_token_can_show_passes() {
    for_each_algorithm(&token(), |algorithm, signed, _| {
        assert_eq!(failed_checks(signed, &keys().jwks(), &Expected::of(algorithm)), BTreeSet::new(), "{algorithm}");
    });
}

#[test]
fn check_01_compact_form_of_three_base64url_parts_without_padding() {
    for_each_algorithm(&token(), |algorithm, signed, _| {
        let parts: Vec<&str> = signed.split('.').collect();
        assert_eq!(parts.len(), 3, "{algorithm}");
        let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        assert!(parts.iter().all(|part| !part.is_empty() && part.bytes().all(is_base64url)), "{algorithm}: {signed}");
    });
}

#[test]
fn check_02_alg_is_never_none() {
    passes(2);
    assert!("none".parse::<SigningAlgorithm>().is_err(), "none cannot even be asked for");
    assert!(serde_json::from_value::<SigningAlgorithm>(json!("none")).is_err());
}

#[test]
fn check_03_signature_is_by_the_published_key_that_kid_names() {
    passes(3);
}

#[test]
fn check_04_alg_is_the_one_asked_for_and_no_other_is_put_in_its_place() {
    passes(4);
    let only_es256 = SigningKeys::new(vec![key("p256_pkcs8.pem")]).unwrap();
    assert!(token().sign(&only_es256, SigningAlgorithm::Es256).is_ok());
    assert_eq!(token().sign(&only_es256, SigningAlgorithm::Rs256), Err(Reason::SigningKey));
    assert_eq!(token().sign(&only_es256, SigningAlgorithm::EdDsa), Err(Reason::SigningKey));
}

#[test]
fn check_05_header_typ_is_logout_jwt() {
    for_each_algorithm(&token(), |algorithm, _, parts| {
        let kid = keys().signer(algorithm).unwrap().kid().to_owned();
        let expected = json!({ "typ": "logout+jwt", "alg": algorithm.as_str(), "kid": kid });
        assert_eq!(Value::Object(parts.header), expected, "and nothing else");
    });
}

#[test]
fn check_06_iss_is_byte_equal_to_the_issuer() {
    claim("iss", json!(ISSUER));
    let issuer = "https://ID.example.com:443/%7Etenant/../é/";
    for_each_algorithm(&LogoutToken { issuer, ..token() }, |_, _, parts| assert_eq!(parts.claims["iss"], issuer));
}

#[test]
fn check_07_aud_is_the_client() {
    claim("aud", json!(CLIENT_ID));
}

#[test]
fn check_08_aud_names_one_client_only() {
    passes(8);
}

#[test]
fn check_09_iat_is_the_attempts_time_in_whole_seconds() {
    claim("iat", json!(1_772_366_400));
    assert_eq!(issued_at().timestamp_subsec_millis(), 987, "the fraction is cut, not rounded: iat is never ahead");
}

#[test]
fn check_10_exp_is_after_iat() {
    claim("exp", json!(1_772_366_400 + 120));
}

#[test]
fn check_11_exp_is_at_most_two_minutes_after_iat() {
    passes(11);
}

#[test]
fn check_12_another_attempt_changes_only_iat_and_exp_and_the_signature() {
    let later = LogoutToken { issued_at: issued_at() + TimeDelta::hours(1), ..token() };
    for algorithm in SigningAlgorithm::ALL {
        let [first, second] = [token(), later].map(|token| token.sign(&keys(), algorithm).unwrap());
        assert_ne!(first.rsplit_once('.').unwrap().1, second.rsplit_once('.').unwrap().1, "{algorithm}: signature");
        let [first, second] = [first, second].map(|signed| take_apart(&signed).unwrap());
        assert_eq!(first.header, second.header, "{algorithm}");
        assert_eq!(changed(&first.claims, &second.claims), ["exp", "iat"], "{algorithm}");
        assert_eq!(second.claims["iat"], 1_772_366_400 + 3600, "{algorithm}");
        assert_eq!(second.claims["exp"], 1_772_366_400 + 3600 + 120, "{algorithm}");
    }
}

fn changed(first: &Map<String, Value>, second: &Map<String, Value>) -> Vec<String> {
    let names: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    names.into_iter().filter(|name| first.get(*name) != second.get(*name)).cloned().collect()
}

#[test]
fn check_13_jti_is_the_delivery_id() {
    claim("jti", json!(delivery().to_string()));
    let another = DeliveryId::generate();
    for_each_algorithm(&LogoutToken { delivery: another, ..token() }, |_, _, parts| {
        assert_eq!(parts.claims["jti"], another.to_string(), "unique as delivery ids are");
    });
}

#[test]
fn check_14_events_has_the_backchannel_logout_member() {
    claim("events", json!({ "http://schemas.openid.net/event/backchannel-logout": {} }));
}

#[test]
fn check_15_the_event_is_an_empty_object() {
    passes(15);
}

#[test]
fn check_16_sub_or_sid_is_there_whoever_calls() {
    for (sub, sid, error) in [
        (None, None, InvalidSubject::Neither),
        (Some(""), None, InvalidSubject::Empty("sub")),
        (None, Some(""), InvalidSubject::Empty("sid")),
        (Some(""), Some(SID), InvalidSubject::Empty("sub")),
        (Some(SUB), Some(""), InvalidSubject::Empty("sid")),
    ] {
        assert_eq!(LogoutSubject::new(sub, sid), Err(error), "{sub:?} {sid:?}");
    }
    for (sub, sid) in [(Some(SUB), None), (None, Some(SID)), (Some(SUB), Some(SID))] {
        let subject = LogoutSubject::new(sub, sid).unwrap();
        for_each_algorithm(&LogoutToken { subject, ..token() }, |algorithm, signed, _| {
            let expected = Expected { algorithm, sub, sid };
            assert_eq!(
                failed_checks(signed, &keys().jwks(), &expected),
                BTreeSet::new(),
                "{algorithm} {sub:?} {sid:?}"
            );
        });
    }
}

#[test]
fn check_17_sid_is_carried_where_it_is_given() {
    claim("sid", json!(SID));
}

#[test]
fn check_18_without_sid_there_is_no_member_sid_at_all() {
    let every_session = LogoutSubject::new(Some(SUB), None).unwrap();
    for_each_algorithm(&LogoutToken { subject: every_session, ..token() }, |_, _, parts| {
        assert!(!parts.claims.contains_key("sid"), "not even null");
        assert_eq!(parts.claims["sub"], SUB);
    });
}

#[test]
fn check_19_sub_is_passed_on_as_it_was_given() {
    claim("sub", json!(SUB));
}

#[test]
fn check_20_there_is_no_nonce() {
    passes(20);
}

#[test]
fn check_21_there_are_no_other_claims() {
    for_each_algorithm(&token(), |algorithm, _, parts| {
        let names: BTreeSet<&str> = parts.claims.keys().map(String::as_str).collect();
        assert_eq!(names, ["aud", "events", "exp", "iat", "iss", "jti", "sid", "sub"].into(), "{algorithm}");
    });
}

#[test]
fn check_24_content_type_is_that_of_a_form() {
    assert_eq!(FORM_CONTENT_TYPE, "application/x-www-form-urlencoded");
}

#[test]
fn check_25_the_form_holds_one_logout_token_and_nothing_else() {
    for_each_algorithm(&token(), |algorithm, signed, _| {
        assert_eq!(logout_token_form(signed), format!("logout_token={signed}"), "{algorithm}: needs no escaping");
    });
    let hostile = "a&logout_token=b=c+d %é\r\n#;";
    let parsed: Vec<(String, String)> =
        url::form_urlencoded::parse(logout_token_form(hostile).as_bytes()).into_owned().collect();
    assert_eq!(parsed, [("logout_token".to_owned(), hostile.to_owned())], "nothing in it can add a parameter");
}
