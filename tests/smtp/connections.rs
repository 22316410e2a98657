//! Connections that are kept for the next message.

use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::rr::RecordType;
use postrider::mail::smtp::{Relay, Smtp};
use postrider_actors::{Outcome, Reason};
use tokio::task::JoinSet;

use crate::mail::{code, message, message_to};
use crate::outbound::{Ca, Dns, Found, vacant};
use crate::script::{Act, Point, Script, Server, config, say};
use crate::tls::Trusted;

const TRANSACTION: [&str; 3] = ["MAIL", "RCPT", "DATA"];

#[tokio::test]
async fn a_connection_is_kept_and_asked_before_it_is_used_again() {
    let trusted = Trusted::start(vec![Script::start_tls()]).await;
    let smtp = Smtp::new(trusted.config("smtp://mailer:secret@127.0.0.1")).unwrap();
    for _ in 0..3 {
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    }
    let expected = ["EHLO", "STARTTLS", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "RSET", "MAIL", "RCPT", "DATA", "RSET"];
    let seen = trusted.server.log().only();
    assert_eq!(seen.verbs(), [&expected[..], &TRANSACTION].concat());
    assert_eq!(seen.messages.len(), 3);
}

#[tokio::test]
async fn sessions_are_counted_by_the_relays_place_and_never_by_its_name() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let server = Server::like(Script::clear()).await;
    let nobody = Relay::parse(&format!("smtp+plain://127.0.0.1:{}", vacant().await)).unwrap();
    let smtp = Smtp::new(config(vec![nobody, server.relay()])).unwrap();
    for _ in 0..3 {
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    }
    let page = recorder.handle().render();
    let counts: Vec<&str> = page.lines().filter(|line| line.starts_with("postrider_smtp")).collect();
    assert_eq!(counts, ["postrider_smtp_connections_opened_total{relay=\"1\"} 1"], "{page}");
    assert!(!page.contains("127.0.0.1"));
}

/// A name with several addresses, of which one takes connections; asked for by every attempt that connects.
#[tokio::test]
async fn the_addresses_of_a_relay_are_tried_in_turn_and_private_ones_are_as_good() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.2", "127.0.0.1"])).await;
    let server = Server::certified(ca.certify(&["relay.example"]), vec![Script::tls()]).await;
    let mut settings = config(vec![server.relay_by("smtps://relay.example")]);
    settings.name_server = Some(dns.address());
    settings.extra_roots = Some(ca.path().to_owned());
    settings.connections.messages = 1;
    let smtp = Smtp::new(settings).unwrap();
    for _ in 0..2 {
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    }
    assert_eq!(dns.count(RecordType::A), 2);
    assert!(dns.asked().iter().all(|(name, _)| name == "relay.example."), "{:?}", dns.asked());
}

#[tokio::test]
async fn a_connection_carries_no_more_messages_than_its_limit() {
    let server = Server::like(Script::clear()).await;
    let mut settings = server.config();
    settings.connections.messages = 2;
    let smtp = Smtp::new(settings).unwrap();
    for _ in 0..5 {
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    }
    let counts: Vec<usize> = server.log().connections().iter().map(|seen| seen.messages.len()).collect();
    assert_eq!(counts, [2, 2, 1]);
}

/// Idle for longer than it may be: closed with QUIT at the next look, and a new one made.
#[tokio::test]
async fn an_expired_connection_is_ended_and_not_used() {
    let server = Server::like(Script::clear()).await;
    let mut settings = server.config();
    settings.connections.idle = Duration::from_nanos(1);
    let smtp = Smtp::new(settings).unwrap();
    assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    assert!(!server.log().only().gone);
    assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    server.log().until("the first is gone", |all| all.len() == 2 && all[0].gone).await;
    assert!(server.log().connections()[0].clear.ends_with(b".\r\nQUIT\r\n"));
}

/// A kept connection that ends in every way, at every step before the message: one attempt, which succeeds over a fresh one.
#[tokio::test]
async fn a_kept_connection_that_is_gone_is_replaced_within_the_attempt() {
    let after_the_dot = |act| [say("250 ok"), vec![act]].concat();
    let unasked = [say("250 ok"), say("421 4.4.2 idle for too long"), vec![Act::Close]].concat();
    for (what, kept) in [
        ("closed while idle", Script::clear().on(Point::DataEnd, after_the_dot(Act::Close))),
        ("reset while idle", Script::clear().on(Point::DataEnd, after_the_dot(Act::Reset))),
        ("421 while idle", Script::clear().on(Point::DataEnd, unasked)),
        ("421 at RSET", Script::clear().on(Point::Rset, [say("421 busy"), vec![Act::Close]].concat())),
        ("500 at RSET", Script::clear().on(Point::Rset, say("500 what"))),
        ("no reply at RSET", Script::clear().on(Point::Rset, say("hello"))),
        ("reset at RSET", Script::clear().on(Point::Rset, vec![Act::Reset])),
        ("421 at MAIL", Script::clear().nth(Point::Mail, 1, [say("421 busy"), vec![Act::Close]].concat())),
        ("closed at MAIL", Script::clear().nth(Point::Mail, 1, vec![Act::Close])),
        ("421 at RCPT", Script::clear().nth(Point::Rcpt, 1, [say("421 busy"), vec![Act::Close]].concat())),
        ("reset at RCPT", Script::clear().nth(Point::Rcpt, 1, vec![Act::Reset])),
        ("not SMTP at RCPT", Script::clear().nth(Point::Rcpt, 1, say("hello"))),
        ("421 at DATA", Script::clear().nth(Point::Data, 1, [say("421 busy"), vec![Act::Close]].concat())),
        ("reset at DATA", Script::clear().nth(Point::Data, 1, vec![Act::Reset])),
        ("the login forgotten", Script::clear().nth(Point::Mail, 1, say("530 5.7.0 log in first"))),
    ] {
        let server = Server::start(vec![kept, Script::clear()]).await;
        let smtp = Smtp::new(server.config()).unwrap();
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded, "{what}");
        let connections = server.log().connections();
        let counts: Vec<usize> = connections.iter().map(|seen| seen.messages.len()).collect();
        assert_eq!(counts, [1, 1], "{what}");
    }
}

/// A relay that stalls at RSET costs the time of one step, not the attempt.
#[tokio::test]
async fn a_kept_connection_that_stalls_at_rset_is_replaced_within_the_attempt() {
    let server = Server::start(vec![Script::clear().on(Point::Rset, vec![Act::Stall]), Script::clear()]).await;
    let mut settings = server.config();
    settings.stage_timeouts.reply = Duration::from_millis(500);
    let smtp = Smtp::new(settings).unwrap();
    for _ in 0..2 {
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    }
    assert_eq!(server.log().connections().len(), 2);
}

/// Once: a fresh connection that ends the same way is the attempt's end.
#[tokio::test]
async fn a_fresh_connection_that_breaks_is_not_replaced() {
    for (acts, reason) in
        [(vec![Act::Close], Reason::Connection), ([say("421 busy"), vec![Act::Close]].concat(), code(421))]
    {
        for point in [Point::Mail, Point::Rcpt, Point::Data] {
            let server = Server::like(Script::clear().on(point, acts.clone())).await;
            let smtp = Smtp::new(server.config()).unwrap();
            assert_eq!(smtp.send(&message()).await, Outcome::retry(reason), "{point:?}");
            assert_eq!(server.log().connections().len(), 1, "{point:?}");
        }
    }
}

/// Refusals leave the connection in order: it is kept.
#[tokio::test]
async fn smtp_message_41_a_refusal_leaves_the_connection_usable() {
    for point in [Point::Mail, Point::Rcpt, Point::Data, Point::DataEnd] {
        let server = Server::like(Script::clear().nth(point, 0, say("550 no"))).await;
        let smtp = Smtp::new(server.config()).unwrap();
        let refused = Outcome::failed(code(550));
        assert_eq!(smtp.send(&message()).await, refused, "{point:?}");
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded, "{point:?}");
        let verbs = server.log().only().verbs();
        assert_eq!(verbs[verbs.len() - 4..], ["RSET", "MAIL", "RCPT", "DATA"], "{point:?}");
    }
}

/// Sends at once never share a connection: no command comes between another transaction's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn smtp_message_41_a_connection_carries_one_transaction_at_a_time() {
    let server = Server::like(Script::clear()).await;
    let smtp = Arc::new(Smtp::new(server.config()).unwrap());
    for _ in 0..3 {
        let mut sends = JoinSet::new();
        for number in 0..8 {
            let smtp = Arc::clone(&smtp);
            sends.spawn(async move { smtp.send(&message_to(&format!("user{number}@rcpt.example"))).await });
        }
        assert!(sends.join_all().await.iter().all(|outcome| *outcome == Outcome::Succeeded));
    }
    let connections = server.log().connections();
    assert!(connections.len() <= 8, "those of the first round are used again");
    assert_eq!(server.log().messages().len(), 24);
    for seen in connections {
        let verbs = seen.verbs();
        let commands: Vec<&str> = verbs.iter().map(String::as_str).filter(|verb| *verb != "RSET").collect();
        assert!(commands[1..].chunks(3).all(|transaction| transaction == TRANSACTION), "{verbs:?}");
    }
}

/// As when the actor that sends is killed: whatever the step, the next message goes over a connection of its own.
#[tokio::test]
async fn a_send_that_is_dropped_leaves_no_connection_behind() {
    for point in [Point::Greeting, Point::Ehlo, Point::Mail, Point::Rcpt, Point::Data, Point::DataEnd] {
        let server = Server::start(vec![Script::clear().on(point, vec![Act::Stall]), Script::clear()]).await;
        let smtp = Arc::new(Smtp::new(server.config()).unwrap());
        let first = {
            let smtp = Arc::clone(&smtp);
            tokio::spawn(async move { smtp.send(&message()).await })
        };
        let stalled: &[u8] = match point {
            Point::Greeting => b"",
            Point::Ehlo => b"EHLO client.example.org\r\n",
            Point::Mail => b"MAIL FROM:",
            Point::Rcpt => b"RCPT TO:",
            Point::Data => b"DATA\r\n",
            _ => b"\r\n.\r\n",
        };
        let come_to = |clear: &[u8]| stalled.is_empty() || clear.windows(stalled.len()).any(|part| part == stalled);
        server.log().until("it stalls", |all| all.first().is_some_and(|seen| come_to(&seen.clear))).await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        server.log().all_gone().await;
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded, "{point:?}");
        assert_eq!(server.log().connections().len(), 2, "{point:?}");
    }
}
