//! Verification and recovery links: made when they are sent, of what is so then.

use postrider::directory::Notice;
use postrider::identity::{
    AccountState, cancel_recovery, remove_address, replace_address, set_state, use_recovery, verify_address,
};
use postrider::links::Links;

use crate::idp::Idp;
use crate::world::keys;

/// The token at the end of the link to `page` in a text.
fn token_of(text: &str, page: &str) -> String {
    let (_, rest) = text.split_once(page).expect("the link");
    rest.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))).next().unwrap().to_owned()
}

#[tokio::test]
async fn a_verification_link_arrives_and_verifies_the_address() {
    let idp = Idp::new().await;
    let account = idp.account("ada").await;
    let address = idp.unverified(account, "ada@rcpt.example").await;
    idp.ask_to_verify(address).await;
    // Address and handle are those of the time of sending.
    idp.execute("update postrider_identity.accounts set handle = 'countess'").await;
    idp.deliver().await;
    let mail = idp.only_mail("ada@rcpt.example");
    assert!(mail.text.contains("countess") && mail.field("List-Unsubscribe").is_none(), "{mail:?}");
    let token = token_of(&mail.text, "https://id.example/email/verify/");
    let verified = verify_address(&mut idp.connect().await, &token).await.unwrap();
    assert_eq!((verified.account, verified.address, verified.made_primary), (account, address, true));
}

#[tokio::test]
async fn a_recovery_link_arrives_and_recovers_the_account() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    idp.verified(account, "second@rcpt.example").await;
    idp.ask_to_recover(account).await;
    idp.deliver().await;
    let mail = idp.only_mail("ada@rcpt.example");
    assert_eq!(idp.mailbox.received().len(), 1, "to the primary address alone");
    let token = token_of(&mail.text, "https://id.example/recover/");
    let recovered = use_recovery(&mut idp.connect().await, &idp.recorder(), &token, None).await.unwrap();
    assert_eq!(recovered.value.account, account);
}

/// What happens between the commit and the send.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    Removed,
    Replaced,
    Verified,
    Disabled,
    Closed,
    Purged,
}

#[tokio::test]
async fn no_verification_link_is_sent_once_there_is_nothing_to_verify() {
    use Meanwhile::{Closed, Disabled, Purged, Removed, Replaced, Verified};
    for meanwhile in [Removed, Replaced, Verified, Disabled, Closed, Purged] {
        let idp = Idp::new().await;
        let account = idp.account("ada").await;
        idp.verified(account, "primary@rcpt.example").await;
        let address = idp.unverified(account, "ada@rcpt.example").await;
        idp.ask_to_verify(address).await;
        let (mut connection, recorder) = (idp.connect().await, idp.recorder());
        match meanwhile {
            Removed => remove_address(&mut connection, &recorder, address).await.unwrap().committed(),
            Replaced => {
                replace_address(&mut connection, &recorder, address, "new@rcpt.example").await.unwrap().committed();
            }
            Verified => {
                let token = idp.links.keys.verification_token(address);
                verify_address(&mut connection, token.as_str()).await.unwrap();
            }
            Disabled => drop(set_state(&mut connection, account, AccountState::Disabled).await.unwrap()),
            Closed => drop(set_state(&mut connection, account, AccountState::Closed).await.unwrap()),
            Purged => idp.execute("delete from postrider_identity.accounts").await,
        }
        // Notices that the acts themselves send are another matter.
        idp.execute("delete from postrider.deliveries where payload #>> '{message,kind}' = 'notification'").await;
        idp.deliver().await;
        assert_eq!(idp.mailbox.received_by("ada@rcpt.example").len(), 0, "{meanwhile:?}");
        assert_eq!(idp.counts("email").await["succeeded"], 1, "{meanwhile:?}");
    }
}

#[tokio::test]
async fn no_recovery_link_is_sent_once_it_is_used_cancelled_or_expired_or_the_account_disabled() {
    for meanwhile in ["used", "cancelled", "expired", "disabled", "address removed"] {
        let idp = Idp::new().await;
        let (account, _) = idp.account_with_address("ada").await;
        let recovery = idp.ask_to_recover(account).await;
        let (mut connection, recorder) = (idp.connect().await, idp.recorder());
        match meanwhile {
            "used" => {
                let token = idp.links.keys.recovery_token(recovery);
                use_recovery(&mut connection, &recorder, token.as_str(), None).await.unwrap().committed();
                idp.execute("delete from postrider.deliveries where payload #>> '{message,kind}' = 'notification'")
                    .await;
            }
            "cancelled" => cancel_recovery(&mut connection, recovery).await.unwrap(),
            "expired" => {
                idp.execute("update postrider_identity.recoveries set expires_at = now() - interval '1 second'").await;
            }
            "disabled" => drop(set_state(&mut connection, account, AccountState::Disabled).await.unwrap()),
            _ => {
                let gone = "update postrider_identity.email_addresses set is_primary = false, removed_at = now()";
                idp.execute(gone).await;
            }
        }
        idp.deliver().await;
        assert_eq!(idp.mailbox.received().len(), 0, "{meanwhile}");
        assert_eq!(idp.counts("email").await["succeeded"], 1, "{meanwhile}");
    }
}

/// The digest in the row says which key a link was made with, whatever key is the first by now.
#[tokio::test]
async fn a_link_is_derived_again_by_whichever_key_it_was_made_with() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    idp.ask_to_recover(account).await;
    let rotated = Links { keys: keys(&[7, 1]), ..idp.links.clone() };
    let subsystem = idp.start_with(idp.channels_with(&rotated, true)).await;
    idp.settled().await;
    subsystem.shut_down().await;
    let token = token_of(&idp.only_mail("ada@rcpt.example").text, "https://id.example/recover/");
    use_recovery(&mut idp.connect().await, &idp.recorder(), &token, None).await.unwrap().committed();
}

#[tokio::test]
async fn a_link_that_no_key_derives_fails_at_once() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    idp.ask_to_recover(account).await;
    let others = Links { keys: keys(&[7, 8]), ..idp.links.clone() };
    let subsystem = idp.start_with(idp.channels_with(&others, true)).await;
    idp.settled().await;
    subsystem.shut_down().await;
    let row: (String, Option<String>, i32) =
        sqlx::query_as("select status, last_error, attempt from postrider.deliveries")
            .fetch_one(idp.database.pool())
            .await
            .unwrap();
    assert_eq!(row, ("failed".into(), Some("link_key".into()), 1));
    assert_eq!(idp.mailbox.received().len(), 0);
}

/// Whatever was sent, recorded and kept: no row of any table holds a token.
#[tokio::test]
async fn never_secret_no_row_holds_a_token_and_no_destination_an_address() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    let address = idp.unverified(account, "second@rcpt.example").await;
    idp.ask_to_verify(address).await;
    let recovery = idp.ask_to_recover(account).await;
    idp.notify(account, &Notice::PasskeyAdded { name: "Blue key".into() }).await;
    idp.announce("News", false).await;
    let keys = &idp.links.keys;
    let secrets = [
        keys.verification_token(address).as_str().to_owned(),
        keys.recovery_token(recovery).as_str().to_owned(),
        keys.unsubscribe_token(account),
    ];
    for _ in ["before", "after"] {
        let tables: Vec<String> = sqlx::query_scalar(
            "select format('%I.%I', table_schema, table_name) from information_schema.tables
              where table_schema like 'postrider%'",
        )
        .fetch_all(idp.database.pool())
        .await
        .unwrap();
        assert!(tables.len() > 10, "{tables:?}");
        for table in &tables {
            let rows = format!("select coalesce(string_agg(t::text, ' '), '') from {table} t");
            let rows: String =
                sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(idp.database.pool()).await.unwrap();
            assert!(!secrets.iter().any(|secret| rows.contains(secret)), "{table}");
            if table == "postrider.events" {
                assert!(!rows.contains("rcpt.example"), "{rows}");
            }
        }
        let destinations: Vec<String> = sqlx::query_scalar("select destination from postrider.deliveries")
            .fetch_all(idp.database.pool())
            .await
            .unwrap();
        assert!(destinations.len() == 4 && destinations.iter().all(|one| !one.contains('@')), "{destinations:?}");
        idp.deliver().await;
    }
    assert_eq!(idp.mailbox.received().len(), 4);
}
