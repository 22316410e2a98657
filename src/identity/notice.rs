//! What a notification says, as its row keeps it: a kind and facts.

use serde::Deserialize;
use serde_json::{Value, json};

use super::RecoveryId;
use crate::directory::{Notice, SecuringStep};

/// Kind and facts of a notice. Kinds are never renamed, as rows of older releases hold them.
pub(super) fn stored(notice: &Notice) -> (&'static str, Value) {
    match notice {
        Notice::AccountSecured { done } => ("account_secured", json!({ "done": done })),
        Notice::AccountRecovered { undoable } => ("account_recovered", json!({ "recovery": undoable })),
        Notice::AddressReplaced => ("address_replaced", json!({})),
        Notice::AddressRemoved => ("address_removed", json!({})),
        Notice::AddressAdded => ("address_added", json!({})),
        Notice::PasskeyAdded { name } => ("passkey_added", json!({ "name": name })),
        Notice::PasskeyRemoved { name } => ("passkey_removed", json!({ "name": name })),
        Notice::NewSignIn { device } => ("new_sign_in", json!({ "device": device })),
        Notice::Alert { title, text } => ("alert", json!({ "title": title, "text": text })),
    }
}

/// The notice of a row. `undoable` is the row's recovery while it can still be undone, which time decides and not the
/// row.
pub(super) fn stored_notice(kind: &str, facts: &Value, undoable: Option<RecoveryId>) -> Result<Notice, sqlx::Error> {
    let fact = |name: &str| match facts.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(unreadable()),
    };
    Ok(match kind {
        "account_secured" => Notice::AccountSecured { done: steps(facts)? },
        "account_recovered" => Notice::AccountRecovered { undoable },
        "address_replaced" => Notice::AddressReplaced,
        "address_removed" => Notice::AddressRemoved,
        "address_added" => Notice::AddressAdded,
        "passkey_added" => Notice::PasskeyAdded { name: fact("name")? },
        "passkey_removed" => Notice::PasskeyRemoved { name: fact("name")? },
        "new_sign_in" => Notice::NewSignIn { device: fact("device")? },
        "alert" => Notice::Alert { title: fact("title")?, text: fact("text")? },
        _ => return Err(unreadable()),
    })
}

fn steps(facts: &Value) -> Result<Vec<SecuringStep>, sqlx::Error> {
    facts.get("done").and_then(|done| Vec::deserialize(done).ok()).ok_or_else(unreadable)
}

fn unreadable() -> sqlx::Error {
    sqlx::Error::Decode("a notification of a kind that this release does not know".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_read_as_it_was_stored() {
        let text = || "a \"b\" \u{e9}".to_owned();
        let recovery = RecoveryId::generate();
        for notice in [
            Notice::AccountSecured { done: vec![SecuringStep::SessionsEnded, SecuringStep::RecoveriesCancelled] },
            Notice::AccountRecovered { undoable: Some(recovery) },
            Notice::AccountRecovered { undoable: None },
            Notice::AddressReplaced,
            Notice::AddressRemoved,
            Notice::AddressAdded,
            Notice::PasskeyAdded { name: text() },
            Notice::PasskeyRemoved { name: text() },
            Notice::NewSignIn { device: text() },
            Notice::Alert { title: text(), text: "b".into() },
        ] {
            let (kind, facts) = stored(&notice);
            let undoable = if let Notice::AccountRecovered { undoable } = notice { undoable } else { None };
            assert_eq!(stored_notice(kind, &facts, undoable).unwrap(), notice);
        }
        assert!(stored_notice("of_a_newer_release", &json!({}), None).is_err());
        assert!(stored_notice("passkey_added", &json!({ "name": 1 }), None).is_err());
    }
}
