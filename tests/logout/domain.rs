//! The reference domain and what the channel makes of it.

use postrider::identity::{
    NewClient, RegistrationError, RevokedBy, Sessions, create_session, register_client, revoke_sessions,
};
use postrider::outbound::{AddressPolicy, DestinationError};
use postrider::signing::{SigningAlgorithm, SigningKey, SigningKeys};

use crate::support::eventually;
use crate::world::{SOON, World};

#[tokio::test]
async fn each_session_revoked_is_one_event_with_a_delivery_for_each_client_that_has_tokens_and_a_uri() {
    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    for client in ["one", "two", "three"] {
        world.register(client, &receiver, "/").await;
    }
    world.execute("insert into postrider_identity.oidc_clients (id, name) values ('silent', 'silent')").await;
    let first = world.session(&["one", "two", "silent"]).await;
    let second = world.session(&["one"]).await;
    let third = world.session(&[]).await;
    let mut connection = world.database.connect().await;
    let except = Sessions::OfAccountExcept(world.account, third);
    let revoked = revoke_sessions(&mut connection, &world.recorder(), except, RevokedBy::Security).await.unwrap();
    assert_eq!((revoked.sessions(), revoked.deliveries()), (2, 3));
    let again = Sessions::OfAccount(world.account);
    let revoked = revoke_sessions(&mut connection, &world.recorder(), again, RevokedBy::SignOut).await.unwrap();
    assert_eq!((revoked.sessions(), revoked.deliveries()), (1, 0), "revoked once; the third has no clients");

    let events: Vec<(String, String)> = sqlx::query_as(
        "select payload->>'session', payload->>'by' from postrider.events where kind = 'session_revoked' order by id",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let mut expected: Vec<_> = [first, second].map(|session| (session.0.to_string(), "security".into())).into();
    expected.push((third.0.to_string(), "sign_out".into()));
    assert_eq!(events, expected);
    let mut owners: Vec<String> = world.rows().await.into_iter().map(|row| row.owner).collect();
    owners.sort();
    assert_eq!(owners, ["one", "one", "two"]);
}

#[tokio::test]
async fn a_session_cannot_end_early_without_being_revoked() {
    let world = World::new().await;
    let mut connection = world.database.connect().await;
    let session = create_session(&mut connection, world.account).await.unwrap();
    let delete = "delete from postrider_identity.sessions where id = $1";
    let refused = sqlx::query(delete).bind(session).execute(&mut connection).await.unwrap_err();
    assert!(refused.to_string().contains("revoke_sessions"), "{refused}");
    let account = "delete from postrider_identity.accounts";
    assert!(sqlx::query(account).execute(&mut connection).await.is_err(), "nor by deleting the account under it");
    world.sign_out(&mut connection, session).await;
    sqlx::query(delete).bind(session).execute(&mut connection).await.unwrap();
}

/// Whatever release redeems a code, and however, the client is noted.
#[tokio::test]
async fn a_client_is_noted_however_its_code_is_redeemed() {
    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register("rp", &receiver, "/").await;
    let mut connection = world.database.connect().await;
    for insert in [
        "insert into postrider_identity.oidc_authorization_codes (code_digest, client_id, session_id, redeemed_at) values ($1, 'rp', $2, now())",
        "with code as (insert into postrider_identity.oidc_authorization_codes (code_digest, client_id, session_id) values ($1, 'rp', $2) returning code_digest)
         select from code",
    ] {
        let session = create_session(&mut connection, world.account).await.unwrap();
        let digest = session.0.as_bytes().to_vec();
        sqlx::query(insert).bind(&digest).bind(session).execute(&mut connection).await.unwrap();
        let redeem = "update postrider_identity.oidc_authorization_codes set redeemed_at = now() where code_digest = $1 and redeemed_at is null";
        sqlx::query(redeem).bind(&digest).execute(&mut connection).await.unwrap();
        let noted: i64 = sqlx::query_scalar("select count(*) from postrider_identity.oidc_session_clients where session_id = $1")
            .bind(session)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(noted, 1);
    }
}

#[tokio::test]
async fn a_client_with_a_uri_that_could_never_be_delivered_to_is_not_registered() {
    let world = World::new().await;
    let mut connection = world.database.connect().await;
    for (uri, kind) in [
        ("http://rp.example/", DestinationError::Scheme),
        ("https://user:pw@rp.example/", DestinationError::Userinfo),
        ("https://rp.example/#x", DestinationError::Fragment),
        ("https://10.0.0.1/", DestinationError::RefusedAddress),
        ("/logout", DestinationError::NotAbsolute),
    ] {
        let backchannel_logout_uri = Some(uri);
        let algorithm = SigningAlgorithm::Es256;
        let client = NewClient { id: "rp", name: "rp", backchannel_logout_uri, session_required: false, algorithm };
        match register_client(&mut connection, &client, &AddressPolicy::default()).await.unwrap_err() {
            RegistrationError::Uri { source, .. } => assert_eq!(source, kind),
            RegistrationError::Database(error) => panic!("{error:?}"),
        }
    }
    let count: i64 = sqlx::query_scalar("select count(*) from postrider_identity.oidc_clients")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(count, 0);
}

/// C53: the guard at the send does not depend on the one at registration.
#[tokio::test(flavor = "multi_thread")]
async fn c53_a_destination_that_got_into_a_row_past_registration_is_refused_at_the_send() {
    let world = World::new().await;
    let subsystem = world.start().await;
    let uris = [
        "https://10.0.0.1/",
        "https://169.254.169.254/latest",
        "https://2130706433/",
        "https://[::ffff:10.0.0.1]/",
        "https://a@10.0.0.1/x",
        "https://exa%6dple.com:0/",
        "https://rp.example/#x",
    ];
    for uri in uris {
        sqlx::query(
            "insert into postrider_identity.oidc_clients (id, name, backchannel_logout_uri) values ($1, $1, $1)",
        )
        .bind(uri)
        .execute(world.database.pool())
        .await
        .unwrap();
    }
    world.tell(&uris).await;
    for uri in uris {
        let row = world.becomes(uri, "failed").await;
        assert_eq!(row.last_error.as_deref(), Some("refused_destination"), "{uri}");
        assert_eq!(row.attempts, 1);
    }
    subsystem.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_of_a_newer_release_is_left_for_a_newer_replica_and_never_failed() {
    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register("rp", &receiver, "/").await;
    world.tell(&["rp"]).await;
    world.execute(r#"update postrider.deliveries set payload = payload || '{"of_a_newer_release": 1}'"#).await;
    let subsystem = world.start().await;
    eventually(SOON, "it is deferred", async || {
        world.row("rp").await.last_error.as_deref() == Some("unreadable_payload")
    })
    .await;
    let row = world.row("rp").await;
    assert_eq!((row.status.as_str(), row.attempts), ("pending", 0), "the attempt is given back");
    assert_eq!(receiver.connections(), 0);
    // The newer replica comes, and can read it.
    world.execute("update postrider.deliveries set payload = payload - 'of_a_newer_release', due_at = now(), ready_at = now()").await;
    world.becomes("rp", "succeeded").await;
    subsystem.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_algorithm_has_no_key_waits_for_one() {
    let mut world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register_signed("rp", &receiver, "/", SigningAlgorithm::Rs256).await;
    let subsystem = world.start().await;
    world.tell(&["rp"]).await;
    eventually(SOON, "it waits", async || world.row("rp").await.last_error.as_deref() == Some("signing_key")).await;
    subsystem.shut_down().await;
    assert_eq!((world.row("rp").await.status.as_str(), receiver.connections()), ("pending", 0));
    world.keys = SigningKeys::new(vec![SigningKey::generate(SigningAlgorithm::Rs256).unwrap()]).unwrap();
    let subsystem = world.start().await;
    world.becomes("rp", "succeeded").await;
    subsystem.shut_down().await;
}

/// A code that is redeemed while its session is being revoked: either the client is told, or it gets no token.
#[tokio::test(flavor = "multi_thread")]
async fn a_redeem_that_races_a_revocation_leaves_no_client_untold() {
    use postrider::identity::{issue_code, redeem_code};

    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register("rp", &receiver, "/").await;
    for redeems_first in [true, false] {
        let mut connection = world.database.connect().await;
        let session = create_session(&mut connection, world.account).await.unwrap();
        let digest = session.0.as_bytes().to_vec();
        issue_code(&mut connection, &digest, "rp", session).await.unwrap();
        if redeems_first {
            let mut redeeming = world.database.pool().begin().await.unwrap();
            assert!(redeem_code(&mut redeeming, &digest).await.unwrap());
            let revoking = async {
                let mut connection = world.database.connect().await;
                world.sign_out(&mut connection, session).await
            };
            let committing = async {
                eventually(SOON, "the revocation waits for the redeem", async || {
                    let waits = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')";
                    sqlx::query_scalar(waits).fetch_one(world.database.pool()).await.unwrap()
                })
                .await;
                redeeming.commit().await.unwrap();
            };
            let (told, ()) = tokio::join!(revoking, committing);
            assert_eq!(told, 1);
        } else {
            assert_eq!(world.sign_out(&mut connection, session).await, 0);
            let refused = redeem_code(&mut connection, &digest).await.unwrap_err();
            assert!(refused.to_string().contains("has ended"), "{refused}");
        }
    }
}

/// One session of the database redeems codes and revokes before and after a newer release adds a column to each table.
#[tokio::test]
async fn c41_the_domains_statements_and_trigger_go_on_in_a_session_that_knew_the_older_tables() {
    use postrider::identity::{issue_code, redeem_code};

    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register("rp", &receiver, "/").await;
    let mut connection = world.database.connect().await;
    for round in 0..2 {
        let session = create_session(&mut connection, world.account).await.unwrap();
        let digest = session.0.as_bytes().to_vec();
        issue_code(&mut connection, &digest, "rp", session).await.unwrap();
        assert!(redeem_code(&mut connection, &digest).await.unwrap());
        assert_eq!(world.sign_out(&mut connection, session).await, 1);
        if round == 0 {
            for table in ["accounts", "sessions", "oidc_clients", "oidc_authorization_codes", "oidc_session_clients"] {
                let add = format!("alter table postrider_identity.{table} add column of_a_newer_release text");
                sqlx::query(sqlx::AssertSqlSafe(add)).execute(world.database.pool()).await.unwrap();
            }
        }
    }
}
