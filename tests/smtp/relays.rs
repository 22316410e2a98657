//! Several relays.

use std::time::Duration;

use postrider::mail::smtp::{Relay, Smtp, SmtpConfig, SmtpSetupError};
use postrider_actors::{Outcome, Reason};

use crate::mail::{code, message, message_to};
use crate::outbound::{Unanswering, vacant};
use crate::script::{Act, Point, Script, Server, config, say};

async fn nobody() -> Relay {
    Relay::parse(&format!("smtp+plain://127.0.0.1:{}", vacant().await)).unwrap()
}

/// Whatever a relay fails by before MAIL, and a 421 at MAIL or RCPT: the next one has the message in the same attempt.
#[tokio::test]
async fn a_relay_that_cannot_be_used_is_passed_over_within_the_attempt() {
    for script in [
        Script::clear().on(Point::Greeting, say("554 no service")),
        Script::clear().on(Point::Greeting, vec![Act::Close]),
        Script::clear().on(Point::Ehlo, say("421 closing")),
        Script::clear().on(Point::Ehlo, say("hello")),
        Script::clear().on(Point::Mail, say("421 busy")),
        Script::clear().on(Point::Rcpt, say("421 busy")),
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
        (Point::Data, "421 busy", Outcome::retry(code(421))),
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
