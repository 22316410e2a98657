//! Contents as they are stored: releases read each other's.

use std::collections::BTreeSet;

use postrider::content::{AccountRecovered, Content};
use serde_json::{Value, json};

fn names(contents: &[Value]) -> BTreeSet<&str> {
    contents.iter().map(|content| content["content"].as_str().unwrap()).collect()
}

#[test]
fn what_earlier_releases_stored_is_read_and_stored_the_same() {
    let earlier: Vec<Value> = serde_json::from_str(include_str!("../data/contents.json")).unwrap();
    let now = Content::samples().into_iter().filter_map(|sample| serde_json::to_value(sample).ok());
    assert_eq!(names(&earlier), names(&now.collect::<Vec<_>>()));
    for content in earlier {
        let read: Content = serde_json::from_value(content.clone()).unwrap();
        assert_eq!(content["content"], read.name());
        assert_eq!(serde_json::to_value(read).unwrap(), content);
    }
}

#[test]
fn what_holds_a_secret_is_never_stored() {
    for content in Content::samples() {
        let is_secret = ["verification_link", "recovery_link"].contains(&content.name());
        assert_eq!(serde_json::to_value(&content).is_err(), is_secret, "{content:?}");
    }
    let link = json!({ "content": "recovery_link", "handle": "ada", "link": "https://a.example/", "expires_at": 0 });
    assert!(serde_json::from_value::<Content>(link).is_err());
}

#[test]
fn fields_of_a_newer_release_are_ignored_and_a_missing_option_is_none() {
    let mut newer = json!({ "content": "account_recovered", "handle": "ada", "at": "2026-02-03T04:05:06Z" });
    newer["page"] = "https://id.example.com/inbox/1".into();
    newer["colour"] = "blue".into();
    let read: Content = serde_json::from_value(newer).unwrap();
    assert!(matches!(read, Content::AccountRecovered(AccountRecovered { undo: None, .. })));
}

#[test]
fn a_content_of_a_newer_release_is_an_error_that_shows_nothing_of_it() {
    let newer = json!({ "content": "farewell", "handle": "ada" });
    let error = serde_json::from_value::<Content>(newer).unwrap_err().to_string();
    assert!(error.contains("farewell") && !error.contains("ada"), "{error}");
    for lacking in [json!({ "content": "alert", "handle": "ada" }), json!({}), json!(null), json!("alert")] {
        assert!(serde_json::from_value::<Content>(lacking).is_err());
    }
}
