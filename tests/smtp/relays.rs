//! Several relays.

use std::time::Duration;

use postrider::mail::smtp::{Relay, Smtp, SmtpConfig, SmtpSetupError};
use postrider_actors::{Outcome, Reason};

use crate::mail::{code, message, message_to};
use crate::outbound::{Unanswering, vacant};
use crate::script::{Act, Point, Script, Server, config, say};
use crate::tls::Trusted;

async fn nobody() -> Relay {
    Relay::parse(&format!("smtp+plain://127.0.0.1:{}", vacant().await)).unwrap()
}

/// Whatever a relay fails by before it has asked for the message: the next one has it in the same attempt.
#[tokio::test]
async fn a_relay_that_cannot_be_used_is_passed_over_within_the_attempt() {
    for script in [
        Script::clear().on(Point::Greeting, say("554 no service")),
        Script::clear().on(Point::Greeting, vec![Act::Close]),
        Script::clear().on(Point::Ehlo, say("421 closing")),
        Script::clear().on(Point::Ehlo, say("hello")),
        Script::clear().on(Point::Mail, say("421 busy")),
        Script::clear().on(Point::Mail, say("530 5.7.0 log in first")),
        Script::clear().on(Point::Mail, vec![Act::Close]),
        Script::clear().on(Point::Rcpt, say("421 busy")),
        Script::clear().on(Point::Rcpt, vec![Act::Reset]),
        Script::clear().on(Point::Rcpt, say("hello")),
        Script::clear().on(Point::Data, say("421 busy")),
        Script::clear().on(Point::Data, say("535 no login")),
        Script::clear().on(Point::Data, vec![Act::Reset]),
        Script::clear().on(Point::Data, say("250 odd")),
    ] {
        let (first, second) = (Server::like(script).await, Server::like(Script::clear()).await);
        let smtp = Smtp::new(config(vec![nobody().await, first.relay(), second.relay()])).unwrap();
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
        assert_eq!((first.log().messages().len(), second.log().messages().len()), (0, 1));
        assert_eq!(first.log().connections().len(), 1);
        // Known by now: the second is tried first.
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
        assert_eq!(first.log().connections().len(), 1, "the one that failed is tried last");
        assert_eq!(second.log().only().messages.len(), 2);
    }
}

/// What a relay says of the message is said, and no other is asked.
#[tokio::test]
async fn a_relay_that_took_part_in_a_transaction_is_the_only_one() {
    for (point, reply, expected) in [
        (Point::Mail, "550 no", Outcome::failed(code(550))),
        (Point::Mail, "450 later", Outcome::retry(code(450))),
        (Point::Rcpt, "550 no", Outcome::failed(code(550))),
        (Point::Data, "451 later", Outcome::retry(code(451))),
        (Point::Data, "554 no", Outcome::failed(code(554))),
        (Point::DataEnd, "535 odd", Outcome::retry(code(535))),
        (Point::DataEnd, "421 busy", Outcome::retry(code(421))),
        (Point::DataEnd, "554 no", Outcome::failed(code(554))),
    ] {
        let (first, second) =
            (Server::like(Script::clear().on(point, say(reply))).await, Server::like(Script::clear()).await);
        let smtp = Smtp::new(config(vec![first.relay(), second.relay()])).unwrap();
        assert_eq!(smtp.send(&message()).await, expected, "{reply} at {point:?}");
        assert_eq!(second.log().connections().len(), 0, "{reply} at {point:?}");
    }
}

#[tokio::test]
async fn where_no_relay_can_be_used_the_reason_is_the_first_ones() {
    let busy = Server::like(Script::clear().on(Point::Greeting, say("421 busy"))).await;
    let odd = Server::like(Script::clear().on(Point::Greeting, say("hello"))).await;
    let smtp = Smtp::new(config(vec![busy.relay(), odd.relay(), nobody().await])).unwrap();
    assert_eq!(smtp.send(&message()).await, Outcome::retry(code(421)));
    let smtp = Smtp::new(config(vec![nobody().await, odd.relay(), busy.relay()])).unwrap();
    assert_eq!(smtp.send(&message()).await, Outcome::retry(Reason::Connection));
    assert_eq!((busy.log().connections().len(), odd.log().connections().len()), (2, 2), "all were tried");
}

/// A login that is refused and TLS that cannot be set up: the next one, and where there is none, these are what is told.
#[tokio::test]
async fn a_refused_login_or_broken_tls_is_passed_over_and_told_before_what_may_pass() {
    let trusted = Trusted::start(vec![Script::tls().on(Point::Auth, say("535 5.7.8 no"))]).await;
    let refuses = trusted.server.relay_by("smtps://mailer:secret@127.0.0.1");
    let untrusted = Server::like(Script::start_tls()).await;
    let not_certified = untrusted.relay_by("smtp://127.0.0.1");
    let stripped = Server::like(Script::clear()).await;
    let without_tls = stripped.relay_by("smtp://127.0.0.1");
    let good = Server::like(Script::clear()).await;
    let send = async |relays| {
        let settings = SmtpConfig { relays, ..trusted.config("smtps://127.0.0.1") };
        Smtp::new(settings).unwrap().send(&message()).await
    };
    for bad in [&refuses, &not_certified, &without_tls] {
        assert_eq!(send(vec![bad.clone(), good.relay()]).await, Outcome::Succeeded, "{bad}");
    }
    assert_eq!(good.log().messages().len(), 3);
    let (login, tls) = (Outcome::retry(code(535)), Outcome::retry(Reason::Tls));
    assert_eq!(send(vec![nobody().await, refuses.clone()]).await, login);
    assert_eq!(send(vec![nobody().await, not_certified.clone(), refuses.clone()]).await, tls, "the first of two");
    assert_eq!(send(vec![refuses, without_tls, nobody().await]).await, login);
}

/// One that says nothing in mid-session leaves the next one its share of the time, and is not asked twice.
#[tokio::test]
async fn a_relay_that_stalls_before_the_message_is_passed_over_in_time() {
    for point in [Point::Mail, Point::Rcpt, Point::Data] {
        let stalls = Server::like(Script::clear().on(point, vec![Act::Stall])).await;
        let good = Server::like(Script::clear()).await;
        let relays = vec![stalls.relay(), good.relay()];
        let settings = SmtpConfig { total_timeout: Duration::from_secs(2), ..config(relays) };
        let smtp = Smtp::new(settings).unwrap();
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded, "{point:?}");
        assert_eq!((stalls.log().connections().len(), good.log().messages().len()), (1, 1), "{point:?}");
    }
}

/// A relay that says nothing has its share of the time and leaves the rest to the next.
#[tokio::test]
async fn a_relay_that_stalls_leaves_the_next_one_its_share_of_the_time() {
    let silent = Server::like(Script::clear().on(Point::Greeting, vec![Act::Stall])).await;
    let good = Server::like(Script::clear()).await;
    let settings = SmtpConfig { total_timeout: Duration::from_secs(2), ..config(vec![silent.relay(), good.relay()]) };
    assert!(settings.stage_timeouts.reply > settings.total_timeout, "only the share ends it");
    assert_eq!(Smtp::new(settings).unwrap().send(&message()).await, Outcome::Succeeded);
    let unanswering = Unanswering::start().await;
    let relay = Relay::parse(&format!("smtp+plain://127.0.0.1:{}", unanswering.port())).unwrap();
    let settings = SmtpConfig { total_timeout: Duration::from_secs(2), ..config(vec![relay, good.relay()]) };
    assert_eq!(Smtp::new(settings).unwrap().send(&message()).await, Outcome::Succeeded);
    assert_eq!(good.log().messages().len(), 2);
}

/// A relay without an extension is no reason to fail while another may have it.
#[tokio::test]
async fn a_message_fails_unsent_only_where_every_relay_was_heard() {
    let without = Server::like(Script::clear().offering(&[])).await;
    let small = Server::like(Script::clear().offering(&["SIZE 10"])).await;
    let with = Server::like(Script::clear().offering(&["SMTPUTF8", "8BITMIME"])).await;
    let mail = message_to("jos\u{e9}@rcpt.example");
    let send = async |relays| Smtp::new(config(relays)).unwrap().send(&mail).await;
    assert_eq!(send(vec![without.relay(), with.relay()]).await, Outcome::Succeeded);
    assert_eq!(send(vec![without.relay(), small.relay()]).await, Outcome::failed(Reason::Smtputf8));
    assert_eq!(send(vec![small.relay(), without.relay()]).await, Outcome::failed(code(552)));
    assert_eq!(send(vec![without.relay(), nobody().await]).await, Outcome::retry(Reason::Connection));
    assert_eq!(without.log().messages().len() + small.log().messages().len(), 0);
}

#[test]
fn settings_that_cannot_be_used_are_refused_by_name() {
    let good = config(vec![Relay::parse("smtp+plain://127.0.0.1").unwrap()]);
    let said = |settings: SmtpConfig| Smtp::new(settings).map(|_| ()).unwrap_err().to_string();
    assert!(matches!(Smtp::new(config(vec![])), Err(SmtpSetupError::NoRelay)));
    assert!(said(SmtpConfig { helo: "localhost".into(), ..good.clone() }).starts_with("helo:"));
    assert!(said(SmtpConfig { total_timeout: Duration::ZERO, ..good.clone() }).starts_with("total_timeout"));
    let mut none = good.clone();
    none.connections.messages = 0;
    assert!(said(none).starts_with("connections.messages:"));
    let missing = SmtpConfig { extra_roots: Some("/nonexistent/roots.pem".into()), ..good };
    assert_eq!(said(missing), "extra_roots");
}
